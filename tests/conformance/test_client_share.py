"""The share consumer: records are taken, acknowledged, given back, refused, kept and lost."""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Producer

from moldau.client.errors import (
    ClosedError,
    ConcurrentModificationError,
    ConfigError,
    IllegalStateError,
    InvalidRecordStateError,
    KafkaError,
    RecordDeserializationError,
    UnsupportedVersionError,
    WakeupError,
)
from moldau.client.share import AcknowledgeType, AsyncShareConsumer, ShareConsumer
from support import asking
from support.consuming import new_topic, numbers, put
from support.either import either_broker
from support.processes import ROOT, BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

GROUP_CONFIG = 32
# By default; what was not acknowledged comes again after it.
LOCK_SECONDS = 30
_groups = itertools.count(1)

# Heartbeats and locks that tests can wait for.
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
}
Make = Callable[..., ShareConsumer]


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), QUICK) as process:
        yield process


def new_group(broker: BrokerProcess, **config: str) -> str:
    """One that begins at the beginning."""
    name = f"share-{next(_groups)}"
    changes: dict[str, str | None] = {"share.auto.offset.reset": "earliest", **config}
    with RawConnection(broker.port) as to:
        assert asking.alter_config(to, GROUP_CONFIG, name, changes) == (0, None)
    return name


@pytest.fixture
def make(broker: BrokerProcess) -> Iterator[Make]:
    made: list[ShareConsumer] = []

    def build(group: str, topic: str, **settings: Any) -> ShareConsumer:
        consumer = ShareConsumer(bootstrap_servers=broker.bootstrap, group_id=group, **settings)
        made.append(consumer)
        consumer.subscribe([topic])
        return consumer

    yield build
    for each in made:
        each.close()


def take(consumer: ShareConsumer, count: int) -> list[Any]:
    """The records of one poll that gives so many."""
    found: list[Any] = []

    def polled() -> bool:
        found[:] = consumer.poll(1.0)
        return bool(found)

    eventually(polled, what="records come")
    assert len(found) == count, [record.offset for record in found]
    return found


def offsets(records: list[Any]) -> list[int]:
    return [record.offset for record in records]


def counts(records: list[Any]) -> list[int]:
    return [record.delivery_count for record in records]


def test_polling_again_accepts(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(3))
    consumer = make(group, topic)
    assert consumer.subscription() == {topic}
    assert consumer.acquisition_lock_timeout_ms() is None
    records = take(consumer, 3)
    assert [record.value for record in records] == numbers(3)
    assert counts(records) == [1, 1, 1]
    assert consumer.acquisition_lock_timeout_ms() == 30_000
    put(broker.bootstrap, topic, [b"more"])
    # What was given is accepted by this, and not given again, to nobody.
    assert offsets(take(consumer, 1)) == [3]
    results = consumer.commit_sync()
    assert [(str(key), error) for key, error in results.items()] == [(f"{topic}-0", None)]
    consumer.close()
    put(broker.bootstrap, topic, [b"last"])
    assert offsets(take(make(group, topic), 1)) == [4]


def test_what_was_not_accepted_before_closing_comes_again(
    broker: BrokerProcess, make: Make
) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(2))
    consumer = make(group, topic)
    assert offsets(take(consumer, 2)) == [0, 1]
    consumer.close()
    again = take(make(group, topic), 2)
    assert offsets(again) == [0, 1]
    assert counts(again) == [2, 2]


def test_each_record_is_acknowledged_by_itself(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(3))
    consumer = make(group, topic, share_acknowledgement_mode="explicit")
    accepted, released, rejected = take(consumer, 3)
    consumer.acknowledge(accepted)
    consumer.acknowledge(released, AcknowledgeType.RELEASE)
    consumer.acknowledge(rejected, "reject")
    assert set(consumer.commit_sync().values()) == {None}
    again = take(consumer, 1)
    assert offsets(again) == [1]
    assert counts(again) == [2]
    consumer.acknowledge(again[0])
    consumer.commit_sync()
    put(broker.bootstrap, topic, [b"next"])
    assert offsets(take(consumer, 1)) == [3]


def test_explicit_mode_insists(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(2))
    consumer = make(group, topic, share_acknowledgement_mode="explicit")
    first, second = take(consumer, 2)
    consumer.acknowledge(first)
    with pytest.raises(IllegalStateError, match="All records must be acknowledged"):
        consumer.poll()
    consumer.acknowledge(second)
    consumer.poll()
    with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
        consumer.acknowledge(first)
    with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
        consumer.acknowledge(topic, 0, 0, AcknowledgeType.ACCEPT)
    with pytest.raises(ValueError, match="ACCEPT, RELEASE, REJECT, RENEW"):
        consumer.acknowledge(first, "keep")


