"""What survives when the power fails: everything that an fsync has covered, and nothing half."""

from __future__ import annotations

import asyncio

import pytest

from moldau.broker.log.cleaner.process import InlineWorker
from moldau.broker.log.cleaner.shell import Cleaner
from moldau.broker.log.context import LogDirFailure
from moldau.broker.log.machine.checkpoints import CorruptCheckpoint, decode_epochs, encode_epochs
from moldau.sim.disk import Stopped
from moldau.sim.logs.node import CleanerSettings
from support.log_folder import NOW_MS, append, read_all, values_of
from support.power import TOPIC_ID, KeepChanges, Machine, Slow, UndoNames, abort_one


def test_a_flush_covers_topic_id_and_epochs() -> None:
    machine = Machine()
    append(machine.create(), b"a", leader_epoch=3)
    machine.log().flush()
    machine.lose_power()
    assert machine.log().topic_id == TOPIC_ID
    assert machine.log().leader_epochs.entries() == [(3, 0)]


def test_a_flush_covers_small_files_that_a_killed_process_has_left() -> None:
    machine = Machine()
    append(machine.create(), b"a", leader_epoch=3)
    machine.kill()
    machine.log().flush()
    machine.lose_power()
    assert machine.log().topic_id == TOPIC_ID
    assert machine.log().leader_epochs.entries() == [(3, 0)]


def test_indexes_of_a_segment_that_was_flushed_before_it_was_rolled_become_durable() -> None:
    machine = Machine()
    log = machine.create()
    abort_one(log)
    log.flush()
    log.roll(NOW_MS)
    append(log, b"y")
    log.flush()
    machine.manager.checkpoint_recovery_points()
    machine.lose_power()
    log = machine.log()
    assert log.segments.first.max_timestamp == NOW_MS
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]


def test_indexes_are_not_trusted_when_the_segment_was_rolled_after_the_checkpoint() -> None:
    machine = Machine()
    log = machine.create()
    abort_one(log)
    log.flush()
    machine.manager.checkpoint_recovery_points()
    log.roll(NOW_MS)
    machine.lose_power()
    log = machine.log()
    assert log.segments.first.max_timestamp == NOW_MS
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]


def test_indexes_made_anew_after_a_clean_stop_are_not_trusted_before_they_are_synced() -> None:
    machine = Machine(background=Slow())
    abort_one(machine.create())
    machine.stop()
    machine.start()
    machine.kill()
    machine.log().roll(NOW_MS)
    machine.lose_power()
    log = machine.log()
    assert log.segments.first.max_timestamp == NOW_MS
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]


def test_indexes_made_anew_below_a_recovery_point_at_the_very_end_are_synced() -> None:
    """As Apache Kafka leaves it; it is one segment's end and the start of the next."""
    machine = Machine(background=Slow())
    abort_one(machine.create())
    machine.stop()
    name = "/data1/recovery-point-offset-checkpoint"
    machine.platter.start().write_atomic(name, b"0\n1\nt 0 2\n")
    machine.platter.disk.remove("/data1/.kafka_cleanshutdown")
    machine.start()
    machine.log().roll(NOW_MS)
    machine.lose_power()
    log = machine.log()
    assert log.segments.first.max_timestamp == NOW_MS
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]


def test_an_epoch_that_cannot_be_written_takes_the_folder_offline() -> None:
    machine = Machine()
    log = machine.create()
    log.assign_epoch(3, 0)
    append(log, b"x", leader_epoch=3)
    machine.platter.break_folder("/data1/", 0)
    with pytest.raises(LogDirFailure):
        log.flush()


def test_epochs_below_the_recovery_point_survive_a_power_failure() -> None:
    """They are written by the flush that moves it, not before."""
    machine = Machine()
    log = machine.create()
    for epoch in (2, 5):
        log.assign_epoch(epoch, log.log_end_offset)
        append(log, b"x", leader_epoch=epoch)
    log.flush()
    append(log, b"y", leader_epoch=6)
    machine.lose_power()
    assert machine.log().leader_epochs.entries()[:2] == [(2, 0), (5, 1)]


