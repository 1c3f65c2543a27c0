"""paho-mqtt with MQTT 3.1.1 and 5: messages both ways, options, retained messages, wills."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from moldau.client import Producer
from support.http_service import running
from support.mqtt import Device, devices, new_name, port_of, proxy_of, records_of
from support.processes import BrokerProcess
from support.waiting import eventually


@pytest.fixture(params=[4, 5], ids=["3.1.1", "5"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_with_each_qos(proxy: int, version: int, qos: int) -> None:
    topic = new_name("room")
    reader, writer = Device(new_name("r"), version), Device(new_name("w"), version)
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/+/temp", qos)
        for number in range(20):
            writer.publish(f"{topic}/{number}/temp", str(number), qos)
        got = [reader.next() for _ in range(20)]
    assert [each.payload for each in got] == [str(number).encode() for number in range(20)]
    assert {each.qos for each in got} == {qos}


def test_the_first_level_is_the_kafka_topic_and_the_whole_the_key(
    broker: BrokerProcess, proxy: int
) -> None:
    topic = new_name("sensors")
    writer = Device(new_name("w"))
    with devices(proxy, writer):
        writer.publish(f"{topic}/7/temp", b"21.5", UserProperty=[("unit", "C"), ("mqtt.x", "y")],
                       ContentType="text/plain", ResponseTopic="answers/7",
                       CorrelationData=b"\x00\x01")  # fmt: skip
    record = records_of(broker, topic, 1)[0]
    headers = dict(record.headers)
    assert (record.key, record.value) == (f"{topic}/7/temp".encode(), b"21.5")
    assert headers["unit"] == b"C"
    assert headers["mqtt.user.mqtt.x"] == b"y"
    assert headers["mqtt.content.type"] == b"text/plain"
    assert headers["mqtt.response.topic"] == b"answers/7"
    assert headers["mqtt.correlation.data"] == b"\x00\x01"
    assert headers["mqtt.qos"] == b"1"


def test_records_of_kafka_are_published_under_their_key(broker: BrokerProcess, proxy: int) -> None:
    topic = new_name("orders")
    reader = Device(new_name("r"))
    with devices(proxy, reader):
        reader.subscribe(f"{topic}/#", 2)
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send(topic, b"no key")
            producer.send(topic, b"other key", key=b"elsewhere/1")
            producer.send(topic, b"beer", key=f"{topic}/1".encode(), headers={"waiter": "Anna"})
        message = reader.next()
    assert (message.topic, message.payload, message.qos) == (f"{topic}/1", b"beer", 2)
    assert ("waiter", "Anna") in message.properties.UserProperty


def test_a_topic_that_is_created_after_the_subscription_is_read(proxy: int, version: int) -> None:
    reader, writer = Device(new_name("r"), version), Device(new_name("w"), version)
    name = new_name("late")
    with devices(proxy, reader, writer):
        reader.subscribe(f"+/{name}", 1)
        writer.publish(f"{name}/{name}", b"1")
        writer.publish(f"{name}/{name}", b"2")
        assert reader.payloads(2) == [b"1", b"2"]


def test_topics_that_kafka_cannot_name_use_the_fallback_topic(
    broker: BrokerProcess, proxy: int
) -> None:
    reader, writer = Device(new_name("r")), Device(new_name("w"))
    with devices(proxy, reader, writer):
        for text in ("/leading", "mit Leerzeichen/ü", "$own/x"):
            reader.subscribe(text)
            writer.publish(text, text)
            assert reader.next().topic == text


def test_unsubscribe_ends_messages(proxy: int, version: int) -> None:
    topic = new_name("news")
    reader, writer = Device(new_name("r"), version), Device(new_name("w"), version)
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/a")
        reader.subscribe(f"{topic}/b")
        reader.unsubscribe(f"{topic}/a")
        writer.publish(f"{topic}/a", b"unseen")
        assert reader.has_nothing(f"{topic}/b", writer)


def test_retained_messages_are_sent_to_new_subscriptions(proxy: int, version: int) -> None:
    topic = new_name("status")
    writer, reader = Device(new_name("w"), version), Device(new_name("r"), version)
    with devices(proxy, writer):
        for qos in (1, 2):
            writer.publish(f"{topic}/{qos}", b"replaced", qos, retain=True)
            writer.publish(f"{topic}/{qos}", f"state {qos}", qos, retain=True)
            writer.publish(f"{topic}/{qos}", b"not retained", qos)
        writer.publish(f"{topic}/gone", b"x", retain=True)
        writer.publish(f"{topic}/gone", b"", retain=True)
        with devices(proxy, reader):
            reader.subscribe(f"{topic}/#", 2)
            got = {each.topic: (each.payload, each.qos, each.retain)
                   for each in (reader.next() for _ in range(2))}  # fmt: skip
            assert reader.has_nothing(f"{topic}/marker", writer)
        assert got == {
            f"{topic}/1": (b"state 1", 1, True),
            f"{topic}/2": (b"state 2", 2, True),
        }
        # Stored without an acknowledgement, so it comes now or as it is published.
        writer.publish(f"{topic}/0", b"state 0", 0, retain=True)
        again = Device(new_name("r"), version)
        with devices(proxy, again):
            again.subscribe(f"{topic}/0", 2)
            assert again.next().payload == b"state 0"


def test_subscription_options(proxy: int) -> None:
    topic = new_name("opt")
    one, two = Device(new_name("one")), Device(new_name("two"))
    with devices(proxy, one, two):
        two.publish(f"{topic}/r", b"old", retain=True)
        one.subscribe(f"{topic}/r", retainHandling=1)
        assert one.next().payload == b"old"
        one.unsubscribe(f"{topic}/r")
        one.subscribe(f"{topic}/#", noLocal=True, retainHandling=2, identifier=7)
        one.publish(f"{topic}/a", b"own")
        two.publish(f"{topic}/b", b"kept", retain=True)
        message = one.next()
        assert (message.payload, message.retain) == (b"kept", False)
        assert message.properties.SubscriptionIdentifier == [7]
        one.subscribe(f"{topic}/#", retainAsPublished=True, retainHandling=1, identifier=8)
        two.publish(f"{topic}/b", b"again", retain=True)
        message = one.next()
        assert (message.payload, message.retain) == (b"again", True)
        assert message.properties.SubscriptionIdentifier == [8]


def test_overlapping_subscriptions_give_one_message(proxy: int) -> None:
    topic = new_name("over")
    reader, writer = Device(new_name("r")), Device(new_name("w"))
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/#", 2, identifier=1)
        reader.subscribe(f"{topic}/+", 1, identifier=2)
        writer.publish(f"{topic}/a", b"x", 2)
        message = reader.next()
        assert message.qos == 2
        assert sorted(message.properties.SubscriptionIdentifier) == [1, 2]
        assert reader.has_nothing(f"{topic}/marker", writer)


def test_messages_expire(broker: BrokerProcess, proxy: int) -> None:
    topic = new_name("brief")
    sleeper = Device("sleeper", 5, clean=False, expiry=600)
    writer = Device(new_name("w"))
    with devices(proxy, writer):
        with devices(proxy, sleeper):
            sleeper.subscribe(f"{topic}/#")
        writer.publish(f"{topic}/a", b"short", MessageExpiryInterval=1)
        writer.publish(f"{topic}/a", b"long", MessageExpiryInterval=500)
        first = records_of(broker, topic, 2)[0].timestamp
        eventually(lambda: time.time() * 1000 > first + 1000, what="the message has expired")
        with devices(proxy, sleeper):
            message = sleeper.next()
    assert message.payload == b"long"
    assert 400 < message.properties.MessageExpiryInterval <= 500


def test_topic_aliases_in_both_directions(proxy: int) -> None:
    topic = new_name("alias")
    reader = Device(new_name("r"), 5, properties={"TopicAliasMaximum": 1})
    writer = Device(new_name("w"))
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/#")
        writer.publish(f"{topic}/a", b"1", TopicAlias=1)
        writer.publish("", b"2", TopicAlias=1)
        got = [reader.next() for _ in range(2)]
    assert [each.payload for each in got] == [b"1", b"2"]
    assert got[0].topic == f"{topic}/a"
    # paho gives the topic as it came: the second time it is the alias alone.
    assert got[1].topic in ("", f"{topic}/a")
    assert got[1].properties.TopicAlias == 1


@pytest.mark.parametrize("polite", [True, False])
def test_wills(proxy: int, polite: bool) -> None:
    topic = new_name("will")
    reader, mortal, writer = Device(new_name("r")), Device(new_name("m")), Device(new_name("w"))
    mortal.client.will_set(f"{topic}/last", b"gone", 1)
    with devices(proxy, reader, writer):
        reader.subscribe(f"{topic}/#")
        mortal.connect(proxy)
        if polite:
            mortal.disconnect()
            assert reader.has_nothing(f"{topic}/marker", writer)
        else:
            mortal.drop()
            assert reader.next().payload == b"gone"


def test_a_second_connection_takes_the_first_ones_place(proxy: int, version: int) -> None:
    name = new_name("twin")
    first, second = Device(name, version), Device(name, version)
    first.client.reconnect_delay_set(60, 60)
    first.connect(proxy)
    second.connect(proxy)
    reason = first.wait_gone()
    if version == 5:
        assert reason.getName() == "Session taken over"
    first.client.loop_stop()
    second.publish(f"{new_name('still')}/x", b"there")
    second.disconnect()


def test_an_empty_client_id_is_assigned_one(proxy: int) -> None:
    both = Device("", 5), Device("", 5)
    with devices(proxy, *both):
        names = {each.connack_properties.AssignedClientIdentifier for each in both}
        assert len(names) == 2
        assert all(name.startswith("moldau-") for name in names)
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    named = [Device(letters[at : at + 23]) for at in range(0, 62, 23)]
    with devices(proxy, *named):
        assert [each.connack.getName() for each in named] == ["Success"] * 3


@pytest.fixture(scope="module")
def strict(broker: BrokerProcess) -> Iterator[int]:
    """A proxy with rules and small limits."""
    settings = {
        "packet_size_max": "1000",
        "subscriptions_max": "2",
        "keep_alive_max_s": "20",
        "receive_maximum": "5",
        "retained_messages_max": "1",
        "retained_topic": "__small_retained",
        "rules": "temps,alarms",
        "rule_temps_mqtt": "plant/{site}/temp/{sensor}",
        "rule_temps_topic": "temps-{site}",
        "rule_temps_key": "{sensor}",
        "rule_temps_header_site": "{1}",
        "rule_alarms_mqtt": "alarm/#",
        "rule_alarms_topic": "alarms",
        "rule_alarms_key": "{1}",
    }
    with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
        yield port_of(service.url)


def test_rules_map_topics_keys_and_headers_and_back(broker: BrokerProcess, strict: int) -> None:
    reader, writer = Device(new_name("r")), Device(new_name("w"))
    with devices(strict, reader, writer):
        reader.subscribe("plant/+/temp/#")
        writer.publish("plant/brno/temp/7", b"21")
        assert reader.next().topic == "plant/brno/temp/7"
        writer.publish("alarm/fire/3", b"!")
    record = records_of(broker, "temps-brno", 1)[0]
    assert (record.key, dict(record.headers)["site"]) == (b"7", b"brno")
    assert records_of(broker, "alarms", 1)[0].key == b"fire/3"


def test_limits_are_named_in_connack_and_kept(strict: int) -> None:
    device = Device(new_name("d"))
    with devices(strict, device):
        properties = device.connack_properties
        assert properties.MaximumPacketSize == 1000
        assert properties.ServerKeepAlive == 20
        assert properties.ReceiveMaximum == 5
        assert device.subscribe("__consumer_offsets/x").getName() == "Topic filter invalid"
        assert device.subscribe("a/1").getName() == "Granted QoS 1"
        assert device.subscribe("a/2").getName() == "Granted QoS 1"
        assert device.subscribe("a/3").getName() == "Quota exceeded"
    large = Device(new_name("d"))
    large.connect(strict)
    large.client.publish("a/1", b"x" * 2000, 1)
    assert large.wait_gone().getName() == "Packet too large"
    large.client.loop_stop()