def test_implicit_mode_leaves_no_choice(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(1))
    consumer = make(group, topic)
    (record,) = take(consumer, 1)
    with pytest.raises(IllegalStateError, match="Implicit acknowledgement"):
        consumer.acknowledge(record)


def test_a_lock_that_runs_out_gives_the_record_to_another(
    broker: BrokerProcess, make: Make
) -> None:
    topic = new_topic(broker)
    group = new_group(broker, **{"share.record.lock.duration.ms": "1000"})
    put(broker.bootstrap, topic, numbers(1))
    slow = make(group, topic, share_acknowledgement_mode="explicit")
    (record,) = take(slow, 1)
    assert slow.acquisition_lock_timeout_ms() == 1_000
    quick = make(group, topic)
    again = take(quick, 1)
    assert (offsets(again), counts(again)) == ([0], [2])
    slow.acknowledge(record)
    (error,) = slow.commit_sync().values()
    assert isinstance(error, InvalidRecordStateError)


def test_a_lock_that_is_renewed_does_not_run_out(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    # Long enough for a machine that is slow once, short enough to be outlived by the rounds.
    group = new_group(broker, **{"share.record.lock.duration.ms": "3000"})
    put(broker.bootstrap, topic, numbers(2))
    consumer = make(group, topic, share_acknowledgement_mode="explicit")
    other = make(group, topic)
    done, kept = take(consumer, 2)
    consumer.acknowledge(done)
    for _ in range(7):
        consumer.acknowledge(kept, AcknowledgeType.RENEW)
        # It is given again; the other, which waits for it, does not get it.
        (kept,) = take(consumer, 1)
        assert (kept.offset, kept.delivery_count) == (1, 1)
        assert not other.poll(0.5)
    consumer.acknowledge(kept)
    assert set(consumer.commit_sync().values()) == {None}


def test_two_members_share_a_partition(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    first = make(group, topic, max_poll_records=5, share_acquire_mode="record_limit")
    second = make(group, topic, max_poll_records=5, share_acquire_mode="record_limit")
    count = 0
    seen: list[tuple[str, int]] = []

    def all_seen() -> bool:
        nonlocal count
        if len(seen) >= count:
            # One may have taken all while the other was joining.
            put(broker.bootstrap, topic, numbers(40))
            count += 40
        for name, consumer in (("first", first), ("second", second)):
            records = consumer.poll(0.2)
            assert len(records) <= 5
            seen.extend((name, record.offset) for record in records)
        return len(seen) >= count and {name for name, _ in seen} == {"first", "second"}

    eventually(all_seen, what="both have taken of all records")
    assert sorted(offset for _, offset in seen) == list(range(count))


VICTIM = """
import sys
from moldau.client.share import ShareConsumer
bootstrap, group, topic = sys.argv[1:]
consumer = ShareConsumer(bootstrap_servers=bootstrap, group_id=group)
consumer.subscribe([topic])
while not (records := consumer.poll(0.5)):
    pass
print(len(records), flush=True)
sys.stdin.read()
"""


def test_what_a_killed_member_had_comes_again(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(3))
    command = [sys.executable, "-c", VICTIM, broker.bootstrap, group, topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        try:
            assert victim.stdout is not None
            assert victim.stdout.readline() == b"3\n"
        finally:
            victim.send_signal(signal.SIGKILL)
    again = take(make(group, topic), 3)
    assert counts(again) == [2, 2, 2]


class Number:
    closed = False

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> int:
        return int(data or b"")

    def close(self) -> None:
        self.closed = True


def test_a_record_that_cannot_be_read_is_released_or_rejected(
    broker: BrokerProcess, make: Make
) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, [b"1", b"two", b"3"])
    number = Number()
    consumer = make(group, topic, value_deserializer=number, share_acknowledgement_mode="explicit")
    heard: set[int] = set()
    consumer.set_acknowledgement_commit_callback(
        lambda said, error: heard.update(*(said.values() if error is None else ()))
    )
    (first,) = take(consumer, 1)
    assert first.value == 1
    consumer.acknowledge(first)
    with pytest.raises(RecordDeserializationError) as caught:
        eventually(lambda: consumer.poll(1.0), what="the record comes")
    assert caught.value.offset == 1
    consumer.acknowledge(topic, 0, caught.value.offset, AcknowledgeType.REJECT)
    (third,) = take(consumer, 1)
    assert third.value == 3
    consumer.acknowledge(third)
    assert set(consumer.commit_sync().values()) == {None}
    put(broker.bootstrap, topic, [b"4"])
    assert [record.value for record in take(consumer, 1)] == [4]
    # Nothing of what was said got lost on the way.
    assert heard == {0, 1, 2}
    consumer.close()
    assert number.closed


def test_the_callback_hears_of_every_acknowledgement(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(2))
    consumer = make(group, topic)
    heard: list[tuple[set[int], KafkaError | None, int]] = []
    refused: list[Exception] = []

    def callback(said: Any, error: KafkaError | None) -> None:
        heard.extend((each, error, threading.get_ident()) for each in said.values())
        try:
            consumer.commit_async()
        except IllegalStateError as problem:
            refused.append(problem)

    consumer.set_acknowledgement_commit_callback(callback)
    take(consumer, 2)
    consumer.commit_async()
    eventually(lambda: consumer.poll(0.1) or heard, what="it was called")
    assert heard == [({0, 1}, None, threading.get_ident())]
    assert "not accessible" in str(refused[0])

    def broken(said: Any, error: KafkaError | None) -> None:
        raise RuntimeError("of the application")

    consumer.set_acknowledgement_commit_callback(broken)
    put(broker.bootstrap, topic, [b"x"])
    take(consumer, 1)
    with pytest.raises(KafkaError, match="of the application"):
        consumer.commit_sync()
    consumer.set_acknowledgement_commit_callback(None)


def test_waking_up(broker: BrokerProcess, make: Make) -> None:
    consumer = make(new_group(broker), new_topic(broker))
    consumer.poll(0.1)
    waker = threading.Timer(0.1, consumer.wakeup)
    waker.start()
    with pytest.raises(WakeupError):
        consumer.poll(30.0)
    waker.join()
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll()
    consumer.poll()


def test_waking_up_loses_no_acknowledgement(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(1))
    consumer = make(group, topic)
    heard: set[int] = set()
    consumer.set_acknowledgement_commit_callback(
        lambda said, error: heard.update(*(said.values() if error is None else ()))
    )
    take(consumer, 1)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1.0)
    eventually(
        lambda: consumer.poll(0.1) or heard,
        what="the record was accepted",
        seconds_max=LOCK_SECONDS - 5,
    )
    assert heard == {0}


def test_one_thread_at_a_time(broker: BrokerProcess, make: Make) -> None:
    consumer = make(new_group(broker), new_topic(broker))
    refused = threading.Event()

    def poll() -> None:
        while not refused.is_set():
            # It is its turn to be refused when the other is inside.
            with suppress(ConcurrentModificationError):
                consumer.poll(0.5)

    inside = threading.Thread(target=poll)
    inside.start()
    try:
        with pytest.raises(ConcurrentModificationError):
            eventually(lambda: consumer.subscription() and False, what="it is refused")
    finally:
        refused.set()
        inside.join()


def test_subscribing(broker: BrokerProcess, make: Make) -> None:
    one, other = new_topic(broker), new_topic(broker)
    group = new_group(broker)
    put(broker.bootstrap, one, [b"of one"])
    put(broker.bootstrap, other, [b"of other"])
    consumer = make(group, one)
    assert [record.value for record in take(consumer, 1)] == [b"of one"]
    consumer.subscribe([other])
    assert [record.value for record in take(consumer, 1)] == [b"of other"]
    consumer.unsubscribe()
    assert consumer.subscription() == set()
    with pytest.raises(IllegalStateError, match="not subscribed"):
        consumer.poll()
    with pytest.raises(TypeError, match="list of topics"):
        consumer.subscribe(one)
    consumer.subscribe([one])
    put(broker.bootstrap, one, [b"again"])
    assert [record.value for record in take(consumer, 1)] == [b"again"]
    consumer.close()
    consumer.close()
    with pytest.raises(ClosedError):
        consumer.poll()


@pytest.mark.parametrize(
    "setting",
    [
        "auto.offset.reset",
        "enable.auto.commit",
        "group.instance.id",
        "isolation.level",
        "partition.assignment.strategy",
        "interceptor.classes",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "group.protocol",
        "group.remote.assignor",
    ],
)
def test_settings_that_do_not_fit_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="cannot be set when using a share group") as caught:
        ShareConsumer({"bootstrap.servers": "localhost:1", "group.id": "g", setting: "1"})
    assert caught.value.key == setting


