"""ListOffsetsRequest v11 and ListOffsetsResponse v11. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.list_offsets import ListOffsetsResponse

pack_ibB = Struct('>ibB').pack
pack_ib = Struct('>ib').pack
pack_iiq = Struct('>iiq').pack
pack_iiqB = Struct('>iiqB').pack
pack_i = Struct('>i').pack
pack_iB = Struct('>iB').pack
unpack_iB = Struct('>iB').unpack_from
unpack_ihqqiB = Struct('>ihqqiB').unpack_from
ListOffsetsResponse_ListOffsetsTopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
ListOffsetsResponse_ListOffsetsPartitionResponse = ListOffsetsResponse.ListOffsetsPartitionResponse


def encode(m, out):
    l1 = m.topics
    n2 = len(l1)
    if n2 < 127:
        out += pack_ibB(m.replica_id, m.isolation_level, n2 + 1)
    else:
        out += pack_ib(m.replica_id, m.isolation_level)
        write_unsigned_varint(out, n2 + 1)
    for m3 in l1:
        b4 = m3.name
        b4 = b4.encode()
        n5 = len(b4)
        if n5 < 127:
            out.append(n5 + 1)
            out += b4
        else:
            long_string(out, b4)
        l6 = m3.partitions
        n7 = len(l6)
        if n7 < 127:
            out.append(n7 + 1)
        else:
            write_unsigned_varint(out, n7 + 1)
        for m8 in l6:
            t9 = m8.unknown_tagged_fields
            if t9:
                out += pack_iiq(m8.partition_index, m8.current_leader_epoch, m8.timestamp)
                write_tags(out, t9)
            else:
                out += pack_iiqB(m8.partition_index, m8.current_leader_epoch, m8.timestamp, 0)
        t10 = m3.unknown_tagged_fields
        if t10:
            write_tags(out, t10)
        else:
            out.append(0)
    t11 = m.unknown_tagged_fields
    if t11:
        out += pack_i(m.timeout_ms)
        write_tags(out, t11)
    else:
        out += pack_iB(m.timeout_ms, 0)


def decode(buf, pos, end):
    m = new(ListOffsetsResponse)
    m.throttle_time_ms, n1 = unpack_iB(buf, pos)
    pos += 5
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('topics must not be null')
    n1 -= 1
    if n1 * 3 > end - pos:
        raise WireError('topics has more elements than bytes')
    m.topics = l2 = []
    for _ in range(n1):
        m3 = new(ListOffsetsResponse_ListOffsetsTopicResponse)
        n4 = buf[pos]
        pos += 1
        if n4 > 127:
            n4, pos = varint_tail(buf, pos, n4)
        if n4 == 0:
            raise WireError('name must not be null')
        e5 = pos + n4 - 1
        if n4 > 32768:
            raise WireError('name is longer than 32767 bytes')
        m3.name = buf[pos:e5].decode()
        pos = e5
        n6 = buf[pos]
        pos += 1
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            raise WireError('partitions must not be null')
        n6 -= 1
        if n6 * 27 > end - pos:
            raise WireError('partitions has more elements than bytes')
        m3.partitions = l7 = []
        for _ in range(n6):
            m8 = new(ListOffsetsResponse_ListOffsetsPartitionResponse)
            m8.partition_index, m8.error_code, m8.timestamp, m8.offset, m8.leader_epoch, n9 = unpack_ihqqiB(buf, pos)
            pos += 27
            m8.unknown_tagged_fields = None
            if n9:
                m8.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n9)
            l7.append(m8)
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
