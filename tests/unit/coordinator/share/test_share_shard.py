"""The share coordinator's shard: who may change the state of share partitions, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.coordinator.share.machine.values import (
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import ShareSnapshotKey, ShareUpdateKey
from moldau.wire.record_values import decode_coordinator_record
from moldau.wire.uuids import uuid_from_text

ACKNOWLEDGED = 2


def kinds(stage: Any) -> list[type]:
    return [type(decode_coordinator_record("share", key, None)[0]) for key, _ in stage.written]


def refusal(call: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code


def test_a_key_is_spelled_as_kafka_does() -> None:
    key = SharePartitionKey("group", uuid_from_text("EYsRDXNQTjKV3DJfQl2XPw"), 7)
    assert str(key) == "group:EYsRDXNQTjKV3DJfQl2XPw:7"


def test_what_was_written_is_read(states: Any) -> None:
    key = states.key()
    states.initialize(key, start_offset=5)
    states.write(key, StateBatch(5, 9, ACKNOWLEDGED, 1), start_offset=5)
    states.write(key, StateBatch(12, 14, 0, 2))
    assert states.read(key) == ShareState(
        1, 5, (StateBatch(5, 9, ACKNOWLEDGED, 1), StateBatch(12, 14, 0, 2))
    )


def test_batches_below_the_start_offset_are_dropped(states: Any) -> None:
    key = states.key()
    states.initialize(key, start_offset=0)
    states.write(key, StateBatch(0, 9, 0, 1))
    states.write(key, start_offset=6, delivery_complete_count=3)
    assert states.read(key) == ShareState(1, 6, (StateBatch(6, 9, 0, 1),))
    assert states.perform(states.shard.read_summary(key)) == ShareStateSummary(1, 0, 6, 3)


@pytest.mark.parametrize(("start_offset", "delivery_complete_count"), [(-1, -1), (0, 0), (17, 0)])
def test_initialisation_counts_only_from_a_known_offset(
    states: Any, start_offset: int, delivery_complete_count: int
) -> None:
    key = states.key()
    states.initialize(key, state_epoch=4, start_offset=start_offset)
    assert states.perform(states.shard.read_summary(key)) == ShareStateSummary(
        4, 0, start_offset, delivery_complete_count
    )


def test_initialising_anew_forgets_batches_but_not_epochs(states: Any) -> None:
    key = states.key()
    states.initialize(key, start_offset=0)
    states.read(key, leader_epoch=3)
    states.write(key, StateBatch(0, 9, ACKNOWLEDGED, 1), leader_epoch=3)
    states.initialize(key, state_epoch=2, start_offset=100)
    assert refusal(lambda: states.write(key, state_epoch=1, leader_epoch=3)) is (
        ErrorCode.FENCED_STATE_EPOCH
    )
    assert refusal(lambda: states.read(key, leader_epoch=2)) is ErrorCode.FENCED_LEADER_EPOCH
    assert states.read(key, leader_epoch=3) == ShareState(2, 100, ())


def test_a_second_initialisation_that_was_long_on_its_way_forgets_nothing(states: Any) -> None:
    key = states.key()
    states.initialize(key, state_epoch=2)
    states.write(key, StateBatch(0, 9, ACKNOWLEDGED, 1), state_epoch=2, start_offset=0)
    states.initialize(key, state_epoch=5)
    assert states.read(key) == ShareState(2, 0, (StateBatch(0, 9, ACKNOWLEDGED, 1),))


def test_a_summary_of_nothing_is_no_error(states: Any) -> None:
    assert states.perform(states.shard.read_summary(states.key())) == ShareStateSummary(
        0, 0, -1, -1
    )


def test_uninitialised_partitions_can_neither_be_read_nor_written(states: Any) -> None:
    key = states.key()
    assert refusal(lambda: states.read(key)) is ErrorCode.INVALID_REQUEST
    assert refusal(lambda: states.write(key)) is ErrorCode.INVALID_REQUEST
    states.initialize(key)
    states.perform(states.shard.delete_state(key))
    assert refusal(lambda: states.read(key)) is ErrorCode.INVALID_REQUEST
    states.perform(states.shard.delete_state(key))


def test_reading_fences_older_leaders(states: Any) -> None:
    key = states.key()
    states.initialize(key)
    states.read(key, leader_epoch=5)
    assert refusal(lambda: states.read(key, leader_epoch=4)) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(lambda: states.write(key, leader_epoch=4)) is ErrorCode.FENCED_LEADER_EPOCH
    # Whoever names no epoch is not asked for one when writing.
    states.write(key, leader_epoch=-1)
    states.write(key, leader_epoch=6)
    # A write does not make a leader.
    states.read(key, leader_epoch=5)


def test_reading_again_with_the_same_epoch_writes_nothing(states: Any) -> None:
    key = states.key()
    states.initialize(key)
    states.read(key, leader_epoch=2)
    before = len(states.written)
    states.read(key, leader_epoch=2)
    assert len(states.written) == before


def test_older_state_epochs_are_fenced(states: Any) -> None:
    key = states.key()
    states.initialize(key, state_epoch=5)
    assert refusal(lambda: states.initialize(key, state_epoch=4)) is ErrorCode.FENCED_STATE_EPOCH
    assert refusal(lambda: states.write(key, state_epoch=4)) is ErrorCode.FENCED_STATE_EPOCH
    states.write(key, state_epoch=-1)
    states.initialize(key, state_epoch=5)


@pytest.mark.parametrize(
    ("partition", "expected"),
    [(-1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_partitions_that_cannot_be(states: Any, partition: int, expected: ErrorCode) -> None:
    key = states.key(partition)
    assert refusal(lambda: states.initialize(key)) is expected
    assert refusal(lambda: states.shard.delete_state(key)) is expected
    assert refusal(lambda: states.shard.read_summary(key)) is expected


def test_a_deleted_topic_is_unknown_and_its_state_is_removed(states: Any) -> None:
    gone, stays = states.key(topic="t"), SharePartitionKey("g", states.topics.create("u", 1), 0)
    states.initialize(gone)
    states.initialize(stays)
    topic_id = states.topics.delete("t")
    assert refusal(lambda: states.read(gone)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(lambda: states.write(gone)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    states.perform(states.shard.forget_topics({topic_id}))
    assert list(states.shard.entries) == [stays]


def test_a_batch_that_ends_before_it_begins_is_refused(states: Any) -> None:
    key = states.key()
    states.initialize(key)
    bad = StateBatch(9, 5, 0, 1)
    assert refusal(lambda: states.write(key, bad)) is ErrorCode.INVALID_REQUEST


def test_every_so_many_updates_there_is_a_snapshot(StateStage: Any) -> None:
    stage = StateStage(share_coordinator_snapshot_update_records_per_snapshot=2)
    key = stage.key()
    stage.initialize(key, start_offset=0)
    for offset in range(6):
        stage.write(key, StateBatch(offset, offset, ACKNOWLEDGED, 1))
    snapshot, update = ShareSnapshotKey, ShareUpdateKey
    assert kinds(stage) == [snapshot, update, update, snapshot, update, update, snapshot]
    # A snapshot stands for everything before it.
    assert stage.replayed(from_offset=6).entries[key].snapshot == stage.shard.entries[key].snapshot
    assert stage.read(key).batches == (StateBatch(0, 5, ACKNOWLEDGED, 1),)


def test_records_are_pruned_below_the_oldest_snapshot_in_use(StateStage: Any) -> None:
    stage = StateStage(share_coordinator_state_topic_prune_interval_ms=1_000)
    one, other = stage.key(0), stage.key(1)
    stage.initialize(one)
    stage.initialize(other)
    stage.advance(1_000)
    assert stage.pruned == []
    stage.initialize(one, state_epoch=2)
    stage.advance(1_000)
    assert stage.pruned == [1]
    stage.perform(stage.shard.delete_state(other))
    stage.advance(1_000)
    assert stage.pruned[-1] == 2
    stage.perform(stage.shard.delete_state(one))
    stage.advance(1_000)
    assert stage.pruned[-1] == 4
    assert stage.replayed(from_offset=4).entries == stage.shard.entries == {}


def test_idle_partitions_get_snapshots_so_that_the_log_can_be_pruned(StateStage: Any) -> None:
    stage = StateStage(
        share_coordinator_cold_partition_snapshot_interval_ms=10_000,
        share_coordinator_state_topic_prune_interval_ms=10_000,
        share_coordinator_snapshot_update_records_per_snapshot=0,
    )
    idle, busy = stage.key(0), stage.key(1)
    stage.initialize(idle, start_offset=7)
    stage.write(idle, StateBatch(7, 9, 0, 1))
    stage.initialize(busy)
    stage.advance(9_999)
    stage.write(busy, start_offset=3)
    before = stage.shard.entries[idle].snapshot
    stage.advance(1)
    after = stage.shard.entries[idle].snapshot
    assert (after.snapshot_epoch, after.written_ms) == (before.snapshot_epoch + 1, stage.now_ms)
    assert (after.created_ms, after.batches) == (before.created_ms, before.batches)
    stage.advance(10_000)
    assert stage.pruned[-1] > 0
    # When nothing at all happens, nothing is written for ever.
    stage.advance(30_000)
    count = len(stage.written)
    stage.advance(100_000)
    assert len(stage.written) == count


commands = st.lists(
    st.one_of(
        st.tuples(st.just("initialize"), st.integers(0, 2), st.integers(0, 3), st.integers(-1, 5)),
        st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, 20), st.integers(0, 20)),
        st.tuples(st.just("delete"), st.integers(0, 2), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.just(0), st.integers(0, 400_000), st.just(0)),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(commands=commands)
def test_a_reloaded_shard_equals_the_live_one(
    StateStage: Any, commands: list[tuple[str, int, int, int]]
) -> None:
    stage = StateStage(share_coordinator_snapshot_update_records_per_snapshot=3)
    for name, partition, one, other in commands:
        key = stage.key(partition)
        try:
            if name == "initialize":
                stage.initialize(key, state_epoch=one, start_offset=other)
            elif name == "read":
                stage.read(key, leader_epoch=one)
            elif name == "write":
                batch = StateBatch(one, one + other, ACKNOWLEDGED, 1)
                stage.write(key, batch, state_epoch=3, leader_epoch=3, start_offset=other)
            elif name == "delete":
                stage.perform(stage.shard.delete_state(key))
            else:
                stage.advance(one)
        except ApiError:
            continue
    assert stage.replayed().entries == stage.shard.entries
    # What was pruned is not missed.
    pruned = stage.replayed(from_offset=max(stage.pruned, default=0)).entries
    assert {key: entry.snapshot for key, entry in pruned.items()} == {
        key: entry.snapshot for key, entry in stage.shard.entries.items()
    }
