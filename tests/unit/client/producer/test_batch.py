"""Futures: what they say, who they wake, and what waiting in the wrong place says."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from moldau.client.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from moldau.client.machine.producer_records import ProducerRecord, RecordMetadata, normal_headers
from moldau.client.producer._batch import Outcome, ProducerBatch, RecordFuture, failed_future
from moldau.client.producer.delivery import finish
from moldau.client.producer.machine.queues import PartitionQueue
from support.waiting import eventually


def make(count: int = 2) -> tuple[ProducerBatch, list[RecordFuture]]:
    batch = ProducerBatch(PartitionQueue("t", 3, None), None, 0, 0)
    return batch, [RecordFuture(batch, index, 10 + index, 1, 2) for index in range(count)]


def end(batch: ProducerBatch, outcome: Outcome) -> None:
    batch.outcome = outcome
    finish(batch)


def test_offsets_and_timestamps_follow_from_the_batch() -> None:
    batch, futures = make()
    assert not futures[0].done()
    end(batch, Outcome(100))
    assert [future.result() for future in futures] == [
        RecordMetadata("t", 3, 100, 10, 1, 2),
        RecordMetadata("t", 3, 101, 11, 1, 2),
    ]
    batch, futures = make()
    end(batch, Outcome(100, 5000))
    assert [future.result().timestamp for future in futures] == [5000, 5000]
    batch, futures = make()
    end(batch, Outcome())
    assert [future.result().has_offset for future in futures] == [False, False]


def test_errors_of_single_records() -> None:
    batch, futures = make()
    bad = KafkaError("bad")
    end(batch, Outcome(error=KafkaError("batch"), record_errors={1: bad}))
    assert futures[1].exception() is bad
    with pytest.raises(KafkaError, match="one or more invalid records"):
        futures[0].result()


def test_threads_are_woken() -> None:
    batch, futures = make()
    waiting = threading.Thread(target=lambda: found.append(futures[1].result(10)))
    found: list[Any] = []
    waiting.start()
    eventually(lambda: batch.waiters, what="somebody waits")
    end(batch, Outcome(7))
    waiting.join()
    assert found[0].offset == 8


def test_waiting_may_take_too_long_or_be_in_the_wrong_thread() -> None:
    batch, (future, _) = make()
    with pytest.raises(KafkaTimeoutError, match="t-3"):
        future.result(0.001)
    batch.queue.home_thread = threading.get_ident()
    with pytest.raises(IllegalStateError, match="await the future"):
        future.result()


def test_coroutines_are_woken_from_another_thread() -> None:
    batch, futures = make()

    async def run() -> list[int]:
        ending = asyncio.create_task(asyncio.to_thread(end_when_awaited))
        found = await asyncio.gather(*(result(future) for future in futures))
        await ending
        return [metadata.offset for metadata in found]

    async def result(future: RecordFuture) -> RecordMetadata:
        return await future

    def end_when_awaited() -> None:
        eventually(lambda: len(batch.waiters) == 2, what="both wait")
        end(batch, Outcome(0))

    assert asyncio.run(run()) == [0, 1]


def test_callbacks_are_called_once_and_in_order_whatever_they_raise() -> None:
    batch, futures = make(3)
    told: list[Any] = []

    def callback(metadata: Any, error: Any) -> None:
        told.append((metadata.offset, error))
        raise RuntimeError("of the user")

    batch.callbacks = [(future, callback) for future in futures]
    futures[0].add_done_callback(lambda future: told.append(future.result().offset))
    end(batch, Outcome(5))
    futures[0].add_done_callback(lambda future: told.append("late"))
    assert told == [(5, None), (6, None), (7, None), 5, "late"]


def test_a_future_that_failed_at_once() -> None:
    error = KafkaError("no")
    future = failed_future(PartitionQueue("t", -1, None), error)
    assert (future.done(), future.exception(), future.cancel()) == (True, error, False)


def test_headers_are_normal_pairs() -> None:
    expected = [("a", b"1"), ("b", None)]
    assert normal_headers({"a": "1", "b": None}) == expected
    assert normal_headers([["a", bytearray(b"1")], ("b", None)]) == expected
    assert normal_headers(None) == []
    for bad in ([("a",)], [(1, b"")], [("a", 1)], ["text"]):
        with pytest.raises(KafkaError, match="header"):
            normal_headers(bad)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topic": None}, TypeError),
        ({"topic": "t", "partition": -1}, ValueError),
        ({"topic": "t", "timestamp": -1}, ValueError),
    ],
)
def test_records_that_cannot_be(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ProducerRecord(**arguments)
