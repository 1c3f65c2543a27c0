"""Waiting for memory, in a thread that sends and on a loop: however the wait ends, the memory is
somebody's or free."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from moldau.client.errors import BufferExhaustedError, ClosedError, IllegalStateError, KafkaError
from moldau.client.producer import AsyncProducer, Producer
from moldau.client.producer._batch import RecordFuture
from moldau.client.producer.core import ProducerCore
from moldau.testing.waiting import wait_until, wait_until_async
from support.producer_stage import picture

SECONDS_MAX = 60.0
BATCH = 10_000
MEMORY = 3 * BATCH
VALUE = bytes(9_000)
SETTINGS: dict[str, Any] = {
    "bootstrap_servers": "127.0.0.1:1",
    "buffer_memory": MEMORY,
    "batch_size": BATCH,
    "enable_metrics_push": False,
}


def full_producer(**settings: Any) -> Producer:
    """Nobody leads its topic, and all its memory is taken."""
    producer = Producer(**SETTINGS, **settings)
    know_the_topic(producer._core)
    for _ in range(MEMORY // BATCH):
        producer.send("t", VALUE)
    assert producer._core.accumulator.memory.free == 0
    return producer


async def full_async_producer(**settings: Any) -> AsyncProducer:
    producer = AsyncProducer(**SETTINGS, **settings)
    await producer.start()
    know_the_topic(producer._core)
    for _ in range(MEMORY // BATCH):
        await producer.send("t", VALUE)
    assert producer._core.accumulator.memory.free == 0
    return producer


def know_the_topic(core: ProducerCore) -> None:
    # Tests give back memory that no batch has taken.
    core.accumulator.memory.size *= 100
    with core.accumulator.lock:
        core.accumulator.table.topic("t")
        core.accumulator.table.update_leaders(picture({"t": [-1]}))


def wait_for_waiters(producer: Producer, count: int) -> None:
    waiters = producer._core.accumulator.memory.waiters
    wait_until(lambda: len(waiters) == count, timeout=SECONDS_MAX)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def blocked(producer: Producer, pool: ThreadPoolExecutor, count: int) -> list[Future[RecordFuture]]:
    """So many threads inside `send`, one behind the other."""
    found = []
    for index in range(count):
        found.append(pool.submit(producer.send, "t", VALUE))
        wait_for_waiters(producer, index + 1)
    return found


def test_memory_that_is_given_back_goes_to_who_waits(threads: ThreadPoolExecutor) -> None:
    producer = full_producer()
    calls = blocked(producer, threads, 2)
    assert not any(call.done() for call in calls)
    core = producer._core
    for call in calls:
        # As at the end of a batch, which then begins for somebody else.
        with core.accumulator.lock:
            core.accumulator.memory.give_back(BATCH)
        assert not call.result(SECONDS_MAX).done()
    assert not core.accumulator.memory.waiters
    assert core.accumulator.memory.free == 0
    names = {name.name: metric.value for name, metric in producer.metrics().items()}
    assert names["bufferpool-wait-time-ns-total"] > 0
    producer.close(0)


def test_a_wait_for_memory_ends_with_max_block_ms() -> None:
    producer = full_producer(max_block_ms=50)
    error = producer.send("t", VALUE).exception(0)
    assert isinstance(error, BufferExhaustedError)
    assert "max.block.ms, 50 ms" in str(error)
    assert not producer._core.accumulator.memory.waiters
    assert producer._core.accumulator.memory.free == 0
    producer.close(0)


def test_closing_ends_every_wait_for_memory(threads: ThreadPoolExecutor) -> None:
    producer = full_producer()
    calls = blocked(producer, threads, 3)
    producer.close(0)
    for call in calls:
        with pytest.raises(ClosedError):
            call.result(SECONDS_MAX)
    assert producer._core.accumulator.memory.free == MEMORY


def test_who_comes_to_a_closed_buffer_does_not_wait() -> None:
    producer = full_producer()
    core = producer._core
    outgoing = producer._path.send("t", VALUE, None, None, None, None, None)
    assert core.lacks_memory(outgoing)
    with core.accumulator.lock:
        core.accumulator.close()
    with pytest.raises(ClosedError):
        core.memory.wait_in_thread(outgoing, core.cluster.clock.elapsed_ms() + 600_000)
    producer.close(0)


def test_the_thread_that_sends_does_not_wait_for_itself() -> None:
    producer = full_producer()
    told: Future[KafkaError | None] = Future()

    def as_in_a_callback() -> None:
        try:
            producer.send("t", VALUE)
        except KafkaError as error:
            told.set_result(error)
        else:
            told.set_result(None)

    producer._thread.soon(as_in_a_callback)
    assert isinstance(told.result(SECONDS_MAX), IllegalStateError)
    assert not producer._core.accumulator.memory.waiters
    producer.close(0)


def test_an_interrupted_wait_takes_no_memory() -> None:
    # In a process of its own: it is the main thread that Ctrl-C interrupts.
    ended = subprocess.run(
        [sys.executable, __file__],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ended.stdout.splitlines() == ["interrupted: 0 wait, 0 free", f"closed: {MEMORY} free"], (
        ended.stderr
    )


def test_a_task_gets_memory_in_its_turn_from_wherever_it_comes() -> None:
    async def run() -> None:
        producer = await full_async_producer()
        accumulator = producer._core.accumulator

        def give_back() -> None:
            with accumulator.lock:
                accumulator.memory.give_back(BATCH)

        tasks = [asyncio.create_task(producer.send("t", VALUE)) for _ in range(2)]
        async with asyncio.timeout(SECONDS_MAX):
            await wait_until_async(
                lambda: len(accumulator.memory.waiters) == 2, timeout=SECONDS_MAX
            )
            give_back()
            assert not (await tasks[0]).done()
            await asyncio.to_thread(give_back)
            assert not (await tasks[1]).done()
        assert (len(accumulator.memory.waiters), accumulator.memory.free) == (0, 0)
        await producer.close(0)

    asyncio.run(run())


def test_a_task_that_is_cancelled_while_it_waits_takes_no_memory() -> None:
    async def run() -> None:
        producer = await full_async_producer()
        accumulator = producer._core.accumulator
        for is_granted in (False, True):
            task = asyncio.create_task(producer.send("t", VALUE))
            await wait_until_async(lambda: accumulator.memory.waiters, timeout=SECONDS_MAX)
            if is_granted:
                with accumulator.lock:
                    accumulator.memory.give_back(BATCH)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (len(accumulator.memory.waiters), accumulator.memory.free) == (
                0,
                BATCH * is_granted,
            )
        await producer.close(0)

    asyncio.run(run())


def test_a_task_waits_for_memory_for_max_block_ms_or_until_the_producer_is_closed() -> None:
    async def run() -> None:
        producer = await full_async_producer(max_block_ms=50)
        assert isinstance(await _error(await producer.send("t", VALUE)), BufferExhaustedError)
        assert not producer._core.accumulator.memory.waiters
        await producer.close(0)
        producer = await full_async_producer()
        task = asyncio.create_task(producer.send("t", VALUE))
        async with asyncio.timeout(SECONDS_MAX):
            waiters = producer._core.accumulator.memory.waiters
            await wait_until_async(lambda: waiters, timeout=SECONDS_MAX)
            await producer.close(0)
            with pytest.raises(ClosedError):
                await task
        assert producer._core.accumulator.memory.free == MEMORY

    asyncio.run(run())


async def _error(future: RecordFuture) -> KafkaError | None:
    try:
        await future
    except KafkaError as error:
        return error
    return None


def interrupted_send() -> None:
    producer = full_producer()
    accumulator = producer._core.accumulator
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.get_ident()

    def interrupt() -> None:
        wait_for_waiters(producer, 1)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        producer.send("t", VALUE)
    except KeyboardInterrupt:
        print(
            f"interrupted: {len(accumulator.memory.waiters)} wait, {accumulator.memory.free} free"
        )
    producer.close(0)
    print(f"closed: {accumulator.memory.free} free")


if __name__ == "__main__":
    interrupted_send()
