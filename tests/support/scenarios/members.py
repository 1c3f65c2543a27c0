"""Each client as a member of a consumer group, behind one small interface.

A member lives in one thread. `poll` returns records that count as processed once it returned,
`commit` commits exactly those; what a client reports of its partitions is kept in `changes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as AiokafkaSticky,
)
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

T = TypeVar("T")
POLL_SECONDS = 0.05
BATCH_RECORDS = 200


class Place(NamedTuple):
    topic: str
    partition: int


class Seen(NamedTuple):
    place: Place
    offset: int
    value: bytes


@dataclass(frozen=True)
class Change:
    """Partitions that a client said it was given ("assigned") or had to give up ("revoked")."""

    what: str
    places: frozenset[Place]


@dataclass(frozen=True, kw_only=True)
class Membership:
    """How a member joins; either `topics` or `pattern` (a prefix of topic names)."""

    bootstrap: str
    group: str
    topics: tuple[str, ...] = ()
    prefix: str | None = None
    instance_id: str | None = None
    reset: str = "earliest"
    # A session outlives every restart of a broker here: nobody is expelled by a slow machine.
    session_ms: int = 30_000

    def named(self, instance_id: str) -> Membership:
        return replace(self, instance_id=instance_id)


class MemberRefused(Exception):
    """The group refuses this member for good: its group.instance.id is another's."""


class Member(Protocol):
    changes: list[Change]

    def poll(self) -> list[Seen]: ...
    def commit(self) -> bool:
        """Commit what was polled; False when the group or the broker cannot take it now."""
        ...

    def owned(self) -> frozenset[Place]: ...
    def seek(self, place: Place, offset: int) -> None: ...
    def close(self) -> None: ...


def _places(partitions: Iterable[Any]) -> frozenset[Place]:
    return frozenset(Place(each.topic, each.partition) for each in partitions)


@dataclass
class ConfluentMember:
    """confluent-kafka, that is librdkafka; `protocol` is its `group.protocol`."""

    membership: Membership
    protocol: str = "classic"
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        asked = self.membership
        config: dict[str, Any] = {
            "bootstrap.servers": asked.bootstrap,
            "group.id": asked.group,
            "group.protocol": self.protocol,
            "auto.offset.reset": asked.reset,
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 250,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "fetch.error.backoff.ms": 20,
            "fetch.wait.max.ms": 100,
            "log_level": 2,
            # A broker that is away is part of the story; what ends a member comes from poll.
            "error_cb": lambda _: None,
        }
        if self.protocol == "classic":
            config |= {
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": asked.session_ms,
                "heartbeat.interval.ms": 100,
            }
        if asked.instance_id is not None:
            config["group.instance.id"] = asked.instance_id
        self._consumer = Consumer(config)
        topics = list(asked.topics) if asked.prefix is None else [f"^{asked.prefix}.*"]
        self._consumer.subscribe(
            topics, on_assign=self._noting("assigned"), on_revoke=self._noting("revoked"),
            on_lost=self._noting("revoked"),
        )  # fmt: skip

    def _noting(self, what: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        return lambda _, partitions: self.changes.append(Change(what, _places(partitions)))

    def poll(self) -> list[Seen]:
        seen = []
        try:
            messages = self._consumer.consume(BATCH_RECORDS, POLL_SECONDS)
        except KafkaException as failed:
            self._check(failed.args[0])
            raise
        for message in messages:
            if (error := message.error()) is not None:
                self._check(error)
                continue
            place = Place(str(message.topic()), int(message.partition() or 0))
            seen.append(Seen(place, int(message.offset() or 0), bytes(message.value() or b"")))
        return seen

    def _check(self, error: KafkaError) -> None:
        """Raise what ends this member; nothing for what passes."""
        if error.fatal() or error.code() in REFUSALS:
            raise MemberRefused(str(error))
        if error.code() not in PASSING:
            raise KafkaException(error)

    def commit(self) -> bool:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as failed:
            error = failed.args[0]
            if error.fatal() or error.code() in REFUSALS:
                raise MemberRefused(str(error)) from failed
            return bool(error.code() == KafkaError._NO_OFFSET)
        return True

    def owned(self) -> frozenset[Place]:
        return _places(self._consumer.assignment())

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(TopicPartition(place.topic, place.partition, offset))

    def close(self) -> None:
        self._consumer.close()


REFUSALS = {KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID}
# What librdkafka tells of a broker that is away and of topics that come and go.
PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
}


class _KafkaPythonListener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, changes: list[Change]) -> None:
        self._changes = changes

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._changes.append(Change("revoked", _places(revoked)))

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._changes.append(Change("assigned", _places(assigned)))

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        self._changes.append(Change("revoked", _places(lost)))


