"""Clients that never stop while a cluster's nodes are killed, paused and cut off.

Each is one client object in a thread for the whole time; none is ever made anew. `Traffic.check`
is what a user relies on: whatever was acknowledged can be read, once, in the order in which it was
written, where the acknowledgement said; only what was committed of transactions is seen; and all
replicas hold the same bytes in the end.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from support.cluster import ClusterUnderTest
from support.waiting import eventually

SECONDS_MAX = 90.0
PACE_SECONDS = 0.02
# Where every byte goes through a proxy, which is one process for all.
PROXY_PACE_SECONDS = 0.1
# So many that a node never dies without some on their way.
BURST = 5
# At a client's door a node that is gone looks like this, and it goes on by itself.
PASSING = {
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT,
    KafkaError._RESOLVE, KafkaError._TIMED_OUT_QUEUE, KafkaError._WAIT_COORD,
    # Kafka's retriable errors: the client's library asks again, or its user does.
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR, KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.KAFKA_STORAGE_ERROR,
}  # fmt: skip
PATIENCE = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "socket.timeout.ms": 10_000,
    "topic.metadata.refresh.interval.ms": 2_000,
    "log_level": 0,
}


class Client:
    """A thread with one client; an error that no waiting mends is its failure."""

    def __init__(self, bootstrap: str) -> None:
        self.failure: BaseException | None = None
        self.errors: Counter[str] = Counter()
        self.steps = 0
        self._stop = threading.Event()
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "error_cb": self._on_error, **PATIENCE
        }  # fmt: skip
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _on_error(self, error: KafkaError) -> None:
        self.errors[error.name()] += 1
        if error.fatal():
            self.failure = self.failure or KafkaException(error)

    def _pass(self, error: KafkaError) -> None:
        """Note an error that the client gets over by itself; any other is raised."""
        self.errors[error.name()] += 1
        if error.fatal() or not (error.retriable() or error.code() in PASSING):
            raise KafkaException(error)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as failure:
            self.failure = self.failure or failure

    def _work(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self._stop.set()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive(), f"{type(self).__name__} does not end: {self.errors}"

    def check(self) -> None:
        if self.failure is not None:
            name = type(self).__name__
            raise AssertionError(f"{name} failed: {self.failure!r} after {dict(self.errors)}")


class Writing(Client):
    """Numbers each partition's records from 0; idempotent, acks=all."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, pace_seconds: float = PACE_SECONDS
    ) -> None:
        super().__init__(bootstrap)
        self._pace_seconds = pace_seconds
        self.counts = [0] * partitions
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.refused: list[KafkaError] = []
        self._topic = topic
        self._config |= {
            "enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 120_000,
            "queue.buffering.max.messages": 2_000,
        }  # fmt: skip

    def _work(self) -> None:
        producer = Producer(self._config)
        while not self._stop.is_set():
            for index in range(len(self.counts)):
                for _ in range(BURST):
                    self._write(producer, index)
            producer.poll(0)
            # A pace, not a wait: readers keep up with it.
            self._stop.wait(self._pace_seconds)
        assert producer.flush(SECONDS_MAX) == 0, f"not all is delivered: {self.errors}"

    def _write(self, producer: Producer, index: int) -> None:
        count = self.counts[index]
        value = b"%d " % count + bytes(count * 37 % 200)
        try:
            producer.produce(self._topic, value, partition=index, on_delivery=self._delivered)
            self.counts[index] += 1
        except BufferError:
            producer.poll(0.05)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(error)
            return
        at = (int(message.partition() or 0), int(message.offset() or 0))
        self.acknowledged[at] = bytes(message.value() or b"")
        self.steps += 1

    def check(self) -> None:
        super().check()
        assert self.refused == [], f"refused: {Counter(each.name() for each in self.refused)}"


