"""The same transactions on Moldau and on Apache Kafka: the answers agree, step by step.

Each step is sent to both brokers; producer ids are compared by the names the script gives them.
What a transaction leaves in the log is compared too: markers, aborted lists and offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from moldau.wire.records import encode_batch
from support.both import IGNORED, Both, Make, Side, coordinator_ready, prepare
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOPIC = "t"
# Enough for every test to have one of its own.
PARTITION_COUNT = 80
INIT_LATEST, ADD_LATEST, END_LATEST, COMMIT_LATEST = 5, 3, 5, 5
ADD_BY_BROKER = 5
TIMEOUT_MS = 60_000
# Each broker's own clock.
TIMES = frozenset({
    "last_timestamp", "transaction_start_time_ms", "log_append_time_ms", "coordinator_epoch",
})  # fmt: skip


class Stage(Both):
    """`producer` names an id: the script's name for it, or a number that no broker gave out."""

    def init(
        self,
        transactional_id: str | None,
        name: str | None = None,
        *,
        version: int = INIT_LATEST,
        producer: str | int = -1,
        epoch: int = -1,
        timeout_ms: int = TIMEOUT_MS,
        **fields: Any,
    ) -> Any:
        def make(side: Side) -> Message:
            return InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=side.ids.get(str(producer), producer),
                producer_epoch=epoch,
                **fields,
            )

        return self.ask_until(
            "init",
            ApiKey.INIT_PRODUCER_ID,
            version,
            make,
            settled=_not_concurrent,
            name=name,
            of="producer_id",
        )

    def add(
        self,
        transactional_id: str,
        producer: str | int,
        epoch: int,
        *partitions: int,
        topic: str = TOPIC,
        version: int = ADD_LATEST,
        verify_only: bool = False,
    ) -> Any:
        def make(side: Side) -> Message:
            producer_id = side.ids.get(str(producer), producer)
            topics = [
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                    name=topic, partitions=list(partitions)
                )
            ]
            if version < 4:
                return AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=transactional_id,
                    v3_and_below_producer_id=producer_id,
                    v3_and_below_producer_epoch=epoch,
                    v3_and_below_topics=topics,
                )
            transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=verify_only,
                topics=topics,
            )
            return AddPartitionsToTxnRequest(transactions=[transaction])

        return self.ask_until(
            "add", ApiKey.ADD_PARTITIONS_TO_TXN, version, make, settled=_not_concurrent_add
        )

    def add_offsets(
        self, transactional_id: str, producer: str | int, epoch: int, group: str, version: int = 3
    ) -> Any:
        return self.ask(
            "add",
            ApiKey.ADD_OFFSETS_TO_TXN,
            version,
            lambda side: AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=side.ids.get(str(producer), producer),
                producer_epoch=epoch,
                group_id=group,
            ),
        )

    def end(
        self,
        transactional_id: str,
        producer: str | int,
        epoch: int,
        *,
        commit: bool = True,
        version: int = END_LATEST,
    ) -> Any:
        return self.ask_until(
            "end",
            ApiKey.END_TXN,
            version,
            lambda side: EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=side.ids.get(str(producer), producer),
                producer_epoch=epoch,
                committed=commit,
            ),
            settled=_not_concurrent,
        )

    def produce(
        self,
        transactional_id: str | None,
        producer: str | int,
        epoch: int,
        sequence: int,
        *,
        partition: int = 0,
        version: int = 12,
        transactional: bool = True,
        acks: int = -1,
        damage: Callable[[bytes], bytes] = bytes,
    ) -> Any:
        def make(side: Side) -> Message:
            batch = encode_batch(
                [(b"key", b"value", 1, ())],
                producer_id=side.ids.get(str(producer), producer),
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=transactional,
            )
            data = ProduceRequest.PartitionProduceData(index=partition, records=damage(batch))
            return ProduceRequest(
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=30_000,
                topic_data=[
                    ProduceRequest.TopicProduceData(
                        name=TOPIC if version < 13 else "",
                        topic_id=side.topic_ids[TOPIC],
                        partition_data=[data],
                    )
                ],
            )

        answer = self.ask_until(
            "produce", ApiKey.PRODUCE, version, make, settled=_not_concurrent_produce
        )
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def commit_offset(
        self,
        transactional_id: str,
        producer: str | int,
        epoch: int,
        group: str,
        offset: int = 7,
        *,
        version: int = COMMIT_LATEST,
        topic: str = TOPIC,
        generation: int = -1,
        member: str = "",
        metadata: str = "note",
    ) -> Any:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        return self.ask_until(
            "commit",
            ApiKey.TXN_OFFSET_COMMIT,
            version,
            lambda side: TxnOffsetCommitRequest(
                transactional_id=transactional_id,
                group_id=group,
                producer_id=side.ids.get(str(producer), producer),
                producer_epoch=epoch,
                generation_id=generation,
                member_id=member,
                topics=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                        name=topic, partitions=[partition]
                    )
                ],
            ),
            settled=_not_concurrent_commit,
        )

    def committed_offset(self, group: str, *, stable: bool = True) -> Any:
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
        return self.ask(
            "fetch",
            ApiKey.OFFSET_FETCH,
            9,
            lambda side: OffsetFetchRequest(groups=[wanted], require_stable=stable),
        )

    def describe(self, *transactional_ids: str) -> Any:
        return self.ask_until(
            "describe",
            ApiKey.DESCRIBE_TRANSACTIONS,
            0,
            lambda side: DescribeTransactionsRequest(transactional_ids=list(transactional_ids)),
            settled=lambda answer: all(
                not each.transaction_state.startswith("Prepare")
                for each in answer.transaction_states
            ),
        )

    def fetch(self, *, partition: int = 0, committed: bool = True) -> Any:
        """Everything in the partition as a reader sees it, markers included."""
        return self.ask(
            "fetch",
            ApiKey.FETCH,
            12,
            lambda side: FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                isolation_level=int(committed),
                session_epoch=-1,
                topics=[
                    FetchRequest.FetchTopic(
                        topic=TOPIC,
                        partitions=[
                            FetchRequest.FetchPartition(
                                partition=partition, partition_max_bytes=1 << 20
                            )
                        ],
                    )
                ],
            ),
        )

    def producers(self, partition: int = 0) -> Any:
        topic = DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[partition])
        return self.ask(
            "describe",
            ApiKey.DESCRIBE_PRODUCERS,
            0,
            lambda side: DescribeProducersRequest(topics=[topic]),
        )

    def last_stable_offset(self, partition: int = 0) -> Any:
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        return self.ask(
            "fetch",
            ApiKey.LIST_OFFSETS,
            8,
            lambda side: ListOffsetsRequest(
                isolation_level=1,
                topics=[ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[wanted])],
            ),
        )

    def mark(self, producer: str | int, epoch: int, *, commit: bool, **fields: Any) -> Any:
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(
            name=fields.get("topic", TOPIC), partition_indexes=fields.get("partitions", [0])
        )
        version = fields.get("version", 1)
        make: Make = lambda side: WriteTxnMarkersRequest(  # noqa: E731
            markers=[
                WriteTxnMarkersRequest.WritableTxnMarker(
                    producer_id=side.ids.get(str(producer), producer),
                    producer_epoch=epoch,
                    transaction_result=commit,
                    coordinator_epoch=fields.get("coordinator_epoch", 0),
                    transaction_version=fields.get("transaction_version", 0),
                    topics=[topic],
                )
            ]
        )
        return self.ask("mark", ApiKey.WRITE_TXN_MARKERS, version, make)


