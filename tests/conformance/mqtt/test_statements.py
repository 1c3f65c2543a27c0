"""Normative statements of MQTT 5 that no client library would let one try: bytes on the wire.

Which statement is shown by which test, here and elsewhere, is in `docs/mqtt-conformance.md`.
"""

from __future__ import annotations

import time

import pytest

from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.decoding import decode_packet
from moldau.services.mqtt.machine.packets import (
    V5,
    Connect,
    PacketType,
    Publish,
    Subscribe,
    SubscribeRequest,
    Unsubscribe,
    Will,
)
from moldau.services.mqtt.machine.properties import Properties, Property
from moldau.services.mqtt.machine.reasons import Reason
from support.mqtt import new_name
from support.mqtt_raw import Raw
from support.waiting import eventually

CONNECT = encoding.connect(Connect(V5, "a-client", True, 60))
WITH_WILL = encoding.connect(
    Connect(V5, "a-client", True, 60, {}, Will("w/t", b"gone", 1, False), "alice", b"secret")
)
LOCAL_SHARED = encoding.subscribe(V5, Subscribe(1, (SubscribeRequest("$share/n/t", 1, True),)))


def connected(raw: Raw, properties: Properties | None = None) -> Raw:
    raw.send(encoding.connect(Connect(V5, new_name("raw"), True, 60, properties or {})))
    assert raw.connack()[0] == 0
    return raw


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(CONNECT, Reason.PROTOCOL_ERROR, id="a second CONNECT"),
        pytest.param(b"\x36\x07\x00\x01a\x00\x01\x00x", Reason.MALFORMED_PACKET, id="QoS 3"),
        pytest.param(b"\x38\x05\x00\x01a\x00x", Reason.MALFORMED_PACKET, id="DUP with QoS 0"),
        pytest.param(b"\x30\x05\x00\x01#\x00x", Reason.TOPIC_NAME_INVALID, id="a wildcard"),
        pytest.param(b"\x30\x05\x00\x01\x00\x00x", Reason.MALFORMED_PACKET, id="U+0000"),
        pytest.param(b"\x30\x07\x00\x03\xed\xa0\x80\x00x", Reason.MALFORMED_PACKET, id="U+D800"),
        pytest.param(b"\x32\x07\x00\x01a\x00\x00\x00x", Reason.PROTOCOL_ERROR, id="identifier 0"),
        pytest.param(b"\x30\x08\x00\x01a\x03\x23\x00\x00x", Reason.TOPIC_ALIAS_INVALID,
                     id="topic alias 0"),
        pytest.param(b"\x30\x08\x00\x01a\x03\x23\xff\xffx", Reason.TOPIC_ALIAS_INVALID,
                     id="topic alias too large"),
        pytest.param(b"\x30\x07\x00\x01a\x02\x0b\x01x", Reason.PROTOCOL_ERROR,
                     id="a subscription identifier of a client"),
        pytest.param(b"\x30\x09\x00\x01a\x04\x08\x00\x01+x", Reason.TOPIC_NAME_INVALID,
                     id="a response topic with a wildcard"),
        pytest.param(b"\x60\x02\x00\x01", Reason.MALFORMED_PACKET, id="flags of PUBREL"),
        pytest.param(b"\x80\x07\x00\x01\x00\x00\x01a\x00", Reason.MALFORMED_PACKET,
                     id="flags of SUBSCRIBE"),
        pytest.param(b"\xa0\x06\x00\x01\x00\x00\x01a", Reason.MALFORMED_PACKET,
                     id="flags of UNSUBSCRIBE"),
        pytest.param(b"\xe1\x00", Reason.MALFORMED_PACKET, id="flags of DISCONNECT"),
        pytest.param(b"\xf1\x00", Reason.MALFORMED_PACKET, id="flags of AUTH"),
        pytest.param(b"\xf0\x01\x05", Reason.MALFORMED_PACKET, id="reason of AUTH"),
        pytest.param(b"\x40\x03\x00\x01\x05", Reason.MALFORMED_PACKET, id="reason of PUBACK"),
        pytest.param(b"\x82\x03\x00\x01\x00", Reason.PROTOCOL_ERROR, id="SUBSCRIBE without filter"),
        pytest.param(b"\x82\x07\x00\x01\x00\x00\x01a\x40", Reason.MALFORMED_PACKET,
                     id="reserved bits of options"),
        pytest.param(b"\x82\x07\x00\x01\x00\x00\x01\xff\x00", Reason.MALFORMED_PACKET,
                     id="a filter to subscribe that is not UTF-8"),
        pytest.param(b"\xa2\x06\x00\x01\x00\x00\x01\xff", Reason.MALFORMED_PACKET,
                     id="a filter to unsubscribe that is not UTF-8"),
        pytest.param(b"\x30\x09\x00\x01a\x04\x08\x00\x01\xffx", Reason.MALFORMED_PACKET,
                     id="a response topic that is not UTF-8"),
        pytest.param(b"\x30\x09\x00\x01a\x04\x03\x00\x01\xffx", Reason.MALFORMED_PACKET,
                     id="a content type that is not UTF-8"),
        pytest.param(b"\x30\x0c\x00\x01a\x07\x26\x00\x01n\x00\x01\xffx",
                     Reason.MALFORMED_PACKET, id="a user property that is not UTF-8"),
        pytest.param(b"\x32\x05\x00\x01a\x00\x01", Reason.MALFORMED_PACKET, id="no properties"),
        pytest.param(LOCAL_SHARED, Reason.PROTOCOL_ERROR, id="no local, shared"),
        pytest.param(b"\xa2\x03\x00\x01\x00", Reason.PROTOCOL_ERROR,
                     id="UNSUBSCRIBE without filter"),
        pytest.param(b"\x20\x03\x00\x00\x00", Reason.PROTOCOL_ERROR, id="CONNACK of a client"),
        pytest.param(b"\x00\x00", Reason.PROTOCOL_ERROR, id="packet type 0"),
    ],
)  # fmt: skip
def test_what_must_not_be_sent_ends_the_connection_with_a_reason(
    proxy: int, data: bytes, reason: Reason
) -> None:
    with Raw(proxy) as raw:
        connected(raw).send(data)
        assert raw.reason(PacketType.DISCONNECT) == reason
        assert raw.ended()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encoding.PINGREQ, id="not CONNECT"),
        pytest.param(CONNECT.replace(b"MQTT", b"MQTX"), id="protocol name"),
        pytest.param(CONNECT.replace(b"MQTT\x05\x02", b"MQTT\x05\x03"), id="reserved flag"),
        pytest.param(CONNECT.replace(b"MQTT\x05\x02", b"MQTT\x05\x0a"), id="QoS without a will"),
        pytest.param(CONNECT.replace(b"MQTT\x05\x02", b"MQTT\x05\x22"), id="retain without a will"),
        pytest.param(
            CONNECT.replace(b"MQTT\x05\x02", b"MQTT\x05\x06"), id="a will that is missing"
        ),
        pytest.param(CONNECT.replace(b"MQTT\x05\x02", b"MQTT\x05\x82"), id="a user name missing"),
        pytest.param(CONNECT.replace(b"MQTT\x05\x02", b"MQTT\x05\x42"), id="a password missing"),
        pytest.param(CONNECT.replace(b"a-client", b"\xff-client"), id="not UTF-8"),
        pytest.param(WITH_WILL.replace(b"w/t", b"w/\xff"), id="will topic not UTF-8"),
        pytest.param(WITH_WILL.replace(b"MQTT\x05\xce", b"MQTT\x05\xde"), id="will QoS 3"),
        pytest.param(WITH_WILL.replace(b"alice", b"\xfflice"), id="user name not UTF-8"),
        pytest.param(
            WITH_WILL.replace(b"MQTT\x05\xce", b"MQTT\x05\x4e"), id="a user name without its flag"
        ),
        pytest.param(
            WITH_WILL.replace(b"MQTT\x05\xce", b"MQTT\x05\x8e"), id="a password without its flag"
        ),
        pytest.param(b"\x10\x0b\x00\x04MQTT\x05\x02\x00\x3c\x00", id="no client identifier"),
    ],
)
def test_a_connect_that_is_none_is_not_answered(proxy: int, data: bytes) -> None:
    with Raw(proxy) as raw:
        # What follows is not handled, either.
        raw.send(data + encoding.PINGREQ)
        assert raw.ended()