def test_a_group_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"valid group\.id"):
        ShareConsumer(bootstrap_servers="localhost:1")


def test_figures(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(4))
    consumer = make(group, topic)
    take(consumer, 4)
    consumer.commit_sync()
    figures = {name.name: metric.value for name, metric in consumer.metrics().items()}
    assert figures["records-consumed-total"] == 4
    assert figures["acknowledgements-send-total"] == 4
    assert figures["acknowledgements-error-total"] == 0
    assert figures["fetch-total"] >= 1
    assert figures["heartbeat-total"] >= 1
    assert figures["rebalance-total"] >= 1


def test_there_is_no_instance_id_where_nobody_wants_metrics(
    broker: BrokerProcess, make: Make
) -> None:
    consumer = make(new_group(broker), new_topic(broker))
    consumer.poll(0.1)
    with pytest.raises(UnsupportedVersionError):
        consumer.client_instance_id(30.0)
    silent = make(new_group(broker), new_topic(broker), enable_metrics_push=False)
    with pytest.raises(IllegalStateError, match="not enabled"):
        silent.client_instance_id()


def test_many_partitions_and_compression(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker, 4), new_group(broker)
    for partition in range(4):
        put(broker.bootstrap, topic, numbers(50), partition=partition, compression_type="zstd")
    consumer = make(group, topic, max_poll_records=30)
    seen: list[tuple[int, int]] = []

    def all_seen() -> bool:
        records = consumer.poll(1.0)
        assert len(records) <= 30
        seen.extend((record.partition, record.offset) for record in records)
        return len(seen) >= 200

    eventually(all_seen, what="all records came")
    assert sorted(seen) == [(part, offset) for part in range(4) for offset in range(50)]


