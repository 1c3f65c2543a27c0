"""Asking the transaction coordinator of another node whether a batch belongs to a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.coordinator.transaction.machine.values import TopicPartition
from moldau.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler
from moldau.broker.machine.topics import TRANSACTION_STATE_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.transactions.cluster_partitions import ClusterTransactionPartitions
from moldau.broker.transactions.verification import (
    Claim,
    Operation,
    TransactionVerifier,
    Verified,
    produce_error,
)
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from support.hosting import Host
from support.other_brokers import FAR, ME, NEAR, OtherBroker, OtherBrokers, settle

NONE = ErrorCode.NONE


class Asked(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool
    version: int


class Coordinator:
    """Answers every question alike, or by partition."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.errors: dict[TopicPartition, ErrorCode] = {}

    def partition_for(self, transactional_id: str) -> int:
        return partition_for(transactional_id, 3)

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
        client_transaction_version: int = 2,
    ) -> dict[TopicPartition, ErrorCode]:
        self.asked.append(
            Asked(
                transactional_id,
                producer_id,
                producer_epoch,
                tuple(partitions),
                verify_only,
                client_transaction_version,
            )
        )
        return {name: self.errors.get(name, NONE) for name in partitions}


class _AllTopics:
    def has_partition(self, name: str, partition: int) -> bool:
        return partition < 9


def serve(coordinator: Coordinator, broker: OtherBroker) -> None:
    made_of: Any = (coordinator, _AllTopics())
    handler = AddPartitionsToTxnHandler(*made_of)

    async def answer(key: ApiKey, request: Message) -> Message:
        assert key is ApiKey.ADD_PARTITIONS_TO_TXN
        assert isinstance(request, AddPartitionsToTxnRequest)
        return await handler.handle(RequestContext(key, 5, 1, None), request)

    broker.answer = answer


class World:
    def __init__(self) -> None:
        self.brokers = OtherBrokers()
        self.coordinators = {each: Coordinator() for each in (ME, NEAR, FAR)}
        for broker_id, broker in self.brokers.peers.items():
            serve(self.coordinators[broker_id], broker)
        self.brokers.create_topic(TRANSACTION_STATE_TOPIC, ME, NEAR, FAR)
        self.partitions = ClusterTransactionPartitions(self.coordinators[ME], self.brokers.brokers)

    def id_of(self, partition: int, number: int = 0) -> str:
        """A transactional id that this partition of the state topic holds."""
        found = [each for each in map(str, range(100)) if partition_for(each, 3) == partition]
        return found[number]

    async def ask(
        self, transactional_id: str, *indexes: int, verify_only: bool = True
    ) -> dict[TopicPartition, ErrorCode]:
        return await self.partitions.add_partitions(
            transactional_id, 7, 3, [("t", each) for each in indexes], verify_only=verify_only
        )


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await scene(World())

    asyncio.run(run())


@pytest.mark.parametrize("verify_only", [True, False])
def test_whoever_leads_the_partition_of_the_id_is_asked(verify_only: bool) -> None:
    async def scene(world: World) -> None:
        for partition, broker_id in enumerate((ME, NEAR, FAR)):
            transactional_id = world.id_of(partition)
            world.coordinators[broker_id].errors["t", 1] = ErrorCode.TRANSACTION_ABORTABLE
            answer = await world.ask(transactional_id, 0, 1, verify_only=verify_only)
            assert answer == {("t", 0): NONE, ("t", 1): ErrorCode.TRANSACTION_ABORTABLE}
            assert world.coordinators[broker_id].asked == [
                Asked(transactional_id, 7, 3, (("t", 0), ("t", 1)), verify_only, 2)
            ]

    play(scene)


def test_one_partition_that_the_coordinator_does_not_know_fails_the_whole_transaction() -> None:
    async def scene(world: World) -> None:
        assert await world.ask(world.id_of(1), 0, 9) == {
            ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }

    play(scene)


def test_without_a_leader_nobody_is_asked() -> None:
    async def scene(world: World) -> None:
        world.brokers.move(TRANSACTION_STATE_TOPIC, 1, -1)
        assert await world.ask(world.id_of(1), 0) == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
        world.brokers.delete_topic(TRANSACTION_STATE_TOPIC)
        assert await world.ask(world.id_of(2), 0) == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}

    play(scene)