def test_another_version_is_named_and_the_connection_closed(proxy: int) -> None:
    with Raw(proxy) as raw:
        raw.send(CONNECT.replace(b"MQTT\x05", b"MQTT\x06"))
        # The version is not known to be 5, so the answer has the form of 3.1.1.
        first, body = raw.frame()
        assert first >> 4 == PacketType.CONNACK
        assert body[0] == 0
        assert body[1] != 0
        assert raw.ended()


def test_subscriptions_are_answered_one_by_one_in_order(proxy: int) -> None:
    topic = new_name("st")
    requests = (
        SubscribeRequest(f"{topic}/a", 2),
        SubscribeRequest("a/#/b", 1),
        SubscribeRequest(f"{topic}/b", 0),
        SubscribeRequest("$share//x", 1),
    )
    with Raw(proxy) as raw:
        connected(raw).send(encoding.subscribe(V5, Subscribe(77, requests)))
        first, body = raw.frame()
        assert (first >> 4, body[:2]) == (PacketType.SUBACK, b"\x00\x4d")
        invalid = Reason.TOPIC_FILTER_INVALID
        assert list(body[-4:]) == [2, invalid, 0, invalid]
        filters = (f"{topic}/b", "never", f"{topic}/a")
        raw.send(encoding.unsubscribe(V5, Unsubscribe(78, filters)))
        first, body = raw.frame()
        assert (first >> 4, body[:2]) == (PacketType.UNSUBACK, b"\x00\x4e")
        assert list(body[-3:]) == [0, Reason.NO_SUBSCRIPTION_EXISTED, 0]


