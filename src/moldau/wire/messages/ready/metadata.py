"""MetadataRequest v13 and MetadataResponse v13. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, UNPACK_INT32S, WireError, long_string, new, pack, to_uuid, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.metadata import MetadataResponse

pack_16sB = Struct('>16sB').pack
pack_16s = Struct('>16s').pack
pack_oo = Struct('>??').pack
pack_ooB = Struct('>??B').pack
unpack_iB = Struct('>iB').unpack_from
unpack_hB = Struct('>hB').unpack_from
unpack_16soB = Struct('>16s?B').unpack_from
unpack_hiiiB = Struct('>hiiiB').unpack_from
MetadataResponse_MetadataResponseBroker = MetadataResponse.MetadataResponseBroker
MetadataResponse_MetadataResponseTopic = MetadataResponse.MetadataResponseTopic
MetadataResponse_MetadataResponsePartition = MetadataResponse.MetadataResponsePartition


def encode(m, out):
    if m.include_cluster_authorized_operations != False:
        raise WireError('include_cluster_authorized_operations does not exist in v13 but is ' + repr(m.include_cluster_authorized_operations)[:100])
    l1 = m.topics
    if l1 is None:
        out.append(0)
    else:
        n2 = len(l1)
        if n2 < 127:
            out.append(n2 + 1)
        else:
            write_unsigned_varint(out, n2 + 1)
        for m3 in l1:
            b4 = m3.name
            if b4 is None:
                out += pack_16sB(m3.topic_id.int.to_bytes(16, 'big'), 0)
            else:
                b4 = b4.encode()
                n5 = len(b4)
                if n5 < 127:
                    out += pack_16sB(m3.topic_id.int.to_bytes(16, 'big'), n5 + 1)
                    out += b4
                else:
                    out += pack_16s(m3.topic_id.int.to_bytes(16, 'big'))
                    long_string(out, b4)
            t6 = m3.unknown_tagged_fields
            if t6:
                write_tags(out, t6)
            else:
                out.append(0)
    t7 = m.unknown_tagged_fields
    if t7:
        out += pack_oo(m.allow_auto_topic_creation, m.include_topic_authorized_operations)
        write_tags(out, t7)
    else:
        out += pack_ooB(m.allow_auto_topic_creation, m.include_topic_authorized_operations, 0)


def decode(buf, pos, end):
    m = new(MetadataResponse)
    m.throttle_time_ms, n1 = unpack_iB(buf, pos)
    pos += 5
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('brokers must not be null')
    n1 -= 1
    if n1 * 11 > end - pos:
        raise WireError('brokers has more elements than bytes')
    m.brokers = l2 = []
    for _ in range(n1):
        m3 = new(MetadataResponse_MetadataResponseBroker)
        m3.node_id, n4 = unpack_iB(buf, pos)
        pos += 5
        if n4 > 127:
            n4, pos = varint_tail(buf, pos, n4)
        if n4 == 0:
            raise WireError('host must not be null')
        e5 = pos + n4 - 1
        if n4 > 32768:
            raise WireError('host is longer than 32767 bytes')
        m3.host = buf[pos:e5].decode()
        pos = e5
        m3.port, n6 = unpack_iB(buf, pos)
        pos += 5
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            m3.rack = None
        else:
            e7 = pos + n6 - 1
            if n6 > 32768:
                raise WireError('rack is longer than 32767 bytes')
            m3.rack = buf[pos:e7].decode()
            pos = e7
        n8 = buf[pos]
        pos += 1
        m3.unknown_tagged_fields = None
        if n8:
            m3.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n8)
        l2.append(m3)
    n9 = buf[pos]
    pos += 1
    if n9 > 127:
        n9, pos = varint_tail(buf, pos, n9)
    if n9 == 0:
        m.cluster_id = None
    else:
        e10 = pos + n9 - 1
        if n9 > 32768:
            raise WireError('cluster_id is longer than 32767 bytes')
        m.cluster_id = buf[pos:e10].decode()
        pos = e10
    m.controller_id, n11 = unpack_iB(buf, pos)
    pos += 5
    if n11 > 127:
        n11, pos = varint_tail(buf, pos, n11)
    if n11 == 0:
        raise WireError('topics must not be null')
    n11 -= 1
    if n11 * 26 > end - pos:
        raise WireError('topics has more elements than bytes')
    m.topics = l12 = []
    for _ in range(n11):
        m13 = new(MetadataResponse_MetadataResponseTopic)
        m13.error_code, n14 = unpack_hB(buf, pos)
        pos += 3
        if n14 > 127:
            n14, pos = varint_tail(buf, pos, n14)
        if n14 == 0:
            m13.name = None
        else:
            e15 = pos + n14 - 1
            if n14 > 32768:
                raise WireError('name is longer than 32767 bytes')
            m13.name = buf[pos:e15].decode()
            pos = e15
        u16, m13.is_internal, n17 = unpack_16soB(buf, pos)
        pos += 18
        m13.topic_id = to_uuid(u16)
        if n17 > 127:
            n17, pos = varint_tail(buf, pos, n17)
        if n17 == 0:
            raise WireError('partitions must not be null')
        n17 -= 1
        if n17 * 18 > end - pos:
            raise WireError('partitions has more elements than bytes')
        m13.partitions = l18 = []
        for _ in range(n17):
            m19 = new(MetadataResponse_MetadataResponsePartition)
            m19.error_code, m19.partition_index, m19.leader_id, m19.leader_epoch, n20 = unpack_hiiiB(buf, pos)
            pos += 15
            if n20 > 127:
                n20, pos = varint_tail(buf, pos, n20)
            if n20 == 0:
                raise WireError('replica_nodes must not be null')
            n20 -= 1
            if n20 < 16:
                m19.replica_nodes = list(UNPACK_INT32S[n20](buf, pos))
            else:
                m19.replica_nodes = list(unpack_from(f'>{n20}i', buf, pos))
            pos += n20 * 4
            n21 = buf[pos]
            pos += 1
            if n21 > 127:
                n21, pos = varint_tail(buf, pos, n21)
            if n21 == 0:
                raise WireError('isr_nodes must not be null')
            n21 -= 1
            if n21 < 16:
                m19.isr_nodes = list(UNPACK_INT32S[n21](buf, pos))
            else:
                m19.isr_nodes = list(unpack_from(f'>{n21}i', buf, pos))
            pos += n21 * 4
            n22 = buf[pos]
            pos += 1
            if n22 > 127:
                n22, pos = varint_tail(buf, pos, n22)
            if n22 == 0:
                raise WireError('offline_replicas must not be null')
            n22 -= 1
            if n22 < 16:
                m19.offline_replicas = list(UNPACK_INT32S[n22](buf, pos))
            else:
                m19.offline_replicas = list(unpack_from(f'>{n22}i', buf, pos))
            pos += n22 * 4
            n23 = buf[pos]
            pos += 1
            m19.unknown_tagged_fields = None
            if n23:
                m19.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n23)
            l18.append(m19)
        m13.topic_authorized_operations, n24 = unpack_iB(buf, pos)
        pos += 5
        m13.unknown_tagged_fields = None
        if n24:
            m13.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n24)
        l12.append(m13)
    m.cluster_authorized_operations = -2147483648
    m.error_code, n25 = unpack_hB(buf, pos)
    pos += 3
    m.unknown_tagged_fields = None
    if n25:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n25)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
