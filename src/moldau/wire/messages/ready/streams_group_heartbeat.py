"""StreamsGroupHeartbeatRequest v0 and StreamsGroupHeartbeatResponse v0. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import PACK_INT32S, Struct, UNPACK_INT32S, WireError, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

pack_iiB = Struct('>iiB').pack
pack_ii = Struct('>ii').pack
pack_ib = Struct('>ib').pack
pack_iB = Struct('>iB').pack
pack_i = Struct('>i').pack
pack_ihB = Struct('>ihB').pack
pack_ih = Struct('>ih').pack
pack_b = Struct('>b').pack
pack_H = Struct('>H').pack
pack_HB = Struct('>HB').pack
pack_iq = Struct('>iq').pack
pack_iqB = Struct('>iqB').pack
pack_o = Struct('>?').pack
pack_oB = Struct('>?B').pack
unpack_ihB = Struct('>ihB').unpack_from
unpack_iiiiB = Struct('>iiiiB').unpack_from
unpack_bB = Struct('>bB').unpack_from
unpack_iB = Struct('>iB').unpack_from
unpack_HB = Struct('>HB').unpack_from
StreamsGroupHeartbeatResponse_Status = StreamsGroupHeartbeatResponse.Status
StreamsGroupHeartbeatResponse_TaskIds = StreamsGroupHeartbeatResponse.TaskIds
StreamsGroupHeartbeatResponse_EndpointToPartitions = StreamsGroupHeartbeatResponse.EndpointToPartitions
StreamsGroupHeartbeatResponse_Endpoint = StreamsGroupHeartbeatResponse.Endpoint
StreamsGroupHeartbeatResponse_TopicPartition = StreamsGroupHeartbeatResponse.TopicPartition


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
        out.append(n4 + 1)
        out += b3
    else:
        long_string(out, b3)
    b5 = m.instance_id
    if b5 is None:
        out += pack_iiB(m.member_epoch, m.endpoint_information_epoch, 0)
    else:
        b5 = b5.encode()
        n6 = len(b5)
        if n6 < 127:
            out += pack_iiB(m.member_epoch, m.endpoint_information_epoch, n6 + 1)
            out += b5
        else:
            out += pack_ii(m.member_epoch, m.endpoint_information_epoch)
            long_string(out, b5)
    b7 = m.rack_id
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
    m9 = m.topology
    if m9 is None:
        out += pack_ib(m.rebalance_timeout_ms, -1)
    else:
        out += pack_ib(m.rebalance_timeout_ms, 1)
        l10 = m9.subtopologies
        n11 = len(l10)
        if n11 < 127:
            out += pack_iB(m9.epoch, n11 + 1)
        else:
            out += pack_i(m9.epoch)
            write_unsigned_varint(out, n11 + 1)
        for m12 in l10:
            b13 = m12.subtopology_id
            b13 = b13.encode()
            n14 = len(b13)
            if n14 < 127:
                out.append(n14 + 1)
                out += b13
            else:
                long_string(out, b13)
            l15 = m12.source_topics
            n16 = len(l15)
            if n16 < 127:
                out.append(n16 + 1)
            else:
                write_unsigned_varint(out, n16 + 1)
            for m17 in l15:
                b18 = m17
                b18 = b18.encode()
                n19 = len(b18)
                if n19 < 127:
                    out.append(n19 + 1)
                    out += b18
                else:
                    long_string(out, b18)
            l20 = m12.source_topic_regex
            n21 = len(l20)
            if n21 < 127:
                out.append(n21 + 1)
            else:
                write_unsigned_varint(out, n21 + 1)
            for m22 in l20:
                b23 = m22
                b23 = b23.encode()
                n24 = len(b23)
                if n24 < 127:
                    out.append(n24 + 1)
                    out += b23
                else:
                    long_string(out, b23)
            l25 = m12.state_changelog_topics
            n26 = len(l25)
            if n26 < 127:
                out.append(n26 + 1)
            else:
                write_unsigned_varint(out, n26 + 1)
            for m27 in l25:
                b28 = m27.name
                b28 = b28.encode()
                n29 = len(b28)
                if n29 < 127:
                    out.append(n29 + 1)
                    out += b28
                else:
                    long_string(out, b28)
                l30 = m27.topic_configs
                n31 = len(l30)
                if n31 < 127:
                    out += pack_ihB(m27.partitions, m27.replication_factor, n31 + 1)
                else:
                    out += pack_ih(m27.partitions, m27.replication_factor)
                    write_unsigned_varint(out, n31 + 1)
                for m32 in l30:
                    b33 = m32.key
                    b33 = b33.encode()
                    n34 = len(b33)
                    if n34 < 127:
                        out.append(n34 + 1)
                        out += b33
                    else:
                        long_string(out, b33)
                    b35 = m32.value
                    b35 = b35.encode()
                    n36 = len(b35)
                    if n36 < 127:
                        out.append(n36 + 1)
                        out += b35
                    else:
                        long_string(out, b35)
                    t37 = m32.unknown_tagged_fields
                    if t37:
                        write_tags(out, t37)
                    else:
                        out.append(0)
                t38 = m27.unknown_tagged_fields
                if t38:
                    write_tags(out, t38)
                else:
                    out.append(0)
            l39 = m12.repartition_sink_topics
            n40 = len(l39)
            if n40 < 127:
                out.append(n40 + 1)
            else:
                write_unsigned_varint(out, n40 + 1)
            for m41 in l39:
                b42 = m41
                b42 = b42.encode()
                n43 = len(b42)
                if n43 < 127:
                    out.append(n43 + 1)
                    out += b42
                else:
                    long_string(out, b42)
            l44 = m12.repartition_source_topics
            n45 = len(l44)
            if n45 < 127:
                out.append(n45 + 1)
            else:
                write_unsigned_varint(out, n45 + 1)
            for m46 in l44:
                b47 = m46.name
                b47 = b47.encode()
                n48 = len(b47)
                if n48 < 127:
                    out.append(n48 + 1)
                    out += b47
                else:
                    long_string(out, b47)
                l49 = m46.topic_configs
                n50 = len(l49)
                if n50 < 127:
                    out += pack_ihB(m46.partitions, m46.replication_factor, n50 + 1)
                else:
                    out += pack_ih(m46.partitions, m46.replication_factor)
                    write_unsigned_varint(out, n50 + 1)
                for m51 in l49:
                    b52 = m51.key
                    b52 = b52.encode()
                    n53 = len(b52)
                    if n53 < 127:
                        out.append(n53 + 1)
                        out += b52
                    else:
                        long_string(out, b52)
                    b54 = m51.value
                    b54 = b54.encode()
                    n55 = len(b54)
                    if n55 < 127:
                        out.append(n55 + 1)
                        out += b54
                    else:
                        long_string(out, b54)
                    t56 = m51.unknown_tagged_fields
                    if t56:
                        write_tags(out, t56)
                    else:
                        out.append(0)
                t57 = m46.unknown_tagged_fields
                if t57:
                    write_tags(out, t57)
                else:
                    out.append(0)
            l58 = m12.copartition_groups
            n59 = len(l58)
            if n59 < 127:
                out.append(n59 + 1)
            else:
                write_unsigned_varint(out, n59 + 1)
            for m60 in l58:
                l61 = m60.source_topics
                n62 = len(l61)
                if n62 < 127:
                    out.append(n62 + 1)
                else:
                    write_unsigned_varint(out, n62 + 1)
                out += pack(f'>{n62}h', *l61)
                l64 = m60.source_topic_regex
                n65 = len(l64)
                if n65 < 127:
                    out.append(n65 + 1)
                else:
                    write_unsigned_varint(out, n65 + 1)
                out += pack(f'>{n65}h', *l64)
                l67 = m60.repartition_source_topics
                n68 = len(l67)
                if n68 < 127:
                    out.append(n68 + 1)
                else:
                    write_unsigned_varint(out, n68 + 1)
                out += pack(f'>{n68}h', *l67)
                t70 = m60.unknown_tagged_fields
                if t70:
                    write_tags(out, t70)
                else:
                    out.append(0)
            t71 = m12.unknown_tagged_fields
            if t71:
                write_tags(out, t71)
            else:
                out.append(0)
        t72 = m9.unknown_tagged_fields
        if t72:
            write_tags(out, t72)
        else:
            out.append(0)
    l73 = m.active_tasks
    if l73 is None:
        out.append(0)
    else:
        n74 = len(l73)
        if n74 < 127:
            out.append(n74 + 1)
        else:
            write_unsigned_varint(out, n74 + 1)
        for m75 in l73:
            b76 = m75.subtopology_id
            b76 = b76.encode()
            n77 = len(b76)
            if n77 < 127:
                out.append(n77 + 1)
                out += b76
            else:
                long_string(out, b76)
            l78 = m75.partitions
            n79 = len(l78)
            if n79 < 16:
                out += PACK_INT32S[n79](n79 + 1, *l78)
            else:
                if n79 < 127:
                    out.append(n79 + 1)
                else:
                    write_unsigned_varint(out, n79 + 1)
                out += pack(f'>{n79}i', *l78)
            t81 = m75.unknown_tagged_fields
            if t81:
                write_tags(out, t81)
            else:
                out.append(0)
    l82 = m.standby_tasks
    if l82 is None:
        out.append(0)
    else:
        n83 = len(l82)
        if n83 < 127:
            out.append(n83 + 1)
        else:
            write_unsigned_varint(out, n83 + 1)
        for m84 in l82:
            b85 = m84.subtopology_id
            b85 = b85.encode()
            n86 = len(b85)
            if n86 < 127:
                out.append(n86 + 1)
                out += b85
            else:
                long_string(out, b85)
            l87 = m84.partitions
            n88 = len(l87)
            if n88 < 16:
                out += PACK_INT32S[n88](n88 + 1, *l87)
            else:
                if n88 < 127:
                    out.append(n88 + 1)
                else:
                    write_unsigned_varint(out, n88 + 1)
                out += pack(f'>{n88}i', *l87)
            t90 = m84.unknown_tagged_fields
            if t90:
                write_tags(out, t90)
            else:
                out.append(0)
    l91 = m.warmup_tasks
    if l91 is None:
        out.append(0)
    else:
        n92 = len(l91)
        if n92 < 127:
            out.append(n92 + 1)
        else:
            write_unsigned_varint(out, n92 + 1)
        for m93 in l91:
            b94 = m93.subtopology_id
            b94 = b94.encode()
            n95 = len(b94)
            if n95 < 127:
                out.append(n95 + 1)
                out += b94
            else:
                long_string(out, b94)
            l96 = m93.partitions
            n97 = len(l96)
            if n97 < 16:
                out += PACK_INT32S[n97](n97 + 1, *l96)
            else:
                if n97 < 127:
                    out.append(n97 + 1)
                else:
                    write_unsigned_varint(out, n97 + 1)
                out += pack(f'>{n97}i', *l96)
            t99 = m93.unknown_tagged_fields
            if t99:
                write_tags(out, t99)
            else:
                out.append(0)
    b100 = m.process_id
    if b100 is None:
        out.append(0)
    else:
        b100 = b100.encode()
        n101 = len(b100)
        if n101 < 127:
            out.append(n101 + 1)
            out += b100
        else:
            long_string(out, b100)
    m102 = m.user_endpoint
    if m102 is None:
        out += pack_b(-1)
    else:
        out += pack_b(1)
        b103 = m102.host
        b103 = b103.encode()
        n104 = len(b103)
        if n104 < 127:
            out.append(n104 + 1)
            out += b103
        else:
            long_string(out, b103)
        t105 = m102.unknown_tagged_fields
        if t105:
            out += pack_H(m102.port)
            write_tags(out, t105)
        else:
            out += pack_HB(m102.port, 0)
    l106 = m.client_tags
    if l106 is None:
        out.append(0)
    else:
        n107 = len(l106)
        if n107 < 127:
            out.append(n107 + 1)
        else:
            write_unsigned_varint(out, n107 + 1)
        for m108 in l106:
            b109 = m108.key
            b109 = b109.encode()
            n110 = len(b109)
            if n110 < 127:
                out.append(n110 + 1)
                out += b109
            else:
                long_string(out, b109)
            b111 = m108.value
            b111 = b111.encode()
            n112 = len(b111)
            if n112 < 127:
                out.append(n112 + 1)
                out += b111
            else:
                long_string(out, b111)
            t113 = m108.unknown_tagged_fields
            if t113:
                write_tags(out, t113)
            else:
                out.append(0)
    l114 = m.task_offsets
    if l114 is None:
        out.append(0)
    else:
        n115 = len(l114)
        if n115 < 127:
            out.append(n115 + 1)
        else:
            write_unsigned_varint(out, n115 + 1)
        for m116 in l114:
            b117 = m116.subtopology_id
            b117 = b117.encode()
            n118 = len(b117)
            if n118 < 127:
                out.append(n118 + 1)
                out += b117
            else:
                long_string(out, b117)
            t119 = m116.unknown_tagged_fields
            if t119:
                out += pack_iq(m116.partition, m116.offset)
                write_tags(out, t119)
            else:
                out += pack_iqB(m116.partition, m116.offset, 0)
    l120 = m.task_end_offsets
    if l120 is None:
        out.append(0)
    else:
        n121 = len(l120)
        if n121 < 127:
            out.append(n121 + 1)
        else:
            write_unsigned_varint(out, n121 + 1)
        for m122 in l120:
            b123 = m122.subtopology_id
            b123 = b123.encode()
            n124 = len(b123)
            if n124 < 127:
                out.append(n124 + 1)
                out += b123
            else:
                long_string(out, b123)
            t125 = m122.unknown_tagged_fields
            if t125:
                out += pack_iq(m122.partition, m122.offset)
                write_tags(out, t125)
            else:
                out += pack_iqB(m122.partition, m122.offset, 0)
    t126 = m.unknown_tagged_fields
    if t126:
        out += pack_o(m.shutdown_application)
        write_tags(out, t126)
    else:
        out += pack_oB(m.shutdown_application, 0)


def decode(buf, pos, end):
    m = new(StreamsGroupHeartbeatResponse)
    m.throttle_time_ms, m.error_code, n1 = unpack_ihB(buf, pos)
    pos += 7
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        m.error_message = None
    else:
        e2 = pos + n1 - 1
        if n1 > 32768:
            raise WireError('error_message is longer than 32767 bytes')
        m.error_message = buf[pos:e2].decode()
        pos = e2
    n3 = buf[pos]
    pos += 1
    if n3 > 127:
        n3, pos = varint_tail(buf, pos, n3)
    if n3 == 0:
        raise WireError('member_id must not be null')
    e4 = pos + n3 - 1
    if n3 > 32768:
        raise WireError('member_id is longer than 32767 bytes')
    m.member_id = buf[pos:e4].decode()
    pos = e4
    m.member_epoch, m.heartbeat_interval_ms, m.acceptable_recovery_lag, m.task_offset_interval_ms, n5 = unpack_iiiiB(buf, pos)
    pos += 17
    if n5 > 127:
        n5, pos = varint_tail(buf, pos, n5)
    if n5 == 0:
        m.status = None
    else:
        n5 -= 1
        if n5 * 3 > end - pos:
            raise WireError('status has more elements than bytes')
        m.status = l6 = []
        for _ in range(n5):
            m7 = new(StreamsGroupHeartbeatResponse_Status)
            m7.status_code, n8 = unpack_bB(buf, pos)
            pos += 2
            if n8 > 127:
                n8, pos = varint_tail(buf, pos, n8)
            if n8 == 0:
                raise WireError('status_detail must not be null')
            e9 = pos + n8 - 1
            if n8 > 32768:
                raise WireError('status_detail is longer than 32767 bytes')
            m7.status_detail = buf[pos:e9].decode()
            pos = e9
            n10 = buf[pos]
            pos += 1
            m7.unknown_tagged_fields = None
            if n10:
                m7.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n10)
            l6.append(m7)
    n11 = buf[pos]
    pos += 1
    if n11 > 127:
        n11, pos = varint_tail(buf, pos, n11)
    if n11 == 0:
        m.active_tasks = None
    else:
        n11 -= 1
        if n11 * 3 > end - pos:
            raise WireError('active_tasks has more elements than bytes')
        m.active_tasks = l12 = []
        for _ in range(n11):
            m13 = new(StreamsGroupHeartbeatResponse_TaskIds)
            n14 = buf[pos]
            pos += 1
            if n14 > 127:
                n14, pos = varint_tail(buf, pos, n14)
            if n14 == 0:
                raise WireError('subtopology_id must not be null')
            e15 = pos + n14 - 1
            if n14 > 32768:
                raise WireError('subtopology_id is longer than 32767 bytes')
            m13.subtopology_id = buf[pos:e15].decode()
            pos = e15
            n16 = buf[pos]
            pos += 1
            if n16 > 127:
                n16, pos = varint_tail(buf, pos, n16)
            if n16 == 0:
                raise WireError('partitions must not be null')
            n16 -= 1
            if n16 < 16:
                m13.partitions = list(UNPACK_INT32S[n16](buf, pos))
            else:
                m13.partitions = list(unpack_from(f'>{n16}i', buf, pos))
            pos += n16 * 4
            n17 = buf[pos]
            pos += 1
            m13.unknown_tagged_fields = None
            if n17:
                m13.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n17)
            l12.append(m13)
    n18 = buf[pos]
    pos += 1
    if n18 > 127:
        n18, pos = varint_tail(buf, pos, n18)
    if n18 == 0:
        m.standby_tasks = None
    else:
        n18 -= 1
        if n18 * 3 > end - pos:
            raise WireError('standby_tasks has more elements than bytes')
        m.standby_tasks = l19 = []
        for _ in range(n18):
            m20 = new(StreamsGroupHeartbeatResponse_TaskIds)
            n21 = buf[pos]
            pos += 1
            if n21 > 127:
                n21, pos = varint_tail(buf, pos, n21)
            if n21 == 0:
                raise WireError('subtopology_id must not be null')
            e22 = pos + n21 - 1
            if n21 > 32768:
                raise WireError('subtopology_id is longer than 32767 bytes')
            m20.subtopology_id = buf[pos:e22].decode()
            pos = e22
            n23 = buf[pos]
            pos += 1
            if n23 > 127:
                n23, pos = varint_tail(buf, pos, n23)
            if n23 == 0:
                raise WireError('partitions must not be null')
            n23 -= 1
            if n23 < 16:
                m20.partitions = list(UNPACK_INT32S[n23](buf, pos))
            else:
                m20.partitions = list(unpack_from(f'>{n23}i', buf, pos))
            pos += n23 * 4
            n24 = buf[pos]
            pos += 1
            m20.unknown_tagged_fields = None
            if n24:
                m20.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n24)
            l19.append(m20)
    n25 = buf[pos]
    pos += 1
    if n25 > 127:
        n25, pos = varint_tail(buf, pos, n25)
    if n25 == 0:
        m.warmup_tasks = None
    else:
        n25 -= 1
        if n25 * 3 > end - pos:
            raise WireError('warmup_tasks has more elements than bytes')
        m.warmup_tasks = l26 = []
        for _ in range(n25):
            m27 = new(StreamsGroupHeartbeatResponse_TaskIds)
            n28 = buf[pos]
            pos += 1
            if n28 > 127:
                n28, pos = varint_tail(buf, pos, n28)
            if n28 == 0:
                raise WireError('subtopology_id must not be null')
            e29 = pos + n28 - 1
            if n28 > 32768:
                raise WireError('subtopology_id is longer than 32767 bytes')
            m27.subtopology_id = buf[pos:e29].decode()
            pos = e29
            n30 = buf[pos]
            pos += 1
            if n30 > 127:
                n30, pos = varint_tail(buf, pos, n30)
            if n30 == 0:
                raise WireError('partitions must not be null')
            n30 -= 1
            if n30 < 16:
                m27.partitions = list(UNPACK_INT32S[n30](buf, pos))
            else:
                m27.partitions = list(unpack_from(f'>{n30}i', buf, pos))
            pos += n30 * 4
            n31 = buf[pos]
            pos += 1
            m27.unknown_tagged_fields = None
            if n31:
                m27.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n31)
            l26.append(m27)
    m.endpoint_information_epoch, n32 = unpack_iB(buf, pos)
    pos += 5
    if n32 > 127:
        n32, pos = varint_tail(buf, pos, n32)
    if n32 == 0:
        m.partitions_by_user_endpoint = None
    else:
        n32 -= 1
        if n32 * 7 > end - pos:
            raise WireError('partitions_by_user_endpoint has more elements than bytes')
        m.partitions_by_user_endpoint = l33 = []
        for _ in range(n32):
            m34 = new(StreamsGroupHeartbeatResponse_EndpointToPartitions)
            m35 = new(StreamsGroupHeartbeatResponse_Endpoint)
            n36 = buf[pos]
            pos += 1
            if n36 > 127:
                n36, pos = varint_tail(buf, pos, n36)
            if n36 == 0:
                raise WireError('host must not be null')
            e37 = pos + n36 - 1
            if n36 > 32768:
                raise WireError('host is longer than 32767 bytes')
            m35.host = buf[pos:e37].decode()
            pos = e37
            m35.port, n38 = unpack_HB(buf, pos)
            pos += 3
            m35.unknown_tagged_fields = None
            if n38:
                m35.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n38)
            m34.user_endpoint = m35
            n39 = buf[pos]
            pos += 1
            if n39 > 127:
                n39, pos = varint_tail(buf, pos, n39)
            if n39 == 0:
                raise WireError('active_partitions must not be null')
            n39 -= 1
            if n39 * 3 > end - pos:
                raise WireError('active_partitions has more elements than bytes')
            m34.active_partitions = l40 = []
            for _ in range(n39):
                m41 = new(StreamsGroupHeartbeatResponse_TopicPartition)
                n42 = buf[pos]
                pos += 1
                if n42 > 127:
                    n42, pos = varint_tail(buf, pos, n42)
                if n42 == 0:
                    raise WireError('topic must not be null')
                e43 = pos + n42 - 1
                if n42 > 32768:
                    raise WireError('topic is longer than 32767 bytes')
                m41.topic = buf[pos:e43].decode()
                pos = e43
                n44 = buf[pos]
                pos += 1
                if n44 > 127:
                    n44, pos = varint_tail(buf, pos, n44)
                if n44 == 0:
                    raise WireError('partitions must not be null')
                n44 -= 1
                if n44 < 16:
                    m41.partitions = list(UNPACK_INT32S[n44](buf, pos))
                else:
                    m41.partitions = list(unpack_from(f'>{n44}i', buf, pos))
                pos += n44 * 4
                n45 = buf[pos]
                pos += 1
                m41.unknown_tagged_fields = None
                if n45:
                    m41.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n45)
                l40.append(m41)
            n46 = buf[pos]
            pos += 1
            if n46 > 127:
                n46, pos = varint_tail(buf, pos, n46)
            if n46 == 0:
                raise WireError('standby_partitions must not be null')
            n46 -= 1
            if n46 * 3 > end - pos:
                raise WireError('standby_partitions has more elements than bytes')
            m34.standby_partitions = l47 = []
            for _ in range(n46):
                m48 = new(StreamsGroupHeartbeatResponse_TopicPartition)
                n49 = buf[pos]
                pos += 1
                if n49 > 127:
                    n49, pos = varint_tail(buf, pos, n49)
                if n49 == 0:
                    raise WireError('topic must not be null')
                e50 = pos + n49 - 1
                if n49 > 32768:
                    raise WireError('topic is longer than 32767 bytes')
                m48.topic = buf[pos:e50].decode()
                pos = e50
                n51 = buf[pos]
                pos += 1
                if n51 > 127:
                    n51, pos = varint_tail(buf, pos, n51)
                if n51 == 0:
                    raise WireError('partitions must not be null')
                n51 -= 1
                if n51 < 16:
                    m48.partitions = list(UNPACK_INT32S[n51](buf, pos))
                else:
                    m48.partitions = list(unpack_from(f'>{n51}i', buf, pos))
                pos += n51 * 4
                n52 = buf[pos]
                pos += 1
                m48.unknown_tagged_fields = None
                if n52:
                    m48.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n52)
                l47.append(m48)
            n53 = buf[pos]
            pos += 1
            m34.unknown_tagged_fields = None
            if n53:
                m34.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n53)
            l33.append(m34)
    n54 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n54:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n54)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