def test_pings_and_unknown_identifiers_are_answered(proxy: int) -> None:
    with Raw(proxy) as raw:
        connected(raw).send(encoding.PINGREQ)
        assert raw.frame() == (PacketType.PINGRESP << 4, b"")
        raw.send(encoding.ack(V5, PacketType.PUBREL, 9))
        first, body = raw.frame()
        assert (first >> 4, body[:2]) == (PacketType.PUBCOMP, b"\x00\x09")
        assert body[2] == Reason.PACKET_IDENTIFIER_NOT_FOUND
        # Acknowledgements of nothing change nothing.
        raw.send(encoding.ack(V5, PacketType.PUBACK, 9) + encoding.PINGREQ)
        assert raw.frame() == (PacketType.PINGRESP << 4, b"")


def test_a_qos_2_message_that_is_repeated_is_there_once(proxy: int) -> None:
    topic = new_name("st")
    with Raw(proxy) as raw:
        request = SubscribeRequest(f"{topic}/#", 0)
        connected(raw).send(encoding.subscribe(V5, Subscribe(1, (request,))))
        assert raw.frame()[0] >> 4 == PacketType.SUBACK
        kinds: list[PacketType] = []

        def until(kind: PacketType) -> None:
            kinds.append(PacketType(raw.frame()[0] >> 4))
            while kinds[-1] != kind:
                kinds.append(PacketType(raw.frame()[0] >> 4))

        for dup in (False, True, True):
            raw.send(encoding.publish(V5, f"{topic}/a", b"x", qos=2, packet_id=5, dup=dup))
            until(PacketType.PUBREC)
        raw.send(encoding.ack(V5, PacketType.PUBREL, 5))
        until(PacketType.PUBCOMP)
        # After PUBCOMP the identifier stands for another message, whatever its DUP flag.
        raw.send(encoding.publish(V5, f"{topic}/a", b"y", qos=2, packet_id=5, dup=True))
        until(PacketType.PUBREC)
        while kinds.count(PacketType.PUBLISH) < 2:
            kinds.append(PacketType(raw.frame()[0] >> 4))
        raw.send(encoding.PINGREQ)
        until(PacketType.PINGRESP)
        assert kinds.count(PacketType.PUBLISH) == 2


@pytest.mark.parametrize("most", [0, 30], ids=["any size", "small packets"])
def test_a_reason_never_makes_a_packet_too_large(proxy: int, most: int) -> None:
    properties: Properties = {Property.MAXIMUM_PACKET_SIZE: most} if most else {}
    with Raw(proxy) as raw:
        connected(raw, properties)
        raw.send(encoding.subscribe(V5, Subscribe(1, (SubscribeRequest("a/#/b", 1),))))
        first, body = raw.frame()
        assert first >> 4 == PacketType.SUBACK
        assert body[-1] == Reason.TOPIC_FILTER_INVALID
        assert (len(body) + 2 <= 30) == bool(most)
        raw.send(encoding.publish(V5, "__own/x", b"", qos=1, packet_id=3))
        first, body = raw.frame()
        assert (first >> 4, body[:2]) == (PacketType.PUBACK, b"\x00\x03")
        assert body[2] >= 0x80
        assert (len(body) + 2 <= 30) == bool(most)
        raw.send(encoding.publish(V5, "__own/x", b"", qos=2, packet_id=4))
        first, body = raw.frame()
        assert (first >> 4, body[:2]) == (PacketType.PUBREC, b"\x00\x04")
        assert (len(body) + 2 <= 30) == bool(most)
        raw.send(b"\xe1\x00")
        first, body = raw.frame()
        assert (first >> 4, body[0]) == (PacketType.DISCONNECT, Reason.MALFORMED_PACKET)
        assert (len(body) + 2 <= 30) == bool(most)
    with Raw(proxy) as raw:
        raw.send(encoding.connect(Connect(V5, "x" * 60_000, True, 60, properties)))
        first, body = raw.frame()
        assert (first >> 4, body[0], body[1]) == (PacketType.CONNACK, 0, 0x85)
        assert (len(body) + 2 <= 30) == bool(most)


