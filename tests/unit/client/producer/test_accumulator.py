"""When batches are ready, what a request takes, who gets memory, and what is given up."""

from __future__ import annotations

import pytest

from moldau.client.errors import KafkaError
from moldau.client.producer._batch import Outcome, RecordFuture
from moldau.client.producer.delivery import finish
from moldau.client.producer.machine.queues import NEVER_MS, MemoryWaiter
from support.producer_stage import BATCH, Stage


def test_a_batch_lingers() -> None:
    stage = Stage()
    batch = stage.batch(now_ms=100)
    early = stage.drain(109)
    assert (early.batches, early.next_check_ms) == ({}, 110)
    assert stage.drain(110).batches == {1: [batch]}
    assert stage.drain(111).next_check_ms == NEVER_MS


@pytest.mark.parametrize("hurry", ["full", "another behind it", "flush", "memory", "closed"])
def test_a_batch_is_ready_at_once(hurry: str) -> None:
    stage = Stage()
    batch = stage.batch(size=BATCH if hurry == "full" else 10)
    accumulator = stage.accumulator
    match hurry:
        case "another behind it":
            batch.builder.close()
            stage.batch()
        case "flush":
            assert accumulator.begin_flush(lambda: None) is not None
        case "memory":
            accumulator.memory.waiters.append(MemoryWaiter(10**9, lambda: None))
        case "closed":
            accumulator.close()
    assert stage.drain(0).batches == {1: [batch]}


def test_a_request_takes_one_batch_of_each_partition_that_the_node_leads() -> None:
    stage = Stage({"t": [1, 2, 1]})
    first, second = stage.batch(partition=0), stage.batch(partition=0)
    other_node = stage.batch(partition=1)
    # It has not lingered yet, but there is a request to its node.
    young = stage.batch(partition=2, now_ms=10)
    drained = stage.drain(10, 1)
    assert drained.batches == {1: [first, young]}
    assert drained.unavailable == {2}
    assert stage.drain(10, 1, 2).batches == {1: [second], 2: [other_node]}


def test_requests_are_bounded_and_take_turns() -> None:
    stage = Stage({"t": [1, 1, 1]}, max_request_size=1500)
    batches = [stage.batch(partition=index, size=600) for index in range(3)]
    assert stage.drain(10).batches == {1: batches[:2]}
    again = stage.batch(partition=0, size=600)
    assert stage.drain(20).batches == {1: [batches[2], again]}


def test_a_batch_larger_than_a_request_goes_alone() -> None:
    stage = Stage({"t": [1, 1]}, max_request_size=100)
    one, two = stage.batch(partition=0, size=600), stage.batch(partition=1, size=600)
    assert stage.drain(10).batches == {1: [one]}
    assert stage.drain(10).batches == {1: [two]}


def test_partitions_without_leader_are_asked_for() -> None:
    stage = Stage({"t": [-1]})
    stage.batch()
    drained = stage.drain(50)
    assert (drained.batches, drained.topics_without_leader) == ({}, {"t"})
    # They are given up in time all the same.
    assert drained.next_check_ms == 500


def test_a_muted_partition_waits_until_it_is_answered() -> None:
    stage = Stage()
    first, second = stage.batch(), stage.batch()
    assert stage.drain(10, mute=True).batches == {1: [first]}
    assert stage.drain(10, mute=True).batches == {}
    stage.accumulator.unmute(first.queue)
    assert stage.drain(10, mute=True).batches == {1: [second]}


def test_a_batch_that_failed_waits_and_goes_first() -> None:
    stage = Stage()
    first, second = stage.batch(), stage.batch()
    stage.drain(10)
    stage.accumulator.reenqueue(first, 20)
    waiting = stage.drain(119)
    assert (waiting.batches, waiting.next_check_ms) == ({}, 120)
    assert stage.drain(120).batches == {1: [first]}
    stage.accumulator.reenqueue(first, 130)
    assert stage.drain(329).batches == {}
    assert stage.drain(330).batches == {1: [first]}
    assert stage.drain(330).batches == {1: [second]}


