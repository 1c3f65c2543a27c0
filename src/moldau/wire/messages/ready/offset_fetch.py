"""OffsetFetchRequest v9 and OffsetFetchResponse v9. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import PACK_INT32S, Struct, WireError, ZERO_UUID, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.offset_fetch import OffsetFetchResponse

pack_iB = Struct('>iB').pack
pack_i = Struct('>i').pack
pack_o = Struct('>?').pack
pack_oB = Struct('>?B').pack
unpack_iB = Struct('>iB').unpack_from
unpack_iqiB = Struct('>iqiB').unpack_from
unpack_hB = Struct('>hB').unpack_from
OffsetFetchResponse_OffsetFetchResponseGroup = OffsetFetchResponse.OffsetFetchResponseGroup
OffsetFetchResponse_OffsetFetchResponseTopics = OffsetFetchResponse.OffsetFetchResponseTopics
OffsetFetchResponse_OffsetFetchResponsePartitions = OffsetFetchResponse.OffsetFetchResponsePartitions


def encode(m, out):
    if m.group_id != '':
        raise WireError('group_id does not exist in v9 but is ' + repr(m.group_id)[:100])
    if m.topics is None or len(m.topics):
        raise WireError('topics does not exist in v9 but is ' + repr(m.topics)[:100])
    l1 = m.groups
    n2 = len(l1)
    if n2 < 127:
        out.append(n2 + 1)
    else:
        write_unsigned_varint(out, n2 + 1)
    for m3 in l1:
        b4 = m3.group_id
        b4 = b4.encode()
        n5 = len(b4)
        if n5 < 127:
            out.append(n5 + 1)
            out += b4
        else:
            long_string(out, b4)
        b6 = m3.member_id
        if b6 is None:
            out.append(0)
        else:
            b6 = b6.encode()
            n7 = len(b6)
            if n7 < 127:
                out.append(n7 + 1)
                out += b6
            else:
                long_string(out, b6)
        l8 = m3.topics
        if l8 is None:
            out += pack_iB(m3.member_epoch, 0)
        else:
            n9 = len(l8)
            if n9 < 127:
                out += pack_iB(m3.member_epoch, n9 + 1)
            else:
                out += pack_i(m3.member_epoch)
                write_unsigned_varint(out, n9 + 1)
            for m10 in l8:
                b11 = m10.name
                b11 = b11.encode()
                n12 = len(b11)
                if n12 < 127:
                    out.append(n12 + 1)
                    out += b11
                else:
                    long_string(out, b11)
                l13 = m10.partition_indexes
                n14 = len(l13)
                if n14 < 16:
                    out += PACK_INT32S[n14](n14 + 1, *l13)
                else:
                    if n14 < 127:
                        out.append(n14 + 1)
                    else:
                        write_unsigned_varint(out, n14 + 1)
                    out += pack(f'>{n14}i', *l13)
                t16 = m10.unknown_tagged_fields
                if t16:
                    write_tags(out, t16)
                else:
                    out.append(0)
        t17 = m3.unknown_tagged_fields
        if t17:
            write_tags(out, t17)
        else:
            out.append(0)
    t18 = m.unknown_tagged_fields
    if t18:
        out += pack_o(m.require_stable)
        write_tags(out, t18)
    else:
        out += pack_oB(m.require_stable, 0)


def decode(buf, pos, end):
    m = new(OffsetFetchResponse)
    m.topics = []
    m.error_code = 0
    m.throttle_time_ms, n1 = unpack_iB(buf, pos)
    pos += 5
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('groups must not be null')
    n1 -= 1
    if n1 * 5 > end - pos:
        raise WireError('groups has more elements than bytes')
    m.groups = l2 = []
    for _ in range(n1):
        m3 = new(OffsetFetchResponse_OffsetFetchResponseGroup)
        n4 = buf[pos]
        pos += 1
        if n4 > 127:
            n4, pos = varint_tail(buf, pos, n4)
        if n4 == 0:
            raise WireError('group_id must not be null')
        e5 = pos + n4 - 1
        if n4 > 32768:
            raise WireError('group_id is longer than 32767 bytes')
        m3.group_id = buf[pos:e5].decode()
        pos = e5
        n6 = buf[pos]
        pos += 1
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            raise WireError('topics must not be null')
        n6 -= 1
        if n6 * 3 > end - pos:
            raise WireError('topics has more elements than bytes')
        m3.topics = l7 = []
        for _ in range(n6):
            m8 = new(OffsetFetchResponse_OffsetFetchResponseTopics)
            n9 = buf[pos]
            pos += 1
            if n9 > 127:
                n9, pos = varint_tail(buf, pos, n9)
            if n9 == 0:
                raise WireError('name must not be null')
            e10 = pos + n9 - 1
            if n9 > 32768:
                raise WireError('name is longer than 32767 bytes')
            m8.name = buf[pos:e10].decode()
            pos = e10
            m8.topic_id = ZERO_UUID
            n11 = buf[pos]
            pos += 1
            if n11 > 127:
                n11, pos = varint_tail(buf, pos, n11)
            if n11 == 0:
                raise WireError('partitions must not be null')
            n11 -= 1
            if n11 * 20 > end - pos:
                raise WireError('partitions has more elements than bytes')
            m8.partitions = l12 = []
            for _ in range(n11):
                m13 = new(OffsetFetchResponse_OffsetFetchResponsePartitions)
                m13.partition_index, m13.committed_offset, m13.committed_leader_epoch, n14 = unpack_iqiB(buf, pos)
                pos += 17
                if n14 > 127:
                    n14, pos = varint_tail(buf, pos, n14)
                if n14 == 0:
                    m13.metadata = None
                else:
                    e15 = pos + n14 - 1
                    if n14 > 32768:
                        raise WireError('metadata is longer than 32767 bytes')
                    m13.metadata = buf[pos:e15].decode()
                    pos = e15
                m13.error_code, n16 = unpack_hB(buf, pos)
                pos += 3
                m13.unknown_tagged_fields = None
                if n16:
                    m13.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n16)
                l12.append(m13)
            n17 = buf[pos]
            pos += 1
            m8.unknown_tagged_fields = None
            if n17:
                m8.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n17)
            l7.append(m8)
        m3.error_code, n18 = unpack_hB(buf, pos)
        pos += 3
        m3.unknown_tagged_fields = None
        if n18:
            m3.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n18)
        l2.append(m3)
    n19 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n19:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n19)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
