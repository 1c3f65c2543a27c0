"""JoinGroupRequest v9 and JoinGroupResponse v9. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_bytes, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.join_group import JoinGroupResponse

pack_iiB = Struct('>iiB').pack
pack_ii = Struct('>ii').pack
unpack_ihiB = Struct('>ihiB').unpack_from
unpack_oB = Struct('>?B').unpack_from
JoinGroupResponse_JoinGroupResponseMember = JoinGroupResponse.JoinGroupResponseMember


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
        out += pack_iiB(m.session_timeout_ms, m.rebalance_timeout_ms, n4 + 1)
        out += b3
    else:
        out += pack_ii(m.session_timeout_ms, m.rebalance_timeout_ms)
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
    b7 = b7.encode()
    n8 = len(b7)
    if n8 < 127:
        out.append(n8 + 1)
        out += b7
    else:
        long_string(out, b7)
    l9 = m.protocols
    n10 = len(l9)
    if n10 < 127:
        out.append(n10 + 1)
    else:
        write_unsigned_varint(out, n10 + 1)
    for m11 in l9:
        b12 = m11.name
        b12 = b12.encode()
        n13 = len(b12)
        if n13 < 127:
            out.append(n13 + 1)
            out += b12
        else:
            long_string(out, b12)
        b14 = m11.metadata
        n15 = len(b14)
        if n15 < 127:
            out.append(n15 + 1)
            out += b14
        else:
            long_bytes(out, b14)
        t16 = m11.unknown_tagged_fields
        if t16:
            write_tags(out, t16)
        else:
            out.append(0)
    b17 = m.reason
    if b17 is None:
        out.append(0)
    else:
        b17 = b17.encode()
        n18 = len(b17)
        if n18 < 127:
            out.append(n18 + 1)
            out += b17
        else:
            long_string(out, b17)
    t19 = m.unknown_tagged_fields
    if t19:
        write_tags(out, t19)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(JoinGroupResponse)
    m.throttle_time_ms, m.error_code, m.generation_id, n1 = unpack_ihiB(buf, pos)
    pos += 11
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
        raise WireError('leader must not be null')
    e6 = pos + n5 - 1
    if n5 > 32768:
        raise WireError('leader is longer than 32767 bytes')
    m.leader = buf[pos:e6].decode()
    pos = e6
    m.skip_assignment, n7 = unpack_oB(buf, pos)
    pos += 2
    if n7 > 127:
        n7, pos = varint_tail(buf, pos, n7)
    if n7 == 0:
        raise WireError('member_id must not be null')
    e8 = pos + n7 - 1
    if n7 > 32768:
        raise WireError('member_id is longer than 32767 bytes')
    m.member_id = buf[pos:e8].decode()
    pos = e8
    n9 = buf[pos]
    pos += 1
    if n9 > 127:
        n9, pos = varint_tail(buf, pos, n9)
    if n9 == 0:
        raise WireError('members must not be null')
    n9 -= 1
    if n9 * 4 > end - pos:
        raise WireError('members has more elements than bytes')
    m.members = l10 = []
    for _ in range(n9):
        m11 = new(JoinGroupResponse_JoinGroupResponseMember)
        n12 = buf[pos]
        pos += 1
        if n12 > 127:
            n12, pos = varint_tail(buf, pos, n12)
        if n12 == 0:
            raise WireError('member_id must not be null')
        e13 = pos + n12 - 1
        if n12 > 32768:
            raise WireError('member_id is longer than 32767 bytes')
        m11.member_id = buf[pos:e13].decode()
        pos = e13
        n14 = buf[pos]
        pos += 1
        if n14 > 127:
            n14, pos = varint_tail(buf, pos, n14)
        if n14 == 0:
            m11.group_instance_id = None
        else:
            e15 = pos + n14 - 1
            if n14 > 32768:
                raise WireError('group_instance_id is longer than 32767 bytes')
            m11.group_instance_id = buf[pos:e15].decode()
            pos = e15
        n16 = buf[pos]
        pos += 1
        if n16 > 127:
            n16, pos = varint_tail(buf, pos, n16)
        if n16 == 0:
            raise WireError('metadata must not be null')
        e17 = pos + n16 - 1
        m11.metadata = buf[pos:e17]
        pos = e17
        n18 = buf[pos]
        pos += 1
        m11.unknown_tagged_fields = None
        if n18:
            m11.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n18)
        l10.append(m11)
    n19 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n19:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n19)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