def test_a_flush_that_runs_while_the_segment_is_rolled_does_not_cover_its_indexes() -> None:
    slow = Slow()
    machine = Machine(background=slow)
    log = machine.create()
    append(log, b"x")
    log.request_flush(now_ms=NOW_MS)
    log.roll(NOW_MS)
    slow.run_next()
    assert log.recovery_point < 1
    slow.run_next()
    assert log.recovery_point == 1


@pytest.mark.parametrize("as_one", [False, True])
def test_a_clean_stop_leaves_nothing_that_a_power_failure_could_take(as_one: bool) -> None:
    machine = Machine()
    log = machine.create()
    abort_one(log)
    append(log, b"a", b"b", producer_id=6, producer_epoch=0, base_sequence=0)
    machine.stop(as_one=as_one)
    machine.lose_power()
    log = machine.log()
    assert values_of(read_all(log))[-2:] == [(2, b"a"), (3, b"b")]
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]
    assert log.producers.entries[6].last_sequence == 1
    assert log.segments.active.max_timestamp == NOW_MS + 1


@pytest.mark.parametrize("as_one", [False, True])
def test_a_clean_stop_syncs_indexes_that_it_completes_without_any_append(as_one: bool) -> None:
    machine = Machine()
    append(machine.create(), b"a")
    machine.stop(as_one=as_one)
    machine.platter.start().remove("/data1/.kafka_cleanshutdown")
    machine.start()
    machine.stop(as_one=as_one)
    machine.lose_power()
    assert machine.log().segments.active.time_index.last_timestamp == NOW_MS


def test_the_last_stable_offset_is_right_at_once_after_a_restart() -> None:
    machine = Machine()
    abort_one(machine.create())
    machine.manager.checkpoint_high_watermarks()
    machine.kill()
    assert machine.log().high_watermark == 2
    assert machine.log().last_stable_offset == 2


def test_the_last_stable_offset_is_right_at_once_after_a_truncation() -> None:
    machine = Machine()
    log = machine.create()
    abort_one(log)
    append(log, b"y")
    log.truncate_to(2, now_ms=NOW_MS)
    assert log.last_stable_offset == log.high_watermark == 2


def test_a_log_ends_where_the_power_failure_took_a_whole_tail() -> None:
    """The end of a segment is lost at a batch's border while the next one's name is there."""
    machine = Machine(segment_bytes=150, background=Slow())
    log = machine.create()
    append(log, b"a" * 50)
    log.flush()
    append(log, b"b" * 50)
    append(log, b"c" * 50)
    assert log.segments.base_offsets == [0, 1, 2]
    machine.platter.files["/data1/t-0/00000000000000000002.log"].sync()
    machine.lose_power()
    assert machine.log().log_end_offset == 1
    assert values_of(read_all(machine.log())) == [(0, b"a" * 50)]


def test_deleting_records_does_not_make_them_durable() -> None:
    machine = Machine()
    log = machine.create()
    append(log, b"a")
    log.advance_log_start_offset(1)
    assert log.recovery_point == 0


def test_a_checkpoint_asked_for_before_the_stop_does_not_come_after_it() -> None:
    slow = Slow()
    machine = Machine(background=slow)
    log = machine.create()
    append(log, b"a", b"b", b"c")
    machine.manager.checkpoint_log_starts()
    machine.manager.checkpoint_high_watermarks()
    log.advance_log_start_offset(2)
    machine.manager.close()
    for work, _ in slow.jobs:
        work()
    machine.platter.stop()
    machine.start()
    assert machine.log().log_start_offset == 2


def test_a_flush_is_acknowledged_when_its_folder_is_synced_not_when_that_begins() -> None:
    slow = Slow()
    machine = Machine(background=slow)
    log = machine.create()
    told: list[BaseException | None] = []
    log.flusher.request(0, NOW_MS, told.append)
    log.flusher.request(0, NOW_MS, told.append)
    assert told == []
    slow.run_next()
    assert told == [None, None]