def test_a_response_that_does_not_come() -> None:
    async def scene(world: World) -> None:
        world.brokers.peers[NEAR].cut_after = True
        assert await world.ask(world.id_of(1), 0) == {("t", 0): ErrorCode.NETWORK_EXCEPTION}

    play(scene)


def test_questions_gather_and_those_of_one_transaction_go_one_after_the_other() -> None:
    async def scene(world: World) -> None:
        peer = world.brokers.peers[NEAR]
        peer.gate.clear()
        ids = [world.id_of(1, number) for number in range(3)]
        # A producer sends records and offsets at the same time, over different connections.
        questions = [(ids[0], 0), (ids[1], 0), (ids[2], 0), (ids[2], 1)]
        asking = []
        for transactional_id, index in questions:
            asking.append(asyncio.ensure_future(world.ask(transactional_id, index)))
            await settle()
        peer.gate.set()
        assert await asyncio.gather(*asking) == [{("t", index): NONE} for _, index in questions]
        assert [
            [each.transactional_id for each in request.transactions]
            for request in peer.asked
            if isinstance(request, AddPartitionsToTxnRequest)
        ] == [[ids[0]], [ids[1], ids[2]], [ids[2]]]

    play(scene)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_an_error_of_the_whole_request(error: ErrorCode, told: ErrorCode) -> None:
    async def scene(world: World) -> None:
        async def answer(key: ApiKey, request: Message) -> Message:
            return AddPartitionsToTxnResponse(error_code=error)

        world.brokers.peers[NEAR].answer = answer
        assert await world.ask(world.id_of(1), 0, 1) == {("t", 0): told, ("t", 1): told}

    play(scene)


# As producers see it.


def verify(
    folder: Path, prepare: Callable[[World], None], operation: Operation
) -> ErrorCode | None:
    """What the first batch of a transaction meets in a partition led here; None: it may enter."""
    host = Host(folder)
    host.create_topic("t")

    async def scene() -> Verified:
        world = World()
        prepare(world)
        verifier = TransactionVerifier(
            world.partitions,
            enabled=lambda: True,
            retry_backoff_ms=20,
            retry_time_ms=0,
            clock=host.loop.clock,
        )
        claim = Claim(host.partition("t"), 7, 3, 0)
        started = verifier.start(world.id_of(1), [claim], operation)
        return started if isinstance(started, Verified) else await started

    verified = asyncio.run(scene())
    error = verified.errors.get(("t", 0))
    assert ("t", 0) in verified.guards
    return None if error is None else produce_error(error, operation).code


def cut(world: World) -> None:
    world.brokers.peers[NEAR].cut = True


def answered(error: ErrorCode) -> Callable[[World], None]:
    def prepare(world: World) -> None:
        world.coordinators[NEAR].errors["t", 0] = error

    return prepare


@pytest.mark.parametrize(
    ("prepare", "operation", "told"),
    [
        (answered(NONE), Operation.VERIFY, None),
        (answered(NONE), Operation.ADD, None),
        # Any producer sends again upon this.
        (cut, Operation.VERIFY, ErrorCode.NOT_ENOUGH_REPLICAS),
        (cut, Operation.ADD, ErrorCode.NOT_ENOUGH_REPLICAS),
        (answered(ErrorCode.NOT_COORDINATOR), Operation.ADD, ErrorCode.NOT_ENOUGH_REPLICAS),
        (
            answered(ErrorCode.CONCURRENT_TRANSACTIONS),
            Operation.VERIFY,
            ErrorCode.NOT_ENOUGH_REPLICAS,
        ),
        (
            answered(ErrorCode.CONCURRENT_TRANSACTIONS),
            Operation.ADD,
            ErrorCode.CONCURRENT_TRANSACTIONS,
        ),
        (answered(ErrorCode.PRODUCER_FENCED), Operation.ADD, ErrorCode.INVALID_PRODUCER_EPOCH),
        (answered(ErrorCode.TRANSACTION_ABORTABLE), Operation.VERIFY, ErrorCode.INVALID_TXN_STATE),
        (
            answered(ErrorCode.TRANSACTION_ABORTABLE),
            Operation.VERIFY_ABORTABLE,
            ErrorCode.TRANSACTION_ABORTABLE,
        ),
    ],
)
def test_what_a_producer_is_told(
    tmp_path: Path,
    prepare: Callable[[World], None],
    operation: Operation,
    told: ErrorCode | None,
) -> None:
    assert verify(tmp_path, prepare, operation) is told
