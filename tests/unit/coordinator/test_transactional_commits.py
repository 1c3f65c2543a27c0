"""Offsets in transactions: nobody sees them before the marker, and then all at once or never."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.machine.decision import ProducerStamp, TransactionEnding
from moldau.broker.coordinator.partition_log import PartitionLog
from moldau.broker.handlers.txn_offset_commit import TxnOffsetCommitHandler
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.replication import reading
from moldau.broker.transactions.verification import TransactionVerifier
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from moldau.wire.records import read_header
from support.group_facts import FakeSettings, FakeTopics, no_actions
from support.hosting import Host

PID = 7
TOPIC_ID = uuid.UUID(int=5)
OLD, ABORTABLE, NEW = 3, 4, 5


class Transactions:
    """A transaction coordinator that answers what a test wants."""

    def __init__(self) -> None:
        self.answer = ErrorCode.NONE
        self.asked: list[tuple[tuple[str, int], bool]] = []

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[tuple[str, int]],
        *,
        verify_only: bool,
        client_transaction_version: int = 2,
    ) -> dict[tuple[str, int], ErrorCode]:
        self.asked += [(each, verify_only) for each in partitions]
        return dict.fromkeys(partitions, self.answer)


class Topics:
    """Topic t with one partition."""

    def id_of(self, name: str) -> uuid.UUID | None:
        return TOPIC_ID if name == "t" else None

    def has_partition(self, name: str, partition: int) -> bool:
        return name == "t" and partition == 0


class World:
    def __init__(self, folder: Path) -> None:
        self.host = Host(folder)
        self.host.create_topic(GROUP_OFFSETS_TOPIC, config={"cleanup.policy": "compact"})
        self.bugs: list[Exception] = []
        self.transactions = Transactions()
        self.groups: GroupCoordinator
        self.handler: TxnOffsetCommitHandler

    async def start(self) -> None:
        """Also after a restart: everything is read back from the log."""
        self.groups = GroupCoordinator(
            GroupConfig(),
            topics=FakeTopics(t=2),
            settings=FakeSettings(),
            partition_count=lambda: 1,
            report_bug=self.bugs.append,
            perform=no_actions,
        )
        self.groups.on_elected(0, 0, PartitionLog(self.host.partition(GROUP_OFFSETS_TOPIC)))
        await self.groups.loaded()
        verifier = TransactionVerifier(
            self.transactions,
            enabled=lambda: True,
            retry_backoff_ms=20,
            retry_time_ms=100,
            clock=self.host.loop.clock,
        )
        self.handler = TxnOffsetCommitHandler(
            self.groups,
            Topics(),  # type: ignore[arg-type]
            self.host.replicas,
            verifier,
        )

    async def commit_in_transaction(
        self,
        offset: int = 5,
        *,
        version: int = NEW,
        epoch: int = 0,
        group: str = "g",
        places: Mapping[str, list[int]] | None = None,
        **fields: Any,
    ) -> list[str]:
        metadata = fields.pop("metadata", "")
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group,
            producer_id=PID,
            producer_epoch=epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in (places or {"t": [0]}).items()
            ],
            **fields,
        )
        context = RequestContext(ApiKey.TXN_OFFSET_COMMIT, version, 1, None)
        response = await self.handler.handle(context, request)
        return [
            ErrorCode(partition.error_code).name
            for topic in response.topics
            for partition in topic.partitions
        ]

    async def commit(self, offset: int) -> None:
        context = RequestContext(ApiKey.OFFSET_COMMIT, 8, 1, None)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name="t",
            topic_id=TOPIC_ID,
            partitions=[
                OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=0, committed_offset=offset
                )
            ],
        )
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        await self.groups.commit_offsets(context, request)

    async def end(self, *, committed: bool, epoch: int = 1) -> None:
        await self.groups.complete_transaction(
            0,
            TransactionEnding(
                producer_id=PID,
                producer_epoch=epoch,
                coordinator_epoch=0,
                committed=committed,
                transaction_version=2,
            ),
        )

    async def fetch(self, *, stable: bool = False) -> int | str:
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        request = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic])
        response = await self.groups.fetch_offsets(request, stable)
        (found,) = response.topics[0].partitions
        if found.error_code:
            return ErrorCode(found.error_code).name
        return found.committed_offset


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("restarting", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_offsets_are_visible_after_the_marker_only(
    world: World, committed: bool, restarting: bool
) -> None:
    async def scene() -> list[int | str]:
        async def restart() -> None:
            if restarting:
                await world.start()

        await world.start()
        await world.commit(3)
        assert await world.commit_in_transaction(5) == ["NONE"]
        await restart()
        seen = [await world.fetch(), await world.fetch(stable=True)]
        await world.end(committed=committed)
        await restart()
        return [*seen, await world.fetch(), await world.fetch(stable=True)]

    offset = 5 if committed else 3
    assert asyncio.run(scene()) == [3, "UNSTABLE_OFFSET_COMMIT", offset, offset]
    header = read_header(
        b"".join(
            reading.read(
                world.host.partition(GROUP_OFFSETS_TOPIC).log, 1, 10**6, min_one_batch=True
            ).buffers
        )
    )
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch) == (PID, 0)
    assert world.bugs == []


def test_of_two_commits_the_one_that_was_written_last_counts(world: World) -> None:
    async def scene() -> int | str:
        await world.start()
        await world.commit_in_transaction(5)
        await world.commit(9)
        await world.end(committed=True)
        return await world.fetch()

    assert asyncio.run(scene()) == 9


@pytest.mark.parametrize(("version", "verify_only"), [(OLD, True), (ABORTABLE, True), (NEW, False)])
def test_the_transaction_is_asked_for_the_groups_partition_once(
    world: World, version: int, verify_only: bool
) -> None:
    async def scene() -> list[list[str]]:
        await world.start()
        return [await world.commit_in_transaction(each, version=version) for each in (5, 6)]

    assert asyncio.run(scene()) == [["NONE"], ["NONE"]]
    assert world.transactions.asked == [((GROUP_OFFSETS_TOPIC, 0), verify_only)]


@pytest.mark.parametrize(
    ("answer", "version", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, OLD, "INVALID_TXN_STATE"),
        (ErrorCode.TRANSACTION_ABORTABLE, ABORTABLE, "TRANSACTION_ABORTABLE"),
        (ErrorCode.PRODUCER_FENCED, NEW, "INVALID_PRODUCER_EPOCH"),
        (ErrorCode.CONCURRENT_TRANSACTIONS, NEW, "CONCURRENT_TRANSACTIONS"),
        (ErrorCode.NETWORK_EXCEPTION, NEW, "COORDINATOR_LOAD_IN_PROGRESS"),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1, "COORDINATOR_NOT_AVAILABLE"),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NEW, "COORDINATOR_LOAD_IN_PROGRESS"),
        (ErrorCode.NOT_COORDINATOR, NEW, "NOT_COORDINATOR"),
    ],
)
def test_what_the_transaction_coordinator_refuses_is_not_stored(
    world: World, answer: ErrorCode, version: int, told: str
) -> None:
    async def scene() -> list[str]:
        await world.start()
        world.transactions.answer = answer
        return await world.commit_in_transaction(version=version)

    assert asyncio.run(scene()) == [told]
    assert world.host.partition(GROUP_OFFSETS_TOPIC).log.log_end_offset == 0


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"group": ""}, ["INVALID_GROUP_ID"], id="no group"),
        pytest.param({"generation_id": 3}, ["ILLEGAL_GENERATION"], id="no such group"),
        pytest.param({"metadata": "m" * 5000}, ["OFFSET_METADATA_TOO_LARGE"], id="long metadata"),
        pytest.param(
            {"places": {"t": [0, 1], "nope": [0]}},
            ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"],
            id="unknown partitions",
        ),
    ],
)
def test_bad_requests(world: World, fields: dict[str, Any], told: list[str]) -> None:
    async def scene() -> list[str]:
        await world.start()
        return await world.commit_in_transaction(**fields)

    assert asyncio.run(scene()) == told


def test_a_zombie_is_refused_by_its_epoch(world: World) -> None:
    async def scene() -> list[list[str]]:
        await world.start()
        first = await world.commit_in_transaction(epoch=3)
        zombie = await world.commit_in_transaction(epoch=2)
        await world.end(committed=True, epoch=4)
        return [first, zombie, await world.commit_in_transaction(epoch=3)]

    assert asyncio.run(scene()) == [
        ["NONE"],
        ["INVALID_PRODUCER_EPOCH"],
        ["INVALID_PRODUCER_EPOCH"],
    ]


def test_a_group_of_another_node(world: World) -> None:
    async def scene() -> list[str]:
        await world.start()
        topic = world.host.partition(GROUP_OFFSETS_TOPIC).topic_id
        world.host.change_partition(topic, leader=2)
        return await world.commit_in_transaction()

    assert asyncio.run(scene()) == ["NOT_COORDINATOR"]


def test_a_member_of_the_group_must_be_of_its_generation(Stage: Any) -> None:
    stage = Stage()
    (member,) = stage.stable_group()

    def commit(**fields: Any) -> str:
        request = TxnOffsetCommitRequest(
            group_id="g",
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(committed_offset=5)
                    ],
                )
            ],
            **fields,
        )
        try:
            decision = stage.shard.commit_transactional_offsets(
                request, {"t": TOPIC_ID}, ProducerStamp(PID, 0), NEW, stage.now_ms
            )
        except ApiError as error:
            return error.code.name
        assert decision.producer == ProducerStamp(PID, 0)
        assert len(decision.records) == 1
        return "NONE"

    assert commit(member_id=member, generation_id=1) == "NONE"
    assert commit(member_id=member, generation_id=2) == "ILLEGAL_GENERATION"
    assert commit(member_id="stranger", generation_id=1) == "UNKNOWN_MEMBER_ID"
    # Clients before v3 say nothing of themselves, and are let in as Kafka does.
    assert commit() == "NONE"
