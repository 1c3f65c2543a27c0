"""What a session remembers: packets on their way, the stored flow, and who owns the session."""

from __future__ import annotations

import json

import pytest

from moldau.client.errors import (
    InvalidTopicError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)
from moldau.services.mqtt.machine.decoding import decode_packet
from moldau.services.mqtt.machine.flow import read_flow, write_flow
from moldau.services.mqtt.machine.inbound import Aliases, Inbound, Pending
from moldau.services.mqtt.machine.outbound import RELEASED, SENT, Delivery, Outbound
from moldau.services.mqtt.machine.packets import V5, PacketType, SubscribeRequest, Will
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.services.mqtt.machine.records import Message, property_headers, read_message
from moldau.services.mqtt.machine.session_book import (
    SessionBook,
    Version,
    session_key,
    subscription_values,
    will_value,
)
from moldau.services.mqtt.machine.subscriptions import Subscription, delivery_of
from moldau.services.mqtt.publishing import reason_of


def outbound(receive_max: int = 2, count_max: int = 10) -> Outbound:
    return Outbound(receive_max=receive_max, count_max=count_max, bytes_max=1000)


def delivery(qos: int = 1, text: str = "x", **fields: int) -> Delivery:
    return Delivery(Message("a", text.encode(), **fields), qos)


def test_no_more_than_the_receive_maximum_is_in_flight() -> None:
    out = outbound()
    for _ in range(3):
        assert out.offer(delivery())
    first, second = out.take(0), out.take(0)
    assert first is not None
    assert second is not None
    assert (first.packet_id, second.packet_id, out.take(0)) == (1, 2, None)
    assert out.acknowledge(9) is None
    assert out.acknowledge(1) is first
    third = out.take(0)
    assert third is not None
    assert third.packet_id == 3


def test_qos_0_waits_behind_what_waits() -> None:
    out = outbound(receive_max=1)
    for qos in (1, 1, 0):
        out.offer(delivery(qos))
    assert out.take(0) is not None
    assert out.take(0) is None
    out.acknowledge(1)
    assert [each.qos for each in iter(lambda: out.take(0), None)] == [1, 0]


def test_qos_2_takes_two_steps() -> None:
    out = outbound()
    out.offer(delivery(2))
    sent = out.take(0)
    assert sent is not None
    assert out.acknowledge(1) is None
    assert out.complete(1) is None
    assert out.receive(1, failed=False) is sent
    assert sent.stage == RELEASED
    assert out.complete(1) is sent
    assert out.in_flight == {}
    out.offer(delivery(2))
    out.take(0)
    assert out.receive(2, failed=True) is not None
    assert out.in_flight == {}


def test_the_queue_is_bounded_by_number_and_bytes() -> None:
    out = outbound(count_max=2)
    assert out.offer(delivery())
    assert out.offer(delivery())
    assert not out.offer(delivery())
    large = outbound()
    assert large.offer(delivery(text="x" * 2000))
    assert not large.offer(delivery())


def test_expired_messages_are_not_sent() -> None:
    out = outbound()
    out.offer(delivery(expires_ms=100))
    out.offer(delivery(text="fresh"))
    found = out.take(100)
    assert found is not None
    assert (found.message.payload, out.dropped) == (b"fresh", 1)


def test_packet_identifiers_in_use_are_not_given_out() -> None:
    out = Outbound(receive_max=65535, count_max=10, bytes_max=1000)
    out.restore(delivery(2), 65535, SENT)
    out.restore(delivery(2), 1, SENT)
    out.restore(delivery(2), 65534, SENT)
    out.offer(delivery())
    found = out.take(0)
    assert found is not None
    assert found.packet_id == 2


def test_acknowledgements_leave_in_order() -> None:
    inbound = Inbound(10)
    receipts = [inbound.begin(PacketType.PUBACK, number) for number in (1, 2, 3)]
    receipts[1].reason = 0
    assert inbound.ready() == []
    receipts[0].reason = 0
    assert [each.packet_id for each in inbound.ready()] == [1, 2]
    assert (inbound.waiting, inbound.unfinished) == (1, 1)


