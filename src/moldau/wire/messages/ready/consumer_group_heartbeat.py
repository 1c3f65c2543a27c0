"""ConsumerGroupHeartbeatRequest v1 and ConsumerGroupHeartbeatResponse v1. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import PACK_INT32S, Struct, UNPACK_INT32S, WireError, long_string, new, pack, to_uuid, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

pack_iB = Struct('>iB').pack
pack_i = Struct('>i').pack
pack_16s = Struct('>16s').pack
pack_16sB = Struct('>16sB').pack
unpack_ihB = Struct('>ihB').unpack_from
unpack_iib = Struct('>iib').unpack_from
unpack_16sB = Struct('>16sB').unpack_from
ConsumerGroupHeartbeatResponse_Assignment = ConsumerGroupHeartbeatResponse.Assignment
ConsumerGroupHeartbeatResponse_TopicPartitions = ConsumerGroupHeartbeatResponse.TopicPartitions


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
        out += pack_iB(m.member_epoch, 0)
    else:
        b5 = b5.encode()
        n6 = len(b5)
        if n6 < 127:
            out += pack_iB(m.member_epoch, n6 + 1)
            out += b5
        else:
            out += pack_i(m.member_epoch)
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
    l9 = m.subscribed_topic_names
    if l9 is None:
        out += pack_iB(m.rebalance_timeout_ms, 0)
    else:
        n10 = len(l9)
        if n10 < 127:
            out += pack_iB(m.rebalance_timeout_ms, n10 + 1)
        else:
            out += pack_i(m.rebalance_timeout_ms)
            write_unsigned_varint(out, n10 + 1)
        for m11 in l9:
            b12 = m11
            b12 = b12.encode()
            n13 = len(b12)
            if n13 < 127:
                out.append(n13 + 1)
                out += b12
            else:
                long_string(out, b12)
    b14 = m.subscribed_topic_regex
    if b14 is None:
        out.append(0)
    else:
        b14 = b14.encode()
        n15 = len(b14)
        if n15 < 127:
            out.append(n15 + 1)
            out += b14
        else:
            long_string(out, b14)
    b16 = m.server_assignor
    if b16 is None:
        out.append(0)
    else:
        b16 = b16.encode()
        n17 = len(b16)
        if n17 < 127:
            out.append(n17 + 1)
            out += b16
        else:
            long_string(out, b16)
    l18 = m.topic_partitions
    if l18 is None:
        out.append(0)
    else:
        n19 = len(l18)
        if n19 < 127:
            out.append(n19 + 1)
        else:
            write_unsigned_varint(out, n19 + 1)
        for m20 in l18:
            l21 = m20.partitions
            n22 = len(l21)
            if n22 < 16:
                out += pack_16s(m20.topic_id.int.to_bytes(16, 'big'))
                out += PACK_INT32S[n22](n22 + 1, *l21)
            else:
                if n22 < 127:
                    out += pack_16sB(m20.topic_id.int.to_bytes(16, 'big'), n22 + 1)
                else:
                    out += pack_16s(m20.topic_id.int.to_bytes(16, 'big'))
                    write_unsigned_varint(out, n22 + 1)
                out += pack(f'>{n22}i', *l21)
            t24 = m20.unknown_tagged_fields
            if t24:
                write_tags(out, t24)
            else:
                out.append(0)
    t25 = m.unknown_tagged_fields
    if t25:
        write_tags(out, t25)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(ConsumerGroupHeartbeatResponse)
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
        m.member_id = None
    else:
        e4 = pos + n3 - 1
        if n3 > 32768:
            raise WireError('member_id is longer than 32767 bytes')
        m.member_id = buf[pos:e4].decode()
        pos = e4
    m.member_epoch, m.heartbeat_interval_ms, p5 = unpack_iib(buf, pos)
    pos += 9
    if p5 < 0:
        m.assignment = None
    else:
        m6 = new(ConsumerGroupHeartbeatResponse_Assignment)
        n7 = buf[pos]
        pos += 1
        if n7 > 127:
            n7, pos = varint_tail(buf, pos, n7)
        if n7 == 0:
            raise WireError('topic_partitions must not be null')
        n7 -= 1
        if n7 * 18 > end - pos:
            raise WireError('topic_partitions has more elements than bytes')
        m6.topic_partitions = l8 = []
        for _ in range(n7):
            m9 = new(ConsumerGroupHeartbeatResponse_TopicPartitions)
            u10, n11 = unpack_16sB(buf, pos)
            pos += 17
            m9.topic_id = to_uuid(u10)
            if n11 > 127:
                n11, pos = varint_tail(buf, pos, n11)
            if n11 == 0:
                raise WireError('partitions must not be null')
            n11 -= 1
            if n11 < 16:
                m9.partitions = list(UNPACK_INT32S[n11](buf, pos))
            else:
                m9.partitions = list(unpack_from(f'>{n11}i', buf, pos))
            pos += n11 * 4
            n12 = buf[pos]
            pos += 1
            m9.unknown_tagged_fields = None
            if n12:
                m9.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n12)
            l8.append(m9)
        n13 = buf[pos]
        pos += 1
        m6.unknown_tagged_fields = None
        if n13:
            m6.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n13)
        m.assignment = m6
    n14 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n14:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n14)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
