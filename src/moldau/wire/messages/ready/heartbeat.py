"""HeartbeatRequest v4 and HeartbeatResponse v4. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, write_tags
from moldau.wire.messages.heartbeat import HeartbeatResponse

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
    t7 = m.unknown_tagged_fields
    if t7:
        write_tags(out, t7)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(HeartbeatResponse)
    m.throttle_time_ms, m.error_code, n1 = unpack_ihB(buf, pos)
    pos += 7
    m.unknown_tagged_fields = None
    if n1:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n1)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