def test_reasons_are_left_out_where_the_client_does_not_want_them(proxy: int) -> None:
    with Raw(proxy) as raw:
        connected(raw, {Property.REQUEST_PROBLEM_INFORMATION: 0})
        raw.send(encoding.subscribe(V5, Subscribe(1, (SubscribeRequest("a/#/b", 1),))))
        assert raw.frame() == (
            PacketType.SUBACK << 4,
            b"\x00\x01\x00" + bytes([Reason.TOPIC_FILTER_INVALID]),
        )


def publish_of(raw: Raw) -> Publish:
    """The next message; everything else is passed over."""
    while True:
        first, body = raw.frame()
        if first >> 4 == PacketType.PUBLISH:
            packet = decode_packet(first, body, V5)
            assert isinstance(packet, Publish)
            return packet


def subscribed(raw: Raw, text: str, qos: int = 0, **options: int) -> Raw:
    request = SubscribeRequest(text, qos, **options)  # type: ignore[arg-type]
    connected(raw).send(encoding.subscribe(V5, Subscribe(1, (request,))))
    while raw.frame()[0] >> 4 != PacketType.SUBACK:
        pass
    return raw


def test_a_silent_client_is_disconnected_after_one_and_a_half_keep_alives(proxy: int) -> None:
    with Raw(proxy) as raw:
        raw.send(encoding.connect(Connect(V5, new_name("raw"), True, 1)))
        assert raw.connack()[0] == 0
        assert raw.reason(PacketType.DISCONNECT) == Reason.KEEP_ALIVE_TIMEOUT
        assert raw.ended()


@pytest.mark.parametrize("retain", [False, True], ids=["as it is", "retained"])
def test_a_will_is_published_once_with_its_own_qos_and_retain_flag(
    proxy: int, retain: bool
) -> None:
    topic = new_name("st")
    with Raw(proxy) as watcher, Raw(proxy) as dying:
        subscribed(watcher, f"{topic}/#", 1)
        pairs = [("b", "1"), ("a", "2"), ("b", "3")]
        properties = {Property.CONTENT_TYPE: "text/plain", Property.USER_PROPERTY: pairs}
        will = Will(f"{topic}/will", b"gone", 1, retain, properties)
        dying.send(encoding.connect(Connect(V5, new_name("raw"), True, 60, {}, will)))
        assert dying.connack()[0] == 0
        # A protocol error: the proxy hangs up, and that is no DISCONNECT of the client.
        dying.send(CONNECT)
        assert dying.reason(PacketType.DISCONNECT) == Reason.PROTOCOL_ERROR
        found = publish_of(watcher)
        assert (found.topic, found.payload, found.qos) == (f"{topic}/will", b"gone", 1)
        assert found.properties[Property.CONTENT_TYPE] == "text/plain"
        assert found.properties[Property.USER_PROPERTY] == pairs
        with Raw(proxy) as later:
            subscribed(later, f"{topic}/#")
            later.send(encoding.PINGREQ)
            kinds = [later.frame()[0] >> 4]
            while kinds[-1] != PacketType.PINGRESP:
                kinds.append(later.frame()[0] >> 4)
            assert (PacketType.PUBLISH in kinds) is retain


def test_who_returns_before_the_will_delay_has_no_will(proxy: int) -> None:
    topic, name = new_name("st"), new_name("raw")
    will = Will(f"{topic}/will", b"gone", 0, False, {Property.WILL_DELAY: 3})
    kept: Properties = {Property.SESSION_EXPIRY: 600}
    with Raw(proxy) as watcher:
        subscribed(watcher, f"{topic}/#")
        with Raw(proxy) as first:
            first.send(encoding.connect(Connect(V5, name, True, 60, kept, will)))
            assert first.connack()[0] == 0
        with Raw(proxy) as second:
            second.send(encoding.connect(Connect(V5, name, False, 60, kept)))
            first_byte, body = second.frame()
            # The session is there.
            assert (first_byte >> 4, body[0], body[1]) == (PacketType.CONNACK, 1, 0)
            marker = Will(f"{topic}/marker", b"later", 0, False, {Property.WILL_DELAY: 4})
            with Raw(proxy) as third:
                expiring: Properties = {Property.SESSION_EXPIRY: 600}
                third.send(
                    encoding.connect(Connect(V5, new_name("raw"), True, 60, expiring, marker))
                )
                assert third.connack()[0] == 0
            # The will of another one, which is due later, is the first that comes.
            assert publish_of(watcher).topic == f"{topic}/marker"