def test_a_flush_in_place_covers_what_one_in_the_background_has_not_done_yet() -> None:
    machine = Machine(background=Slow())
    log = machine.create()
    append(log, b"a", leader_epoch=3)
    log.request_flush(now_ms=NOW_MS)
    log.flush()
    machine.lose_power()
    assert machine.log().topic_id == TOPIC_ID
    assert machine.log().leader_epochs.entries() == [(3, 0)]


def test_what_is_written_after_a_truncation_is_checked_whatever_was_checkpointed_before() -> None:
    machine = Machine(segment_bytes=150, background=Slow())
    log = machine.create()
    for _ in range(4):
        append(log, b"a" * 50)
    machine.stop()
    machine.start()
    log = machine.log()
    assert log.truncate_to(1, now_ms=NOW_MS)
    for _ in range(3):
        append(log, b"b" * 50, leader_epoch=1)
    machine.lose_power()
    assert machine.log().log_end_offset == 1
    assert values_of(read_all(machine.log())) == [(0, b"a" * 50)]


def test_a_truncation_to_the_recovery_point_leaves_indexes_that_are_not_trusted() -> None:
    machine = Machine(background=Slow())
    abort_one(machine.create())
    machine.stop()
    name = "/data1/recovery-point-offset-checkpoint"
    machine.platter.start().write_atomic(name, b"0\n1\nt 0 2\n")
    machine.start()
    append(machine.log(), b"a")
    machine.kill()
    log = machine.log()
    log.truncate_to(2, now_ms=NOW_MS)
    log.roll(NOW_MS)
    machine.lose_power()
    log = machine.log()
    assert log.segments.first.max_timestamp == NOW_MS
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]


def test_a_crash_while_indexes_are_made_anew_leaves_none_that_look_complete() -> None:
    machine = Machine(index_interval_bytes=0)
    log = machine.create()
    for value in (b"a", b"b", b"c"):
        append(log, value)
        machine.now_ms += 1
    abort_one(log)
    log.roll(NOW_MS)
    machine.stop()
    machine.start()
    machine.platter.stop()
    path = "/data1/t-0/00000000000000000000.index"
    machine.platter.start().remove(path)
    for changes in range(100):
        machine.platter.stop_after(changes)
        try:
            machine.start()
        except Stopped:
            continue
        break
    machine.platter.stop_after(None)
    machine.lose_power()
    log = machine.log()
    assert changes > 5
    assert log.segments.first.max_timestamp == NOW_MS
    assert log.segments.first.offset_index.entry_count == 4
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]


def test_an_epoch_file_that_lost_its_last_byte_is_not_believed() -> None:
    with pytest.raises(CorruptCheckpoint, match="cut off"):
        decode_epochs("f", encode_epochs([(0, 0), (1, 34)])[:-2])


def test_a_crash_in_a_truncation_leaves_no_hole() -> None:
    for changes in range(30):
        machine = Machine(segment_bytes=150, cleanup_policy=frozenset({"compact"}))
        log = machine.create()
        for _ in range(5):
            append(log, b"a" * 50)
        machine.platter.stop_after(changes)
        try:
            log.truncate_to(1, now_ms=NOW_MS)
        except Stopped:
            machine.kill()
        else:
            break
        log = machine.log()
        assert [offset for offset, _ in values_of(read_all(log))] == list(range(log.log_end_offset))
    assert changes > 5


@pytest.mark.parametrize("kept", range(12))
def test_segments_dropped_after_a_torn_one_do_not_come_back(kept: int) -> None:
    machine = Machine(
        segment_bytes=150, cleanup_policy=frozenset({"compact"}), fate=KeepChanges(kept)
    )
    log = machine.create()
    for value in (b"a", b"b", b"c"):
        append(log, value * 50)
    log.flush()
    machine.platter.stop()
    torn = machine.platter.start().open("/data1/t-0/00000000000000000001.log")
    torn.truncate(torn.size - 3)
    torn.sync()
    machine.start()
    assert machine.log().log_end_offset == 1
    machine.lose_power()
    assert machine.log().log_end_offset == 1


