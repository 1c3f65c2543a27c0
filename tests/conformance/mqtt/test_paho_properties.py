"""paho-mqtt with MQTT 3.1.1 and 5: wills, sessions, limits of the client, properties, reasons."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from support.mqtt import WAIT_S, Device, devices, new_name
from support.waiting import eventually


@pytest.fixture(params=[4, 5], ids=["3.1.1", "5"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def properties_of(kind: int, **values: Any) -> Properties:
    made = Properties(kind)
    for name, value in values.items():
        setattr(made, name, value)
    return made


# Wills.


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_has_its_qos_and_is_retained(proxy: int, version: int, qos: int) -> None:
    topic = new_name("will")
    reader, mortal = Device(new_name("r"), version), Device(new_name("m"), version)
    mortal.client.will_set(f"{topic}/last", b"gone", qos, retain=True)
    with devices(proxy, reader):
        reader.subscribe(f"{topic}/#", 2)
        mortal.connect(proxy)
        mortal.drop()
        message = reader.next()
        assert (message.payload, message.qos, message.retain) == (b"gone", qos, False)
        late = Device(new_name("r"), version)
        with devices(proxy, late):
            late.subscribe(f"{topic}/#", 2)
            message = late.next()
            assert (message.payload, message.qos, message.retain) == (b"gone", qos, True)


def test_a_will_waits_for_its_delay(proxy: int) -> None:
    """As long as the session lives, and with its properties."""
    topic = new_name("will")
    reader, mortal = Device(new_name("r")), Device(new_name("m"), expiry=600)
    pairs = [("b", "1"), ("a", "2"), ("b", "3")]
    will = properties_of(
        PacketTypes.WILLMESSAGE, WillDelayInterval=2, UserProperty=pairs, ContentType="text/plain"
    )
    mortal.client.will_set(f"{topic}/last", b"gone", 1, properties=will)
    with devices(proxy, reader):
        reader.subscribe(f"{topic}/#")
        mortal.connect(proxy)
        dropped_s = time.monotonic()
        mortal.drop()
        message = reader.next()
        assert time.monotonic() >= dropped_s + 2
    assert message.payload == b"gone"
    assert message.properties.UserProperty == pairs
    assert message.properties.ContentType == "text/plain"


def test_a_will_does_not_wait_longer_than_the_session(proxy: int) -> None:
    topic = new_name("will")
    reader, mortal = Device(new_name("r")), Device(new_name("m"), expiry=1)
    will = properties_of(PacketTypes.WILLMESSAGE, WillDelayInterval=600)
    mortal.client.will_set(f"{topic}/last", b"gone", 1, properties=will)
    with devices(proxy, reader):
        reader.subscribe(f"{topic}/#")
        mortal.connect(proxy)
        mortal.drop()
        assert reader.next().payload == b"gone"


def test_a_client_may_leave_with_its_will(proxy: int) -> None:
    topic = new_name("will")
    reader, mortal = Device(new_name("r")), Device(new_name("m"))
    mortal.client.will_set(f"{topic}/last", b"gone", 1)
    with devices(proxy, reader):
        reader.subscribe(f"{topic}/#")
        mortal.connect(proxy)
        mortal.client.disconnect(
            reasoncode=ReasonCode(PacketTypes.DISCONNECT, "Disconnect with will message")
        )
        assert reader.next().payload == b"gone"
        mortal.client.loop_stop()


# Sessions.


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_is_taken_over_with_what_it_has(proxy: int, version: int, qos: int) -> None:
    """The subscription, and a message of QoS 1 that the first connection had not acknowledged. One
    of QoS 2 it had: paho gives it when it is released, and PUBCOMP is all that is missing."""
    topic, name = new_name("moved"), new_name("mover")
    first = Device(name, version, clean=False, expiry=600)
    second = Device(name, version, clean=False, expiry=600)
    first.client.reconnect_delay_set(60, 60)
    first.client.manual_ack_set(True)
    writer = Device(new_name("w"), version)
    with devices(proxy, writer):
        first.connect(proxy)
        assert not first.session_present
        first.subscribe(f"{topic}/#", qos)
        writer.publish(f"{topic}/a", b"1", qos)
        assert first.next().payload == b"1"
        with devices(proxy, second):
            assert second.session_present
            first.wait_gone()
            first.client.loop_stop()
            if qos == 1:
                message = second.next()
                assert (message.payload, message.dup) == (b"1", True)
            writer.publish(f"{topic}/a", b"2", qos)
            assert second.next().payload == b"2"


def test_a_clean_client_has_no_session(proxy: int, version: int) -> None:
    topic, name = new_name("clean"), new_name("cleaner")
    writer = Device(new_name("w"), version)
    with devices(proxy, writer):
        with devices(proxy, kept := Device(name, version, clean=False, expiry=600)):
            kept.subscribe(f"{topic}/#")
        with devices(proxy, clean := Device(name, version)):
            assert not clean.session_present
        with devices(proxy, again := Device(name, version, clean=False, expiry=600)):
            assert not again.session_present
            again.subscribe(f"{topic}/marker")
            writer.publish(f"{topic}/a", b"unseen")
            assert again.has_nothing(f"{topic}/marker", writer)


def test_disconnect_sets_when_the_session_expires(proxy: int) -> None:
    name = new_name("leaver")
    device = Device(name, expiry=600, clean=False)
    device.connect(proxy)
    device.client.disconnect(
        properties=properties_of(PacketTypes.DISCONNECT, SessionExpiryInterval=0)
    )
    device.wait_gone()
    device.client.loop_stop()
    with devices(proxy, again := Device(name, expiry=600, clean=False)):
        assert not again.session_present


# What a client can take.


@pytest.mark.parametrize("qos", [1, 2])
def test_no_more_messages_than_the_receive_maximum_are_on_their_way(proxy: int, qos: int) -> None:
    topic = new_name("few")
    reader = Device(new_name("r"), properties={"ReceiveMaximum": 2})
    reader.client.manual_ack_set(True)
    writer = Device(new_name("w"))
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/#", qos)
        for number in range(5):
            writer.publish(f"{topic}/a", str(number), qos)
        waiting = [reader.next() for _ in range(2)]
        # A SUBACK comes all the same, and nothing before it.
        reader.subscribe(f"{topic}/other", qos)
        assert reader.got.empty()
        got = []
        while len(got) < 5:
            message = waiting.pop(0) if waiting else reader.next()
            got.append(message.payload)
            reader.client.ack(message.mid, message.qos)
    assert got == [str(number).encode() for number in range(5)]


def test_messages_that_are_too_large_for_a_client_are_left_out(proxy: int) -> None:
    topic = new_name("small")
    reader = Device(new_name("r"), properties={"MaximumPacketSize": 100})
    writer = Device(new_name("w"))
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/#")
        writer.publish(f"{topic}/a", b"x" * 200)
        writer.publish(f"{topic}/a", b"y" * 20, UserProperty=[("long", "z" * 200)])
        writer.publish(f"{topic}/a", b"small")
        assert reader.next().payload == b"small"


def test_without_a_topic_alias_maximum_there_are_no_aliases(proxy: int) -> None:
    topic = new_name("plain")
    reader, writer = Device(new_name("r")), Device(new_name("w"))
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/#")
        for number in range(3):
            writer.publish(f"{topic}/a", str(number), TopicAlias=1)
        got = [reader.next() for _ in range(3)]
    assert [each.topic for each in got] == [f"{topic}/a"] * 3
    assert not any(hasattr(each.properties, "TopicAlias") for each in got)


def test_a_topic_alias_beyond_the_maximum_ends_the_connection(proxy: int) -> None:
    device = Device(new_name("d"))
    device.connect(proxy)
    device.client.reconnect_delay_set(60, 60)
    most = device.connack_properties.TopicAliasMaximum
    alias = properties_of(PacketTypes.PUBLISH, TopicAlias=most + 1)
    device.client.publish(f"{new_name('alias')}/a", b"x", 1, properties=alias)
    assert device.wait_gone().getName() == "Topic alias invalid"
    device.client.loop_stop()


# Properties.


def test_a_request_is_answered_where_it_says(proxy: int) -> None:
    """Properties that a message has arrive as they were, pairs of the user in their order."""
    topic = new_name("ask")
    asking, serving = Device(new_name("a")), Device(new_name("s"))
    pairs = [("b", "1"), ("a", "2"), ("b", "3"), ("", "")]
    with devices(proxy, asking, serving):
        serving.subscribe(f"{topic}/questions")
        asking.subscribe(f"{topic}/answers/7")
        asking.publish(
            f"{topic}/questions", "kolik?", ResponseTopic=f"{topic}/answers/7",
            CorrelationData=b"\x00\xff", UserProperty=pairs, ContentType="text/plain",
            PayloadFormatIndicator=1,
        )  # fmt: skip
        question = serving.next().properties
        assert question.UserProperty == pairs
        assert (question.ContentType, question.PayloadFormatIndicator) == ("text/plain", 1)
        serving.publish(question.ResponseTopic, b"60", CorrelationData=question.CorrelationData)
        answer = asking.next()
    assert (answer.payload, answer.properties.CorrelationData) == (b"60", b"\x00\xff")


def test_clients_of_both_versions_talk_to_each_other(proxy: int) -> None:
    topic = new_name("mixed")
    old, new = Device(new_name("o"), 4), Device(new_name("n"), 5)
    with devices(proxy, old, new):
        for each in (old, new):
            each.subscribe(f"{topic}/#", 2)
        new.publish(f"{topic}/a", b"new", 2, UserProperty=[("a", "b")], MessageExpiryInterval=600)
        old.publish(f"{topic}/a", b"old", 2)
        assert [each.payloads(2) for each in (old, new)] == [[b"new", b"old"]] * 2


def test_retained_messages_come_as_each_subscription_wants(proxy: int) -> None:
    """Retain handling: 0 with every SUBSCRIBE, 1 with the first of a subscription, 2 never."""
    topic = new_name("kept")
    reader, writer = Device(new_name("r")), Device(new_name("w"))
    with devices(proxy, reader, writer):
        writer.publish(f"{topic}/r", b"state", retain=True)
        seen = []
        for handling in (2, 1, 0, 0, 1, 2):
            reader.subscribe(f"{topic}/#", retainHandling=handling)
            writer.publish(f"{topic}/marker", b"marker")
            count = 0
            while reader.next().payload != b"marker":
                count += 1
            seen.append(count)
        # After the first one the subscription is there.
        assert seen == [0, 0, 1, 1, 0, 0]


# Reasons.


def test_publish_says_what_became_of_it(proxy: int) -> None:
    device = Device(new_name("d"))
    reasons: queue.Queue[Any] = queue.Queue()
    device.client.on_publish = lambda _client, _data, _mid, reason, _properties: reasons.put(reason)
    with devices(proxy, device):
        for qos in (1, 2):
            device.publish(f"{new_name('reason')}/a", b"x", qos)
            assert not reasons.get(timeout=WAIT_S).is_failure
        device.client.publish("__consumer_offsets/x", b"x", 1)
        assert reasons.get(timeout=WAIT_S).getName() == "Topic name invalid"


def test_unsubscribe_says_whether_there_was_a_subscription(proxy: int) -> None:
    device = Device(new_name("d"))
    heard: list[list[str]] = []
    done = threading.Event()

    def note(_client: Any, _data: Any, _mid: int, reasons: Any, _properties: Any) -> None:
        heard.append([each.getName() for each in reasons])
        done.set()

    topic = new_name("none")
    with devices(proxy, device):
        device.subscribe(f"{topic}/a")
        device.client.on_unsubscribe = note
        device.client.unsubscribe([f"{topic}/a", f"{topic}/b"])
        assert done.wait(WAIT_S)
    assert heard == [["Success", "No subscription found"]]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_subscribe_grants_the_qos_that_was_asked_for(proxy: int, version: int, qos: int) -> None:
    with devices(proxy, device := Device(new_name("d"), version)):
        assert device.subscribe(f"{new_name('qos')}/#", qos).getName() == f"Granted QoS {qos}"


def test_no_local_in_a_shared_subscription_is_a_protocol_error(proxy: int) -> None:
    device = Device(new_name("d"))
    device.connect(proxy)
    device.client.reconnect_delay_set(60, 60)
    options = SubscribeOptions(qos=1, noLocal=True)
    device.client.subscribe(f"$share/crew/{new_name('own')}/#", options=options)
    assert device.wait_gone().getName() == "Protocol error"
    device.client.loop_stop()


def test_a_client_that_is_silent_is_told_why(proxy: int) -> None:
    """paho sends pings by itself; this one is held up."""
    topic = new_name("silent")
    silent, reader = Device(new_name("s")), Device(new_name("r"))
    silent.client.will_set(f"{topic}/last", b"gone", 1)
    with devices(proxy, reader):
        reader.subscribe(f"{topic}/#")
        silent.connect(proxy, keepalive=1)
        silent.client.loop_stop()
        assert reader.next().payload == b"gone"
        reason: list[Any] = []

        def is_told() -> bool:
            silent.client.loop(0.1)
            reason[:] = [silent.disconnected]
            return reason[0] is not None

        eventually(is_told, what="the reason")
    assert reason[0].getName() == "Keep alive timeout"
