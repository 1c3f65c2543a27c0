"""SyncGroupRequest v5 and SyncGroupResponse v5. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_bytes, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.sync_group import SyncGroupResponse

pack_iB = Struct('>iB').pack
pack_i = Struct('>i').pack
unpack_ihB = Struct('>ihB').unpack_from


def encode(m, out):
    b1 = m.group_id
    b1 = b1.encode()
    n2 = len(b1)
    if n2 < 127:
        out.append(n2 + 1)
        out += b1
    else:
        long_string(out, b1)
    b3 = m.member_id
    b3 = b3.encode()
    n4 = len(b3)
    if n4 < 127:
        out += pack_iB(m.generation_id, n4 + 1)
        out += b3
    else:
        out += pack_i(m.generation_id)
        long_string(out, b3)
    b5 = m.group_instance_id
    if b5 is None:
        out.append(0)
    else:
        b5 = b5.encode()
        n6 = len(b5)
        if n6 < 127:
            out.append(n6 + 1)
            out += b5
        else:
            long_string(out, b5)
    b7 = m.protocol_type
    if b7 is None:
        out.append(0)
    else:
        b7 = b7.encode()
        n8 = len(b7)
        if n8 < 127:
            out.append(n8 + 1)
            out += b7
        else:
            long_string(out, b7)
    b9 = m.protocol_name
    if b9 is None:
        out.append(0)
    else:
        b9 = b9.encode()
        n10 = len(b9)
        if n10 < 127:
            out.append(n10 + 1)
            out += b9
        else:
            long_string(out, b9)
    l11 = m.assignments
    n12 = len(l11)
    if n12 < 127:
        out.append(n12 + 1)
    else:
        write_unsigned_varint(out, n12 + 1)
    for m13 in l11:
        b14 = m13.member_id
        b14 = b14.encode()
        n15 = len(b14)
        if n15 < 127:
            out.append(n15 + 1)
            out += b14
        else:
            long_string(out, b14)
        b16 = m13.assignment
        n17 = len(b16)
        if n17 < 127:
            out.append(n17 + 1)
            out += b16
        else:
            long_bytes(out, b16)
        t18 = m13.unknown_tagged_fields
        if t18:
            write_tags(out, t18)
        else:
            out.append(0)
    t19 = m.unknown_tagged_fields
    if t19:
        write_tags(out, t19)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(SyncGroupResponse)
    m.throttle_time_ms, m.error_code, n1 = unpack_ihB(buf, pos)
    pos += 7
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        m.protocol_type = None
    else:
        e2 = pos + n1 - 1
        if n1 > 32768:
            raise WireError('protocol_type is longer than 32767 bytes')
        m.protocol_type = buf[pos:e2].decode()
        pos = e2
    n3 = buf[pos]
    pos += 1
    if n3 > 127:
        n3, pos = varint_tail(buf, pos, n3)
    if n3 == 0:
        m.protocol_name = None
    else:
        e4 = pos + n3 - 1
        if n3 > 32768:
            raise WireError('protocol_name is longer than 32767 bytes')
        m.protocol_name = buf[pos:e4].decode()
        pos = e4
    n5 = buf[pos]
    pos += 1
    if n5 > 127:
        n5, pos = varint_tail(buf, pos, n5)
    if n5 == 0:
        raise WireError('assignment must not be null')
    e6 = pos + n5 - 1
    m.assignment = buf[pos:e6]
    pos = e6
    n7 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n7:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n7)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