@pytest.mark.parametrize("failing", range(8))
def test_segments_that_a_failed_cut_took_away_do_not_come_back(failing: int) -> None:
    """Behind what was written in their place they would be records that nobody appended there."""
    machine = Machine(segment_bytes=150, cleanup_policy=frozenset({"compact"}), fate=UndoNames())
    log = machine.create()
    for value in (b"a", b"b", b"c"):
        append(log, value * 50)
    log.flush()
    machine.platter.break_folder("/data1/", failing)
    try:
        log.truncate_to(1, now_ms=NOW_MS)
    except LogDirFailure:
        machine.platter.heal()
    else:
        return
    machine.kill()
    end = machine.log().log_end_offset
    machine.lose_power()
    assert machine.log().log_end_offset == end


def test_a_producer_snapshot_does_not_outlive_the_batches_it_tells_of() -> None:
    """A compacted log may have a hole before its last segment, whose snapshot is there."""
    machine = Machine(segment_bytes=150, background=Slow(), cleanup_policy=frozenset({"compact"}))
    log = machine.create()
    producer = {"producer_id": 5, "producer_epoch": 0}
    append(log, b"a" * 50, base_sequence=0, **producer)
    log.flush()
    append(log, b"b" * 50, base_sequence=1, **producer)
    append(log, b"c" * 50)
    machine.platter.files["/data1/t-0/00000000000000000002.snapshot"].sync()
    machine.lose_power()
    assert machine.log().producers.entries[5].last_sequence == 0


def test_a_kill_before_the_first_segment_leaves_a_topic_id_that_flushes_cover() -> None:
    machine = Machine()
    machine.platter.stop_after(5)
    with pytest.raises(Stopped):
        machine.create()
    machine.start()
    append(machine.log(), b"a")
    machine.log().flush()
    machine.lose_power()
    assert machine.log().topic_id == TOPIC_ID


def test_a_broken_folder_is_told_by_a_flush_in_place_and_by_the_cleaner() -> None:
    machine = Machine()
    log = machine.create()
    append(log, b"a")
    machine.platter.break_folder("/data1/", 0)
    with pytest.raises(LogDirFailure):
        log.flush()
    machine.platter.heal()
    machine.kill()
    machine.platter.break_folder("/data1/", 0)
    assert machine.manager.cleaner_offsets(machine.manager.dirs[0]) == {}
    assert machine.manager.offline_dirs == machine.manager.dirs


def test_compaction_waits_until_what_replaces_the_old_is_durable() -> None:
    machine = Machine(cleanup_policy=frozenset({"compact"}), background=Slow())
    log = machine.create()
    append(log, b"flushed")
    log.flush()
    append(log, b"not flushed")
    log.roll(NOW_MS)
    cleaner = Cleaner(
        machine.manager,
        CleanerSettings(),
        lambda: NOW_MS,
        make_worker=lambda: InlineWorker(machine.platter.disk),
    )

    async def clean() -> None:
        task = asyncio.get_running_loop().create_task(cleaner.clean_now("t", 0))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(clean())
    machine.lose_power()
    assert values_of(read_all(machine.log())) == [(0, b"flushed")]


def test_a_stop_that_syncs_ahead_may_be_cut_off_anywhere() -> None:
    """What was flushed stays, and epochs are those of the batches that are left."""
    epochs = [(1, 0), (2, 1), (4, 2)]
    for changes in range(100):
        machine = Machine()
        log = machine.create()
        append(log, b"0", leader_epoch=1)
        log.flush()
        machine.manager.checkpoint_recovery_points()
        append(log, b"1", leader_epoch=2)
        machine.manager.closing.synced_singly_max = 0
        machine.platter.stop_after(changes)
        try:
            asyncio.run(machine.manager.begin_close())
            append(log, b"2", leader_epoch=4)
            machine.manager.close()
            finished = True
        except Stopped:
            finished = False
        machine.lose_power()
        found = [value for _, value in values_of(read_all(machine.log()))]
        assert found == [b"0", b"1", b"2"][: len(found)]
        assert found
        assert machine.log().leader_epochs.entries() == epochs[: len(found)]
        if finished:
            assert len(found) == 3
            return
    pytest.fail("the stop makes more changes than expected")
