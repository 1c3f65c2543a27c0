"""Share consumers that keep records: others come meanwhile, and the locks are the consumer's."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client.errors import IllegalStateError, InvalidRecordStateError, WakeupError
from moldau.client.share import AcknowledgeType, AsyncShareConsumer, ShareConsumer
from support import asking
from support.consuming import new_topic, numbers, put
from support.either import either_broker
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

GROUP_CONFIG = 32
LOCK_MS = 3000
RENEW, ACCEPT, RELEASE = AcknowledgeType.RENEW, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
_groups = itertools.count(1)

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), QUICK) as process:
        yield process


class Queue:
    """A topic of one partition, and a group that begins at its beginning."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.topic = new_topic(broker)
        self.group = f"keeping-{next(_groups)}"
        self._bootstrap = broker.bootstrap
        self._made: list[ShareConsumer] = []
        changes: dict[str, str | None] = {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(LOCK_MS),
        }
        with RawConnection(broker.port) as to:
            assert asking.alter_config(to, GROUP_CONFIG, self.group, changes) == (0, None)

    def settings(self, mode: str = "explicit") -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap,
            "group.id": self.group,
            "share.acknowledgement.mode": mode,
        }

    def put(self, *values: bytes) -> None:
        put(self._bootstrap, self.topic, values)

    def consumer(self, mode: str = "explicit") -> ShareConsumer:
        consumer: ShareConsumer = ShareConsumer(self.settings(mode))
        consumer.subscribe([self.topic])
        self._made.append(consumer)
        return consumer

    def close(self) -> None:
        for each in self._made:
            each.close()


@pytest.fixture
def queue(broker: BrokerProcess) -> Iterator[Queue]:
    made = Queue(broker)
    yield made
    made.close()


def take(consumer: ShareConsumer, *values: bytes) -> list[Any]:
    found: list[Any] = []

    def polled() -> bool:
        found[:] = consumer.poll(0.5)
        return bool(found)

    eventually(polled, what="records come")
    assert [record.value for record in found] == list(values)
    return found


def test_others_come_while_a_record_is_kept(queue: Queue) -> None:
    """It is not given again, and while its lock is renewed to nobody else."""
    consumer = queue.consumer()
    queue.put(b"kept")
    (kept,) = take(consumer, b"kept")
    consumer.keep(kept)
    for number in range(3):
        consumer.acknowledge(kept, RENEW)
        queue.put(b"%d" % number)
        (record,) = take(consumer, b"%d" % number)
        consumer.acknowledge(record)
        assert set(consumer.commit_sync().values()) == {None}
    other = queue.consumer("implicit")
    for _ in range(7):
        consumer.acknowledge(kept, RENEW)
        assert set(consumer.commit_sync().values()) == {None}
        assert not other.poll(LOCK_MS / 4000)
    consumer.acknowledge(kept, ACCEPT)
    assert set(consumer.commit_sync().values()) == {None}
    queue.put(b"end")
    take(other, b"end")


def test_a_kept_record_is_released(queue: Queue) -> None:
    queue.put(*numbers(2))
    consumer = queue.consumer()
    for record in take(consumer, *numbers(2)):
        consumer.keep(record)
    consumer.acknowledge(record, RELEASE)
    assert set(consumer.commit_sync().values()) == {None}
    (again,) = take(consumer, numbers(2)[1])
    assert again.delivery_count == 2
    consumer.acknowledge(again)


def test_polling_sends_what_is_said_about_kept_records(queue: Queue) -> None:
    queue.put(b"one")
    consumer = queue.consumer()
    heard: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda said, error: heard.append(error))
    (kept,) = take(consumer, b"one")
    consumer.keep(kept)
    consumer.acknowledge(kept, RENEW)
    queue.put(b"two")
    (record,) = take(consumer, b"two")
    consumer.acknowledge(record)
    eventually(lambda: consumer.poll(0.1) or heard, what="an answer")
    consumer.acknowledge(kept)
    eventually(lambda: consumer.poll(0.1) or len(heard) == 3, what="three answers")
    assert heard == [None] * 3


def test_a_lost_lock_is_refused_with_all_and_then_alone(queue: Queue) -> None:
    """The others of the partition stay kept and can be acknowledged."""
    queue.put(b"lost")
    consumer = queue.consumer()
    (lost,) = take(consumer, b"lost")
    consumer.keep(lost)
    other = queue.consumer()
    (stolen,) = take(other, b"lost")
    queue.put(b"held")
    (held,) = take(consumer, b"held")
    consumer.keep(held)
    for each in (lost, held):
        consumer.acknowledge(each, RENEW)
    (error,) = consumer.commit_sync().values()
    assert isinstance(error, InvalidRecordStateError)
    consumer.acknowledge(lost, RENEW)
    (error,) = consumer.commit_sync().values()
    assert isinstance(error, InvalidRecordStateError)
    consumer.drop(lost)
    consumer.acknowledge(held)
    assert set(consumer.commit_sync().values()) == {None}
    other.acknowledge(stolen)


def test_closing_releases_what_is_kept(queue: Queue) -> None:
    queue.put(b"kept")
    consumer = queue.consumer()
    (kept,) = take(consumer, b"kept")
    consumer.keep(kept)
    consumer.close()
    (again,) = take(queue.consumer("implicit"), b"kept")
    assert again.delivery_count == 2


def test_only_explicit_consumers_keep(queue: Queue) -> None:
    queue.put(b"one")
    consumer = queue.consumer("implicit")
    (record,) = take(consumer, b"one")
    with pytest.raises(IllegalStateError, match="Implicit"):
        consumer.keep(record)


def test_a_wakeup_before_a_commit_loses_no_acknowledgement(queue: Queue) -> None:
    queue.put(b"one")
    consumer = queue.consumer()
    heard: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda said, error: heard.append(error))
    (record,) = take(consumer, b"one")
    consumer.acknowledge(record)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.commit_sync()
    eventually(lambda: consumer.poll(0.1) or heard, what="the answer")
    assert heard == [None]


def test_keeping_in_asyncio(queue: Queue) -> None:
    async def main() -> None:
        async with AsyncShareConsumer(queue.settings()) as consumer:
            consumer.subscribe([queue.topic])
            queue.put(b"kept")
            (kept,) = await polled(consumer)
            consumer.keep(kept)
            queue.put(b"more")
            (more,) = await polled(consumer)
            assert (kept.value, more.value) == (b"kept", b"more")
            for each in (kept, more):
                consumer.acknowledge(each)
            assert set((await consumer.commit_sync()).values()) == {None}

    async def polled(consumer: AsyncShareConsumer) -> list[Any]:
        while not (records := list(await consumer.poll(1.0))):
            pass
        return records

    asyncio.run(asyncio.wait_for(main(), 60))
