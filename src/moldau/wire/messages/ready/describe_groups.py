"""DescribeGroupsRequest v6 and DescribeGroupsResponse v6. Made by tools/generate_codecs.py; edit what it is made from instead."""

from moldau.wire.codec_functions import Struct, WireError, long_string, new, pack, unknown_tags, unpack_from, varint_tail, write_tags, write_unsigned_varint
from moldau.wire.messages.describe_groups import DescribeGroupsResponse

pack_o = Struct('>?').pack
pack_oB = Struct('>?B').pack
unpack_iB = Struct('>iB').unpack_from
unpack_hB = Struct('>hB').unpack_from
DescribeGroupsResponse_DescribedGroup = DescribeGroupsResponse.DescribedGroup
DescribeGroupsResponse_DescribedGroupMember = DescribeGroupsResponse.DescribedGroupMember


def encode(m, out):
    l1 = m.groups
    n2 = len(l1)
    if n2 < 127:
        out.append(n2 + 1)
    else:
        write_unsigned_varint(out, n2 + 1)
    for m3 in l1:
        b4 = m3
        b4 = b4.encode()
        n5 = len(b4)
        if n5 < 127:
            out.append(n5 + 1)
            out += b4
        else:
            long_string(out, b4)
    t6 = m.unknown_tagged_fields
    if t6:
        out += pack_o(m.include_authorized_operations)
        write_tags(out, t6)
    else:
        out += pack_oB(m.include_authorized_operations, 0)


def decode(buf, pos, end):
    m = new(DescribeGroupsResponse)
    m.throttle_time_ms, n1 = unpack_iB(buf, pos)
    pos += 5
    if n1 > 127:
        n1, pos = varint_tail(buf, pos, n1)
    if n1 == 0:
        raise WireError('groups must not be null')
    n1 -= 1
    if n1 * 13 > end - pos:
        raise WireError('groups has more elements than bytes')
    m.groups = l2 = []
    for _ in range(n1):
        m3 = new(DescribeGroupsResponse_DescribedGroup)
        m3.error_code, n4 = unpack_hB(buf, pos)
        pos += 3
        if n4 > 127:
            n4, pos = varint_tail(buf, pos, n4)
        if n4 == 0:
            m3.error_message = None
        else:
            e5 = pos + n4 - 1
            if n4 > 32768:
                raise WireError('error_message is longer than 32767 bytes')
            m3.error_message = buf[pos:e5].decode()
            pos = e5
        n6 = buf[pos]
        pos += 1
        if n6 > 127:
            n6, pos = varint_tail(buf, pos, n6)
        if n6 == 0:
            raise WireError('group_id must not be null')
        e7 = pos + n6 - 1
        if n6 > 32768:
            raise WireError('group_id is longer than 32767 bytes')
        m3.group_id = buf[pos:e7].decode()
        pos = e7
        n8 = buf[pos]
        pos += 1
        if n8 > 127:
            n8, pos = varint_tail(buf, pos, n8)
        if n8 == 0:
            raise WireError('group_state must not be null')
        e9 = pos + n8 - 1
        if n8 > 32768:
            raise WireError('group_state is longer than 32767 bytes')
        m3.group_state = buf[pos:e9].decode()
        pos = e9
        n10 = buf[pos]
        pos += 1
        if n10 > 127:
            n10, pos = varint_tail(buf, pos, n10)
        if n10 == 0:
            raise WireError('protocol_type must not be null')
        e11 = pos + n10 - 1
        if n10 > 32768:
            raise WireError('protocol_type is longer than 32767 bytes')
        m3.protocol_type = buf[pos:e11].decode()
        pos = e11
        n12 = buf[pos]
        pos += 1
        if n12 > 127:
            n12, pos = varint_tail(buf, pos, n12)
        if n12 == 0:
            raise WireError('protocol_data must not be null')
        e13 = pos + n12 - 1
        if n12 > 32768:
            raise WireError('protocol_data is longer than 32767 bytes')
        m3.protocol_data = buf[pos:e13].decode()
        pos = e13
        n14 = buf[pos]
        pos += 1
        if n14 > 127:
            n14, pos = varint_tail(buf, pos, n14)
        if n14 == 0:
            raise WireError('members must not be null')
        n14 -= 1
        if n14 * 7 > end - pos:
            raise WireError('members has more elements than bytes')
        m3.members = l15 = []
        for _ in range(n14):
            m16 = new(DescribeGroupsResponse_DescribedGroupMember)
            n17 = buf[pos]
            pos += 1
            if n17 > 127:
                n17, pos = varint_tail(buf, pos, n17)
            if n17 == 0:
                raise WireError('member_id must not be null')
            e18 = pos + n17 - 1
            if n17 > 32768:
                raise WireError('member_id is longer than 32767 bytes')
            m16.member_id = buf[pos:e18].decode()
            pos = e18
            n19 = buf[pos]
            pos += 1
            if n19 > 127:
                n19, pos = varint_tail(buf, pos, n19)
            if n19 == 0:
                m16.group_instance_id = None
            else:
                e20 = pos + n19 - 1
                if n19 > 32768:
                    raise WireError('group_instance_id is longer than 32767 bytes')
                m16.group_instance_id = buf[pos:e20].decode()
                pos = e20
            n21 = buf[pos]
            pos += 1
            if n21 > 127:
                n21, pos = varint_tail(buf, pos, n21)
            if n21 == 0:
                raise WireError('client_id must not be null')
            e22 = pos + n21 - 1
            if n21 > 32768:
                raise WireError('client_id is longer than 32767 bytes')
            m16.client_id = buf[pos:e22].decode()
            pos = e22
            n23 = buf[pos]
            pos += 1
            if n23 > 127:
                n23, pos = varint_tail(buf, pos, n23)
            if n23 == 0:
                raise WireError('client_host must not be null')
            e24 = pos + n23 - 1
            if n23 > 32768:
                raise WireError('client_host is longer than 32767 bytes')
            m16.client_host = buf[pos:e24].decode()
            pos = e24
            n25 = buf[pos]
            pos += 1
            if n25 > 127:
                n25, pos = varint_tail(buf, pos, n25)
            if n25 == 0:
                raise WireError('member_metadata must not be null')
            e26 = pos + n25 - 1
            m16.member_metadata = buf[pos:e26]
            pos = e26
            n27 = buf[pos]
            pos += 1
            if n27 > 127:
                n27, pos = varint_tail(buf, pos, n27)
            if n27 == 0:
                raise WireError('member_assignment must not be null')
            e28 = pos + n27 - 1
            m16.member_assignment = buf[pos:e28]
            pos = e28
            n29 = buf[pos]
            pos += 1
            m16.unknown_tagged_fields = None
            if n29:
                m16.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n29)
            l15.append(m16)
        m3.authorized_operations, n30 = unpack_iB(buf, pos)
        pos += 5
        m3.unknown_tagged_fields = None
        if n30:
            m3.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n30)
        l2.append(m3)
    n31 = buf[pos]
    pos += 1
    m.unknown_tagged_fields = None
    if n31:
        m.unknown_tagged_fields, pos = unknown_tags(buf, pos, end, n31)
    if pos > end:
        raise WireError('message is cut off')
    return m, pos
