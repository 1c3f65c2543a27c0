"""EndTxnRequest v5 and EndTxnResponse v5. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, write_tags
from moldau.wire.messages.end_txn import EndTxnResponse

pack_qho = Struct('>qh?').pack
pack_qhoB = Struct('>qh?B').pack
unpack_ihqhB = Struct('>ihqhB').unpack_from


def encode(m, out):
    b1 = m.transactional_id
    b1 = b1.encode()
    n2 = len(b1)
    if n2 < 127:
        out.append(n2 + 1)
        out += b1
    else:
        long_string(out, b1)
    t3 = m.unknown_tagged_fields
    if t3:
        out += pack_qho(m.producer_id, m.producer_epoch, m.committed)
        write_tags(out, t3)
    else:
        out += pack_qhoB(m.producer_id, m.producer_epoch, m.committed, 0)


def decode(buf, pos, end):
    m = new(EndTxnResponse)
    m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch, n1 = unpack_ihqhB(buf, pos)
    pos += 17
    m.unknown_tagged_fields = None
    if n1:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n1)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
