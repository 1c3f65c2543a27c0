"""The coordinator over a log in memory: producer ids, markers, leadership, answers to handlers."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from moldau.broker.coordinator.transaction.config import TransactionConfig
from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.coordinator.transaction.interface import NO_PRODUCER
from moldau.broker.handlers.add_offsets_to_txn import AddOffsetsToTxnHandler
from moldau.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler
from moldau.broker.handlers.describe_transactions import DescribeTransactionsHandler
from moldau.broker.handlers.end_txn import EndTxnHandler
from moldau.broker.handlers.init_producer_id import InitProducerIdHandler
from moldau.broker.handlers.list_transactions import ListTransactionsHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.transactions.markers import Marker, MarkerResult
from moldau.config import ConfigError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from moldau.wire.records import encode_batch, iterate_headers

P = 1_000


class MemoryLog:
    """A log whose commits can be held back and whose appends can be made to fail."""

    def __init__(self) -> None:
        self.data = b""
        self.start_offset = 0
        self.end_offset = 0
        self.committed_to = 0
        self.holding = False
        self.append_error: ErrorCode | None = None
        self._waiters: dict[Callable[[ErrorCode], None], int] = {}

    def append(
        self, records: Sequence[tuple[bytes, bytes | None]], *, now_ms: int, producer: Any = None
    ) -> int:
        assert producer is None
        if self.append_error is not None:
            raise ApiError(self.append_error, "as told")
        base = self.end_offset
        self.data += encode_batch([(k, v, now_ms, ()) for k, v in records], base_offset=base)
        self.end_offset += len(records)
        if not self.holding:
            self.commit()
        return base

    def append_marker(self, ending: Any, *, now_ms: int) -> int:
        raise AssertionError("nobody writes to this topic in a transaction")

    def commit(self) -> None:
        self.committed_to = self.end_offset
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            waiter(ErrorCode.NONE)

    def read(self, offset: int, max_bytes: int) -> bytes:
        for position, header in iterate_headers(self.data):
            if header.next_offset > offset:
                return self.data[position:]
        return b""

    def when_committed(self, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        if next_offset <= self.committed_to:
            waiter(ErrorCode.NONE)
        else:
            self._waiters[waiter] = next_offset

    def forget_waiter(self, waiter: Callable[[ErrorCode], None]) -> None:
        self._waiters.pop(waiter, None)


class Alarm:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    def __init__(self) -> None:
        self.time_ms = 1_000_000
        self._queue: list[tuple[int, int, Alarm]] = []
        self._count = itertools.count()

    def now_ms(self) -> int:
        return self.time_ms

    elapsed_ms = now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        alarm = Alarm(callback)
        heapq.heappush(self._queue, (self.time_ms + delay_ms, next(self._count), alarm))
        return alarm

    async def advance(self, delay_ms: int) -> None:
        await settle()
        end_ms = self.time_ms + delay_ms
        while self._queue and self._queue[0][0] <= end_ms:
            at_ms, _, alarm = heapq.heappop(self._queue)
            self.time_ms = max(self.time_ms, at_ms)
            if alarm.callback is not None:
                alarm.callback()
            await settle()
        self.time_ms = end_ms


async def settle() -> None:
    """Let every task run until it waits for something outside."""
    for _ in range(20):
        await asyncio.sleep(0)


class Ids:
    def __init__(self) -> None:
        self.next = P
        self.error: ApiError | None = None
        self.gate: asyncio.Event | None = None

    async def next_id(self) -> int:
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.next += 1
        return self.next - 1


class Markers:
    """Partitions that answer what they are told to."""

    def __init__(self) -> None:
        self.written: list[Marker] = []
        self.errors: dict[tuple[str, int], list[ErrorCode]] = {}
        self.gate: asyncio.Event | None = None
        self.bug: Exception | None = None

    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        self.written += markers
        if self.bug is not None:
            bug, self.bug = self.bug, None
            raise bug
        if self.gate is not None:
            await self.gate.wait()
        return [{each: self._answer(each) for each in marker.partitions} for marker in markers]

    def _answer(self, place: tuple[str, int]) -> ErrorCode:
        errors = self.errors.get(place)
        return errors.pop(0) if errors else ErrorCode.NONE


class Topics:
    def __init__(self) -> None:
        self.missing: set[tuple[str, int]] = set()

    def has_partition(self, name: str, partition: int) -> bool:
        return (name, partition) not in self.missing


class World:
    def __init__(self, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.log = MemoryLog()
        self.ids = Ids()
        self.markers = Markers()
        self.topics = Topics()
        self.level = 2
        self.bugs: list[Exception] = []
        self.coordinator = TransactionCoordinator(
            TransactionConfig(**settings),
            partition_count=lambda: 1,
            producer_ids=self.ids,
            markers=self.markers,
            topics=self.topics,
            transaction_version=lambda: self.level,
            report_bug=self.bugs.append,
            clock=self.clock,
        )

    async def start(self, epoch: int = 4) -> None:
        self.coordinator.on_elected(0, epoch, self.log)
        await self.coordinator.loaded()
        await settle()

    async def begin(self, *partitions: int) -> None:
        """A transaction of producer P at epoch 0, unless another was asked for before."""
        assert await self.coordinator.init_producer_id("t", 60_000) == (P, 0)
        await self.add((P, 0), *partitions)

    async def add(self, producer: tuple[int, int], *partitions: int) -> None:
        places = [("topic", each) for each in partitions or (0,)]
        errors = await self.coordinator.add_partitions("t", *producer, places, verify_only=False)
        assert set(errors.values()) == {ErrorCode.NONE}

    async def state(self, transactional_id: str = "t") -> str:
        described = await self.coordinator.describe_transaction(transactional_id)
        return described.transaction_state or ErrorCode(described.error_code).name

    def places(self) -> list[list[int]]:
        """The partitions of each marker request so far."""
        return [[index for _, index in marker.partitions] for marker in self.markers.written]


Scenario = Callable[[World], Coroutine[Any, Any, None]]


def play(scenario: Scenario, **settings: Any) -> None:
    async def run() -> None:
        world = World(**settings)
        await world.start()
        try:
            await scenario(world)
            assert not world.bugs
        finally:
            world.coordinator.close()
        await settle()
        assert len(asyncio.all_tasks()) == 1, "nothing is left running"

    asyncio.run(run())


async def code_of(work: Coroutine[Any, Any, Any]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        await work
    return caught.value.code


# Markers.


def test_a_commit_reaches_every_partition() -> None:
    async def scenario(world: World) -> None:
        await world.begin(0, 1)
        assert await world.coordinator.end_transaction("t", P, 0, committed=True) == (P, 1)
        await settle()
        (marker,) = world.markers.written
        assert marker == Marker(P, 1, 4, True, 2, (("topic", 0), ("topic", 1)))
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_the_client_does_not_wait_for_markers() -> None:
    async def scenario(world: World) -> None:
        world.markers.gate = asyncio.Event()
        await world.begin()
        assert await world.coordinator.end_transaction("t", P, 0, committed=False) == (P, 1)
        await settle()
        assert await world.state() == "PrepareAbort"
        assert (
            await code_of(world.coordinator.init_producer_id("t", 60_000))
            is ErrorCode.CONCURRENT_TRANSACTIONS
        )
        world.markers.gate.set()
        await settle()
        assert await world.state() == "CompleteAbort"

    play(scenario)


def test_the_answer_and_the_markers_wait_for_commit() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        world.log.holding = True
        ending = asyncio.ensure_future(world.coordinator.end_transaction("t", P, 0, committed=True))
        await settle()
        assert not ending.done()
        assert not world.markers.written
        world.log.commit()
        assert await ending == (P, 1)
        await settle()
        assert len(world.markers.written) == 1
        world.log.commit()
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_passing_errors_are_tried_again_where_they_were() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors = {
            ("topic", 1): [
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.REQUEST_TIMED_OUT,
                ErrorCode.UNKNOWN_SERVER_ERROR,
            ],
            ("topic", 2): [ErrorCode.NOT_ENOUGH_REPLICAS],
            ("topic", 3): [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT],
        }
        await world.begin(0, 1, 2, 3)
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        assert await world.state() == "PrepareCommit"
        await world.clock.advance(20)
        await world.clock.advance(39)
        assert world.places() == [[0, 1, 2, 3], [1, 2]]
        await world.clock.advance(5_000)
        assert world.places() == [[0, 1, 2, 3], [1, 2], [1], [1], [1]]
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_retries_are_bounded_in_rate_not_in_number() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await world.clock.advance(30_000)
        assert 30 < len(world.markers.written) < 45
        await world.clock.advance(100_000)
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_a_bug_in_a_partition_does_not_leave_a_transaction_open() -> None:
    async def scenario(world: World) -> None:
        world.markers.bug = RuntimeError("as told")
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await world.clock.advance(1_000)
        assert [str(bug) for bug in world.bugs] == ["as told"]
        world.bugs.clear()
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_partitions_of_deleted_topics_are_dropped() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 100
        await world.begin(0, 1)
        world.topics.missing.add(("topic", 1))
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        assert world.places() == [[0]]
        world.topics.missing.add(("topic", 0))
        await world.clock.advance(1_000)
        assert world.places() == [[0]]
        assert await world.state() == "CompleteCommit"

    play(scenario)


@pytest.mark.parametrize(
    "error", [ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH]
)
def test_whoever_is_superseded_sends_no_more(error: ErrorCode) -> None:
    async def scenario(world: World) -> None:
        world.markers.errors = {("topic", 0): [error], ("topic", 1): [ErrorCode.REQUEST_TIMED_OUT]}
        await world.begin(0, 1)
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await world.clock.advance(60_000)
        assert world.places() == [[0, 1]]
        assert await world.state() == "PrepareCommit"

    play(scenario)


def test_a_completion_that_cannot_be_written_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        world.markers.gate = asyncio.Event()
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        world.markers.gate.set()
        await world.clock.advance(5_000)
        assert await world.state() == "PrepareCommit"
        world.log.append_error = None
        await world.clock.advance(1_000)
        assert await world.state() == "CompleteCommit"
        assert world.places() == [[0]], "the markers themselves are not repeated"

    play(scenario)


def test_a_doubtful_decision_is_told_when_certain() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        world.log.holding = True
        ending = asyncio.ensure_future(world.coordinator.end_transaction("t", P, 0, committed=True))
        await settle()
        await world.clock.advance(30_000)
        assert await code_of(_awaited(ending)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await world.clock.advance(1_000)
        assert not world.markers.written
        world.log.holding = False
        world.log.commit()
        await settle()
        assert await world.state() == "CompleteCommit"
        assert await world.coordinator.end_transaction("t", P, 0, committed=True) == (P, 1)

    play(scenario)


async def _awaited(future: asyncio.Future[Any]) -> Any:
    return await future


# Leadership.


def test_a_new_leader_carries_on_with_its_own_epoch() -> None:
    async def scenario(world: World) -> None:
        world.markers.gate = asyncio.Event()
        await world.begin(0)
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        world.coordinator.on_resigned(0, 5)
        await settle()
        assert await world.state() == "NOT_COORDINATOR"
        world.markers.gate = None
        await world.start(6)
        assert [marker.coordinator_epoch for marker in world.markers.written] == [4, 6]
        assert [marker.committed for marker in world.markers.written] == [True, True]
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_after_resignation_nothing_is_sent() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        count = len(world.markers.written)
        world.coordinator.on_resigned(0, 3)
        await world.clock.advance(100)
        assert len(world.markers.written) > count, "an older epoch ends nothing"
        count = len(world.markers.written)
        world.coordinator.on_resigned(0)
        await world.clock.advance(100_000)
        assert len(world.markers.written) == count

    play(scenario)


def test_a_later_election_replaces_an_earlier_one() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        await world.start(9)
        await world.clock.advance(10_000)
        epochs = [marker.coordinator_epoch for marker in world.markers.written]
        assert epochs == sorted(epochs)
        assert epochs[-1] == 9
        await world.start(8)
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_without_leadership() -> None:
    async def scenario(world: World) -> None:
        world.coordinator.on_resigned(0)
        run = world.coordinator
        assert await code_of(run.init_producer_id("t", 1)) is ErrorCode.NOT_COORDINATOR
        assert (
            await code_of(run.end_transaction("t", P, 0, committed=True))
            is ErrorCode.NOT_COORDINATOR
        )
        for verify_only in (True, False):
            assert await run.add_partitions("t", P, 0, [("x", 1)], verify_only=verify_only) == {
                ("x", 1): ErrorCode.NOT_COORDINATOR
            }
        run.on_elected(0, 10, world.log)
        assert await code_of(run.init_producer_id("t", 1)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        listed = run.list_transactions(ListTransactionsRequest())
        assert listed.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    play(scenario)


# Producer ids.


def test_what_happens_while_an_id_is_fetched_is_not_lost() -> None:
    async def scenario(world: World) -> None:
        world.ids.gate = asyncio.Event()
        both = [
            asyncio.ensure_future(world.coordinator.init_producer_id("t", 60_000)) for _ in range(2)
        ]
        await settle()
        world.ids.gate.set()
        assert [await each for each in both] == [(P, 0), (P, 1)], "one id, fenced in turn"

    play(scenario)


def test_no_producer_id_to_be_had() -> None:
    async def scenario(world: World) -> None:
        world.ids.error = ApiError(ErrorCode.NOT_CONTROLLER, "as told")
        error = await code_of(world.coordinator.init_producer_id("t", 60_000))
        assert error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.ids.error = None
        assert await world.coordinator.init_producer_id("t", 60_000) == (P, 0)

    play(scenario)


# Timeouts.


def test_overdue_transactions_are_aborted() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        await world.clock.advance(60_000)
        assert await world.state() == "Ongoing"
        await world.clock.advance(10_000)
        assert await world.state() == "CompleteAbort"
        (marker,) = world.markers.written
        assert (marker.producer_epoch, marker.committed) == (1, False)

    play(scenario)


def test_what_could_not_be_aborted_is_tried_at_the_next_look() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        await world.clock.advance(100_000)
        assert await world.state() == "Ongoing"
        world.log.append_error = None
        await world.clock.advance(10_000)
        assert await world.state() == "CompleteAbort"
        assert len(world.markers.written) == 1

    play(scenario)


def test_one_round_of_aborts_at_a_time() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        await world.coordinator.init_producer_id("u", 60_000)
        errors = await world.coordinator.add_partitions(
            "u", P + 1, 0, [("topic", 0)], verify_only=False
        )
        assert set(errors.values()) == {ErrorCode.NONE}
        world.log.holding = True
        before = world.log.end_offset
        await world.clock.advance(85_000)
        assert world.log.end_offset == before + 1, "the second waits for the first"
        world.log.holding = False
        world.log.commit()
        await settle()
        assert await world.state("u") == "CompleteAbort"

    play(scenario)


def test_idle_ids_expire() -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 60_000)
        await world.clock.advance(3_600_000)
        assert await world.state() == "TRANSACTIONAL_ID_NOT_FOUND"

    play(scenario, transactional_id_expiration_ms=3_600_000)


# Handlers.


def context(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(key, version)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5, "transactional_id": None}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({"transaction_timeout_ms": 900_000}, ErrorCode.NONE),
        ({"producer_id": 5, "producer_epoch": 3}, ErrorCode.NONE),
        ({"transactional_id": None, "transaction_timeout_ms": -1}, ErrorCode.NONE),
    ],
)
def test_init_producer_id_request(fields: dict[str, Any], error: ErrorCode) -> None:
    async def scenario(world: World) -> None:
        request = {"transactional_id": "t", "transaction_timeout_ms": 5_000} | fields
        response = await InitProducerIdHandler(world.ids, world.coordinator).handle(
            context(ApiKey.INIT_PRODUCER_ID, 6), InitProducerIdRequest(**request)
        )
        assert response.error_code == error
        expected = (P, 0) if error is ErrorCode.NONE else NO_PRODUCER
        assert (response.producer_id, response.producer_epoch) == expected
        assert response.ongoing_txn_producer_id == -1

    play(scenario)


@pytest.mark.parametrize("version", range(7))
def test_without_a_transactional_id_everybody_is_new(version: int) -> None:
    async def scenario(world: World) -> None:
        handler = InitProducerIdHandler(world.ids, world.coordinator)
        where = context(ApiKey.INIT_PRODUCER_ID, version)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        for expected in (P, P + 1):
            response = await handler.handle(where, request)
            assert (response.producer_id, response.producer_epoch) == (expected, 0)
        world.ids.error = ApiError(ErrorCode.NOT_CONTROLLER, "as told")
        response = await handler.handle(where, request)
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (response.producer_id, response.producer_epoch) == NO_PRODUCER

    play(scenario)


def test_two_phase_commit_where_it_is_allowed() -> None:
    async def scenario(world: World) -> None:
        assert await world.coordinator.init_producer_id("t", 0, enable_two_phase_commit=True)
        described = await world.coordinator.describe_transaction("t")
        assert described.transaction_timeout_ms == 2_147_483_647

    play(scenario, transaction_two_phase_commit_enable=True)


@pytest.mark.parametrize(("version", "error"), [(3, 47), (4, 90)])
def test_fenced_inits_by_version(version: int, error: int) -> None:
    async def scenario(world: World) -> None:
        handler = InitProducerIdHandler(world.ids, world.coordinator)
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5_000)
        for _ in range(3):
            await handler.handle(context(ApiKey.INIT_PRODUCER_ID, version), request)
        request.producer_id, request.producer_epoch = P, 0
        response = await handler.handle(context(ApiKey.INIT_PRODUCER_ID, version), request)
        assert response.error_code == error

    play(scenario)


@pytest.mark.parametrize("version", range(6))
def test_end_txn_by_version(version: int) -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        handler = EndTxnHandler(world.coordinator)
        request = EndTxnRequest(
            transactional_id="t", producer_id=P, producer_epoch=7, committed=True
        )
        where = context(ApiKey.END_TXN, version)
        response = await handler.handle(where, request)
        fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
        assert response.error_code == fenced
        assert (response.producer_id, response.producer_epoch) == NO_PRODUCER
        request.producer_epoch = 0
        for _ in range(2):
            response = await handler.handle(where, request)
            assert response.error_code == ErrorCode.NONE
            expected = (P, 1) if version >= 5 else NO_PRODUCER
            assert (response.producer_id, response.producer_epoch) == expected
            await settle()
        request.transactional_id = ""
        response = await handler.handle(where, request)
        assert response.error_code == ErrorCode.INVALID_REQUEST

    play(scenario)


def topics(**partitions: list[int]) -> list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
        for name, indexes in partitions.items()
    ]


def results(topic_results: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for topic in topic_results
        for each in topic.results_by_partition
    }


@pytest.mark.parametrize("version", range(4))
def test_partitions_added_by_clients(version: int) -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 5_000)
        handler = AddPartitionsToTxnHandler(world.coordinator, world.topics)  # type: ignore[arg-type]
        where = context(ApiKey.ADD_PARTITIONS_TO_TXN, version)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=P,
            v3_and_below_producer_epoch=3,
            v3_and_below_topics=topics(a=[0, 1], b=[2]),
        )
        fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
        response = await handler.handle(where, request)
        everywhere = [("a", 0), ("a", 1), ("b", 2)]
        found = results(response.results_by_topic_v3_and_below)
        assert found == dict.fromkeys(everywhere, fenced)
        request.v3_and_below_producer_epoch = 0
        world.topics.missing = {("a", 1)}
        response = await handler.handle(where, request)
        assert results(response.results_by_topic_v3_and_below) == {
            ("a", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("a", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("b", 2): ErrorCode.OPERATION_NOT_ATTEMPTED,
        }
        assert await world.state() == "Empty"
        world.topics.missing.clear()
        response = await handler.handle(where, request)
        found = results(response.results_by_topic_v3_and_below)
        assert found == dict.fromkeys(everywhere, ErrorCode.NONE)
        described = await world.coordinator.describe_transaction("t")
        assert [(each.topic, each.partitions) for each in described.topics] == [
            ("a", [0, 1]),
            ("b", [2]),
        ]
        # A client of version 1 began it, so its end keeps the epoch.
        ended = await world.coordinator.end_transaction(
            "t", P, 0, committed=True, client_transaction_version=0
        )
        assert ended == NO_PRODUCER
        await settle()
        assert world.markers.written[0].transaction_version == 0

    play(scenario)


@pytest.mark.parametrize("version", [4, 5])
def test_partitions_added_and_verified_by_brokers(version: int) -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 5_000)
        await world.coordinator.init_producer_id("u", 5_000)
        handler = AddPartitionsToTxnHandler(world.coordinator, world.topics)  # type: ignore[arg-type]
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        request = AddPartitionsToTxnRequest(
            transactions=[
                transaction(transactional_id="t", producer_id=P, topics=topics(a=[0])),
                transaction(transactional_id="u", producer_id=P + 1, verify_only=True,
                            topics=topics(a=[0])),
                transaction(transactional_id="none", producer_id=9, topics=topics(b=[0])),
                transaction(transactional_id="", producer_id=9, topics=topics(b=[0])),
            ]
        )  # fmt: skip
        where = context(ApiKey.ADD_PARTITIONS_TO_TXN, version)
        response = await handler.handle(where, request)
        assert response.error_code == ErrorCode.NONE
        found = {
            each.transactional_id: set(results(each.topic_results).values())
            for each in response.results_by_transaction
        }
        assert found == {
            "t": {ErrorCode.NONE},
            "u": {ErrorCode.TRANSACTION_ABORTABLE},
            "none": {ErrorCode.INVALID_PRODUCER_ID_MAPPING},
            "": {ErrorCode.INVALID_REQUEST},
        }
        assert [await world.state(each) for each in "tu"] == ["Ongoing", "Empty"]

    play(scenario)


@pytest.mark.parametrize(("version", "fenced"), [(0, 47), (1, 47), (2, 90), (4, 90)])
def test_offsets_in_a_transaction(version: int, fenced: int) -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 5_000)
        handler = AddOffsetsToTxnHandler(world.coordinator, lambda group_id: len(group_id))
        where = context(ApiKey.ADD_OFFSETS_TO_TXN, version)
        request = AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=P, producer_epoch=1, group_id="group"
        )
        assert (await handler.handle(where, request)).error_code == fenced
        request.producer_epoch = 0
        assert (await handler.handle(where, request)).error_code == ErrorCode.NONE
        await world.coordinator.end_transaction(
            "t", P, 0, committed=True, client_transaction_version=0
        )
        await settle()
        assert world.markers.written[0].partitions == (("__consumer_offsets", 5),)
        request.transactional_id = ""
        assert (await handler.handle(where, request)).error_code == ErrorCode.INVALID_REQUEST

    play(scenario)


def test_describe_transactions() -> None:
    async def scenario(world: World) -> None:
        await world.begin(1, 0)
        response = await DescribeTransactionsHandler(world.coordinator).handle(
            context(ApiKey.DESCRIBE_TRANSACTIONS, 0),
            DescribeTransactionsRequest(transactional_ids=["t", "none", ""]),
        )
        found, none, empty = response.transaction_states
        assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 60_000)
        assert (found.producer_id, found.producer_epoch) == (P, 0)
        assert found.transaction_start_time_ms == world.clock.now_ms()
        assert [(each.topic, each.partitions) for each in found.topics] == [("topic", [0, 1])]
        assert none.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert empty.error_code == ErrorCode.INVALID_REQUEST

    play(scenario)


@pytest.mark.parametrize(
    ("fields", "ids", "unknown"),
    [
        ({}, ["t", "app-1", "app-2"], []),
        ({"state_filters": ["Ongoing"]}, ["t"], []),
        ({"state_filters": ["Ongoing", "Empty", "empty"]}, ["t", "app-1", "app-2"], ["empty"]),
        ({"state_filters": ["Nothing"]}, [], ["Nothing"]),
        ({"state_filters": ["Dead", "PrepareEpochFence"]}, [], []),
        ({"producer_id_filters": [P, P + 2]}, ["t", "app-2"], []),
        ({"producer_id_filters": [P], "state_filters": ["Empty"]}, [], []),
        ({"duration_filter": 0}, ["t", "app-1", "app-2"], []),
        ({"duration_filter": 999}, ["t", "app-1", "app-2"], []),
        ({"duration_filter": 1_000}, ["app-1", "app-2"], []),
        ({"transactional_id_pattern": "app-."}, ["app-1", "app-2"], []),
        ({"transactional_id_pattern": "app"}, [], []),
        ({"transactional_id_pattern": ""}, ["t", "app-1", "app-2"], []),
    ],
)
def test_list_transactions(fields: dict[str, Any], ids: list[str], unknown: list[str]) -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        await world.coordinator.init_producer_id("app-1", 60_000)
        await world.coordinator.init_producer_id("app-2", 60_000)
        await world.clock.advance(1_000)
        response = await ListTransactionsHandler(world.coordinator).handle(
            context(ApiKey.LIST_TRANSACTIONS, 2), ListTransactionsRequest(**fields)
        )
        assert response.error_code == ErrorCode.NONE
        assert [each.transactional_id for each in response.transaction_states] == ids
        assert response.unknown_state_filters == unknown

    play(scenario)


def test_a_pattern_that_is_none() -> None:
    async def scenario(world: World) -> None:
        response = world.coordinator.list_transactions(
            ListTransactionsRequest(transactional_id_pattern="(")
        )
        assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    play(scenario)


# Config.


def test_config_from_the_brokers() -> None:
    settings = {
        "transaction.max.timeout.ms": 1,
        "transactional.id.expiration.ms": 2,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 4,
        "transaction.state.log.load.buffer.size": 5,
        "transaction.two.phase.commit.enable": True,
        "request.timeout.ms": 6,
    }
    config = TransactionConfig.from_broker_config(settings)
    assert config.transactional_id_expiration_ms == 2
    assert config.transaction_two_phase_commit_enable
    with pytest.raises(ConfigError, match=r"transaction\.max\.timeout\.ms = 0 must be"):
        TransactionConfig(transaction_max_timeout_ms=0)
    assert TransactionConfig(request_timeout_ms=0), "as Kafka"