def test_errors_have_reasons_that_acknowledgements_may_have() -> None:
    """What PUBACK and PUBREC may have (3.4.2.1), whatever went wrong."""
    allowed = {0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
    errors = [
        TopicAuthorizationFailedError("no"),
        InvalidTopicError("no"),
        RecordTooLargeError("no"),
        KafkaTimeoutError("no"),
        NotLeaderOrFollowerError("no"),
        MqttError(Reason.TOPIC_NAME_INVALID, "no"),
        MqttError(Reason.QUOTA_EXCEEDED, "no"),
    ]
    assert {reason_of(each)[0] for each in errors} <= allowed
    assert {code for code in range(256) if decodes(code)} >= allowed


def decodes(code: int) -> bool:
    try:
        decode_packet(0x40, bytes((0, 1, code)), V5)
    except MqttError:
        return False
    return True


def test_aliases() -> None:
    aliases = Aliases(2)
    assert aliases.resolve("a/b", 1) == "a/b"
    assert aliases.resolve("", 1) == "a/b"
    for topic, alias, reason in (("a", 3, Reason.TOPIC_ALIAS_INVALID), ("", 2, 0x82)):
        with pytest.raises(MqttError) as caught:
            aliases.resolve(topic, alias)
        assert caught.value.reason == reason


def test_the_flow_is_read_as_it_was_written() -> None:
    out, inbound = outbound(receive_max=9), Inbound(9)
    logged = Delivery(Message("a", b"x", partition=("t", 3), offset=7), 2, True, (4, 5))
    kept = Delivery(Message("r", b"\xff", properties={0x26: [("a", "b")]}), 1, True)
    shared = Delivery(Message("s", b""), 1, token=object())
    # With QoS 2 it is the session's once it was sent.
    exact = Delivery(Message("s", b"x", properties={0x03: "text/plain"}), 2, token=object())
    for each in (logged, kept, shared, exact):
        out.offer(each)
        out.take(0)
    out.receive(1, failed=False)
    inbound.pending[6] = Pending("id", 123, "a/b", certain=True)
    flow = read_flow(json.loads(write_flow({("t", 3): 9, ("u", 0): 1}, out, inbound)))
    assert flow.positions == {("t", 3): 9, ("u", 0): 1}
    first, second, third = flow.in_flight
    assert third.message is not None
    assert (third.packet_id, third.message.properties) == (4, {0x03: "text/plain"})
    # What is not restored yet is not forgotten.
    again = read_flow(json.loads(write_flow(flow.positions, outbound(), inbound, flow)))
    assert (again.positions, len(again.in_flight)) == (flow.positions, 3)
    for one, other in zip(again.in_flight, flow.in_flight, strict=True):
        assert (one.packet_id, one.stage, one.place, one.offset) == (
            other.packet_id, other.stage, other.place, other.offset,
        )  # fmt: skip
    assert (first.packet_id, first.stage, first.place, first.offset) == (1, RELEASED, ("t", 3), 7)
    assert first.subscription_ids == (4, 5)
    assert second.message is not None
    assert (second.message.topic, second.message.payload) == ("r", b"\xff")
    assert second.message.properties == {0x26: [("a", "b")]}
    assert flow.pending == {6: Pending("id", 123, "a/b")}


# Subscriptions and records.


def test_options_decide_what_a_session_sends() -> None:
    message = Message("a", b"x", 2, True, publisher="me", partition=("t", 0), offset=5)
    low = Subscription("s", SubscribeRequest("a", 1), 7)
    high = Subscription("s", SubscribeRequest("#", 2, retain_as_published=True), 8)
    own = Subscription("s", SubscribeRequest("a", 2, no_local=True))
    late = Subscription("s", SubscribeRequest("a", 2))
    late.floors = {("t", 0): 6}
    found = delivery_of(message, [low, high], "me")
    assert found is not None
    assert (found.qos, found.retain, found.subscription_ids) == (2, True, (7, 8))
    found = delivery_of(message, [low], "me")
    assert found is not None
    assert (found.qos, found.retain) == (1, False)
    assert delivery_of(message, [own], "me") is None
    assert delivery_of(message, [late], "me") is None
    message.offset = 6
    assert delivery_of(message, [late], "me") is not None
    assert late.floors == {}


def test_properties_are_headers_and_back() -> None:
    properties = {
        0x01: 1, 0x02: 60, 0x03: "text/plain", 0x08: "r/1", 0x09: b"\x00",
        0x26: [("a", "1"), ("a", "2"), ("mqtt.qos", "spoofed")],
    }  # fmt: skip
    headers = property_headers(properties)
    message = read_message("t", b"x", headers, timestamp_ms=1000)
    assert message.expires_ms == 61_000
    del properties[0x02]
    assert message.properties == properties
    assert message.qos == 2


def test_headers_that_make_no_sense_are_left_out() -> None:
    headers = [
        ("mqtt.qos", b"9"), ("mqtt.message.expiry", b"soon"), ("bin", b"\xff"), ("null", None),
        ("mqtt.response.topic", b"a/+"), ("mqtt.payload.format", b"x"), ("zero", b"a\x00b"),
    ]  # fmt: skip
    message = read_message("t", None, headers, timestamp_ms=0)
    assert (message.payload, message.qos, message.properties) == (b"", 2, {})


# Who owns a session.

ONE, TWO = Version(1, "a"), Version(2, "b")


def claim(book: SessionBook, version: Version, *, clean: bool = False, user: str = "") -> object:
    value = json.dumps({"claim": True, "clean": clean, "user": user}).encode()
    return book.replay(session_key("s", "c", version), value)


def store(book: SessionBook, version: Version) -> None:
    will = Will("w", b"\x00", 1, True, {0x26: [("a", "b")], 0x09: b"\x01"})
    content = {
        "user": "", "connected": True, "expiry": 60, "at": 5, "will": will_value(will),
        "subs": [subscription_values(SubscribeRequest("a/#", 1, True), 3)],
    }  # fmt: skip
    book.replay(session_key("s", "c", version), json.dumps(content).encode())
    book.replay(session_key("f", "c", version), json.dumps({"pos": {"a": {"0": 4}}}).encode())


def test_a_claim_takes_over_what_was_stored() -> None:
    book = SessionBook()
    claim(book, ONE)
    store(book, ONE)
    assert claim(book, TWO) == ("c", TWO)
    found = book.get("c")
    assert found is not None
    assert found.subscriptions == [(SubscribeRequest("a/#", 1, True), 3)]
    assert found.flow == {"pos": {"a": {"0": 4}}}
    assert found.old == {ONE}
    claim(book, Version(3, "a"), clean=True)
    cleaned = book.get("c")
    assert cleaned is not None
    assert (cleaned.subscriptions, cleaned.flow) == ([], {})


def test_records_of_an_older_version_are_void() -> None:
    book = SessionBook()
    claim(book, TWO)
    store(book, ONE)
    assert claim(book, ONE) is None
    found = book.get("c")
    assert found is not None
    assert (found.version, found.subscriptions, found.flow) == (TWO, [], {})
    assert book.replay(session_key("s", "c", ONE), None) is None
    assert book.replay(session_key("s", "c", TWO), None) == ("c", None)
    assert len(book) == 0


def test_a_will_is_stored_with_its_session() -> None:
    book = SessionBook()
    store(book, ONE)
    found = book.get("c")
    assert found is not None
    assert found.will == Will("w", b"\x00", 1, True, {0x26: [("a", "b")], 0x09: b"\x01"})


@pytest.mark.parametrize("key", [None, b"", b"x", b"[]", b'["z"]', b'["s", "c"]', b"{}", b"3"])
def test_foreign_records_are_refused(key: bytes | None) -> None:
    with pytest.raises(ValueError):
        SessionBook().replay(key, b"{}")