def test_another_leader_is_asked_at_once() -> None:
    stage = Stage({"t": [1]})
    batch = stage.batch()
    stage.drain(10)
    stage.accumulator.reenqueue(batch, 20)
    stage.lead({"t": [2]}, epoch=1)
    assert stage.drain(20, 2).batches == {2: [batch]}


def test_batches_come_back_in_the_order_of_their_numbers() -> None:
    stage = Stage()
    batches = [stage.batch() for _ in range(4)]
    for number, batch in enumerate(batches[:3]):
        stage.drain(10)
        batch.set_producer_state(7, 0, number)
    for batch in (batches[1], batches[2], batches[0]):
        stage.accumulator.reenqueue(batch, 20)
    assert list(stage.queue().batches) == batches


def test_memory_is_given_in_the_order_of_asking() -> None:
    stage = Stage(buffer_memory=2 * BATCH)
    accumulator = stage.accumulator
    held = [stage.batch(), stage.batch(partition=0)]
    woken: list[str] = []
    large = MemoryWaiter(2 * BATCH, lambda: woken.append("large"))
    small = MemoryWaiter(10, lambda: woken.append("small"))
    accumulator.memory.waiters.extend([large, small])
    accumulator.discard(held[0])
    # There would be enough for the small one, but the large one was first.
    assert woken == []
    assert not accumulator.memory.take(1)
    accumulator.discard(held[1])
    assert woken == ["large"]
    accumulator.memory.withdraw(large)
    assert woken == ["large", "small"]
    assert small.granted
    accumulator.memory.give_back(small.size)
    assert accumulator.memory.free == 2 * BATCH


def test_who_gives_up_waiting_lets_the_next_one_in() -> None:
    stage = Stage(buffer_memory=BATCH)
    stage.accumulator.memory.take(500)
    first, second = MemoryWaiter(BATCH, lambda: None), MemoryWaiter(100, lambda: None)
    stage.accumulator.memory.waiters.extend([first, second])
    stage.accumulator.memory.withdraw(first)
    assert (first.granted, second.granted) == (False, True)


def test_memory_is_given_back_once() -> None:
    stage = Stage()
    batch = stage.batch()
    stage.accumulator.discard(batch)
    stage.accumulator.discard(batch)
    assert stage.accumulator.memory.free == 100 * BATCH


def test_a_flush_waits_for_what_was_there() -> None:
    stage = Stage()
    before = stage.batch()
    done: list[bool] = []
    flush = stage.accumulator.begin_flush(lambda: done.append(True))
    assert flush is not None
    after = stage.batch()
    stage.accumulator.discard(after)
    assert done == []
    stage.accumulator.discard(before)
    assert done == [True]
    assert stage.accumulator.begin_flush(lambda: None) is None


def test_batches_are_given_up_in_time() -> None:
    stage = Stage({"t": [1, -1]})
    in_flight, waiting = stage.batch(now_ms=0), stage.batch(now_ms=0, partition=1)
    young = stage.batch(now_ms=100, partition=1)
    stage.drain(10)
    assert stage.accumulator.expired(499) == ([], [])
    assert stage.accumulator.in_flight_expiry_ms == 500
    assert stage.accumulator.expired(500) == ([waiting], [in_flight])
    assert stage.accumulator.expired(600) == ([young], [])


