"""What survives when the power fails: everything that an fsync has covered, and nothing half."""

from __future__ import annotations

from moldau.broker.log.context import AppendOrigin
from moldau.broker.log.log import Log
from moldau.wire.records import encode_end_txn_marker
from support.log_folder import NOW_MS, append, read_all, values_of
from support.power import TOPIC_ID, Machine


def end_transaction(log: Log, producer_id: int, *, committed: bool) -> None:
    marker = encode_end_txn_marker(
        producer_id=producer_id,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=NOW_MS,
    )
    log.append_as_leader(
        bytearray(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.set_high_watermark(log.log_end_offset)


def abort_one(log: Log) -> None:
    """One aborted transaction at the log's end."""
    append(log, b"x", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 5, committed=False)


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


def test_a_flush_that_runs_while_the_segment_is_rolled_does_not_cover_its_indexes() -> None:
    class Slow:
        """Work is done when the test says so."""

        def __init__(self) -> None:
            self.jobs: list = []

        def submit(self, work, done) -> None:  # type: ignore[no-untyped-def]
            self.jobs.append((work, done))

        def run_next(self) -> None:
            work, done = self.jobs.pop(0)
            work()
            done(None)

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


def test_a_clean_stop_leaves_nothing_that_a_power_failure_could_take() -> None:
    machine = Machine()
    log = machine.create()
    abort_one(log)
    append(log, b"a", b"b", producer_id=6, producer_epoch=0, base_sequence=0)
    machine.stop()
    machine.lose_power()
    log = machine.log()
    assert values_of(read_all(log))[-2:] == [(2, b"a"), (3, b"b")]
    assert [entry.producer_id for entry in log.aborted_transactions(0, 9)] == [5]
    assert log.producers.entries[6].last_sequence == 1
    assert log.segments.active.max_timestamp == NOW_MS + 1


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
