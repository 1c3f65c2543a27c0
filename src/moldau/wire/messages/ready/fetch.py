"""FetchRequest v18. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import PACK_INT32S, Struct, WireError, long_string, pack, write_tags, write_unsigned_varint

pack_iiibiiB = Struct('>iiibiiB').pack
pack_iiibii = Struct('>iiibii').pack
pack_16sB = Struct('>16sB').pack
pack_16s = Struct('>16s').pack
pack_q = Struct('>q').pack
pack_iiqiqi = Struct('>iiqiqi').pack
pack_iiqiqiB = Struct('>iiqiqiB').pack
pack_iq = Struct('>iq').pack
pack_iqB = Struct('>iqB').pack


def encode(m, out):
    if m.replica_id != -1:
        raise WireError('replica_id does not exist in v18 but is ' + repr(m.replica_id)[:100])
    l1 = m.topics
    n2 = len(l1)
    if n2 < 127:
        out += pack_iiibiiB(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n2 + 1)
    else:
        out += pack_iiibii(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
        write_unsigned_varint(out, n2 + 1)
    for m3 in l1:
        l4 = m3.partitions
        n5 = len(l4)
        if n5 < 127:
            out += pack_16sB(m3.topic_id.int.to_bytes(16, 'big'), n5 + 1)
        else:
            out += pack_16s(m3.topic_id.int.to_bytes(16, 'big'))
            write_unsigned_varint(out, n5 + 1)
        for m6 in l4:
            t7 = m6.unknown_tagged_fields
            t7 = dict(t7) if t7 else {}
            if m6.replica_directory_id.int:
                t7[0] = b8 = bytearray()
                b8 += pack_16s(m6.replica_directory_id.int.to_bytes(16, 'big'))
            if m6.high_watermark != 9223372036854775807:
                t7[1] = b9 = bytearray()
                b9 += pack_q(m6.high_watermark)
            if t7:
                out += pack_iiqiqi(m6.partition, m6.current_leader_epoch, m6.fetch_offset, m6.last_fetched_epoch, m6.log_start_offset, m6.partition_max_bytes)
                write_tags(out, t7)
            else:
                out += pack_iiqiqiB(m6.partition, m6.current_leader_epoch, m6.fetch_offset, m6.last_fetched_epoch, m6.log_start_offset, m6.partition_max_bytes, 0)
        t10 = m3.unknown_tagged_fields
        if t10:
            write_tags(out, t10)
        else:
            out.append(0)
    l11 = m.forgotten_topics_data
    n12 = len(l11)
    if n12 < 127:
        out.append(n12 + 1)
    else:
        write_unsigned_varint(out, n12 + 1)
    for m13 in l11:
        l14 = m13.partitions
        n15 = len(l14)
        if n15 < 16:
            out += pack_16s(m13.topic_id.int.to_bytes(16, 'big'))
            out += PACK_INT32S[n15](n15 + 1, *l14)
        else:
            if n15 < 127:
                out += pack_16sB(m13.topic_id.int.to_bytes(16, 'big'), n15 + 1)
            else:
                out += pack_16s(m13.topic_id.int.to_bytes(16, 'big'))
                write_unsigned_varint(out, n15 + 1)
            out += pack(f'>{n15}i', *l14)
        t17 = m13.unknown_tagged_fields
        if t17:
            write_tags(out, t17)
        else:
            out.append(0)
    b18 = m.rack_id
    b18 = b18.encode()
    n19 = len(b18)
    if n19 < 127:
        out.append(n19 + 1)
        out += b18
    else:
        long_string(out, b18)
    t20 = m.unknown_tagged_fields
    t20 = dict(t20) if t20 else {}
    if m.cluster_id is not None:
        t20[0] = b21 = bytearray()
        b22 = m.cluster_id
        if b22 is None:
            b21.append(0)
        else:
            b22 = b22.encode()
            n23 = len(b22)
            if n23 < 127:
                b21.append(n23 + 1)
                b21 += b22
            else:
                long_string(b21, b22)
    if m.replica_state.replica_id != -1 or m.replica_state.replica_epoch != -1 or m.replica_state.unknown_tagged_fields:
        t20[1] = b24 = bytearray()
        m25 = m.replica_state
        t26 = m25.unknown_tagged_fields
        if t26:
            b24 += pack_iq(m25.replica_id, m25.replica_epoch)
            write_tags(b24, t26)
        else:
            b24 += pack_iqB(m25.replica_id, m25.replica_epoch, 0)
    if t20:
        write_tags(out, t20)
    else:
        out.append(0)
