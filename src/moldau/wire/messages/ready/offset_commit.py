"""OffsetCommitRequest v9 and OffsetCommitResponse v9. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, ZERO_UUID, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.offset_commit import OffsetCommitResponse

pack_iB = Struct('>iB').pack
pack_i = Struct('>i').pack
pack_iqiB = Struct('>iqiB').pack
pack_iqi = Struct('>iqi').pack
unpack_iB = Struct('>iB').unpack_from
unpack_ihB = Struct('>ihB').unpack_from
OffsetCommitResponse_OffsetCommitResponseTopic = OffsetCommitResponse.OffsetCommitResponseTopic
OffsetCommitResponse_OffsetCommitResponsePartition = OffsetCommitResponse.OffsetCommitResponsePartition


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
        out += pack_iB(m.generation_id_or_member_epoch, n4 + 1)
        out += b3
    else:
        out += pack_i(m.generation_id_or_member_epoch)
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
    l7 = m.topics
    n8 = len(l7)
    if n8 < 127:
        out.append(n8 + 1)
    else:
        write_unsigned_varint(out, n8 + 1)
    for m9 in l7:
        b10 = m9.name
        b10 = b10.encode()
        n11 = len(b10)
        if n11 < 127:
            out.append(n11 + 1)
            out += b10
        else:
            long_string(out, b10)
        l12 = m9.partitions
        n13 = len(l12)
        if n13 < 127:
            out.append(n13 + 1)
        else:
            write_unsigned_varint(out, n13 + 1)
        for m14 in l12:
            b15 = m14.committed_metadata
            if b15 is None:
                out += pack_iqiB(m14.partition_index, m14.committed_offset, m14.committed_leader_epoch, 0)
            else:
                b15 = b15.encode()
                n16 = len(b15)
                if n16 < 127:
                    out += pack_iqiB(m14.partition_index, m14.committed_offset, m14.committed_leader_epoch, n16 + 1)
                    out += b15
                else:
                    out += pack_iqi(m14.partition_index, m14.committed_offset, m14.committed_leader_epoch)
                    long_string(out, b15)
            t17 = m14.unknown_tagged_fields
            if t17:
                write_tags(out, t17)
            else:
                out.append(0)
        t18 = m9.unknown_tagged_fields
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
    m = new(OffsetCommitResponse)
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
        m3 = new(OffsetCommitResponse_OffsetCommitResponseTopic)
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
        m3.topic_id = ZERO_UUID
        n6 = buf[pos]
        pos += 1
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            raise WireError('partitions must not be null')
        n6 -= 1
        if n6 * 7 > end - pos:
            raise WireError('partitions has more elements than bytes')
        m3.partitions = l7 = []
        for _ in range(n6):
            m8 = new(OffsetCommitResponse_OffsetCommitResponsePartition)
            m8.partition_index, m8.error_code, n9 = unpack_ihB(buf, pos)
            pos += 7
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