def _not_concurrent(answer: Any) -> bool:
    # Kafka also asks for patience while it fetches a block of producer ids.
    patience = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return answer.error_code not in patience


def _not_concurrent_add(answer: Any) -> bool:
    topics = [*answer.results_by_topic_v3_and_below]
    for transaction in answer.results_by_transaction:
        topics += transaction.topic_results
    return all(
        partition.partition_error_code != ErrorCode.CONCURRENT_TRANSACTIONS
        for topic in topics
        for partition in topic.results_by_partition
    )


def _not_concurrent_commit(answer: Any) -> bool:
    return all(
        partition.error_code != ErrorCode.CONCURRENT_TRANSACTIONS
        for topic in answer.topics
        for partition in topic.partitions
    )


def _not_concurrent_produce(answer: Any) -> bool:
    return all(
        partition.error_code not in (ErrorCode.CONCURRENT_TRANSACTIONS,)
        for topic in answer.responses
        for partition in topic.partition_responses
    )


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    # Records here are old enough to expire whenever a broker looks.
    settings = {"transaction.max.timeout.ms": "120000", "log.retention.ms": "-1"}
    overrides = [f"{key}={value}" for key, value in settings.items()]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, settings) as second:
        for broker in (first, second):
            side = Side(broker.port)
            prepare(side, [(TOPIC, PARTITION_COUNT)])
            _wait_for_coordinators(side)
            side.close()
        yield first, second