@dataclass
class KafkaPythonMember:
    membership: Membership
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        asked = self.membership
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=asked.bootstrap,
            group_id=asked.group,
            group_instance_id=asked.instance_id,
            auto_offset_reset=asked.reset,
            enable_auto_commit=False,
            partition_assignment_strategy=(CooperativeStickyAssignor,),
            session_timeout_ms=asked.session_ms,
            heartbeat_interval_ms=100,
            metadata_max_age_ms=250,
            reconnect_backoff_ms=5,
            reconnect_backoff_max_ms=100,
            retry_backoff_ms=20,
            fetch_max_wait_ms=100,
        )
        pattern = None if asked.prefix is None else f"^{asked.prefix}.*"
        self._consumer.subscribe(
            asked.topics, pattern=pattern, listener=_KafkaPythonListener(self.changes)
        )

    def poll(self) -> list[Seen]:
        try:
            polled = self._consumer.poll(int(POLL_SECONDS * 1000), max_records=BATCH_RECORDS)
            self._keep_joining()
        except kafka.errors.FencedInstanceIdError as refused:
            raise MemberRefused(str(refused)) from refused
        except kafka.errors.KafkaError as failed:
            if not failed.retriable:
                raise
            return []
        return [
            Seen(Place(record.topic, record.partition), record.offset, record.value)
            for records in polled.values()
            for record in records
        ]

    def _keep_joining(self) -> None:
        """A poll that ends while SyncGroup is on its way forgets that it waits for the answer, if
        new metadata was the reason to join: version 3.0 then stays without partitions for ever.
        """
        coordinator = self._consumer._coordinator
        if coordinator.rejoining:
            coordinator.request_rejoin()

    def commit(self) -> bool:
        try:
            self._consumer.commit(timeout_ms=5000)
        except kafka.errors.FencedInstanceIdError as refused:
            raise MemberRefused(str(refused)) from refused
        except kafka.errors.KafkaError:
            return False
        return True

    def owned(self) -> frozenset[Place]:
        return _places(self._consumer.assignment())

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(kafka.TopicPartition(*place), offset)

    def close(self) -> None:
        self._consumer.close()


class _AiokafkaListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, changes: list[Change]) -> None:
        self._changes = changes

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._changes.append(Change("revoked", _places(revoked)))

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._changes.append(Change("assigned", _places(assigned)))


@dataclass
class AiokafkaMember:
    """aiokafka on a private loop, which runs during the calls: its heartbeats go out in `poll`."""

    membership: Membership
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._consumer = self._run(self._start())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, 60))

    async def _start(self) -> aiokafka.AIOKafkaConsumer:
        asked = self.membership
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=asked.bootstrap,
            group_id=asked.group,
            group_instance_id=asked.instance_id,
            auto_offset_reset=asked.reset,
            enable_auto_commit=False,
            partition_assignment_strategy=(AiokafkaSticky,),
            session_timeout_ms=asked.session_ms,
            heartbeat_interval_ms=100,
            metadata_max_age_ms=250,
            retry_backoff_ms=20,
            fetch_max_wait_ms=100,
        )
        pattern = None if asked.prefix is None else f"^{asked.prefix}.*"
        consumer.subscribe(asked.topics, pattern=pattern, listener=_AiokafkaListener(self.changes))
        await consumer.start()
        return consumer

    def poll(self) -> list[Seen]:
        try:
            polled = self._run(
                self._consumer.getmany(
                    timeout_ms=int(POLL_SECONDS * 1000), max_records=BATCH_RECORDS
                )
            )
        except aiokafka.errors.FencedInstanceId as refused:
            raise MemberRefused(str(refused)) from refused
        return [
            Seen(Place(record.topic, record.partition), record.offset, record.value)
            for records in polled.values()
            for record in records
        ]

    def commit(self) -> bool:
        try:
            self._run(self._consumer.commit())
        except (TimeoutError, aiokafka.errors.KafkaError):
            return False
        return True

    def owned(self) -> frozenset[Place]:
        return _places(self._consumer.assignment())

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(aiokafka.TopicPartition(*place), offset)

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()


@dataclass(frozen=True)
class Client:
    """A client as the scenarios choose it: how it joins, and what it can do."""

    join: Callable[[Membership], Member]
    cooperative: bool = True
    consumer_protocol: bool = False
    # aiokafka's heartbeats do not name the instance: two of one id expel each other for ever.
    fenced: bool = True


CLIENTS = {
    "confluent-kafka classic": Client(ConfluentMember),
    "confluent-kafka consumer": Client(
        lambda membership: ConfluentMember(membership, "consumer"), consumer_protocol=True
    ),
    "kafka-python": Client(KafkaPythonMember),
    "aiokafka": Client(AiokafkaMember, cooperative=False, fenced=False),
}