def test_sessions_are_present_as_they_are_stored(proxy: int) -> None:
    name = new_name("raw")
    kept: Properties = {Property.SESSION_EXPIRY: 600}
    for clean, present in ((False, 0), (False, 1), (True, 0), (False, 1)):
        with Raw(proxy) as raw:
            raw.send(encoding.connect(Connect(V5, name, clean, 60, kept)))
            first, body = raw.frame()
            assert (first >> 4, body[0], body[1]) == (PacketType.CONNACK, present, 0)
            raw.send(encoding.disconnect(V5))
            assert raw.ended()


def test_properties_of_a_message_arrive_unaltered_and_in_order(proxy: int) -> None:
    topic = new_name("st")
    pairs = (("b", "1"), ("a", "2"), ("b", "1"), ("b", "3"), ("", ""))
    sent: Properties = {
        Property.PAYLOAD_FORMAT: 1,
        Property.CONTENT_TYPE: "text/plain",
        Property.RESPONSE_TOPIC: f"{topic}/answers",
        Property.CORRELATION_DATA: b"\x00\xff",
        Property.USER_PROPERTY: pairs,
    }
    with Raw(proxy) as raw:
        subscribed(raw, f"{topic}/#")
        raw.send(encoding.publish(V5, f"{topic}/\ufeffx", "\ufeffä".encode(), properties=sent))
        found = publish_of(raw)
    assert (found.topic, found.payload) == (f"{topic}/\ufeffx", "\ufeffä".encode())
    assert {**found.properties, Property.USER_PROPERTY: tuple(found.properties[0x26])} == sent


def test_a_subscription_is_replaced_and_retained_messages_come_again(proxy: int) -> None:
    topic = new_name("st")
    with Raw(proxy) as raw:
        subscribed(raw, f"{topic}/a", 1)
        raw.send(encoding.publish(V5, f"{topic}/a", b"kept", qos=1, packet_id=9, retain=True))
        assert publish_of(raw).payload == b"kept"
        for packet_id, qos in ((2, 0), (3, 1)):
            request = SubscribeRequest(f"{topic}/a", qos)
            raw.send(encoding.subscribe(V5, Subscribe(packet_id, (request,))))
            again = publish_of(raw)
            assert (again.payload, again.retain, again.qos) == (b"kept", True, qos)
        raw.send(encoding.publish(V5, f"{topic}/a", b"new", packet_id=0))
        assert publish_of(raw).payload == b"new"
        raw.send(encoding.PINGREQ)
        assert raw.frame()[0] >> 4 == PacketType.PINGRESP


@pytest.mark.parametrize("text", ["%s/a", "$share/group/%s/a"], ids=["own", "shared"])
def test_a_message_that_a_client_refuses_is_not_sent_again(proxy: int, text: str) -> None:
    topic, name = new_name("st"), new_name("raw")
    kept: Properties = {Property.SESSION_EXPIRY: 600}
    request = SubscribeRequest(text % topic, 1)
    with Raw(proxy) as raw:
        raw.send(encoding.connect(Connect(V5, name, True, 60, kept)))
        assert raw.connack()[0] == 0
        # A share group begins at the end of its topic, which has to be there.
        raw.send(encoding.publish(V5, f"{topic}/before", b"", qos=1, packet_id=1))
        assert raw.frame()[0] >> 4 == PacketType.PUBACK
        raw.send(encoding.subscribe(V5, Subscribe(1, (request,))))
        assert raw.frame()[0] >> 4 == PacketType.SUBACK
        # Its DUP flag is between the publisher and the proxy.
        raw.send(encoding.publish(V5, f"{topic}/a", b"first", qos=1, packet_id=1, dup=True))
        found = publish_of(raw)
        assert (found.payload, found.dup) == (b"first", False)
        raw.send(encoding.ack(V5, PacketType.PUBACK, found.packet_id, Reason.QUOTA_EXCEEDED))
        raw.send(encoding.publish(V5, f"{topic}/a", b"second", qos=1, packet_id=2))
        found = publish_of(raw)
        assert found.payload == b"second"
    with Raw(proxy) as raw:
        raw.send(encoding.connect(Connect(V5, name, False, 60, kept)))
        again = publish_of(raw)
        # What was not acknowledged comes again, as what it is.
        assert again.payload == b"second"
        if not text.startswith("$share"):
            assert (again.packet_id, again.dup) == (found.packet_id, True)