def _wait_for_coordinators(side: Side) -> None:
    """Enough names that every partition of the transaction log has one."""
    eventually(lambda: coordinator_ready(side, "x", 1), what="a transaction coordinator")
    names = [f"probe-{number}" for number in range(500)]
    request = DescribeTransactionsRequest(transactional_ids=names)
    eventually(
        lambda: all(
            each.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            for each in side.connection("observer")
            .call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
            .transaction_states
        ),
        what="every transaction coordinator serves",
    )


@pytest.fixture
def stage(brokers: tuple[BrokerProcess, BrokerProcess]) -> Iterator[Stage]:
    sides = tuple(Side(broker.port, IGNORED | TIMES) for broker in brokers)
    for side in sides:
        prepare(side, [(TOPIC, PARTITION_COUNT)])
    yield Stage(*sides)
    for side in sides:
        side.close()


_partitions = iter(range(PARTITION_COUNT))


@pytest.fixture
def partition() -> int:
    """One that no other test writes to."""
    return next(_partitions)


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(stage: Stage, version: int) -> None:
    name = f"init-{version}"
    stage.init(name, "a", version=version)
    again = stage.init(name, version=version)
    assert again.producer_epoch == 1
    if version >= 3:
        stage.init(name, version=version, producer="a", epoch=1)
        stage.init(name, version=version, producer="a", epoch=1)
        stage.init(name, version=version, producer="a", epoch=0)
        stage.init(name, version=version, producer="a", epoch=99)
        stage.init(name, version=version, producer=123_456, epoch=2)
        stage.init(name, version=version, producer="a", epoch=-1)
        stage.init(name, version=version, producer=-1, epoch=3)
        stage.init(f"unknown-{version}", "u", version=version, producer=77, epoch=3)
    for timeout_ms in (-1, 0, 1, 120_000, 120_001):
        name = f"timeout-{version}-{timeout_ms}"
        stage.init(name, name, version=version, timeout_ms=timeout_ms)
    stage.init("", version=version)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(5))
def test_a_transaction_of_an_older_client(
    stage: Stage, partition: int, version: int, commit: bool
) -> None:
    name, group = f"old-{version}-{commit}", f"old-group-{version}-{commit}"
    stage.init(name, "a", version=min(version, 4))
    assert stage.produce(name, "a", 0, 0, partition=partition, version=11) != ErrorCode.NONE
    stage.add(name, "a", 0, partition, version=min(version, 3))
    stage.describe(name)
    assert stage.produce(name, "a", 0, 0, partition=partition, version=11) == ErrorCode.NONE
    assert stage.produce(name, "a", 0, 1, partition=partition, version=9) == ErrorCode.NONE
    stage.producers(partition)
    stage.last_stable_offset(partition)
    stage.fetch(partition=partition)
    stage.add_offsets(name, "a", 0, group, version=min(version, 3))
    stage.commit_offset(name, "a", 0, group, version=min(version, 4))
    stage.committed_offset(group)
    stage.committed_offset(group, stable=False)
    stage.end(name, "a", 0, commit=commit, version=min(version, 4))
    stage.describe(name)
    # A repeated end is told the same, a contrary one is refused.
    stage.end(name, "a", 0, commit=commit, version=min(version, 4))
    stage.end(name, "a", 0, commit=not commit, version=min(version, 4))
    for committed in (True, False):
        stage.fetch(partition=partition, committed=committed)
    stage.last_stable_offset(partition)
    stage.committed_offset(group)
    stage.producers(partition)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_of_a_client_that_only_produces(
    stage: Stage, partition: int, commit: bool
) -> None:
    name, group = f"new-{commit}", f"new-group-{commit}"
    stage.init(name, "a")
    for epoch in range(3):
        assert stage.produce(name, "a", epoch, 0, partition=partition) == ErrorCode.NONE
        assert stage.produce(name, "a", epoch, 1, partition=partition, version=13) == 0
        stage.describe(name)
        stage.commit_offset(name, "a", epoch, group, offset=epoch)
        stage.committed_offset(group)
        ended = stage.end(name, "a", epoch, commit=commit)
        assert ended.producer_epoch == epoch + 1
        stage.describe(name)
        stage.end(name, "a", epoch, commit=commit)
        stage.end(name, "a", epoch, commit=not commit)
        stage.committed_offset(group)
    # Nothing was added: there is nothing to commit, and an abort is empty.
    stage.end(name, "a", 3, commit=True)
    stage.end(name, "a", 3, commit=False)
    stage.end(name, "a", 3, commit=False)
    stage.fetch(partition=partition)
    stage.producers(partition)


