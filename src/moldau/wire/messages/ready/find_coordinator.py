"""FindCoordinatorRequest v6 and FindCoordinatorResponse v6. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.find_coordinator import FindCoordinatorResponse

pack_bB = Struct('>bB').pack
pack_b = Struct('>b').pack
unpack_iB = Struct('>iB').unpack_from
unpack_ihB = Struct('>ihB').unpack_from
FindCoordinatorResponse_Coordinator = FindCoordinatorResponse.Coordinator


def encode(m, out):
    if m.key != '':
        raise WireError('key does not exist in v6 but is ' + repr(m.key)[:100])
    l1 = m.coordinator_keys
    n2 = len(l1)
    if n2 < 127:
        out += pack_bB(m.key_type, n2 + 1)
    else:
        out += pack_b(m.key_type)
        write_unsigned_varint(out, n2 + 1)
    for m3 in l1:
        b4 = m3
        b4 = b4.encode()
        n5 = len(b4)
        if n5 < 127:
            out.append(n5 + 1)
            out += b4
        else:
            long_string(out, b4)
    t6 = m.unknown_tagged_fields
    if t6:
        write_tags(out, t6)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(FindCoordinatorResponse)
    m.error_code = 0
    m.error_message = ''
    m.node_id = 0
    m.host = ''
    m.port = 0
    m.throttle_time_ms, n1 = unpack_iB(buf, pos)
    pos += 5
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('coordinators must not be null')
    n1 -= 1
    if n1 * 14 > end - pos:
        raise WireError('coordinators has more elements than bytes')
    m.coordinators = l2 = []
    for _ in range(n1):
        m3 = new(FindCoordinatorResponse_Coordinator)
        n4 = buf[pos]
        pos += 1
        if n4 > 127:
            n4, pos = varint_tail(buf, pos, n4)
        if n4 == 0:
            raise WireError('key must not be null')
        e5 = pos + n4 - 1
        if n4 > 32768:
            raise WireError('key is longer than 32767 bytes')
        m3.key = buf[pos:e5].decode()
        pos = e5
        m3.node_id, n6 = unpack_iB(buf, pos)
        pos += 5
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            raise WireError('host must not be null')
        e7 = pos + n6 - 1
        if n6 > 32768:
            raise WireError('host is longer than 32767 bytes')
        m3.host = buf[pos:e7].decode()
        pos = e7
        m3.port, m3.error_code, n8 = unpack_ihB(buf, pos)
        pos += 7
        if n8 > 127:
            n8, pos = varint_tail(buf, pos, n8)
        if n8 == 0:
            m3.error_message = None
        else:
            e9 = pos + n8 - 1
            if n8 > 32768:
                raise WireError('error_message is longer than 32767 bytes')
            m3.error_message = buf[pos:e9].decode()
            pos = e9
        n10 = buf[pos]
        pos += 1
        m3.unknown_tagged_fields = None
        if n10:
            m3.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n10)
        l2.append(m3)
    n11 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n11:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n11)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
