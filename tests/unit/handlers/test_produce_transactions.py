"""Transactional Produce: no batch enters a transaction that its coordinator does not know."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.handlers.produce import ProduceHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.replication import reading
from moldau.broker.replication.coordinator_appends import append_marker
from moldau.broker.transactions.verification import TransactionVerifier
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ProduceRequest, ProduceResponse
from support.hosting import NODE_ID, Host, batch_of

PID = 7
OLD, ABORTABLE, NEW = 10, 11, 12


class Coordinator:
    """Answers what a test wants, when a test wants."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int, list[tuple[str, int]], bool]] = []
        self.answers: list[ErrorCode] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.gate: asyncio.Event | None = None

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
        self.asked.append(
            (
                transactional_id,
                producer_id,
                producer_epoch,
                sorted(partitions),
                verify_only,
            )
        )
        if self.gate is not None:
            await self.gate.wait()
        self.meanwhile()
        code = self.answers.pop(0) if self.answers else ErrorCode.NONE
        return dict.fromkeys(partitions, code)


class World:
    def __init__(self, folder: Path) -> None:
        self.host = Host(folder)
        self.host.create_topic("a", 2)
        self.coordinator = Coordinator()
        self.enabled = True
        self.slept: list[float] = []
        self.handler = ProduceHandler(
            self.host.replicas,
            loop=self.host.loop,
            clock=self.host.loop.clock,
            verifier=TransactionVerifier(
                self.coordinator,
                enabled=lambda: self.enabled,
                retry_backoff_ms=20,
                retry_time_ms=100,
                clock=self.host.loop.clock,
                sleep=self._sleep,
            ),
        )

    async def _sleep(self, delay: float) -> None:
        self.slept.append(delay)

    def send(
        self,
        *places: tuple[int, int],
        version: int = NEW,
        epoch: int = 0,
        transactional: bool = True,
        producer_ids: tuple[int, ...] = (PID, PID),
    ) -> Any:
        """Send a batch to each (partition, sequence)."""
        request = ProduceRequest(
            acks=1,
            timeout_ms=1000,
            transactional_id="tx",
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name="a",
                    partition_data=[
                        ProduceRequest.PartitionProduceData(
                            index=index,
                            records=batch_of(
                                b"x",
                                producer_id=producer_id,
                                producer_epoch=epoch,
                                base_sequence=sequence,
                                is_transactional=transactional,
                            ),
                        )
                        for (index, sequence), producer_id in zip(
                            places, producer_ids, strict=False
                        )
                    ],
                )
            ],
        )
        frame = bytearray(b"head" + encode(request, version))
        context = RequestContext(ApiKey.PRODUCE, version, 42, None)
        reply = self.handler.handle(context, memoryview(frame), 4)
        # The network uses the buffer anew as soon as the handler has returned.
        frame[:] = b"\xff" * len(frame)
        return reply

    def end(self, index: int = 0, *, epoch: int = 0, version: int = 1) -> None:
        append_marker(
            self.host.partition("a", index),
            producer_id=PID,
            producer_epoch=epoch,
            coordinator_epoch=0,
            committed=False,
            transaction_version=version,
            now_ms=self.host.loop.now_ms,
        )

    def size(self, index: int = 0) -> int:
        return self.host.partition("a", index).log.log_end_offset


def told(reply: Any, version: int = NEW) -> list[ProduceResponse.PartitionProduceResponse]:
    if isinstance(reply, Coroutine):
        reply = asyncio.run(reply)
    assert isinstance(reply, bytes)
    assert struct.unpack_from(">i", reply, 4) == (42,)
    response = decode(ProduceResponse, version, memoryview(reply), 9)
    return [part for topic in response.responses for part in topic.partition_responses]


def codes(reply: Any, version: int = NEW) -> list[str]:
    return [ErrorCode(part.error_code).name for part in told(reply, version)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(("version", "verify_only"), [(OLD, True), (ABORTABLE, True), (NEW, False)])
def test_only_the_first_batch_asks_the_coordinator(
    world: World, version: int, verify_only: bool
) -> None:
    assert codes(world.send((0, 0), (1, 0), version=version), version) == ["NONE", "NONE"]
    assert world.coordinator.asked == [("tx", PID, 0, [("a", 0), ("a", 1)], verify_only)]
    second = world.send((0, 1), version=version)
    assert isinstance(second, bytes), "an open transaction is answered at once"
    assert codes(second, version) == ["NONE"]
    assert len(world.coordinator.asked) == 1
    assert world.size() == 2


@pytest.mark.parametrize(
    ("answer", "version", "code", "message"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, OLD, "INVALID_TXN_STATE", "Partition was not added"),
        (ErrorCode.TRANSACTION_ABORTABLE, ABORTABLE, "TRANSACTION_ABORTABLE", None),
        (ErrorCode.TRANSACTION_ABORTABLE, NEW, "TRANSACTION_ABORTABLE", None),
        (ErrorCode.INVALID_TXN_STATE, NEW, "INVALID_TXN_STATE", "Partition was not added"),
        (ErrorCode.PRODUCER_FENCED, OLD, "INVALID_PRODUCER_EPOCH", None),
        (ErrorCode.INVALID_PRODUCER_EPOCH, NEW, "INVALID_PRODUCER_EPOCH", None),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, NEW, "INVALID_PRODUCER_ID_MAPPING", None),
        (ErrorCode.NOT_COORDINATOR, OLD, "NOT_ENOUGH_REPLICAS", "NOT_COORDINATOR"),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NEW, "NOT_ENOUGH_REPLICAS", "LOAD_IN_PROGRESS"),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, NEW, "NOT_ENOUGH_REPLICAS", "NOT_AVAILABLE"),
        (ErrorCode.NETWORK_EXCEPTION, NEW, "NOT_ENOUGH_REPLICAS", "NETWORK_EXCEPTION"),
        (ErrorCode.CONCURRENT_TRANSACTIONS, OLD, "NOT_ENOUGH_REPLICAS", "CONCURRENT"),
    ],
)
def test_what_the_coordinator_refuses_is_not_appended(
    world: World, answer: ErrorCode, version: int, code: str, message: str | None
) -> None:
    world.coordinator.answers = [answer]
    (part,) = told(world.send((0, 0), version=version), version)
    assert ErrorCode(part.error_code).name == code
    assert part.log_start_offset == -1
    assert (part.error_message is None) == (message is None)
    assert (message or "") in (part.error_message or "")
    assert world.size() == 0