def test_zombies_are_fenced(stage: Stage, partition: int) -> None:
    stage.init("zombie", "a")
    stage.produce("zombie", "a", 0, 0, partition=partition)
    stage.init("zombie", "b")
    stage.describe("zombie")
    for version in (9, 11, 12):
        stage.produce("zombie", "a", 0, 1, partition=partition, version=version)
    for version in range(6):
        stage.end("zombie", "a", 0, version=version)
    for version in range(4):
        stage.add("zombie", "a", 0, partition, version=version)
        stage.add_offsets("zombie", "a", 0, "zombies", version=version)
    for version in range(6):
        stage.commit_offset("zombie", "a", 0, "zombies", version=version)
    stage.add("zombie", "a", 0, partition, version=ADD_BY_BROKER)
    stage.fetch(partition=partition)


def test_wrong_turns(stage: Stage, partition: int) -> None:
    stage.init("wrong", "a")
    for version in range(6):
        stage.end("wrong", "a", 0, version=version)
        stage.end("wrong", 999, 0, version=version)
        stage.end("wrong", "a", 5, version=version)
        stage.end("nobody", "a", 0, version=version)
        stage.end("", "a", 0, version=version)
        stage.commit_offset("wrong", "a", 0, "wrong", version=version, topic="missing")
        stage.commit_offset("nobody", "a", 0, "wrong", version=version)
        stage.commit_offset("wrong", 999, 0, "wrong", version=version)
        stage.commit_offset("wrong", "a", 5, "wrong", version=version)
        stage.commit_offset("wrong", "a", 0, "", version=version)
    for version in range(4):
        stage.add("wrong", "a", 0, 0, topic="missing", version=version)
        stage.add("wrong", "a", 0, 4000, version=version)
        stage.add("wrong", 999, 0, 0, version=version)
        stage.add("wrong", "a", 5, 0, version=version)
        stage.add("nobody", "a", 0, 0, version=version)
        stage.add("", "a", 0, 0, version=version)
        stage.add_offsets("wrong", 999, 0, "wrong", version=version)
        stage.add_offsets("wrong", "a", 5, "wrong", version=version)
        stage.add_offsets("nobody", "a", 0, "wrong", version=version)
        stage.add_offsets("", "a", 0, "wrong", version=version)
    for verify_only in (True, False):
        for epoch in (0, 5):
            stage.add(
                "wrong", "a", epoch, partition, version=ADD_BY_BROKER, verify_only=verify_only
            )
        stage.add("nobody", "a", 0, 0, version=ADD_BY_BROKER, verify_only=verify_only)
        stage.add("wrong", 999, 0, 0, version=ADD_BY_BROKER, verify_only=verify_only)
    stage.describe("wrong", "nobody", "")


@pytest.mark.parametrize("version", [9, 11, 12])
def test_wrong_ways_to_produce(stage: Stage, partition: int, version: int) -> None:
    name = f"produce-{version}"
    stage.init(name, "a")
    stage.produce(None, "a", 0, 0, partition=partition, version=version)
    stage.produce("nobody", "a", 0, 0, partition=partition, version=version)
    stage.produce(name, "a", 5, 0, partition=partition, version=version)
    stage.produce(name, 999_999, 0, 0, partition=partition, version=version)
    stage.produce(name, "a", 0, 3, partition=partition, version=version)
    stage.add(name, "a", 0, partition, version=3)
    stage.produce(name, "a", 0, 0, partition=partition, version=version)
    # The open transaction bears no batch that is not part of it, none out of order, and repeats
    # are known.
    stage.produce(name, "a", 0, 1, partition=partition, version=version, transactional=False)
    stage.produce(name, "a", 0, 9, partition=partition, version=version)
    stage.produce(name, "a", 0, 0, partition=partition, version=version)
    stage.producers(partition)
    stage.end(name, "a", 0, version=4)
    stage.describe(name)
    stage.fetch(partition=partition)


def _twice(batch: bytes) -> bytes:
    return batch * 2