def test_a_message_that_is_too_large_for_its_client_counts_as_sent(proxy: int) -> None:
    topic, name = new_name("st"), new_name("raw")
    small: Properties = {Property.MAXIMUM_PACKET_SIZE: 200, Property.SESSION_EXPIRY: 600}
    with Raw(proxy) as raw, Raw(proxy) as writer:
        raw.send(encoding.connect(Connect(V5, name, True, 60, small)))
        code, properties = raw.connack()
        assert code == 0
        # Nobody has asked for response information.
        assert Property.RESPONSE_INFORMATION not in properties
        request = SubscribeRequest(f"{topic}/#", 1)
        raw.send(encoding.subscribe(V5, Subscribe(1, (request,))))
        connected(writer)
        for number, payload in enumerate((bytes(500), b"small"), 1):
            writer.send(encoding.publish(V5, f"{topic}/a", payload, qos=1, packet_id=number))
            assert writer.frame()[0] >> 4 == PacketType.PUBACK
        found = publish_of(raw)
        assert found.payload == b"small"
        raw.send(encoding.ack(V5, PacketType.PUBACK, found.packet_id) + encoding.PINGREQ)
        assert raw.frame()[0] >> 4 == PacketType.PINGRESP
    with Raw(proxy) as raw:
        # Also not when its limit is gone: it was sent, as far as anybody can see.
        kept: Properties = {Property.SESSION_EXPIRY: 600}
        raw.send(encoding.connect(Connect(V5, name, False, 60, kept)))
        assert raw.connack()[0] == 0
        raw.send(encoding.PINGREQ)
        assert raw.frame()[0] >> 4 == PacketType.PINGRESP


def test_a_client_identifier_that_is_too_long_is_refused(proxy: int) -> None:
    with Raw(proxy) as raw:
        raw.send(encoding.connect(Connect(V5, "x" * 60_000, True, 60)) + encoding.PINGREQ)
        assert raw.connack()[0] == Reason.CLIENT_IDENTIFIER_NOT_VALID
        assert raw.ended()


def test_an_identifier_that_was_refused_is_free_again(proxy: int) -> None:
    topic = new_name("st")
    with Raw(proxy) as raw:
        connected(raw).send(encoding.publish(V5, "__own/x", b"", qos=2, packet_id=4))
        assert raw.reason(PacketType.PUBREC) >= 0x80
        raw.send(encoding.publish(V5, f"{topic}/a", b"fine", qos=2, packet_id=4))
        assert raw.reason(PacketType.PUBREC) < 0x80
        raw.send(encoding.ack(V5, PacketType.PUBREL, 4))
        assert raw.reason(PacketType.PUBCOMP) == 0


def test_what_has_begun_is_completed_after_unsubscribe_and_expiry(proxy: int) -> None:
    topic = new_name("st")
    with Raw(proxy) as raw:
        subscribed(raw, f"{topic}/a", 2)
        brief: Properties = {Property.MESSAGE_EXPIRY: 1}
        raw.send(encoding.publish(V5, f"{topic}/a", b"x", qos=2, packet_id=2, properties=brief))
        found = publish_of(raw)
        assert found.qos == 2
        raw.send(encoding.unsubscribe(V5, Unsubscribe(3, (f"{topic}/a",))))
        while raw.frame()[0] >> 4 != PacketType.UNSUBACK:
            pass
        expired_s = time.monotonic() + 1.2
        eventually(lambda: time.monotonic() > expired_s, what="the message has expired")
        raw.send(encoding.ack(V5, PacketType.PUBREC, found.packet_id))
        first, body = raw.frame()
        assert (first, body[:2]) == (0x62, found.packet_id.to_bytes(2, "big"))
        raw.send(encoding.ack(V5, PacketType.PUBCOMP, found.packet_id) + encoding.PINGREQ)
        assert raw.frame()[0] >> 4 == PacketType.PINGRESP


