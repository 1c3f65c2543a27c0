"""Plain packets: found as the decoder would find them, and everything else is left to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine._plain_packets import plain_packets, pubacks
from moldau.services.mqtt.machine.decoding import Framer, decode_packet
from moldau.services.mqtt.machine.mapping import Mapper, Target
from moldau.services.mqtt.machine.packets import V4, V5, Ack, PacketType, Publish
from moldau.services.mqtt.machine.reasons import MqttError

VERSIONS = st.sampled_from([V4, V5])


@st.composite
def packets(draw: st.DrawFn, version: int) -> bytes:
    kind = draw(st.integers(0, 9))
    number = draw(st.integers(1, 65_535))
    if kind == 0:
        return draw(st.binary(min_size=1, max_size=12))
    if kind == 1:
        return encoding.PINGREQ
    if kind == 2:
        return encoding.ack(version, PacketType.PUBACK, number, draw(st.sampled_from([0, 0x97])))
    if kind == 3:
        return encoding.ack(version, PacketType.PUBACK, number)
    qos = draw(st.sampled_from([0, 1, 1, 1, 2]))
    properties = draw(st.sampled_from([{}, {}, {}, {0x03: "text/plain"}]))
    return encoding.publish(
        version,
        draw(st.sampled_from(["a", "sensors/7/temp", "ü/x", "wild/#", ""])),
        bytes(draw(st.sampled_from([0, 5, 110, 125, 130, 16_370, 16_390]))),
        qos=qos,
        retain=draw(st.sampled_from([False, False, False, True])),
        dup=bool(qos) and draw(st.booleans()),
        packet_id=number if qos else 0,
        properties=properties if version == V5 else {},
    )


def is_plain(packet: object) -> bool:
    if isinstance(packet, Ack):
        return packet.kind == PacketType.PUBACK
    return isinstance(packet, Publish) and not (
        packet.qos == 2 or packet.retain or packet.properties
    )


@given(st.data(), VERSIONS, st.integers(0, 8))
def test_what_is_found_is_what_the_decoder_finds(
    data: st.DataObject, version: int, count_max: int
) -> None:
    stream = b"".join(data.draw(st.lists(packets(version), max_size=8)))
    stream = stream[: data.draw(st.integers(0, len(stream)))]
    messages, acknowledged, end = plain_packets(stream, version, 20_000, count_max)
    assert len(messages) + len(acknowledged) <= count_max
    assert [each[3] for each in messages] == sorted(each[3] for each in messages)
    found = []
    acks = []
    for first, body in Framer(20_000).feed(stream[:end]):
        try:
            packet = decode_packet(first, body, version)
        except MqttError:
            # The text of a topic is looked at by the mapper.
            assert (first >> 4) == PacketType.PUBLISH
            found.append(None)
            continue
        if isinstance(packet, Publish):
            found.append((packet.topic.encode(), packet.payload, packet.packet_id))
        else:
            assert isinstance(packet, Ack)
            acks.append(packet.packet_id)
    assert len(found) == len(messages)
    for one, other in zip(found, messages, strict=True):
        if one is None:
            assert Mapper(fallback="mqtt").plain_target(other[0]) is None
        else:
            assert one == other[:3]
    assert acks == acknowledged
    # It stops where the long way is needed, and not before.
    if len(messages) + len(acknowledged) < count_max:
        try:
            rest = list(Framer(20_000).feed(stream[end:]))
            following = decode_packet(*rest[0], version) if rest else None
        except MqttError:
            return
        if isinstance(following, Ack):
            assert not is_plain(following) or following.reason or len(rest[0][1]) > 2
        else:
            assert following is None or not is_plain(following)


@given(st.binary(max_size=200), VERSIONS)
def test_any_bytes_are_read_within_their_bounds(data: bytes, version: int) -> None:
    messages, _, end = plain_packets(data, version, 1000, 100)
    assert 0 <= end <= len(data)
    assert all(each[3] <= end for each in messages)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x32\x85\x00\x00\x01a\x00\x01", id="a length that is too long"),
        pytest.param(b"\x32\x85\x80\x00\x00\x01a\x00\x01", id="by two bytes"),
        pytest.param(b"\x32\x05\x00\x01a\x00\x00", id="packet identifier 0"),
        pytest.param(b"\x32\x04\x00\x01a\x00", id="half an identifier"),
        pytest.param(b"\x30\x03\x00\x05a", id="a topic beyond its packet"),
        pytest.param(b"\x30\x02\x00\x00", id="no topic"),
        pytest.param(b"\x40\x02\x00\x00", id="PUBACK of 0"),
        pytest.param(b"\x42\x02\x00\x01", id="flags of PUBACK"),
        pytest.param(b"\x38\x03\x00\x01a", id="DUP with QoS 0"),
        pytest.param(b"\x36\x05\x00\x01a\x00\x01", id="QoS 3"),
    ],
)
def test_what_is_wrong_is_left_to_the_decoder(data: bytes) -> None:
    assert plain_packets(data, V4, 1000, 10) == ([], [], 0)


def test_a_packet_that_is_too_large_is_left_to_the_framer() -> None:
    data = encoding.publish(V4, "a", bytes(1000), qos=1, packet_id=1)
    assert plain_packets(data, V4, len(data) - 1, 10)[2] == 0
    assert plain_packets(data, V4, len(data), 10)[2] == len(data)


@given(st.lists(st.integers(1, 65_535), max_size=20))
def test_acknowledgements(numbers: list[int]) -> None:
    wanted = b"".join(encoding.ack(V5, PacketType.PUBACK, number) for number in numbers)
    assert pubacks(numbers) == wanted


def test_topics_are_mapped_as_they_are_sent() -> None:
    mapper = Mapper(fallback="mqtt")
    for _ in range(2):
        assert mapper.plain_target(b"sensors/7") == Target("sensors", b"sensors/7")
        assert mapper.plain_target("ü".encode()) == Target("mqtt", "ü".encode())
        for wrong in (b"a/+", b"#", b"\xff", b"a\0b", b"__own/x", b"$SYS/x", b"", b"/" * 200):
            assert mapper.plain_target(wrong) is None
