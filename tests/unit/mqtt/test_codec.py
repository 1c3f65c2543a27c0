"""Packets: what is read is what was written, and broken ones raise MqttError and nothing else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.decoding import Framer, decode_connect, decode_packet
from moldau.services.mqtt.machine.packets import (
    V4,
    V5,
    Ack,
    Connect,
    Disconnect,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    SubscribeRequest,
    Unsubscribe,
    Will,
)
from moldau.services.mqtt.machine.properties import Property, read_properties, write_properties
from moldau.services.mqtt.machine.reasons import MqttError, Reason

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NAME = st.text(
    st.characters(exclude_characters="\0+#", exclude_categories=["Cs"]), min_size=1, max_size=20
)
MESSAGE_PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        0x01: st.integers(0, 1),
        0x02: st.integers(0, 2**32 - 1),
        0x03: TEXT,
        0x08: NAME,
        0x09: st.binary(max_size=20),
        0x26: st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3),
    },
)


def framed(data: bytes) -> list[tuple[int, bytes]]:
    return list(Framer(1_000_000).feed(data))


@given(NAME, st.binary(max_size=300), st.integers(0, 2), st.booleans(), MESSAGE_PROPERTIES)
def test_publish_round_trip(
    topic: str, payload: bytes, qos: int, retain: bool, properties: dict
) -> None:
    number = 7 if qos else 0
    for version in (V4, V5):
        given_properties = properties if version == V5 else {}
        data = encoding.publish(
            version, topic, payload, qos=qos, retain=retain, packet_id=number,
            properties=given_properties,
        )  # fmt: skip
        ((first, body),) = framed(data)
        wanted = Publish(topic, payload, qos, retain, False, number, given_properties)
        assert decode_packet(first, body, version) == wanted


@given(MESSAGE_PROPERTIES, NAME, TEXT, st.booleans(), st.integers(0, 65535))
def test_connect_round_trip(
    properties: dict, topic: str, client_id: str, clean: bool, keep_alive: int
) -> None:
    will = Will(topic, b"last", 1, True, {**properties, 0x18: 5})
    packet = Connect(V5, client_id, clean, keep_alive, {0x11: 9, 0x21: 3}, will, "user", b"pass")
    ((first, body),) = framed(encoding.connect(packet))
    assert decode_connect(first, body) == packet


@pytest.mark.parametrize(
    ("data", "packet"),
    [
        (encoding.PINGREQ, Ping()),
        (encoding.ack(V5, PacketType.PUBACK, 3), Ack(PacketType.PUBACK, 3)),
        (encoding.ack(V5, PacketType.PUBREC, 3, 0x97), Ack(PacketType.PUBREC, 3, 0x97)),
        (encoding.ack(V4, PacketType.PUBREL, 3), Ack(PacketType.PUBREL, 3)),
        (encoding.disconnect(V5, 4, {0x11: 3}), Disconnect(4, {0x11: 3})),
        (encoding.disconnect(V5), Disconnect()),
        (
            encoding.subscribe(V5, Subscribe(1, (SubscribeRequest("a/#", 2, True, True, 2),))),
            Subscribe(1, (SubscribeRequest("a/#", 2, True, True, 2),)),
        ),
        (encoding.unsubscribe(V5, Unsubscribe(1, ("a", "b"))), Unsubscribe(1, ("a", "b"))),
    ],
)
def test_packets_round_trip(data: bytes, packet: object) -> None:
    ((first, body),) = framed(data)
    assert decode_packet(first, body, V5) == packet


@pytest.mark.parametrize(
    ("data", "version", "reason"),
    [
        pytest.param(b"\x36\x05\x00\x01a\x00\x01", V4, Reason.MALFORMED_PACKET, id="QoS 3"),
        pytest.param(b"\x38\x03\x00\x01a", V4, Reason.MALFORMED_PACKET, id="DUP with QoS 0"),
        pytest.param(b"\x30\x03\x00\x01+", V4, Reason.TOPIC_NAME_INVALID, id="wildcard"),
        pytest.param(b"\x30\x02\x00\x00", V4, Reason.PROTOCOL_ERROR, id="no topic"),
        pytest.param(b"\x30\x03\x00\x01\x00", V4, Reason.MALFORMED_PACKET, id="null character"),
        pytest.param(b"\x30\x03\x00\x01\xff", V4, Reason.MALFORMED_PACKET, id="not UTF-8"),
        pytest.param(b"\x32\x05\x00\x01a\x00\x00", V4, Reason.PROTOCOL_ERROR, id="packet id 0"),
        pytest.param(b"\x30\x03\x00\x01a", V5, Reason.MALFORMED_PACKET, id="no properties"),
        pytest.param(b"\x30\x06\x00\x01a\x02\x01\x02", V5, Reason.PROTOCOL_ERROR, id="format 2"),
        pytest.param(b"\x30\x08\x00\x01a\x04\x01\x01\x01\x01", V5, Reason.PROTOCOL_ERROR,
                     id="twice"),
        pytest.param(b"\x30\x07\x00\x01a\x03\x11\x00\x00", V5, Reason.PROTOCOL_ERROR,
                     id="foreign property"),
        pytest.param(b"\x80\x06\x00\x01\x00\x01a\x00", V4, Reason.MALFORMED_PACKET, id="flags"),
        pytest.param(b"\x82\x02\x00\x01", V4, Reason.PROTOCOL_ERROR, id="no filter"),
        pytest.param(b"\x82\x06\x00\x01\x00\x01a\x03", V4, Reason.MALFORMED_PACKET, id="sub QoS 3"),
        pytest.param(b"\x82\x06\x00\x01\x00\x01a\x04", V4, Reason.MALFORMED_PACKET,
                     id="option of 5 in 3.1.1"),
        pytest.param(b"\xe0\x01\x00", V4, Reason.MALFORMED_PACKET, id="long DISCONNECT"),
        pytest.param(b"\xf0\x00", V4, Reason.PROTOCOL_ERROR, id="AUTH in 3.1.1"),
        pytest.param(b"\x10\x00", V4, Reason.PROTOCOL_ERROR, id="second CONNECT"),
        pytest.param(b"\x20\x02\x00\x00", V4, Reason.PROTOCOL_ERROR, id="CONNACK of a client"),
    ],
)  # fmt: skip
def test_broken_packets(data: bytes, version: int, reason: Reason) -> None:
    ((first, body),) = framed(data)
    with pytest.raises(MqttError) as caught:
        decode_packet(first, body, version)
    assert caught.value.reason == reason


def test_other_protocols_and_versions_are_refused() -> None:
    valid = encoding.connect(Connect(V4, "a", True, 0))
    for old, new, reason in (
        (b"MQTT", b"HTTP", Reason.PROTOCOL_ERROR),
        (b"MQTT\x04", b"MQTT\x03", Reason.UNSUPPORTED_PROTOCOL_VERSION),
    ):
        ((first, body),) = framed(valid.replace(old, new))
        with pytest.raises(MqttError) as caught:
            decode_connect(first, body)
        assert caught.value.reason == reason


@given(st.binary(max_size=60), st.sampled_from([V4, V5]), st.integers(0, 255))
def test_any_bytes_are_a_packet_or_an_mqtt_error(body: bytes, version: int, first: int) -> None:
    for decode in (lambda: decode_packet(first, body, version), lambda: decode_connect(16, body)):
        with contextlib.suppress(MqttError):
            decode()


@given(st.data())
def test_packets_are_found_however_they_arrive(data: st.DataObject) -> None:
    packets = [
        encoding.publish(V4, "a/b", b"x" * size)
        for size in data.draw(st.lists(st.integers(0, 400), max_size=6))
    ]
    stream = b"".join(packets)
    framer = Framer(1000)
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += list(framer.feed(stream[:size]))
        stream = stream[size:]
    assert [len(body) for _, body in found] == [
        len(each) - (2 if len(each) < 130 else 3) for each in packets
    ]


def test_a_packet_that_is_too_large_is_refused_by_its_length_alone() -> None:
    with pytest.raises(MqttError) as caught:
        list(Framer(1000).feed(b"\x30\xff\x7f"))
    assert caught.value.reason == Reason.PACKET_TOO_LARGE
    with pytest.raises(MqttError):
        list(Framer(1000).feed(b"\x30\xff\xff\xff\xff\x01"))


def test_properties_do_not_reach_beyond_themselves() -> None:
    data = write_properties({Property.CONTENT_TYPE: "text"})
    with pytest.raises(MqttError):
        read_properties(b"\x03" + data[1:], 0, frozenset({0x03}))