def test_a_batch_that_is_too_large_becomes_smaller_ones_with_its_numbers() -> None:
    stage = Stage()
    batch = stage.batch(size=40, records=10)
    futures = [RecordFuture(batch, index, 0, -1, 40) for index in range(10)]
    flush = stage.accumulator.begin_flush(lambda: None)
    later = stage.batch()
    stage.drain(10)
    queue = stage.queue()
    queue.sequences.assign(batch)
    once = stage.accumulator.split(batch, 20)
    assert [part.record_count for part in once] == [10]
    stage.drain(20)
    parts = stage.accumulator.split(once[0], 30)
    assert sum(part.record_count for part in parts) == 10
    assert len(parts) > 1
    assert parts[0].base_sequence == 0
    assert parts[1].base_sequence == parts[0].record_count
    assert queue.sequences.in_flight == parts
    assert list(queue.batches) == [*parts, later]
    assert flush is not None
    assert flush.pending == set(parts)
    # A future knows the part that its record is in.
    offset = 100
    for part in parts:
        assert stage.accumulator.settle(part, Outcome(offset)) == [part]
        finish(part)
        offset += part.record_count
        stage.accumulator.discard(part)
    assert [future.metadata().offset for future in futures] == list(range(100, 110))
    assert all(future.done() for future in futures)
    assert not flush.pending
    assert stage.accumulator.memory.free == 99 * BATCH


def test_batches_are_told_of_in_the_order_of_sending() -> None:
    stage = Stage({"t": [1, 1]})
    first, second, third, waiting = (stage.batch() for _ in range(4))
    other = stage.batch(partition=1)
    for _ in range(3):
        stage.drain(10)
    accumulator = stage.accumulator
    error = Outcome(error=KafkaError("aborted"))
    assert accumulator.settle(second, Outcome(5)) == []
    # It was never sent, but comes after those that were.
    assert accumulator.settle(waiting, error) == []
    assert accumulator.settle(other, Outcome(0)) == [other]
    stage.accumulator.reenqueue(first, 20)
    assert accumulator.settle(first, Outcome(0)) == [first, second]
    assert accumulator.settle(third, Outcome(7)) == [third, waiting]


def test_abandoning_leaves_what_the_broker_may_have() -> None:
    stage = Stage()
    sent, unsent = stage.batch(), stage.batch()
    stage.drain(10)
    sent.set_producer_state(7, 0, 0)
    stage.accumulator.reenqueue(sent, 20)
    assert stage.accumulator.abandon_waiting(unsent_only=True) == [unsent]
    assert stage.accumulator.abandon_waiting() == [sent]
    assert not stage.accumulator.has_waiting


def test_the_sticky_partition_is_one_that_has_a_leader_and_a_short_queue() -> None:
    stage = Stage({"t": [-1, 1, 1]})
    sticky = stage.accumulator.topics["t"].sticky
    assert sticky.partition == 1
    stage.batch(partition=1)
    stage.batch(partition=1)
    stage.accumulator.update_weights()
    # Of the weights 1 and 3: no chance takes the first, chance 1 the second.
    sticky._random = type("One", (), {"randrange": lambda self, stop: 1})()
    sticky.switch()
    assert sticky.partition == 2


def test_nodes_that_take_nothing_are_avoided() -> None:
    stage = Stage({"t": [1, 2]}, availability_timeout_ms=50)
    stage.batch(partition=0)
    stage.batch(partition=1)
    stage.drain(10, 2)
    stage.drain(100, 2)
    stage.accumulator.update_weights()
    sticky = stage.accumulator.topics["t"].sticky
    for _ in range(3):
        sticky.switch()
        assert sticky.partition == 1


def test_topics_that_are_not_used_are_put_away() -> None:
    stage = Stage({"t": [1], "u": [1]})
    batch = stage.batch(now_ms=1000)
    assert stage.accumulator.table.idle_topics(5000, 1000) == ["u"]
    stage.drain(1010)
    stage.accumulator.discard(batch)
    assert stage.accumulator.table.idle_topics(5000, 1000) == ["t", "u"]
    queue = stage.queue()
    stage.accumulator.table.put_away(["t"])
    assert stage.accumulator.topics["t"].queues == []
    assert stage.accumulator.table.idle_topics(9000, 1000) == ["u"]
    # Its numbers are still those that brokers know.
    stage.lead({"t": [1]})
    assert stage.queue() is queue