def test_the_examples_of_the_documentation(broker: BrokerProcess) -> None:
    text = (ROOT / "docs" / "share-consumer.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    programs = [block.replace("127.0.0.1:9092", broker.bootstrap) for block in blocks]
    output = ""
    for program in programs:
        if broker.bootstrap in program:
            ended = subprocess.run(
                [sys.executable, "-c", program],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert ended.returncode == 0, ended.stderr
            output += ended.stdout
    assert output.splitlines() == [
        "paint the fence delivered 1",
        "painted it green at delivery 1",
        "painted it red at delivery 2",
        "meanwhile paint the gate",
        "[None]",
        "paint the wall",
    ]


def test_markers_of_transactions_are_gaps(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group(broker)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions()
    for value, ending in ((b"a", producer.commit_transaction), (b"b", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        ending()
    heard: set[int] = set()
    consumer = make(group, topic)
    consumer.set_acknowledgement_commit_callback(
        lambda said, error: heard.update(*(said.values() if error is None else ()))
    )
    seen: list[bytes] = []

    def polled() -> bool:
        seen.extend(record.value for record in consumer.poll(0.2))
        return heard == {0, 1, 2, 3}

    # Records at 0 and 2, markers at 1 and 3.
    eventually(polled, what="all four offsets are acknowledged")
    assert seen == [b"a", b"b"]


def test_asyncio(broker: BrokerProcess) -> None:
    topic, group = new_topic(broker), new_group(broker)
    put(broker.bootstrap, topic, numbers(3))

    async def session() -> None:
        heard = []

        async def callback(said: Any, error: KafkaError | None) -> None:
            await asyncio.sleep(0)
            heard.append((list(said.values()), error))

        async with AsyncShareConsumer(
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            share_acknowledgement_mode="explicit",
        ) as consumer:
            consumer.subscribe([topic])
            consumer.set_acknowledgement_commit_callback(callback)
            records: list[Any] = []
            while not records:
                records = list(await consumer.poll(1.0))
            assert offsets(records) == [0, 1, 2]
            for record in records:
                consumer.acknowledge(record, AcknowledgeType.ACCEPT)
            results = await consumer.commit_sync()
            assert list(results.values()) == [None]
            assert heard == [([{0, 1, 2}], None)]
            waiting = asyncio.create_task(consumer.poll(30.0))
            await asyncio.sleep(0)
            with pytest.raises(ConcurrentModificationError):
                await consumer.commit_async()
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await waiting
            with pytest.raises(IllegalStateError, match="leaves the group"):
                consumer.subscribe([])
            await consumer.unsubscribe()

    asyncio.run(session())
