"""ProduceRequest v13 and ProduceResponse v13. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_bytes, long_string, new, pack, to_uuid, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.produce import ProduceResponse

pack_hiB = Struct('>hiB').pack
pack_hi = Struct('>hi').pack
pack_16sB = Struct('>16sB').pack
pack_16s = Struct('>16s').pack
pack_iB = Struct('>iB').pack
pack_i = Struct('>i').pack
unpack_16sB = Struct('>16sB').unpack_from
unpack_ihqqqB = Struct('>ihqqqB').unpack_from
unpack_iB = Struct('>iB').unpack_from
unpack_iiB = Struct('>iiB').unpack_from
ProduceResponse_TopicProduceResponse = ProduceResponse.TopicProduceResponse
ProduceResponse_PartitionProduceResponse = ProduceResponse.PartitionProduceResponse
ProduceResponse_BatchIndexAndErrorMessage = ProduceResponse.BatchIndexAndErrorMessage
ProduceResponse_LeaderIdAndEpoch = ProduceResponse.LeaderIdAndEpoch
ProduceResponse_NodeEndpoint = ProduceResponse.NodeEndpoint


def encode(m, out):
    b1 = m.transactional_id
    if b1 is None:
        out.append(0)
    else:
        b1 = b1.encode()
        n2 = len(b1)
        if n2 < 127:
            out.append(n2 + 1)
            out += b1
        else:
            long_string(out, b1)
    l3 = m.topic_data
    n4 = len(l3)
    if n4 < 127:
        out += pack_hiB(m.acks, m.timeout_ms, n4 + 1)
    else:
        out += pack_hi(m.acks, m.timeout_ms)
        write_unsigned_varint(out, n4 + 1)
    for m5 in l3:
        l6 = m5.partition_data
        n7 = len(l6)
        if n7 < 127:
            out += pack_16sB(m5.topic_id.int.to_bytes(16, 'big'), n7 + 1)
        else:
            out += pack_16s(m5.topic_id.int.to_bytes(16, 'big'))
            write_unsigned_varint(out, n7 + 1)
        for m8 in l6:
            b9 = m8.records
            if b9 is None:
                out += pack_iB(m8.index, 0)
            else:
                n10 = len(b9)
                if n10 < 127:
                    out += pack_iB(m8.index, n10 + 1)
                    out += b9
                else:
                    out += pack_i(m8.index)
                    long_bytes(out, b9)
            t11 = m8.unknown_tagged_fields
            if t11:
                write_tags(out, t11)
            else:
                out.append(0)
        t12 = m5.unknown_tagged_fields
        if t12:
            write_tags(out, t12)
        else:
            out.append(0)
    t13 = m.unknown_tagged_fields
    if t13:
        write_tags(out, t13)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(ProduceResponse)
    n1 = buf[pos]
    pos += 1
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('responses must not be null')
    n1 -= 1
    if n1 * 18 > end - pos:
        raise WireError('responses has more elements than bytes')
    m.responses = l2 = []
    for _ in range(n1):
        m3 = new(ProduceResponse_TopicProduceResponse)
        m3.name = ''
        u4, n5 = unpack_16sB(buf, pos)
        pos += 17
        m3.topic_id = to_uuid(u4)
        if n5 > 127:
            n5, pos = varint_tail(buf, pos, n5)
        if n5 == 0:
            raise WireError('partition_responses must not be null')
        n5 -= 1
        if n5 * 33 > end - pos:
            raise WireError('partition_responses has more elements than bytes')
        m3.partition_responses = l6 = []
        for _ in range(n5):
            m7 = new(ProduceResponse_PartitionProduceResponse)
            m7.index, m7.error_code, m7.base_offset, m7.log_append_time_ms, m7.log_start_offset, n8 = unpack_ihqqqB(buf, pos)
            pos += 31
            if n8 > 127:
                n8, pos = varint_tail(buf, pos, n8)
            if n8 == 0:
                raise WireError('record_errors must not be null')
            n8 -= 1
            if n8 * 6 > end - pos:
                raise WireError('record_errors has more elements than bytes')
            m7.record_errors = l9 = []
            for _ in range(n8):
                m10 = new(ProduceResponse_BatchIndexAndErrorMessage)
                m10.batch_index, n11 = unpack_iB(buf, pos)
                pos += 5
                if n11 > 127:
                    n11, pos = varint_tail(buf, pos, n11)
                if n11 == 0:
                    m10.batch_index_error_message = None
                else:
                    e12 = pos + n11 - 1
                    if n11 > 32768:
                        raise WireError('batch_index_error_message is longer than 32767 bytes')
                    m10.batch_index_error_message = buf[pos:e12].decode()
                    pos = e12
                n13 = buf[pos]
                pos += 1
                m10.unknown_tagged_fields = None
                if n13:
                    m10.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n13)
                l9.append(m10)
            n14 = buf[pos]
            pos += 1
            if n14 > 127:
                n14, pos = varint_tail(buf, pos, n14)
            if n14 == 0:
                m7.error_message = None
            else:
                e15 = pos + n14 - 1
                if n14 > 32768:
                    raise WireError('error_message is longer than 32767 bytes')
                m7.error_message = buf[pos:e15].decode()
                pos = e15
            m7.current_leader = ProduceResponse_LeaderIdAndEpoch()
            n16 = buf[pos]
            pos += 1
            m7.unknown_tagged_fields = None
            if n16:
                if n16 > 127:
                    n16, pos = varint_tail(buf, pos, n16)
                if n16 > end - pos:
                    raise WireError('more tagged fields than bytes')
                for _ in range(n16):
                    t17 = buf[pos]
                    pos += 1
                    if t17 > 127:
                        t17, pos = varint_tail(buf, pos, t17)
                    s18 = buf[pos]
                    pos += 1
                    if s18 > 127:
                        s18, pos = varint_tail(buf, pos, s18)
                    e19 = pos + s18
                    if e19 > end:
                        raise WireError('a tagged field is cut off')
                    if t17 == 0:
                        m20 = new(ProduceResponse_LeaderIdAndEpoch)
                        m20.leader_id, m20.leader_epoch, n21 = unpack_iiB(buf, pos)
                        pos += 9
                        m20.unknown_tagged_fields = None
                        if n21:
                            m20.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n21)
                        m7.current_leader = m20
                        if pos != e19:
                            raise WireError('tagged field current_leader has a wrong size')
                    else:
                        if m7.unknown_tagged_fields is None:
                            m7.unknown_tagged_fields = {}
                        m7.unknown_tagged_fields[t17] = buf[pos:e19]
                        pos = e19
            l6.append(m7)
        n22 = buf[pos]
        pos += 1
        m3.unknown_tagged_fields = None
        if n22:
            m3.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n22)
        l2.append(m3)
    m.node_endpoints = []
    m.throttle_time_ms, n23 = unpack_iB(buf, pos)
    pos += 5
    m.unknown_tagged_fields = None
    if n23:
        if n23 > 127:
            n23, pos = varint_tail(buf, pos, n23)
        if n23 > end - pos:
            raise WireError('more tagged fields than bytes')
        for _ in range(n23):
            t24 = buf[pos]
            pos += 1
            if t24 > 127:
                t24, pos = varint_tail(buf, pos, t24)
            s25 = buf[pos]
            pos += 1
            if s25 > 127:
                s25, pos = varint_tail(buf, pos, s25)
            e26 = pos + s25
            if e26 > end:
                raise WireError('a tagged field is cut off')
            if t24 == 0:
                n27 = buf[pos]
                pos += 1
                if n27 > 127:
                    n27, pos = varint_tail(buf, pos, n27)
                if n27 == 0:
                    raise WireError('node_endpoints must not be null')
                n27 -= 1
                if n27 * 11 > end - pos:
                    raise WireError('node_endpoints has more elements than bytes')
                m.node_endpoints = l28 = []
                for _ in range(n27):
                    m29 = new(ProduceResponse_NodeEndpoint)
                    m29.node_id, n30 = unpack_iB(buf, pos)
                    pos += 5
                    if n30 > 127:
                        n30, pos = varint_tail(buf, pos, n30)
                    if n30 == 0:
                        raise WireError('host must not be null')
                    e31 = pos + n30 - 1
                    if n30 > 32768:
                        raise WireError('host is longer than 32767 bytes')
                    m29.host = buf[pos:e31].decode()
                    pos = e31
                    m29.port, n32 = unpack_iB(buf, pos)
                    pos += 5
                    if n32 > 127:
                        n32, pos = varint_tail(buf, pos, n32)
                    if n32 == 0:
                        m29.rack = None
                    else:
                        e33 = pos + n32 - 1
                        if n32 > 32768:
                            raise WireError('rack is longer than 32767 bytes')
                        m29.rack = buf[pos:e33].decode()
                        pos = e33
                    n34 = buf[pos]
                    pos += 1
                    m29.unknown_tagged_fields = None
                    if n34:
                        m29.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n34)
                    l28.append(m29)
                if pos != e26:
                    raise WireError('tagged field node_endpoints has a wrong size')
            else:
                if m.unknown_tagged_fields is None:
                    m.unknown_tagged_fields = {}
                m.unknown_tagged_fields[t24] = buf[pos:e26]
                pos = e26
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
