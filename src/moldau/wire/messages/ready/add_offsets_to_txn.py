"""AddOffsetsToTxnRequest v4 and AddOffsetsToTxnResponse v4. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, write_tags
from moldau.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse

pack_qhB = Struct('>qhB').pack
pack_qh = Struct('>qh').pack
unpack_ihB = Struct('>ihB').unpack_from


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
        out += pack_qhB(m.producer_id, m.producer_epoch, n4 + 1)
        out += b3
    else:
        out += pack_qh(m.producer_id, m.producer_epoch)
        long_string(out, b3)
    t5 = m.unknown_tagged_fields
    if t5:
        write_tags(out, t5)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(AddOffsetsToTxnResponse)
    m.throttle_time_ms, m.error_code, n1 = unpack_ihB(buf, pos)
    pos += 7
    m.unknown_tagged_fields = None
    if n1:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n1)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
