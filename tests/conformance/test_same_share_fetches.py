"""The same share consumers on Moldau and on Apache Kafka: who gets which records, how often, and
what becomes of them agrees, step by step.

Nothing here depends on how fast either broker is: locks last longer than a test, and a fetch that
finds nothing waits until its time is over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from moldau.broker.coordinator.share.machine.values import SharePartitionKey
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    InitializeShareGroupStateRequest,
    ProduceRequest,
    ReadShareGroupStateSummaryRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareFetchResponse,
    WriteTxnMarkersRequest,
)
from moldau.wire.records import encode_batch
from support import asking
from support.both import IGNORED, Both, Side, coordinator_ready, prepare
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.repeats import mostly_long
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

SETTINGS = {
    # Then a test needs no transaction coordinator for its transactions.
    "transaction.partition.verification.enable": "false",
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Records here are old enough to expire whenever a broker looks.
    "log.retention.ms": "-1",
    # No lock runs out in the middle of a conversation, however slow the machine is.
    "group.share.max.record.lock.duration.ms": "600000",
    "group.share.record.lock.duration.ms": "600000",
}
SHARE_KEY_TYPE = 2
GROUP_CONFIG = 32
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
# How long a first fetch may wait until either broker has loaded the partition.
LOADED_MS = 10_000
# First offset, last offset, type of all or types of each.
Ack = tuple[int, int, int | Sequence[int]]


class Stage(Both):
    def __init__(self, ours: Side, kafkas: Side, group: str, topic: str) -> None:
        super().__init__(ours, kafkas)
        self.group = group
        self.topic = topic
        self.epochs: dict[str, int] = {}
        self._batch_count = 0
        self._is_loaded = False

    def initialize(self, start_offset: int = 0, partitions: int = 1) -> None:
        request = InitializeShareGroupStateRequest

        def make(side: Side) -> Message:
            data = request.InitializeStateData(
                topic_id=side.topic_ids[self.topic],
                partitions=[
                    request.PartitionData(partition=each, state_epoch=0, start_offset=start_offset)
                    for each in range(partitions)
                ],
            )
            return request(group_id=self.group, topics=[data])

        self.ask_until(
            "broker",
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            0,
            make,
            # Each partition has a coordinator of its own.
            settled=lambda answer: (
                not any(each.error_code for each in answer.results[0].partitions)
            ),
        )

    def configure(self, **config: str) -> None:
        changes = {key.replace("_", "."): value for key, value in config.items()}
        for side in self.sides:
            to = side.connection("observer")
            assert asking.alter_config(to, GROUP_CONFIG, self.group, changes)[0] == 0
            for key, value in changes.items():
                eventually(
                    lambda to=to, key=key, value=value: (
                        asking.config(to, GROUP_CONFIG, self.group, key)[0] == value
                    ),
                    what=f"{key} is in force",
                )

    def produce(self, count: int, partition: int = 0) -> None:
        self._batch_count += 1
        batch = encode_batch([(None, b"%d" % self._batch_count, 0, ())] * count)
        for side in self.sides:
            asking.produce(side.connection("observer"), self.topic, partition, batch)

    def produce_in_transaction(self, producer_id: int, sequence: int, count: int) -> None:
        batch = encode_batch(
            [(None, b"%d" % producer_id, 0, ())] * count,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id=f"transaction-{producer_id}",
            acks=-1,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])],
        )
        for side in self.sides:
            answer = side.connection("observer").call(ApiKey.PRODUCE, 11, request)
            assert answer.responses[0].partition_responses[0].error_code == 0

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(
            name=self.topic, partition_indexes=[0]
        )
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_result=committed,
            coordinator_epoch=0,
            topics=[topic],
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        for side in self.sides:
            answer = side.connection("observer").call(ApiKey.WRITE_TXN_MARKERS, 1, request)
            assert answer.markers[0].topics[0].partitions[0].error_code == 0

    def delete_records(self, before: int) -> None:
        for side in self.sides:
            asking.delete_records(side.connection("observer"), self.topic, 0, before)

    def fetch(
        self,
        member: str,
        *,
        acks: Sequence[Ack] = (),
        partitions: Sequence[int] = (0,),
        epoch: int | None = None,
        version: int = 2,
        until_acquired: bool = False,
        **fields: Any,
    ) -> Any:
        request = ShareFetchRequest
        wait_ms = 250 if self._is_loaded or not self._batch_count else LOADED_MS
        defaults = {"max_wait_ms": wait_ms, "min_bytes": 1, "max_records": 500, "batch_size": 500}
        session_epoch = self.epochs.get(member, 0) if epoch is None else epoch

        def make(side: Side) -> Message:
            topics = []
            if acks or not session_epoch:
                topic = request.FetchTopic(
                    topic_id=side.topic_ids[self.topic],
                    partitions=[
                        request.FetchPartition(
                            partition_index=index,
                            acknowledgement_batches=_batches(request.AcknowledgementBatch, acks),
                        )
                        for index in partitions
                    ],
                )
                topics.append(topic)
            return request(
                group_id=self.group,
                member_id=member,
                share_session_epoch=session_epoch,
                topics=topics,
                **{**defaults, **fields},
            )

        if until_acquired:
            answer = self.ask_until(
                member, ApiKey.SHARE_FETCH, version, make, settled=lambda each: bool(acquired(each))
            )
        else:
            answer = self.ask(member, ApiKey.SHARE_FETCH, version, make)
        self._is_loaded = self._is_loaded or bool(acquired(answer))
        if not answer.error_code and epoch is None:
            self.epochs[member] = session_epoch + 1
        return answer

    def acknowledge(
        self,
        member: str,
        *acks: Ack,
        partition: int = 0,
        epoch: int | None = None,
        version: int = 2,
        **fields: Any,
    ) -> Any:
        request = ShareAcknowledgeRequest
        session_epoch = self.epochs.get(member, 0) if epoch is None else epoch

        def make(side: Side) -> Message:
            topic = request.AcknowledgeTopic(
                topic_id=side.topic_ids[self.topic],
                partitions=[
                    request.AcknowledgePartition(
                        partition_index=partition,
                        acknowledgement_batches=_batches(request.AcknowledgementBatch, acks),
                    )
                ],
            )
            return request(
                group_id=self.group,
                member_id=member,
                share_session_epoch=session_epoch,
                topics=[topic],
                **fields,
            )

        answer = self.ask(member, ApiKey.SHARE_ACKNOWLEDGE, version, make)
        if not answer.error_code and epoch is None:
            self.epochs[member] = session_epoch + 1
        return answer

    def stored(self) -> Any:
        """What both have stored of the start and of finished records."""
        request = ReadShareGroupStateSummaryRequest

        def make(side: Side) -> Message:
            data = request.ReadStateSummaryData(
                topic_id=side.topic_ids[self.topic],
                partitions=[request.PartitionData(partition=0, leader_epoch=0)],
            )
            return request(group_id=self.group, topics=[data])

        answer = self.ask("broker", ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, make)
        return answer.results[0].partitions[0]


def _batches(batch: Callable[..., Any], acks: Sequence[Ack]) -> list[Any]:
    return [
        batch(
            first_offset=first,
            last_offset=last,
            acknowledge_types=list(_list(types)),
        )
        for first, last, types in acks
    ]


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def error_of(answer: Any) -> int:
    return int(answer.responses[0].partitions[0].error_code)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, SETTINGS) as second:
        yield first, second


@pytest.fixture
def stage(
    brokers: tuple[BrokerProcess, BrokerProcess], request: pytest.FixtureRequest
) -> Iterator[Stage]:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    ignored = IGNORED | {"acknowledge_error_message"}
    sides = tuple(Side(broker.port, ignored) for broker in brokers)
    for side in sides:
        prepare(side, [(name, 2)])
        key = str(SharePartitionKey(name, side.topic_ids[name], 0))
        eventually(
            lambda side=side, key=key: coordinator_ready(side, key, SHARE_KEY_TYPE),
            what="there is a share coordinator",
        )
    stage = Stage(*sides, name, name)
    stage.initialize(partitions=2)
    yield stage
    for side in sides:
        side.close()


def test_acknowledgements_of_every_kind(stage: Stage) -> None:
    stage.produce(10)
    stage.produce(5)
    assert acquired(stage.fetch("a")) == [(0, 14, 1)]
    stage.acknowledge("a", (0, 2, ACCEPT), (3, 3, REJECT))
    assert stage.stored().start_offset == 0
    stage.acknowledge("a", (4, 9, [RELEASE, GAP, ACCEPT, ACCEPT, RELEASE, RELEASE]))
    stage.stored()
    assert acquired(stage.fetch("b")) == [(4, 4, 2), (8, 9, 2)]
    stage.acknowledge("a", (10, 14, RENEW), is_renew_ack=True)
    assert error_of(stage.acknowledge("a", (4, 4, ACCEPT))) == ErrorCode.INVALID_RECORD_STATE
    stage.fetch("b", acks=[(4, 4, ACCEPT), (8, 9, ACCEPT)])
    stage.acknowledge("a", (10, 14, ACCEPT))
    stage.produce(1)
    assert acquired(stage.fetch("b")) == [(15, 15, 1)]
    stage.acknowledge("b", (15, 15, ACCEPT))
    assert stage.stored().start_offset == 15


def test_partitions_that_are_loaded_together_come_one_by_one(stage: Stage) -> None:
    """Which of them comes first is chance, but neither waits for the other."""
    for partition in (0, 1):
        stage.produce(50, partition)
    for side in stage.sides:
        for epoch in (0, 1):
            topic = ShareFetchRequest.FetchTopic(
                topic_id=side.topic_ids[stage.topic],
                partitions=[ShareFetchRequest.FetchPartition(partition_index=i) for i in (0, 1)],
            )
            request = ShareFetchRequest(
                group_id=stage.group,
                member_id="a",
                share_session_epoch=epoch,
                max_wait_ms=LOADED_MS,
                min_bytes=1,
                max_records=500,
                batch_size=500,
                topics=[] if epoch else [topic],
            )
            answer = side.connection("a").call(ApiKey.SHARE_FETCH, 2, request)
            assert acquired(answer) == [(0, 49, 1)]


def test_refused_acknowledgements(stage: Stage) -> None:
    stage.produce(10)
    stage.produce(10)
    stage.fetch("a", max_records=1)
    stage.fetch("b", max_records=1)
    stage.acknowledge("a", (1, 2, ACCEPT))
    for ack in (
        (1, 1, ACCEPT),
        (0, 3, ACCEPT),
        (10, 12, ACCEPT),
        (5, 12, ACCEPT),
        (30, 31, ACCEPT),
        (15, 25, ACCEPT),
        (4, 3, ACCEPT),
        (4, 4, 5),
        (4, 4, -1),
        (4, 4, RENEW),
        (4, 6, [ACCEPT, ACCEPT]),
        (4, 5, []),
    ):
        assert error_of(stage.acknowledge("a", ack)) != ErrorCode.NONE
    stage.acknowledge("a", (4, 4, ACCEPT), (5, 40, ACCEPT))
    stage.acknowledge("a", (4, 5, ACCEPT), (4, 4, ACCEPT))
    stage.acknowledge("a", (4, 5, ACCEPT), (5, 6, ACCEPT))
    stage.acknowledge("a", (4, 4, RENEW), version=1)
    stage.acknowledge("a", (4, 4, ACCEPT), partition=1)
    stage.acknowledge("a", (4, 4, ACCEPT), partition=9)
    stage.acknowledge("a", (0, 0, ACCEPT))
    # What the start has passed may be acknowledged in vain.
    assert error_of(stage.acknowledge("a", (0, 0, ACCEPT))) == ErrorCode.NONE
    stage.acknowledge("a", (3, 9, ACCEPT))
    stage.acknowledge("b", (10, 19, ACCEPT))
    assert error_of(stage.acknowledge("b", (10, 19, ACCEPT))) == ErrorCode.NONE
    stage.acknowledge("b", (20, 20, ACCEPT))


def test_sessions(stage: Stage) -> None:
    for epoch in (1, -1):
        stage.fetch("a", epoch=epoch)
        stage.acknowledge("a", (0, 0, ACCEPT), epoch=epoch)
    stage.fetch("a", acks=[(0, 0, ACCEPT)], epoch=0)
    stage.acknowledge("a", (0, 0, ACCEPT), epoch=0)
    stage.fetch("")
    stage.fetch("x" * 37)
    stage.acknowledge("", (0, 0, ACCEPT))
    stage.fetch("a", partitions=[0, 1])
    stage.fetch("a")
    stage.fetch("a", epoch=5)
    stage.acknowledge("a", (0, 0, ACCEPT), epoch=5)
    stage.produce(3)
    assert acquired(stage.fetch("a")) == [(0, 2, 1)]
    stage.fetch("a", is_renew_ack=True)
    quiet = {"max_wait_ms": 0, "min_bytes": 0, "max_records": 0, "max_bytes": 0}
    stage.fetch("a", acks=[(0, 0, RENEW)], is_renew_ack=True, **quiet)
    stage.fetch("a", max_records=0)
    stage.epochs["a"] = 0
    stage.fetch("a")
    stage.acknowledge("a", (0, 0, ACCEPT))
    stage.fetch("a", acks=[(1, 1, ACCEPT)], epoch=-1)
    stage.fetch("a", epoch=-1)


def test_records_that_fail_again_and_again(stage: Stage) -> None:
    stage.produce(16)
    stage.produce(4)
    for _ in range(40):
        got = acquired(stage.fetch("a"))
        if not got:
            break
        stage.acknowledge("a", *((first, last, RELEASE) for first, last, _ in got))
        stage.stored()
    else:
        pytest.fail("the records are never given up")


def test_limits_on_locks(stage: Stage) -> None:
    stage.configure(share_partition_max_record_locks="100")
    for _ in range(6):
        stage.produce(30)
    for member in ("a", "b", "c"):
        stage.fetch(member, max_records=45)
    assert acquired(stage.fetch("c")) == []
    stage.acknowledge("a", (3, 4, RELEASE), (10, 20, ACCEPT))
    assert acquired(stage.fetch("b")) == [(3, 4, 2)]
    stage.acknowledge("a", (0, 2, ACCEPT))
    stage.fetch("b")
    stage.acknowledge("b", (3, 4, ACCEPT))
    stage.fetch("c")


def test_deleted_records(stage: Stage) -> None:
    for _ in range(4):
        stage.produce(5)
    stage.fetch("a", max_records=8)
    stage.acknowledge("a", (2, 3, RELEASE))
    stage.delete_records(3)
    # Kafka notices with a first answer that has no records.
    assert acquired(stage.fetch("b", max_records=1, until_acquired=True)) == [(3, 3, 2)]
    # At the end of a batch: Kafka would hand out the deleted records of a batch it has in part.
    stage.delete_records(10)
    stage.acknowledge("a", (4, 9, RELEASE))
    stage.epochs["b"] = 0
    assert acquired(stage.fetch("b", until_acquired=True)) == [(10, 19, 1)]
    stage.fetch("b")
    stage.acknowledge("a", (4, 9, ACCEPT))
    stage.acknowledge("b", (10, 19, ACCEPT))
    stage.stored()


@pytest.mark.parametrize("seed", mostly_long(range(3), "more seeds"))
def test_committed_records_only(stage: Stage, seed: int) -> None:
    stage.configure(share_isolation_level="read_committed")
    draw = random.Random(seed)
    sequences = {4000: 0, 4001: 0}
    open_transactions: set[int] = set()
    stage.produce(1)
    held = acquired(stage.fetch("a", max_wait_ms=LOADED_MS))
    for _ in range(50):
        producer_id = draw.choice(list(sequences))
        step = draw.random()
        if step < 0.2:
            stage.produce(draw.randint(1, 5))
        elif step < 0.5:
            count = draw.randint(1, 5)
            stage.produce_in_transaction(producer_id, sequences[producer_id], count)
            sequences[producer_id] += count
            open_transactions.add(producer_id)
        elif step < 0.75 and producer_id in open_transactions:
            stage.end_transaction(producer_id, committed=draw.random() < 0.5)
            open_transactions.discard(producer_id)
        else:
            acks = [(first, last, ACCEPT) for first, last, _ in held]
            # The start is not compared: here it does not wait for an acknowledgement to pass
            # aborted records.
            held = acquired(stage.fetch("a", acks=acks, max_wait_ms=20))


@pytest.mark.parametrize("seed", mostly_long(range(6), "more seeds", keep=2))
def test_any_conversation(stage: Stage, seed: int) -> None:
    draw = random.Random(seed)
    members = ("a", "b", "c")
    held: dict[str, set[int]] = {member: set() for member in members}
    for _ in range(4):
        stage.produce(draw.randint(1, 12))
    for _ in range(60):
        member = draw.choice(members)
        acks = _some_acks(draw, held[member]) if draw.random() < 0.8 else []
        if draw.random() < 0.25:
            stage.produce(draw.randint(1, 12))
        if draw.random() < 0.5 or not stage.epochs.get(member):
            # Whether a fetch gets what comes back with it depends on how fast that is stored.
            gives_back = any(RELEASE in _list(types) for _, _, types in acks)
            if not stage.epochs.get(member) or gives_back:
                acks = []
            answer = stage.fetch(
                member,
                acks=acks,
                max_records=draw.randint(1, 15),
                batch_size=draw.randint(1, 10),
                share_acquire_mode=draw.choice((0, 1)),
                max_wait_ms=20 if stage.epochs else LOADED_MS,
            )
        elif acks:
            answer = stage.acknowledge(member, *acks)
        else:
            continue
        for first, last, _ in acks:
            held[member] -= set(range(first, last + 1))
        if isinstance(answer, ShareFetchResponse):
            for first, last, _ in acquired(answer):
                held[member] |= set(range(first, last + 1))
        stage.stored()


def _list(types: int | Sequence[int]) -> Sequence[int]:
    return [types] if isinstance(types, int) else types


def _some_acks(draw: random.Random, held: set[int]) -> list[Ack]:
    """Acknowledgements of stretches of held records, in order, and sometimes of another's."""
    acks: list[Ack] = []
    offset = 0
    for first in sorted(held):
        if first < offset or draw.random() < 0.5:
            continue
        last = first
        while last + 1 in held and draw.random() < 0.8:
            last += 1
        kinds = (ACCEPT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP)
        if draw.random() < 0.3:
            acks.append((first, last, [draw.choice(kinds) for _ in range(first, last + 1)]))
        else:
            acks.append((first, last, draw.choice(kinds)))
        offset = last + 1
    if draw.random() < 0.1:
        acks.append((offset, offset + 1, ACCEPT))
    return acks