def test_a_qos_1_identifier_is_free_after_its_acknowledgement(proxy: int) -> None:
    """Whatever the DUP flag says. Many packets in one write, so that they are handled together."""
    topic = new_name("st")
    with Raw(proxy) as watcher, Raw(proxy) as raw:
        subscribed(watcher, f"{topic}/#", 1)
        connected(raw)
        for dup in (False, True):
            raw.send(encoding.publish(V5, f"{topic}/a", b"x", qos=1, packet_id=5, dup=dup))
            assert raw.frame() == (PacketType.PUBACK << 4, b"\x00\x05")
        several = [
            encoding.publish(V5, f"{topic}/{number % 3}", str(number).encode(), qos=1,
                             packet_id=number)
            for number in range(1, 200)
        ]  # fmt: skip
        # In the midst of them are packets that are handled one by one.
        several[100:100] = [
            encoding.PINGREQ,
            encoding.publish(V5, f"{topic}/own", b"p", qos=1, packet_id=300,
                             properties={Property.CONTENT_TYPE: "text/plain"}),
            encoding.publish(V5, "__own/x", b"refused", qos=1, packet_id=301),
        ]  # fmt: skip
        raw.send(b"".join(several))
        acks = []
        while len(acks) < 201:
            first, body = raw.frame()
            if first >> 4 == PacketType.PUBACK:
                acks.append((int.from_bytes(body[:2], "big"), len(body) > 2 and body[2] >= 0x80))
        numbers = [*range(1, 101), 300, 301, *range(101, 200)]
        assert acks == [(number, number == 301) for number in numbers]
        payloads = []
        while len(payloads) < 202:
            found = publish_of(watcher)
            payloads.append(found.payload)
            watcher.send(encoding.ack(V5, PacketType.PUBACK, found.packet_id))
        assert sorted(payloads) == sorted(
            [b"x", b"x", b"p", *(str(number).encode() for number in range(1, 200))]
        )


def test_other_packets_are_answered_while_the_receive_maximum_is_reached(proxy: int) -> None:
    topic = new_name("st")
    with Raw(proxy) as raw:
        connected(raw, {Property.RECEIVE_MAXIMUM: 1})
        request = SubscribeRequest(f"{topic}/#", 1)
        raw.send(encoding.subscribe(V5, Subscribe(1, (request,))))
        assert raw.frame()[0] >> 4 == PacketType.SUBACK
        for number in (1, 2):
            raw.send(encoding.publish(V5, f"{topic}/a", b"%d" % number, qos=1, packet_id=number))
        kinds = []
        while kinds.count(PacketType.PUBACK) < 2 or PacketType.PUBLISH not in kinds:
            first, body = raw.frame()
            kinds.append(PacketType(first >> 4))
            if kinds[-1] == PacketType.PUBLISH:
                found = decode_packet(first, body, V5)
        raw.send(encoding.PINGREQ)
        raw.send(encoding.subscribe(V5, Subscribe(2, (SubscribeRequest(f"{topic}-other", 1),))))
        following = [PacketType(raw.frame()[0] >> 4) for _ in range(2)]
        assert following == [PacketType.PINGRESP, PacketType.SUBACK]
        assert kinds.count(PacketType.PUBLISH) == 1
        assert isinstance(found, Publish)
        raw.send(encoding.ack(V5, PacketType.PUBACK, found.packet_id))
        assert publish_of(raw).payload == b"2"


def test_topic_aliases_end_with_their_connection(proxy: int) -> None:
    topic, name = new_name("st"), new_name("raw")
    with Raw(proxy) as raw:
        raw.send(encoding.connect(Connect(V5, name, True, 60)))
        code, properties = raw.connack()
        assert code == 0
        for alias in (1, properties[Property.TOPIC_ALIAS_MAXIMUM]):
            given: Properties = {Property.TOPIC_ALIAS: alias}
            for text in (f"{topic}/a", ""):
                raw.send(encoding.publish(V5, text, b"", qos=1, packet_id=1, properties=given))
                assert raw.reason(PacketType.PUBACK) == 0
    with Raw(proxy) as raw:
        raw.send(encoding.connect(Connect(V5, name, False, 60)))
        assert raw.connack()[0] == 0
        raw.send(encoding.publish(V5, "", b"", qos=1, packet_id=1, properties=given))
        assert raw.reason(PacketType.DISCONNECT) == Reason.PROTOCOL_ERROR


def test_aliases_are_sent_as_far_as_the_client_takes_them(proxy: int) -> None:
    topic = new_name("st")
    with Raw(proxy) as one, Raw(proxy) as none, Raw(proxy) as writer:
        connected(one, {Property.TOPIC_ALIAS_MAXIMUM: 1})
        connected(none)
        for each in (one, none):
            each.send(encoding.subscribe(V5, Subscribe(1, (SubscribeRequest(f"{topic}/#", 0),))))
            assert each.frame()[0] >> 4 == PacketType.SUBACK
        connected(writer)
        for level in "aba":
            writer.send(encoding.publish(V5, f"{topic}/{level}", b"", qos=1, packet_id=1))
            assert writer.reason(PacketType.PUBACK) == 0
        aliases = [publish_of(one).properties.get(Property.TOPIC_ALIAS) for _ in range(3)]
        assert aliases == [1, None, 1]
        assert not any(Property.TOPIC_ALIAS in publish_of(none).properties for _ in range(3))


