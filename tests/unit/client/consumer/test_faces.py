"""What stands between the application and the consumer: guards, iteration, callbacks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from moldau.client._records import ConsumerRecord
from moldau.client.callbacks import BlockingCalls, InlineCallbacks
from moldau.client.consumer.guard import TaskGuard, ThreadGuard
from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.consumer.machine.iteration import RecordIteration
from moldau.client.consumer.machine.positions import EARLIEST, Position
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.errors import ClosedError, ConcurrentModificationError, IllegalStateError
from moldau.client.loop_thread import LoopThread
from moldau.client.topics import OffsetAndMetadata, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def some(key: TopicPartition, *offsets: int) -> list[ConsumerRecord]:
    return [ConsumerRecord(*key, offset, leader_epoch=1) for offset in offsets]


# Records of a poll.


def test_records_of_a_poll() -> None:
    records = ConsumerRecords({A: some(A, 0, 1), B: some(B, 7)}, {A: OffsetAndMetadata(2)})
    assert len(records) == records.count() == 3
    assert [record.offset for record in records] == [0, 1, 7]
    assert records.partitions() == {A, B}
    assert [record.offset for record in records.records(A)] == [0, 1]
    assert [record.offset for record in records.records("t")] == [0, 1, 7]
    assert records.records(("u", 0)) == []
    assert records.next_offsets() == {A: OffsetAndMetadata(2)}
    assert records
    assert not records.is_empty
    assert not ConsumerRecords({})


# Iterating.


@pytest.fixture
def subscription() -> SubscriptionState:
    subscription = SubscriptionState(EARLIEST)
    subscription.assign_by_user([A, B])
    for key in (A, B):
        subscription.seek(key, Position(10))
    return subscription


def test_what_iteration_has_not_given_is_unread(subscription: SubscriptionState) -> None:
    iteration = RecordIteration(subscription, ConsumerRecords({A: some(A, 3, 4), B: some(B, 7, 9)}))
    assert iteration.unread() == {A: OffsetAndMetadata(3), B: OffsetAndMetadata(7)}
    records = iter(iteration)
    assert next(records).offset == 3
    assert iteration.unread() == {A: OffsetAndMetadata(4, "", 1), B: OffsetAndMetadata(7)}
    assert next(records).offset == 4
    assert iteration.unread() == {B: OffsetAndMetadata(7)}
    assert next(records).offset == 7
    assert iteration.unread() == {B: OffsetAndMetadata(9, "", 1)}
    assert [record.offset for record in records] == [9]
    assert iteration.unread() == {}


def test_iteration_leaves_a_partition_that_was_sought_or_lost(
    subscription: SubscriptionState,
) -> None:
    iteration = RecordIteration(
        subscription, ConsumerRecords({A: some(A, 3, 4, 5), B: some(B, 7, 8)})
    )
    records = iter(iteration)
    next(records)
    subscription.seek(A, Position(0))
    assert next(records).offset == 7
    subscription.assign_by_user([A])
    assert list(records) == []
    assert iteration.unread() == {}


# Guards.


def test_one_thread_at_a_time() -> None:
    guard = ThreadGuard()
    refused: list[Exception] = []

    def intrude() -> None:
        try:
            with guard:
                pass
        except ConcurrentModificationError as error:
            refused.append(error)

    with guard:
        with guard:
            pass
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert len(refused) == 1
    thread = threading.Thread(target=intrude)
    thread.start()
    thread.join()
    assert len(refused) == 1
    guard.closed = True
    for _ in range(2):
        with pytest.raises(ClosedError), guard:
            pass


def test_one_task_at_a_time() -> None:
    guard = TaskGuard()

    async def inside(entered: asyncio.Event, go_on: asyncio.Event) -> None:
        with guard:
            # What it starts is inside with it.
            await asyncio.create_task(nested())
            entered.set()
            await go_on.wait()

    async def nested() -> None:
        with guard:
            pass

    async def session() -> None:
        entered, go_on = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(inside(entered, go_on))
        await entered.wait()
        with pytest.raises(ConcurrentModificationError), guard:
            pass
        go_on.set()
        await task
        with guard:
            pass

    asyncio.run(session())


# Callbacks.


@pytest.fixture
def calls() -> Iterator[BlockingCalls]:
    thread = LoopThread("calls")
    yield BlockingCalls(thread)
    thread.stop()


def test_callbacks_run_in_the_thread_that_waits(calls: BlockingCalls) -> None:
    async def work() -> int:
        doubled: int = await calls.run(lambda number: (threading.get_ident(), number * 2)[1], 4)
        where: int = await calls.run(threading.get_ident)
        assert where == main
        return doubled

    main = threading.get_ident()
    assert calls.call(work()) == 8


def test_a_callback_may_call_again(calls: BlockingCalls) -> None:
    async def outer() -> str:
        text: str = await calls.run(lambda: calls.call(inner()) + " and out")
        return text

    async def inner() -> str:
        text: str = await calls.run(lambda: "in")
        return text

    assert calls.call(outer()) == "in and out"


def test_a_callback_may_be_asked_for_before_the_thread_waits() -> None:
    """The loop is sometimes faster than the thread that has just handed something over to it."""
    asked = threading.Event()

    class SlowToReturn(LoopThread):
        def soon(self, callback: Callable[..., None], *arguments: object) -> None:
            super().soon(callback, *arguments)
            assert asked.wait(30)

    async def work() -> str:
        # The loop comes to this when the coroutine waits for the callback.
        asyncio.get_running_loop().call_soon(asked.set)
        text: str = await calls.run(lambda: "answered")
        return text

    thread = SlowToReturn("calls")
    calls = BlockingCalls(thread)
    try:
        assert calls.call(work()) == "answered"
    finally:
        thread.stop()


def test_an_error_of_a_callback_is_the_cores(calls: BlockingCalls) -> None:
    async def work() -> str:
        with pytest.raises(ZeroDivisionError):
            await calls.run(lambda: 1 / 0)
        with pytest.raises(IllegalStateError, match="coroutine"):
            await calls.run(work)
        return "went on"

    assert calls.call(work()) == "went on"


def test_callbacks_of_the_asyncio_client_may_be_awaited() -> None:
    async def later(number: int) -> int:
        return number

    async def session() -> None:
        callbacks = InlineCallbacks()
        assert await callbacks.run(later, 3) == 3
        assert await callbacks.run(int, "4") == 4

    asyncio.run(session())
