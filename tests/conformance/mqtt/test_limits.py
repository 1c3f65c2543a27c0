"""Limits of the proxy, and what it does when the brokers are slower than its clients."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator

import pytest

from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.decoding import Framer
from moldau.services.mqtt.machine.packets import V4, V5, Connect, PacketType
from moldau.services.mqtt.machine.reasons import Reason
from support.http_service import running
from support.mqtt import new_name, port_of, proxy_of
from support.mqtt_raw import Raw
from support.processes import BrokerProcess
from support.waiting import eventually


@pytest.fixture(scope="module")
def small(broker: BrokerProcess) -> Iterator[int]:
    settings = {
        "connections_max": "2",
        "receive_maximum": "5",
        "retained_messages_max": "1",
        "retained_topic": "__limits_retained",
        "producer_buffer_memory": "1000000",
        "producer_max_block_ms": "60000",
    }
    with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
        yield port_of(service.url)


def connected(raw: Raw) -> Raw:
    raw.send(encoding.connect(Connect(V5, new_name("raw"), True, 60)))
    assert raw.connack()[0] == 0
    return raw


def test_more_connections_than_allowed_are_closed(small: int) -> None:
    with Raw(small) as one, Raw(small) as two:
        connected(one)
        connected(two)
        with Raw(small) as three:
            assert three.ended()
        for each in (one, two):
            each.send(encoding.PINGREQ)
            assert each.frame()[0] >> 4 == PacketType.PINGRESP

    def there_is_room() -> bool:
        with Raw(small) as again:
            again.send(encoding.connect(Connect(V5, new_name("raw"), True, 60)))
            try:
                return again.connack()[0] == 0
            except (AssertionError, ConnectionError):
                return False

    eventually(there_is_room, what="another client in place of those that have left")


def test_more_messages_than_the_receive_maximum_end_the_connection(small: int) -> None:
    topic = new_name("limits")
    with Raw(small) as raw:
        connected(raw)
        for number in range(1, 7):
            # Without PUBREL none of them is complete.
            raw.send(encoding.publish(V5, f"{topic}/a", b"", qos=2, packet_id=number))
        kinds = []
        while PacketType.DISCONNECT not in kinds:
            first, body = raw.frame()
            kinds.append(PacketType(first >> 4))
        assert body[0] == Reason.RECEIVE_MAXIMUM_EXCEEDED
        assert kinds.count(PacketType.PUBREC) <= 5


def test_more_retained_messages_than_allowed_are_refused(small: int) -> None:
    topic = new_name("limits")
    with Raw(small) as raw:
        connected(raw)
        for number, reason in ((1, 0), (2, Reason.QUOTA_EXCEEDED)):
            raw.send(
                encoding.publish(
                    V5, f"{topic}/{number}", b"x", qos=1, packet_id=number, retain=True
                )
            )
            assert raw.reason(PacketType.PUBACK) == reason


def test_a_client_is_slowed_down_to_what_the_brokers_take(
    broker: BrokerProcess, small: int
) -> None:
    """While the broker stands still the proxy takes a few megabytes and then stops reading; later
    everything is there, acknowledged in order."""
    topic, count = new_name("limits"), 3000
    messages = [
        encoding.publish(V4, f"{topic}/a", bytes(10_000), qos=1, packet_id=number)
        for number in range(1, count + 1)
    ]
    stream = b"".join(messages)
    with socket.create_connection(("127.0.0.1", small), 60) as line:
        line.sendall(encoding.connect(Connect(V4, new_name("flood"), True, 600)))
        assert line.recv(4) == b"\x20\x02\x00\x00"
        first = encoding.publish(V4, f"{topic}/a", b"the topic is there", qos=1, packet_id=1)
        line.sendall(first)
        assert line.recv(4) == b"\x40\x02\x00\x01"
        os.kill(broker.pid, signal.SIGSTOP)
        taken = 0
        try:
            line.settimeout(2)
            with contextlib.suppress(TimeoutError):
                while taken < len(stream):
                    taken += line.send(stream[taken : taken + 65_536])
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert taken < len(stream) / 2
        framer = Framer(100)
        acknowledged: list[int] = []
        line.settimeout(60)
        while len(acknowledged) < count:
            if taken < len(stream):
                taken += line.send(stream[taken : taken + 65_536])
            line.settimeout(0.01 if taken < len(stream) else 60)
            try:
                data = line.recv(65_536)
            except TimeoutError:
                line.settimeout(60)
                continue
            assert data
            for kind, body in framer.feed(data):
                assert kind >> 4 == PacketType.PUBACK
                acknowledged.append(int.from_bytes(body, "big"))
            line.settimeout(60)
        assert acknowledged == list(range(1, count + 1))
