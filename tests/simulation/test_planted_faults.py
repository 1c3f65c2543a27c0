"""The simulator finds what it is there to find: each of these faults, within 200 seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.broker.log import inventories, producer_snapshots, recovery
from moldau.broker.log.cleaner.filtering import BatchFilter
from moldau.broker.log.disk import Disk
from moldau.broker.log.flusher import Flusher, FlushPlan
from moldau.broker.log.log import Log
from moldau.broker.log.log_checkpoints import LogCheckpoints
from moldau.broker.log.machine.inventory import LogFacts
from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.log.machine.names import CLEAN_SHUTDOWN_FILE, LOG_START_CHECKPOINT
from moldau.broker.log.segment import Segment
from moldau.broker.log.transaction_index import TransactionIndex
from moldau.broker.raft.log import RaftLog
from moldau.sim.disk import SimDisk
from moldau.sim.runner import Outcome, run_seed
from moldau.sim.world import Invariant

SEEDS_MAX = 200

Plant = Callable[[pytest.MonkeyPatch], None]


def recovery_point_before_the_fsync(patch: pytest.MonkeyPatch) -> None:
    request = Flusher.request

    def hasty(self: Flusher, up_to: int, now_ms: int, waiter: Any = None) -> None:
        request(self, up_to, now_ms, waiter)
        self.recovery_point = max(self.recovery_point, up_to)

    patch.setattr(Flusher, "request", hasty)


def flush_without_a_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FlushPlan, "run", lambda self: None)


def recovery_without_checksums(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "crc_matches", lambda *args: True)


def torn_batch_left_in_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "cut", lambda self, size: None)


def snapshots_read_as_empty(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_snapshots, "decode_snapshot", lambda name, data: [])


def indexes_not_rebuilt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "index_batch", lambda *args: None)


def clean_mark_left_after_the_start(patch: pytest.MonkeyPatch) -> None:
    remove = SimDisk.remove

    def forgetful(self: SimDisk, path: str, *, missing_ok: bool = False) -> None:
        if not path.endswith(CLEAN_SHUTDOWN_FILE):
            remove(self, path, missing_ok=missing_ok)

    patch.setattr(SimDisk, "remove", forgetful)


def inventory_without_the_last_record(patch: pytest.MonkeyPatch) -> None:
    facts_of = inventories.facts_of

    def short(disk: Disk, log: Log) -> LogFacts:
        end_offset = max(log.log_start_offset, log.log_end_offset - 1)
        return facts_of(disk, log)._replace(end_offset=end_offset)

    patch.setattr(inventories, "facts_of", short)


def log_start_checkpoint_ignored(patch: pytest.MonkeyPatch) -> None:
    read = LogCheckpoints.read

    def blind(self: LogCheckpoints, directory: Any, name: str) -> Any:
        return {} if name == LOG_START_CHECKPOINT else read(self, directory, name)

    patch.setattr(LogCheckpoints, "read", blind)


def aborted_transactions_not_indexed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionIndex, "append", lambda self, entry: None)


def epochs_not_cut_with_the_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaderEpochs, "truncate_from_end", lambda self, end_offset: False)


def compaction_drops_the_newest(patch: pytest.MonkeyPatch) -> None:
    newest = BatchFilter._newest
    patch.setattr(
        BatchFilter, "_newest", lambda self, header, records: newest(self, header, records)[:-1]
    )


def metadata_answered_before_the_fsync(patch: pytest.MonkeyPatch) -> None:
    async def hasty(self: RaftLog, up_to: int, *, now_ms: int) -> None:
        self.log.flusher.request(up_to, now_ms)

    patch.setattr(RaftLog, "sync", hasty)


def run_storage(seed: int) -> Outcome:
    """The storage alone; test_planted_broker_faults.py has the whole broker."""
    return run_seed(seed, scenario="metadata" if seed % 5 == 0 else "logs")


@pytest.mark.parametrize(
    ("plant", "found_as"),
    [
        (recovery_point_before_the_fsync, {Invariant.FLUSHED_SURVIVES, Invariant.NO_DAMAGED_BATCH}),
        (flush_without_a_sync, {Invariant.FLUSHED_SURVIVES}),
        (recovery_without_checksums, {Invariant.NO_DAMAGED_BATCH}),
        (torn_batch_left_in_place, None),
        (snapshots_read_as_empty, {Invariant.PRODUCERS_KNOWN, Invariant.TRANSACTIONS_RIGHT}),
        (indexes_not_rebuilt, {Invariant.INDEXES_AGREE}),
        (clean_mark_left_after_the_start, None),
        (inventory_without_the_last_record, None),
        (log_start_checkpoint_ignored, {Invariant.START_NOT_BACK}),
        (aborted_transactions_not_indexed, {Invariant.TRANSACTIONS_RIGHT}),
        (epochs_not_cut_with_the_log, {Invariant.EPOCHS_KNOWN}),
        (compaction_drops_the_newest, {Invariant.COMPACTION_KEEPS_LAST}),
        (metadata_answered_before_the_fsync, {Invariant.METADATA_SURVIVES}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_fault_is_found(
    plant: Plant, found_as: set[Invariant] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`found_as` names the invariants that may tell it; None where it shows in many ways."""
    plant(monkeypatch)
    for seed in range(1, SEEDS_MAX + 1):
        outcome = run_storage(seed)
        if outcome.invariant is not None:
            break
    else:
        pytest.fail(f"not found in {SEEDS_MAX} seeds")
    assert found_as is None or outcome.invariant in {each.value for each in found_as}, outcome
    monkeypatch.undo()
    assert run_storage(seed).invariant is None, "the seed fails without the fault, too"
