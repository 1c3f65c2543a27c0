"""GetTelemetrySubscriptionsRequest v0 and GetTelemetrySubscriptionsResponse v0. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, new, pack, to_uuid, unknown_tags, unpack_from, varint_tail, write_tags
from moldau.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

pack_16s = Struct('>16s').pack
pack_16sB = Struct('>16sB').pack
unpack_ih16siB = Struct('>ih16siB').unpack_from
unpack_iioB = Struct('>ii?B').unpack_from


def encode(m, out):
    t1 = m.unknown_tagged_fields
    if t1:
        out += pack_16s(m.client_instance_id.int.to_bytes(16, 'big'))
        write_tags(out, t1)
    else:
        out += pack_16sB(m.client_instance_id.int.to_bytes(16, 'big'), 0)


def decode(buf, pos, end):
    m = new(GetTelemetrySubscriptionsResponse)
    m.throttle_time_ms, m.error_code, u1, m.subscription_id, n2 = unpack_ih16siB(buf, pos)
    pos += 27
    m.client_instance_id = to_uuid(u1)
    if n2 > 127:
        n2, pos = varint_tail(buf, pos, n2)
    if n2 == 0:
        raise WireError('accepted_compression_types must not be null')
    n2 -= 1
    m.accepted_compression_types = list(unpack_from(f'>{n2}b', buf, pos))
    pos += n2 * 1
    m.push_interval_ms, m.telemetry_max_bytes, m.delta_temporality, n3 = unpack_iioB(buf, pos)
    pos += 10
    if n3 > 127:
        n3, pos = varint_tail(buf, pos, n3)
    if n3 == 0:
        raise WireError('requested_metrics must not be null')
    n3 -= 1
    if n3 * 1 > end - pos:
        raise WireError('requested_metrics has more elements than bytes')
    m.requested_metrics = l4 = []
    for _ in range(n3):
        n6 = buf[pos]
        pos += 1
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            raise WireError('requested_metrics must not be null')
        e7 = pos + n6 - 1
        if n6 > 32768:
            raise WireError('requested_metrics is longer than 32767 bytes')
        m5 = buf[pos:e7].decode()
        pos = e7
        l4.append(m5)
    n8 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n8:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n8)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
