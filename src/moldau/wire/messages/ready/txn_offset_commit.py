"""TxnOffsetCommitRequest v5 and TxnOffsetCommitResponse v5. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.txn_offset_commit import TxnOffsetCommitResponse

pack_qhiB = Struct('>qhiB').pack
pack_qhi = Struct('>qhi').pack
pack_iqiB = Struct('>iqiB').pack
pack_iqi = Struct('>iqi').pack
unpack_iB = Struct('>iB').unpack_from
unpack_ihB = Struct('>ihB').unpack_from
TxnOffsetCommitResponse_TxnOffsetCommitResponseTopic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
TxnOffsetCommitResponse_TxnOffsetCommitResponsePartition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def encode(m, out):
    b1 = m.transactional_id
    b1 = b1.encode()
    n2 = len(b1)
    if n2 < 127:
        out.append(n2 + 1)
        out += b1
    else:
        long_string(out, b1)
    b3 = m.group_id
    b3 = b3.encode()
    n4 = len(b3)
    if n4 < 127:
        out.append(n4 + 1)
        out += b3
    else:
        long_string(out, b3)
    b5 = m.member_id
    b5 = b5.encode()
    n6 = len(b5)
    if n6 < 127:
        out += pack_qhiB(m.producer_id, m.producer_epoch, m.generation_id, n6 + 1)
        out += b5
    else:
        out += pack_qhi(m.producer_id, m.producer_epoch, m.generation_id)
        long_string(out, b5)
    b7 = m.group_instance_id
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
    l9 = m.topics
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
        l14 = m11.partitions
        n15 = len(l14)
        if n15 < 127:
            out.append(n15 + 1)
        else:
            write_unsigned_varint(out, n15 + 1)
        for m16 in l14:
            b17 = m16.committed_metadata
            if b17 is None:
                out += pack_iqiB(m16.partition_index, m16.committed_offset, m16.committed_leader_epoch, 0)
            else:
                b17 = b17.encode()
                n18 = len(b17)
                if n18 < 127:
                    out += pack_iqiB(m16.partition_index, m16.committed_offset, m16.committed_leader_epoch, n18 + 1)
                    out += b17
                else:
                    out += pack_iqi(m16.partition_index, m16.committed_offset, m16.committed_leader_epoch)
                    long_string(out, b17)
            t19 = m16.unknown_tagged_fields
            if t19:
                write_tags(out, t19)
            else:
                out.append(0)
        t20 = m11.unknown_tagged_fields
        if t20:
            write_tags(out, t20)
        else:
            out.append(0)
    t21 = m.unknown_tagged_fields
    if t21:
        write_tags(out, t21)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(TxnOffsetCommitResponse)
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
        m3 = new(TxnOffsetCommitResponse_TxnOffsetCommitResponseTopic)
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
        if n6 * 7 > end - pos:
            raise WireError('partitions has more elements than bytes')
        m3.partitions = l7 = []
        for _ in range(n6):
            m8 = new(TxnOffsetCommitResponse_TxnOffsetCommitResponsePartition)
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