def test_a_coordinator_that_still_ends_the_last_transaction_is_asked_again(world: World) -> None:
    world.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 2
    assert codes(world.send((0, 0))) == ["NONE"]
    assert world.slept == [0.02, 0.02]
    assert world.size() == 1


def test_but_not_for_ever(world: World) -> None:
    world.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 99
    assert codes(world.send((0, 0))) == ["CONCURRENT_TRANSACTIONS"]
    assert len(world.slept) == 5
    assert world.size() == 0


@pytest.mark.parametrize(
    ("version", "marker", "code"),
    [
        pytest.param(OLD, (0, 1), "INVALID_TXN_STATE", id="version 1: same epoch"),
        pytest.param(NEW, (1, 2), "INVALID_PRODUCER_EPOCH", id="version 2: next epoch"),
    ],
)
def test_a_marker_between_verification_and_append_keeps_the_batch_out(
    world: World, version: int, marker: tuple[int, int], code: str
) -> None:
    world.coordinator.meanwhile = lambda: world.end(epoch=marker[0], version=marker[1])
    assert codes(world.send((0, 0), version=version), version) == [code]
    log = world.host.partition("a").log
    assert log.log_end_offset == 1, "the marker alone"
    assert log.last_stable_offset == 1, "nothing hangs"


def test_a_late_batch_cannot_use_the_verification_of_the_next_transaction(world: World) -> None:
    async def scene() -> list[list[str]]:
        gate = world.coordinator.gate = asyncio.Event()
        late = asyncio.ensure_future(world.send((0, 3), version=OLD))
        await asyncio.sleep(0)
        # The transaction is aborted meanwhile, and the next one begins on another connection.
        world.end()
        world.coordinator.gate = None
        fresh = await world.send((0, 0), version=OLD)
        world.end()
        gate.set()
        return [codes(await late, OLD), codes(fresh, OLD)]

    assert asyncio.run(scene()) == [["INVALID_TXN_STATE"], ["NONE"]]


def test_the_request_is_copied_before_anything_waits(world: World) -> None:
    async def scene() -> list[str]:
        gate = world.coordinator.gate = asyncio.Event()
        waiting = asyncio.ensure_future(world.send((0, 0)))
        await asyncio.sleep(0)
        gate.set()
        return codes(await waiting)

    assert asyncio.run(scene()) == ["NONE"]
    read = reading.read(world.host.partition("a").log, 0, 10**6, min_one_batch=True)
    assert b"x" in b"".join(read.buffers)


def test_each_partition_has_its_own_outcome(world: World) -> None:
    assert codes(world.send((0, 0), epoch=3)) == ["NONE"]
    assert codes(world.send((0, 1), (1, 0), epoch=2)) == ["INVALID_PRODUCER_EPOCH", "NONE"]
    assert world.coordinator.asked[1:] == [("tx", PID, 2, [("a", 1)], False)]


def test_transaction_version_2_starts_unknown_producers_at_zero(world: World) -> None:
    assert codes(world.send((0, 5))) == ["OUT_OF_ORDER_SEQUENCE_NUMBER"]
    assert codes(world.send((0, 0))) == ["NONE"]
    assert codes(world.send((1, 5), version=OLD), OLD) == ["NONE"]


def test_two_producers_in_one_request(world: World) -> None:
    reply = world.send((0, 0), (1, 0), producer_ids=(PID, PID + 1))
    assert codes(reply) == ["INVALID_PRODUCER_ID_MAPPING"] * 2
    assert world.coordinator.asked == []


def test_verification_can_be_turned_off_for_older_clients_only(world: World) -> None:
    world.enabled = False
    assert codes(world.send((0, 0), version=ABORTABLE), ABORTABLE) == ["NONE"]
    assert world.coordinator.asked == []
    assert codes(world.send((1, 0))) == ["NONE"]
    assert len(world.coordinator.asked) == 1


def test_records_without_a_transaction_ask_nobody(world: World) -> None:
    assert codes(world.send((0, 0), transactional=False)) == ["NONE"]
    assert world.coordinator.asked == []


def test_a_partition_that_moves_away_meanwhile(world: World) -> None:
    topic = world.host.replicas.get("a", 0).topic_id
    world.coordinator.meanwhile = lambda: world.host.change_partition(topic, leader=2)
    assert NODE_ID != 2
    assert codes(world.send((0, 0))) == ["NOT_LEADER_OR_FOLLOWER"]