class Reading(Client):
    """Reads partitions from their beginnings, read_committed, and keeps what it was given."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(bootstrap)
        self.seen: list[list[tuple[int, bytes]]] = [[] for _ in range(partitions)]
        self._topic = topic
        self._config |= {
            "group.id": "unused", "enable.auto.commit": False, "check.crcs": True,
            "isolation.level": "read_committed", "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50, "fetch.error.backoff.ms": 20,
        }  # fmt: skip

    def _work(self) -> None:
        consumer = Consumer(self._config)
        consumer.assign([TopicPartition(self._topic, at, 0) for at in range(len(self.seen))])
        while not self._stop.is_set():
            for message in consumer.consume(200, 0.05):
                error = message.error()
                if error is not None:
                    self._pass(error)
                    continue
                record = (int(message.offset() or 0), bytes(message.value() or b""))
                self.seen[int(message.partition() or 0)].append(record)
                self.steps += 1
        consumer.close()


class Membering(Client):
    """The only member of a group: reads on from what it has committed, whoever coordinates."""

    def __init__(self, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        super().__init__(bootstrap)
        self.seen: dict[tuple[int, int], bytes] = {}
        self.commits = 0
        self._topic = topic
        self._config |= {
            "group.id": group, "group.protocol": protocol, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50,
        }  # fmt: skip
        if protocol == "classic":
            self._config |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500}

    def _work(self) -> None:
        consumer = Consumer(self._config)
        consumer.subscribe([self._topic])
        while not self._stop.is_set():
            uncommitted = False
            for message in consumer.consume(200, 0.05):
                error = message.error()
                if error is not None:
                    self._pass(error)
                    continue
                at = (int(message.partition() or 0), int(message.offset() or 0))
                value = bytes(message.value() or b"")
                known = self.seen.setdefault(at, value)
                assert known == value, f"{at} was {known!r}, now {value!r}"
                self.steps += 1
                uncommitted = True
            if uncommitted:
                try:
                    consumer.commit(asynchronous=False)
                    self.commits += 1
                except KafkaException as error:
                    self._retried_commit(error.args[0])
        consumer.close()

    def _retried_commit(self, error: KafkaError) -> None:
        # A member that was thought gone joins again by itself and commits later.
        again = {
            KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError._NO_OFFSET,
            KafkaError.REBALANCE_IN_PROGRESS, KafkaError.STALE_MEMBER_EPOCH,
            KafkaError._ASSIGNMENT_LOST,
        }  # fmt: skip
        if error.code() in again:
            self.errors[error.name()] += 1
        else:
            self._pass(error)


class Transacting(Client):
    """Transactions of a few records to two partitions; every fourth is aborted."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap)
        self.committed: list[bytes] = []
        self._topic = topic
        self._config |= {
            "transactional.id": f"{topic}-id", "transaction.timeout.ms": 60_000,
            "message.timeout.ms": 60_000, "linger.ms": 1,
        }  # fmt: skip

    def _work(self) -> None:
        producer = Producer(self._config)
        self._retried(producer.init_transactions)
        number = 0
        while not self._stop.is_set():
            value = b"%d" % number
            if self._transaction(producer, value, commit=number % 4 != 3):
                self.committed.append(value)
            number += 1
            self.steps += 1
            # A pace, not a wait.
            self._stop.wait(0.05)

    def _transaction(self, producer: Producer, value: bytes, *, commit: bool) -> bool:
        """Whether it was committed; if it was not, it is aborted."""
        producer.begin_transaction()
        try:
            for index in (0, 1, 0):
                producer.produce(self._topic, value, partition=index)
            if commit:
                self._retried(producer.commit_transaction)
                return True
            # librdkafka also ends what no coordinator has heard of yet, and the answer, that there
            # is no such transaction, is fatal to it.
            producer.flush(SECONDS_MAX)
        except KafkaException as failed:
            error = failed.args[0]
            if error.fatal() or not error.txn_requires_abort():
                raise
            self.errors[f"abort {error.name()}"] += 1
        self._retried(producer.abort_transaction)
        return False

    def _retried(self, call: Callable[[float], None]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                return call(10)
            except KafkaException as failed:
                error = failed.args[0]
                late = time.monotonic() > deadline
                if late or error.fatal() or not error.retriable():
                    raise
                self.errors[f"retried {error.name()}"] += 1


class Traffic:
    """All of them on one cluster, with topics of their own."""

    def __init__(
        self,
        cluster: ClusterUnderTest,
        name: str,
        *,
        partitions: int = 6,
        protocol: str = "classic",
        assignment: list[list[int]] | None = None,
    ) -> None:
        self.cluster = cluster
        self.topic, self.outcome, self.group = name, f"{name}-transactions", f"{name}-group"
        count = len(assignment) if assignment else partitions
        cluster.create_topic(self.topic, count, assignment=assignment or ())
        cluster.create_topic(self.outcome, 2)
        bootstrap = cluster.bootstrap
        pace_seconds = PACE_SECONDS if cluster.proxy is None else PROXY_PACE_SECONDS
        self.writing = Writing(bootstrap, self.topic, count, pace_seconds)
        self.reading = Reading(bootstrap, self.topic, count)
        self.membering = Membering(bootstrap, self.topic, self.group, protocol)
        self.transacting = Transacting(bootstrap, self.outcome)
        self.watching = Reading(bootstrap, self.outcome, 2)

    @property
    def clients(self) -> list[Client]:
        return [self.writing, self.reading, self.membering, self.transacting, self.watching]

    def __enter__(self) -> Traffic:
        for client in self.clients:
            client.start()
        self.wait_for_progress()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client._stop.set()
        for client in self.clients:
            client._thread.join(SECONDS_MAX)

    def wait_for_progress(self, count: int = 60, transactions: int = 4) -> None:
        """Until every client has come on: nobody is stuck."""
        wanted = {
            client: client.steps + (transactions if client is self.transacting else count)
            for client in self.clients
            if client is not self.watching
        }

        def done() -> bool:
            for client in self.clients:
                client.check()
            return all(client.steps >= target for client, target in wanted.items())

        try:
            eventually(done, what="every client comes on", seconds_max=SECONDS_MAX)
        except AssertionError as error:
            states = {
                type(client).__name__: (client.steps, target, dict(client.errors))
                for client, target in wanted.items()
            }
            raise AssertionError(f"{error}\n{states}\n{self.cluster.reports()}") from None

    def check(self) -> None:
        """End the writers, let the readers come to the end, and compare. See the module."""
        self.writing.end()
        self.transacting.end()
        for client in self.clients:
            client.check()
        self._wait_for_readers()
        for client in (self.reading, self.membering, self.watching):
            client.end()
            client.check()
        self._compare_written()
        self._compare_transactions()
        self.cluster.eventually(
            lambda: all(self._same_bytes(topic) for topic in (self.topic, self.outcome)),
            what="all replicas hold the same bytes",
        )

    def _wait_for_readers(self) -> None:
        written, committed = sum(self.writing.counts), 3 * len(self.transacting.committed)

        def done() -> bool:
            for client in self.clients:
                client.check()
            return (
                self.reading.steps >= written
                and len(self.membering.seen) >= written
                and self.watching.steps >= committed
            )

        try:
            eventually(done, what="readers come to the end", seconds_max=SECONDS_MAX)
        except AssertionError as error:
            counts = (self.reading.steps, len(self.membering.seen), written)
            transactions = (self.watching.steps, committed)
            reports = self.cluster.reports()
            raise AssertionError(f"{error} {counts} {transactions}\n{reports}") from None

    def _compare_written(self) -> None:
        for index, count in enumerate(self.writing.counts):
            records = self.reading.seen[index]
            numbers = [int(value.split()[0]) for _, value in records]
            assert numbers == list(range(count)), (
                f"{self.topic}-{index}: {len(numbers)} of {count}, "
                f"first wrong at {_first_wrong(numbers)}"
            )
        seen = {
            (index, offset): value
            for index, records in enumerate(self.reading.seen)
            for offset, value in records
        }
        assert seen == self.writing.acknowledged
        assert seen == self.membering.seen

    def _compare_transactions(self) -> None:
        committed = self.transacting.committed
        twice = [value for value in committed for _ in range(2)]
        assert [value for _, value in self.watching.seen[0]] == twice
        assert [value for _, value in self.watching.seen[1]] == committed

    def _same_bytes(self, topic: str) -> bool:
        for (_, index), state in self.cluster.partitions(topic).items():
            contents = set()
            for node_id in state.replicas:
                folder = self.cluster.log_folder(node_id, topic, index)
                segments = sorted(folder.glob("*.log"))
                contents.add(b"".join(segment.read_bytes() for segment in segments))
            if len(contents) != 1:
                return False
        return True


def _first_wrong(numbers: list[int]) -> str:
    for expected, number in enumerate(numbers):
        if number != expected:
            return f"{expected}: {numbers[max(0, expected - 2) : expected + 5]}"
    return "the end"
