"""CreateTopicsRequest v7 and CreateTopicsResponse v7. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import PACK_INT32S, Struct, WireError, long_string, new, pack, to_uuid, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.create_topics import CreateTopicsResponse

pack_ihB = Struct('>ihB').pack
pack_ih = Struct('>ih').pack
pack_i = Struct('>i').pack
pack_iB = Struct('>iB').pack
pack_io = Struct('>i?').pack
pack_ioB = Struct('>i?B').pack
unpack_iB = Struct('>iB').unpack_from
unpack_16shB = Struct('>16shB').unpack_from
unpack_ihB = Struct('>ihB').unpack_from
unpack_oboB = Struct('>?b?B').unpack_from
unpack_h = Struct('>h').unpack_from
CreateTopicsResponse_CreatableTopicResult = CreateTopicsResponse.CreatableTopicResult
CreateTopicsResponse_CreatableTopicConfigs = CreateTopicsResponse.CreatableTopicConfigs


def encode(m, out):
    l1 = m.topics
    n2 = len(l1)
    if n2 < 127:
        out.append(n2 + 1)
    else:
        write_unsigned_varint(out, n2 + 1)
    for m3 in l1:
        b4 = m3.name
        b4 = b4.encode()
        n5 = len(b4)
        if n5 < 127:
            out.append(n5 + 1)
            out += b4
        else:
            long_string(out, b4)
        l6 = m3.assignments
        n7 = len(l6)
        if n7 < 127:
            out += pack_ihB(m3.num_partitions, m3.replication_factor, n7 + 1)
        else:
            out += pack_ih(m3.num_partitions, m3.replication_factor)
            write_unsigned_varint(out, n7 + 1)
        for m8 in l6:
            l9 = m8.broker_ids
            n10 = len(l9)
            if n10 < 16:
                out += pack_i(m8.partition_index)
                out += PACK_INT32S[n10](n10 + 1, *l9)
            else:
                if n10 < 127:
                    out += pack_iB(m8.partition_index, n10 + 1)
                else:
                    out += pack_i(m8.partition_index)
                    write_unsigned_varint(out, n10 + 1)
                out += pack(f'>{n10}i', *l9)
            t12 = m8.unknown_tagged_fields
            if t12:
                write_tags(out, t12)
            else:
                out.append(0)
        l13 = m3.configs
        n14 = len(l13)
        if n14 < 127:
            out.append(n14 + 1)
        else:
            write_unsigned_varint(out, n14 + 1)
        for m15 in l13:
            b16 = m15.name
            b16 = b16.encode()
            n17 = len(b16)
            if n17 < 127:
                out.append(n17 + 1)
                out += b16
            else:
                long_string(out, b16)
            b18 = m15.value
            if b18 is None:
                out.append(0)
            else:
                b18 = b18.encode()
                n19 = len(b18)
                if n19 < 127:
                    out.append(n19 + 1)
                    out += b18
                else:
                    long_string(out, b18)
            t20 = m15.unknown_tagged_fields
            if t20:
                write_tags(out, t20)
            else:
                out.append(0)
        t21 = m3.unknown_tagged_fields
        if t21:
            write_tags(out, t21)
        else:
            out.append(0)
    t22 = m.unknown_tagged_fields
    if t22:
        out += pack_io(m.timeout_ms, m.validate_only)
        write_tags(out, t22)
    else:
        out += pack_ioB(m.timeout_ms, m.validate_only, 0)


def decode(buf, pos, end):
    m = new(CreateTopicsResponse)
    m.throttle_time_ms, n1 = unpack_iB(buf, pos)
    pos += 5
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('topics must not be null')
    n1 -= 1
    if n1 * 28 > end - pos:
        raise WireError('topics has more elements than bytes')
    m.topics = l2 = []
    for _ in range(n1):
        m3 = new(CreateTopicsResponse_CreatableTopicResult)
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
        u6, m3.error_code, n7 = unpack_16shB(buf, pos)
        pos += 19
        m3.topic_id = to_uuid(u6)
        if n7 > 127:
            n7, pos = varint_tail(buf, pos, n7)
        if n7 == 0:
            m3.error_message = None
        else:
            e8 = pos + n7 - 1
            if n7 > 32768:
                raise WireError('error_message is longer than 32767 bytes')
            m3.error_message = buf[pos:e8].decode()
            pos = e8
        m3.topic_config_error_code = 0
        m3.num_partitions, m3.replication_factor, n9 = unpack_ihB(buf, pos)
        pos += 7
        if n9 > 127:
            n9, pos = varint_tail(buf, pos, n9)
        if n9 == 0:
            m3.configs = None
        else:
            n9 -= 1
            if n9 * 6 > end - pos:
                raise WireError('configs has more elements than bytes')
            m3.configs = l10 = []
            for _ in range(n9):
                m11 = new(CreateTopicsResponse_CreatableTopicConfigs)
                n12 = buf[pos]
                pos += 1
                if n12 > 127:
                    n12, pos = varint_tail(buf, pos, n12)
                if n12 == 0:
                    raise WireError('name must not be null')
                e13 = pos + n12 - 1
                if n12 > 32768:
                    raise WireError('name is longer than 32767 bytes')
                m11.name = buf[pos:e13].decode()
                pos = e13
                n14 = buf[pos]
                pos += 1
                if n14 > 127:
                    n14, pos = varint_tail(buf, pos, n14)
                if n14 == 0:
                    m11.value = None
                else:
                    e15 = pos + n14 - 1
                    if n14 > 32768:
                        raise WireError('value is longer than 32767 bytes')
                    m11.value = buf[pos:e15].decode()
                    pos = e15
                m11.read_only, m11.config_source, m11.is_sensitive, n16 = unpack_oboB(buf, pos)
                pos += 4
                m11.unknown_tagged_fields = None
                if n16:
                    m11.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n16)
                l10.append(m11)
        n17 = buf[pos]
        pos += 1
        m3.unknown_tagged_fields = None
        if n17:
            if n17 > 127:
                n17, pos = varint_tail(buf, pos, n17)
            if n17 > end - pos:
                raise WireError('more tagged fields than bytes')
            for _ in range(n17):
                t18 = buf[pos]
                pos += 1
                if t18 > 127:
                    t18, pos = varint_tail(buf, pos, t18)
                s19 = buf[pos]
                pos += 1
                if s19 > 127:
                    s19, pos = varint_tail(buf, pos, s19)
                e20 = pos + s19
                if e20 > end:
                    raise WireError('a tagged field is cut off')
                if t18 == 0:
                    m3.topic_config_error_code, = unpack_h(buf, pos)
                    pos += 2
                    if pos != e20:
                        raise WireError('tagged field topic_config_error_code has a wrong size')
                else:
                    if m3.unknown_tagged_fields is None:
                        m3.unknown_tagged_fields = {}
                    m3.unknown_tagged_fields[t18] = buf[pos:e20]
                    pos = e20
        l2.append(m3)
    n21 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n21:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n21)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