def come_back(proxy: int, name: str, *, clean: bool = False) -> Raw:
    raw = Raw(proxy)
    raw.send(encoding.connect(Connect(V5, name, clean, 60, {Property.SESSION_EXPIRY: 600})))
    return raw


@pytest.mark.parametrize("text", ["%s/#", "$share/group/%s/#"], ids=["own", "shared"])
def test_qos_2_goes_on_where_the_connection_ended(proxy: int, text: str) -> None:
    """Also a message of a shared subscription, which then is nobody else's."""
    topic, name = new_name("st"), new_name("raw")
    with Raw(proxy) as writer, Raw(proxy) as other:
        connected(writer).send(encoding.publish(V5, f"{topic}/old", b"", qos=1, packet_id=9))
        assert writer.reason(PacketType.PUBACK) == 0
        with come_back(proxy, name, clean=True) as raw:
            assert raw.connack()[0] == 0
            raw.send(encoding.subscribe(V5, Subscribe(1, (SubscribeRequest(text % topic, 2),))))
            assert raw.frame()[0] >> 4 == PacketType.SUBACK
            kept: Properties = {Property.CONTENT_TYPE: "text/plain"}
            writer.send(encoding.publish(V5, f"{topic}/a", b"first", qos=2, packet_id=1,
                                         properties=kept))  # fmt: skip
            assert writer.reason(PacketType.PUBREC) == 0
            found = publish_of(raw)
            assert (found.payload, found.qos, found.dup) == (b"first", 2, False)
        subscribed(other, text % topic, 2)
        with come_back(proxy, name) as raw:
            again = publish_of(raw)
            assert (again.packet_id, again.payload, again.dup) == (found.packet_id, b"first", True)
            assert again.properties == kept
            raw.send(encoding.ack(V5, PacketType.PUBREC, found.packet_id))
            assert raw.frame() == (0x62, found.packet_id.to_bytes(2, "big"))
        with come_back(proxy, name) as raw:
            assert raw.connack()[0] == 0
            # PUBREL and not PUBLISH, until PUBCOMP comes.
            assert raw.frame() == (0x62, found.packet_id.to_bytes(2, "big"))
            raw.send(encoding.ack(V5, PacketType.PUBCOMP, found.packet_id) + encoding.PINGREQ)
            assert raw.frame()[0] >> 4 == PacketType.PINGRESP
            raw.send(encoding.unsubscribe(V5, Unsubscribe(7, (text % topic,))))
            assert raw.frame()[0] >> 4 == PacketType.UNSUBACK
        if text.startswith("$share"):
            writer.send(encoding.publish(V5, f"{topic}/a", b"second", qos=1, packet_id=2))
            assert publish_of(other).payload == b"second"


def test_a_shared_qos_2_message_of_a_session_that_has_ended_is_for_nobody(proxy: int) -> None:
    topic = new_name("st")
    text = f"$share/group/{topic}/#"
    with Raw(proxy) as writer, Raw(proxy) as other:
        connected(writer).send(encoding.publish(V5, f"{topic}/old", b"", qos=1, packet_id=9))
        assert writer.reason(PacketType.PUBACK) == 0
        with Raw(proxy) as raw:
            subscribed(raw, text, 2)
            writer.send(encoding.publish(V5, f"{topic}/a", b"first", qos=2, packet_id=1))
            assert writer.reason(PacketType.PUBREC) == 0
            assert publish_of(raw).payload == b"first"
        subscribed(other, text, 1)
        writer.send(encoding.publish(V5, f"{topic}/a", b"second", qos=2, packet_id=2))
        found = publish_of(other)
        # With the QoS that was granted.
        assert (found.payload, found.qos) == (b"second", 1)


def test_what_was_in_flight_survives_clients_that_come_and_go_at_once(proxy: int) -> None:
    """A client that hangs up while its session is being restored finds it as it was."""
    topic, name = new_name("st"), new_name("raw")
    with come_back(proxy, name, clean=True) as raw:
        assert raw.connack()[0] == 0
        raw.send(encoding.subscribe(V5, Subscribe(1, (SubscribeRequest(f"{topic}/#", 1),))))
        assert raw.frame()[0] >> 4 == PacketType.SUBACK
        raw.send(encoding.publish(V5, f"{topic}/a", b"unseen", qos=1, packet_id=1))
        assert publish_of(raw).payload == b"unseen"
    for _ in range(10):
        with come_back(proxy, name) as raw:
            assert raw.connack()[0] == 0
    with come_back(proxy, name) as raw:
        found = publish_of(raw)
        assert (found.payload, found.dup) == (b"unseen", True)
