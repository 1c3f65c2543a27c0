"""ApiVersionsRequest v4 and ApiVersionsResponse v4. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, unknown_tags, unpack_from, varint_tail, write_tags
from moldau.wire.messages.api_versions import ApiVersionsResponse

unpack_hB = Struct('>hB').unpack_from
unpack_hhhB = Struct('>hhhB').unpack_from
unpack_iB = Struct('>iB').unpack_from
unpack_hhB = Struct('>hhB').unpack_from
unpack_q = Struct('>q').unpack_from
unpack_o = Struct('>?').unpack_from
ApiVersionsResponse_ApiVersion = ApiVersionsResponse.ApiVersion
ApiVersionsResponse_SupportedFeatureKey = ApiVersionsResponse.SupportedFeatureKey
ApiVersionsResponse_FinalizedFeatureKey = ApiVersionsResponse.FinalizedFeatureKey


def encode(m, out):
    b1 = m.client_software_name
    b1 = b1.encode()
    n2 = len(b1)
    if n2 < 127:
        out.append(n2 + 1)
        out += b1
    else:
        long_string(out, b1)
    b3 = m.client_software_version
    b3 = b3.encode()
    n4 = len(b3)
    if n4 < 127:
        out.append(n4 + 1)
        out += b3
    else:
        long_string(out, b3)
    t5 = m.unknown_tagged_fields
    if t5:
        write_tags(out, t5)
    else:
        out.append(0)


def decode(buf, pos, end):
    m = new(ApiVersionsResponse)
    m.error_code, n1 = unpack_hB(buf, pos)
    pos += 3
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('api_keys must not be null')
    n1 -= 1
    if n1 * 7 > end - pos:
        raise WireError('api_keys has more elements than bytes')
    m.api_keys = l2 = []
    for _ in range(n1):
        m3 = new(ApiVersionsResponse_ApiVersion)
        m3.api_key, m3.min_version, m3.max_version, n4 = unpack_hhhB(buf, pos)
        pos += 7
        m3.unknown_tagged_fields = None
        if n4:
            m3.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n4)
        l2.append(m3)
    m.supported_features = []
    m.finalized_features_epoch = -1
    m.finalized_features = []
    m.zk_migration_ready = False
    m.throttle_time_ms, n5 = unpack_iB(buf, pos)
    pos += 5
    m.unknown_tagged_fields = None
    if n5:
        if n5 > 127:
            n5, pos = varint_tail(buf, pos, n5)
        if n5 > end - pos:
            raise WireError('more tagged fields than bytes')
        for _ in range(n5):
            t6 = buf[pos]
            pos += 1
            if t6 > 127:
                t6, pos = varint_tail(buf, pos, t6)
            s7 = buf[pos]
            pos += 1
            if s7 > 127:
                s7, pos = varint_tail(buf, pos, s7)
            e8 = pos + s7
            if e8 > end:
                raise WireError('a tagged field is cut off')
            if t6 == 0:
                n9 = buf[pos]
                pos += 1
                if n9 > 127:
                    n9, pos = varint_tail(buf, pos, n9)
                if n9 == 0:
                    raise WireError('supported_features must not be null')
                n9 -= 1
                if n9 * 6 > end - pos:
                    raise WireError('supported_features has more elements than bytes')
                m.supported_features = l10 = []
                for _ in range(n9):
                    m11 = new(ApiVersionsResponse_SupportedFeatureKey)
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
                    m11.min_version, m11.max_version, n14 = unpack_hhB(buf, pos)
                    pos += 5
                    m11.unknown_tagged_fields = None
                    if n14:
                        m11.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n14)
                    l10.append(m11)
                if pos != e8:
                    raise WireError('tagged field supported_features has a wrong size')
            elif t6 == 1:
                m.finalized_features_epoch, = unpack_q(buf, pos)
                pos += 8
                if pos != e8:
                    raise WireError('tagged field finalized_features_epoch has a wrong size')
            elif t6 == 2:
                n15 = buf[pos]
                pos += 1
                if n15 > 127:
                    n15, pos = varint_tail(buf, pos, n15)
                if n15 == 0:
                    raise WireError('finalized_features must not be null')
                n15 -= 1
                if n15 * 6 > end - pos:
                    raise WireError('finalized_features has more elements than bytes')
                m.finalized_features = l16 = []
                for _ in range(n15):
                    m17 = new(ApiVersionsResponse_FinalizedFeatureKey)
                    n18 = buf[pos]
                    pos += 1
                    if n18 > 127:
                        n18, pos = varint_tail(buf, pos, n18)
                    if n18 == 0:
                        raise WireError('name must not be null')
                    e19 = pos + n18 - 1
                    if n18 > 32768:
                        raise WireError('name is longer than 32767 bytes')
                    m17.name = buf[pos:e19].decode()
                    pos = e19
                    m17.max_version_level, m17.min_version_level, n20 = unpack_hhB(buf, pos)
                    pos += 5
                    m17.unknown_tagged_fields = None
                    if n20:
                        m17.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n20)
                    l16.append(m17)
                if pos != e8:
                    raise WireError('tagged field finalized_features has a wrong size')
            elif t6 == 3:
                m.zk_migration_ready, = unpack_o(buf, pos)
                pos += 1
                if pos != e8:
                    raise WireError('tagged field zk_migration_ready has a wrong size')
            else:
                if m.unknown_tagged_fields is None:
                    m.unknown_tagged_fields = {}
                m.unknown_tagged_fields[t6] = buf[pos:e8]
                pos = e8
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
