"""What was fetched, on its way to the application."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client._fetch_reader import FetchReader
from moldau.client.consumer.machine.fetch_buffer import CompletedFetch, FetchBuffer, end_of_batches
from moldau.client.consumer.machine.positions import EARLIEST, Position
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.errors import KafkaError, RecordDeserializationError
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.records import encode_batch

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(base_offset: int, count: int) -> bytes:
    records = [(None, b"%d" % (base_offset + index), 0, ()) for index in range(count)]
    return encode_batch(records, base_offset=base_offset, partition_leader_epoch=3)


class Stage:
    """A subscription to two partitions, and what was fetched of them."""

    def __init__(self) -> None:
        self.subscription = SubscriptionState(EARLIEST)
        self.subscription.assign_by_user([A, B])
        for key in (A, B):
            self.subscription.seek(key, Position(0))
        self.drained: list[CompletedFetch] = []
        #: How many parts were buffered when room was told of.
        self.room: list[int] = []
        self.buffer = FetchBuffer(self.subscription, self.drained.append, self.on_room)

    def on_room(self) -> None:
        states = self.subscription.assignment.values()
        self.room.append(sum(state.buffered_count for state in states))

    def fetched(self, key: TopicPartition, data: bytes, **reading: Any) -> None:
        state = self.subscription.assignment[key]
        end = end_of_batches(memoryview(data))
        assert end is not None
        self.buffer.add(
            CompletedFetch(
                key,
                state,
                version=state.version,
                start_offset=state.fetch_offset,
                end_offset=end,
                size=len(data),
                reader=FetchReader(data, *key, state.fetch_offset, **reading),
            )
        )

    def failed(self, key: TopicPartition, error: KafkaError | None) -> None:
        state = self.subscription.assignment[key]
        self.buffer.add(
            CompletedFetch(
                key,
                state,
                version=state.version,
                start_offset=state.fetch_offset,
                end_offset=state.fetch_offset,
                size=0,
                reader=None,
                error=lambda: error,
            )
        )

    def collect(self, count: int = 100) -> dict[TopicPartition, list[int]]:
        found, _ = self.buffer.collect(count)
        return {key: [record.offset for record in records] for key, records in found.items()}

    def position(self, key: TopicPartition) -> int:
        position = self.subscription.assignment[key].position
        assert position is not None
        return position.offset


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_records_leave_in_order_and_positions_follow(stage: Stage) -> None:
    stage.fetched(A, batch(0, 4))
    stage.fetched(A, batch(4, 3))
    assert stage.subscription.assignment[A].fetch_offset == 7
    assert stage.subscription.assignment[A].buffered_count == 2
    found, following = stage.buffer.collect(3)
    assert [record.value for record in found[A]] == [b"0", b"1", b"2"]
    assert following == {A: OffsetAndMetadata(3, "", 3)}
    assert stage.collect(2) == {A: [3, 4]}
    assert stage.position(A) == 5
    assert stage.subscription.assignment[A].buffered_count == 1
    assert len(stage.drained) == 1
    assert stage.collect() == {A: [5, 6]}
    assert stage.buffer.byte_count == 0
    assert not stage.buffer


def test_who_waits_for_room_hears_of_it(stage: Stage) -> None:
    for waits in (False, True):
        offset = stage.position(A)
        stage.fetched(A, batch(offset, 2))
        stage.buffer.short_of_room = waits
        stage.collect(1)
        assert stage.room == []
        stage.collect(1)
        assert stage.room == [0] * waits


def test_the_next_part_is_asked_for_before_the_last_one_is_read(stage: Stage) -> None:
    for first in (0, 2, 4):
        stage.fetched(A, batch(first, 2))
    stage.buffer.short_of_room = True
    assert stage.collect() == {A: [0, 1, 2, 3, 4, 5]}
    # Once, when the first of three was read: whoever looks then finds out about the others.
    assert stage.room == [2]
    assert not stage.buffer.short_of_room


def test_what_a_seek_dropped_makes_room_too(stage: Stage) -> None:
    stage.fetched(A, batch(0, 2))
    stage.subscription.seek(A, Position(6))
    stage.buffer.short_of_room = True
    assert stage.collect() == {}
    assert stage.room == [0]


def test_one_poll_takes_from_several_partitions(stage: Stage) -> None:
    stage.fetched(A, batch(0, 2))
    stage.fetched(B, batch(0, 5))
    assert stage.collect(4) == {A: [0, 1], B: [0, 1]}
    assert stage.collect(4) == {B: [2, 3, 4]}


def test_what_is_paused_waits(stage: Stage) -> None:
    stage.fetched(A, batch(0, 2))
    stage.fetched(B, batch(0, 2))
    stage.subscription.set_paused([A], True)
    assert stage.collect() == {B: [0, 1]}
    assert stage.collect() == {}
    assert stage.position(A) == 0
    stage.subscription.set_paused([A], False)
    assert stage.collect() == {A: [0, 1]}


def test_after_a_seek_nothing_of_before_is_given(stage: Stage) -> None:
    stage.fetched(A, batch(0, 4))
    stage.fetched(A, batch(4, 4))
    assert stage.collect(2) == {A: [0, 1]}
    stage.subscription.seek(A, Position(6))
    assert stage.collect() == {}
    assert stage.position(A) == 6
    assert stage.subscription.assignment[A].buffered_count == 0
    assert stage.buffer.byte_count == 0
    # The next ones are from there, also out of a batch that begins before.
    stage.fetched(A, batch(4, 4))
    assert stage.collect() == {A: [6, 7]}


def test_an_answer_to_an_older_request_is_dropped(stage: Stage) -> None:
    state = stage.subscription.assignment[A]
    late = CompletedFetch(
        A, state, version=state.version, start_offset=0, end_offset=4, size=9, reader=None
    )
    stage.subscription.seek(A, Position(2))
    stage.buffer.add(late)
    assert not stage.buffer
    assert state.fetch_offset == 2


def test_partitions_that_went_give_nothing(stage: Stage) -> None:
    stage.fetched(A, batch(0, 2))
    stage.fetched(B, batch(0, 2))
    stage.subscription.mark_revocation([A])
    assert stage.collect() == {B: [0, 1]}
    stage.fetched(B, batch(2, 2))
    stage.subscription.assign_by_user([A])
    assert stage.collect() == {}
    assert stage.buffer.byte_count == 0


def test_an_error_comes_after_the_records_before_it(stage: Stage) -> None:
    stage.fetched(A, batch(0, 2))
    stage.failed(B, KafkaError("refused"))
    stage.fetched(A, batch(2, 2))
    assert stage.collect() == {A: [0, 1]}
    with pytest.raises(KafkaError, match="refused"):
        stage.collect()
    # It is over with that.
    assert stage.collect() == {A: [2, 3]}


def test_an_error_that_was_dealt_with_is_no_error(stage: Stage) -> None:
    stage.failed(A, None)
    stage.fetched(B, batch(0, 1))
    assert stage.collect() == {B: [0]}


def test_a_record_that_cannot_be_read_stays_in_the_way(stage: Stage) -> None:
    def picky(topic: str, data: bytes | None, headers: object) -> bytes | None:
        if data == b"2":
            raise ValueError(data)
        return data

    stage.fetched(A, batch(0, 4), value_deserializer=picky)
    assert stage.collect() == {A: [0, 1]}
    for _ in range(2):
        with pytest.raises(RecordDeserializationError):
            stage.collect()
    assert stage.position(A) == 2


def test_where_a_response_ends() -> None:
    whole = batch(10, 3) + batch(13, 2)
    assert end_of_batches(memoryview(whole)) == 15
    assert end_of_batches(memoryview(whole[:-1])) == 13
    assert end_of_batches(memoryview(whole[:30])) is None
    assert end_of_batches(memoryview(b"")) is None
