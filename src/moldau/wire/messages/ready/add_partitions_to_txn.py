"""AddPartitionsToTxnRequest v5 and AddPartitionsToTxnResponse v5. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import PACK_INT32S, Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse

pack_qhoB = Struct('>qh?B').pack
pack_qho = Struct('>qh?').pack
unpack_ihB = Struct('>ihB').unpack_from
AddPartitionsToTxnResponse_AddPartitionsToTxnResult = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
AddPartitionsToTxnResponse_AddPartitionsToTxnTopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
AddPartitionsToTxnResponse_AddPartitionsToTxnPartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


def encode(m, out):
    if m.v3_and_below_transactional_id != '':
        raise WireError('v3_and_below_transactional_id does not exist in v5 but is ' + repr(m.v3_and_below_transactional_id)[:100])
    if m.v3_and_below_producer_id != 0:
        raise WireError('v3_and_below_producer_id does not exist in v5 but is ' + repr(m.v3_and_below_producer_id)[:100])
    if m.v3_and_below_producer_epoch != 0:
        raise WireError('v3_and_below_producer_epoch does not exist in v5 but is ' + repr(m.v3_and_below_producer_epoch)[:100])
    if m.v3_and_below_topics is None or len(m.v3_and_below_topics):
        raise WireError('v3_and_below_topics does not exist in v5 but is ' + repr(m.v3_and_below_topics)[:100])
    l1 = m.transactions
    n2 = len(l1)
    if n2 < 127:
        out.append(n2 + 1)
    else:
        write_unsigned_varint(out, n2 + 1)
    for m3 in l1:
        b4 = m3.transactional_id
        b4 = b4.encode()
        n5 = len(b4)
        if n5 < 127:
            out.append(n5 + 1)
            out += b4
        else:
            long_string(out, b4)
        l6 = m3.topics
        n7 = len(l6)
        if n7 < 127:
            out += pack_qhoB(m3.producer_id, m3.producer_epoch, m3.verify_only, n7 + 1)
        else:
            out += pack_qho(m3.producer_id, m3.producer_epoch, m3.verify_only)
            write_unsigned_varint(out, n7 + 1)
        for m8 in l6:
            b9 = m8.name
            b9 = b9.encode()
            n10 = len(b9)
            if n10 < 127:
                out.append(n10 + 1)
                out += b9
            else:
                long_string(out, b9)
            l11 = m8.partitions
            n12 = len(l11)
            if n12 < 16:
                out += PACK_INT32S[n12](n12 + 1, *l11)
            else:
                if n12 < 127:
                    out.append(n12 + 1)
                else:
                    write_unsigned_varint(out, n12 + 1)
                out += pack(f'>{n12}i', *l11)
            t14 = m8.unknown_tagged_fields
            if t14:
                write_tags(out, t14)
            else:
                out.append(0)
        t15 = m3.unknown_tagged_fields
        if t15:
            write_tags(out, t15)
        else:
            out.append(0)
    t16 = m.unknown_tagged_fields
    if t16:
        write_tags(out, t16)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(AddPartitionsToTxnResponse)
    m.throttle_time_ms, m.error_code, n1 = unpack_ihB(buf, pos)
    pos += 7
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('results_by_transaction must not be null')
    n1 -= 1
    if n1 * 3 > end - pos:
        raise WireError('results_by_transaction has more elements than bytes')
    m.results_by_transaction = l2 = []
    for _ in range(n1):
        m3 = new(AddPartitionsToTxnResponse_AddPartitionsToTxnResult)
        n4 = buf[pos]
        pos += 1
        if n4 > 127:
            n4, pos = varint_tail(buf, pos, n4)
        if n4 == 0:
            raise WireError('transactional_id must not be null')
        e5 = pos + n4 - 1
        if n4 > 32768:
            raise WireError('transactional_id is longer than 32767 bytes')
        m3.transactional_id = buf[pos:e5].decode()
        pos = e5
        n6 = buf[pos]
        pos += 1
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            raise WireError('topic_results must not be null')
        n6 -= 1
        if n6 * 3 > end - pos:
            raise WireError('topic_results has more elements than bytes')
        m3.topic_results = l7 = []
        for _ in range(n6):
            m8 = new(AddPartitionsToTxnResponse_AddPartitionsToTxnTopicResult)
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
            n11 = buf[pos]
            pos += 1
            if n11 > 127:
                n11, pos = varint_tail(buf, pos, n11)
            if n11 == 0:
                raise WireError('results_by_partition must not be null')
            n11 -= 1
            if n11 * 7 > end - pos:
                raise WireError('results_by_partition has more elements than bytes')
            m8.results_by_partition = l12 = []
            for _ in range(n11):
                m13 = new(AddPartitionsToTxnResponse_AddPartitionsToTxnPartitionResult)
                m13.partition_index, m13.partition_error_code, n14 = unpack_ihB(buf, pos)
                pos += 7
                m13.unknown_tagged_fields = None
                if n14:
                    m13.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n14)
                l12.append(m13)
            n15 = buf[pos]
            pos += 1
            m8.unknown_tagged_fields = None
            if n15:
                m8.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n15)
            l7.append(m8)
        n16 = buf[pos]
        pos += 1
        m3.unknown_tagged_fields = None
        if n16:
            m3.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n16)
        l2.append(m3)
    m.results_by_topic_v3_and_below = []
    n17 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n17:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n17)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