def _corrupt(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


@pytest.mark.parametrize("version", [9, 11, 12])
@pytest.mark.parametrize("acks", [-1, 2, -3])
@pytest.mark.parametrize("damage", [bytes, _twice, _corrupt])
def test_of_several_reasons_to_refuse_a_batch_the_same_is_named(
    stage: Stage, partition: int, version: int, acks: int, damage: Callable[[bytes], bytes]
) -> None:
    """A transaction that is not open, `acks` that do not exist, a batch that cannot be appended."""
    name = f"reasons-{version}-{acks}-{damage.__name__}"
    stage.init(name, "a")
    options: dict[str, Any] = {"version": version, "acks": acks, "damage": damage}
    for transactional_id, producer, epoch in (
        (None, "a", 0),
        ("nobody", "a", 0),
        (name, "a", 5),
        (name, 999_999, 0),
        (name, "a", 0),
    ):
        stage.produce(transactional_id, producer, epoch, 0, partition=partition, **options)
    for transactional_id in (None, name):
        # In a partition that does not exist.
        stage.produce(transactional_id, "a", 0, 0, partition=4_000, **options)
    # In a transaction that is open.
    stage.add(name, "a", 0, partition, version=3)
    stage.produce(name, "a", 0, 0, partition=partition, **options)
    stage.produce(name, "a", 0, 0, partition=partition, transactional=False, **options)


def test_transactional_commits_and_the_group(stage: Stage) -> None:
    stage.init("members", "a")
    stage.add_offsets("members", "a", 0, "members")
    for version in (3, 4, 5):
        stage.commit_offset("members", "a", 0, "members", version=version, generation=3)
        stage.commit_offset("members", "a", 0, "members", version=version, member="nobody")
        stage.commit_offset("members", "a", 0, "members", version=version, metadata="x" * 5_000)
        stage.commit_offset("members", "a", 0, "members", version=version)
    stage.end("members", "a", 0, version=4)
    stage.describe("members")
    stage.committed_offset("members")


def test_markers_by_hand(stage: Stage, partition: int) -> None:
    """What kafka-transactions does with a transaction that hangs."""
    stage.init("hand", "a")
    stage.produce("hand", "a", 0, 0, partition=partition)
    stage.producers(partition)
    for version in (1, 2):
        stage.mark("a", 0, commit=False, topic="missing", version=version)
        stage.mark("a", 0, commit=False, partitions=[4000], version=version)
    stage.mark("a", 0, commit=False, partitions=[partition], coordinator_epoch=5)
    stage.producers(partition)
    stage.mark("a", 0, commit=False, partitions=[partition], coordinator_epoch=4)
    stage.mark("a", 0, commit=True, partitions=[partition], coordinator_epoch=5)
    stage.mark("a", 0, commit=True, partitions=[partition], coordinator_epoch=5, version=2,
               transaction_version=2)  # fmt: skip
    # A marker of a producer nobody knows is legal and changes nothing.
    stage.mark(555_555, 3, commit=True, partitions=[partition])
    stage.fetch(partition=partition)
    stage.last_stable_offset(partition)


def test_listing(stage: Stage, partition: int) -> None:
    stage.init("listed-open", "a")
    stage.produce("listed-open", "a", 0, 0, partition=partition)
    stage.init("listed-idle", "b")

    def listed(version: int, **fields: Any) -> set[str]:
        fields.setdefault("producer_id_filters", ["a", "b"])
        answer = stage.ask(
            "list",
            ApiKey.LIST_TRANSACTIONS,
            version,
            lambda side: ListTransactionsRequest(
                **{
                    **fields,
                    "producer_id_filters": [
                        side.ids.get(each, each) for each in fields["producer_id_filters"]
                    ],
                }
            ),
        )
        return {each.transactional_id for each in answer.transaction_states}

    for version in range(3):
        assert listed(version) == {"listed-open", "listed-idle"}
        assert listed(version, state_filters=["Ongoing"]) == {"listed-open"}
        assert listed(version, state_filters=["Empty", "Nonsense"]) == {"listed-idle"}
        assert listed(version, producer_id_filters=["b"]) == {"listed-idle"}
        assert listed(version, producer_id_filters=[12_345_678]) == set()
    for version in (1, 2):
        listed(version, duration_filter=0)
        listed(version, duration_filter=3_600_000)
    for pattern in ("listed-.*", ".*-idle", "listed", "", "("):
        listed(2, transactional_id_pattern=pattern)
    stage.end("listed-open", "a", 0)
