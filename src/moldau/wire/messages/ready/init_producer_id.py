"""InitProducerIdRequest v5 and InitProducerIdResponse v5. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, write_tags
from moldau.wire.messages.init_producer_id import InitProducerIdResponse

pack_iqh = Struct('>iqh').pack
pack_iqhB = Struct('>iqhB').pack
unpack_ihqhB = Struct('>ihqhB').unpack_from


def encode(m, out):
    if m.enable2_pc != False:
        raise WireError('enable2_pc does not exist in v5 but is ' + repr(m.enable2_pc)[:100])
    if m.keep_prepared_txn != False:
        raise WireError('keep_prepared_txn does not exist in v5 but is ' + repr(m.keep_prepared_txn)[:100])
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
    t3 = m.unknown_tagged_fields
    if t3:
        out += pack_iqh(m.transaction_timeout_ms, m.producer_id, m.producer_epoch)
        write_tags(out, t3)
    else:
        out += pack_iqhB(m.transaction_timeout_ms, m.producer_id, m.producer_epoch, 0)


def decode(buf, pos, end):
    m = new(InitProducerIdResponse)
    m.ongoing_txn_producer_id = -1
    m.ongoing_txn_producer_epoch = -1
    m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch, n1 = unpack_ihqhB(buf, pos)
    pos += 17
    m.unknown_tagged_fields = None
    if n1:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n1)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
