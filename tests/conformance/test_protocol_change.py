"""Consumers are restarted one by one with the other group protocol, and read on.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.processes import BrokerProcess
from support.waiting import eventually

PARTITIONS = 6
CLASSIC = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 300}
# Not cooperative-sticky: librdkafka puts user data of its own into these assignments, and a group
# with such data stays classic.
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {**CLASSIC, "partition.assignment.strategy": "range"},
    "roundrobin": {**CLASSIC, "partition.assignment.strategy": "roundrobin"},
    "consumer": {"group.protocol": "consumer"},
}


class Reader:
    """A consumer in a thread of its own; it processes what it reads, and commits it."""

    def __init__(self, broker: BrokerProcess, topic: str, protocol: str) -> None:
        self.seen: list[tuple[int, int]] = []
        self.owned: set[int] = set()
        self.failure: BaseException | None = None
        self._consumer = Consumer({
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"{topic}-group",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **PROTOCOLS[protocol],
        })  # fmt: skip
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            # With callbacks, librdkafka changes the assignment in `poll` only: without, it may have
            # joined the next generation when what was read is to be committed.
            self._consumer.subscribe(
                [self._topic], on_assign=_noted, on_revoke=_noted, on_lost=_noted
            )
            while not self._stop.is_set():
                message = self._consumer.poll(0.1)
                self.owned = {each.partition for each in self._consumer.assignment()}
                if message is None or message.error() is not None:
                    continue
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self.seen.append((partition, offset))
                # Before the next poll, in which the partition may be taken away.
                self._consumer.commit(message, asynchronous=False)
            self._consumer.close()
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        self.owned = set()
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure


def _noted(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
    """The default, assigning what was given and giving up what was taken, follows."""


def shared(readers: list[Reader]) -> bool:
    for reader in readers:
        assert reader.failure is None, reader.failure
    owned = [each for reader in readers for each in reader.owned]
    return sorted(owned) == list(range(PARTITIONS)) and all(each.owned for each in readers)


@pytest.mark.parametrize(
    "classic", ["range", pytest.param("roundrobin", marks=pytest.mark.long("another assignor"))]
)
def test_a_group_goes_over_and_back(broker: BrokerProcess, classic: str) -> None:
    topic = f"changing-{classic}"
    bootstrap = {"bootstrap.servers": broker.bootstrap}
    admin = AdminClient(bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer(bootstrap)
    written: list[tuple[int, int]] = []

    def write() -> None:
        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            written.append((message.partition(), message.offset()))

        for partition in range(PARTITIONS):
            for _ in range(5):
                producer.produce(topic, b"x", partition=partition, on_delivery=delivered)
        producer.flush(30)

    def listed() -> tuple[str, str]:
        found = admin.list_consumer_groups().result().valid
        groups = {each.group_id: (each.type.name, each.state.name) for each in found}
        return groups.get(f"{topic}-group", ("", ""))

    def settled() -> bool:
        """All share, and none of them is about to join again: its commits would be refused."""
        return shared(readers) and listed()[1] == "STABLE"

    readers = [Reader(broker, topic, classic) for _ in range(3)]
    gone: list[Reader] = []
    try:
        eventually(settled, what="three classic readers share")
        assert listed()[0] == "CLASSIC"
        for protocol in ("consumer", classic):
            for _ in range(3):
                write()
                old = readers.pop(0)
                old.stop()
                gone.append(old)
                write()
                readers.append(Reader(broker, topic, protocol))
                eventually(settled, what=f"one more {protocol}", seconds_max=120)
            assert listed()[0] == ("CONSUMER" if protocol == "consumer" else "CLASSIC")
        seen = eventually(lambda: _all_seen(readers + gone, written), what="all has been read")
        # Everybody committed before giving up a partition, so nothing came twice.
        assert len(seen) == len(set(seen))
    finally:
        for reader in readers:
            reader.stop()
    offsets = Consumer({**bootstrap, "group.id": f"{topic}-group"})
    places = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    committed = {each.partition: each.offset for each in offsets.committed(places, timeout=30)}
    offsets.close()
    assert committed == {
        each: max(offset for partition, offset in written if partition == each) + 1
        for each in range(PARTITIONS)
    }


def _all_seen(readers: list[Reader], written: list[tuple[int, int]]) -> list[tuple[int, int]]:
    seen = [each for reader in readers for each in reader.seen]
    return seen if set(seen) == set(written) else []
