"""What is there after a crash: everything whole, nothing else, and indexes that agree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.broker.config import LogConfig
from moldau.broker.log.context import AppendOrigin
from moldau.broker.log.log import Log
from moldau.broker.log.machine.names import offset_prefix
from moldau.broker.log.segment import Segment, create_segment
from moldau.wire.records import encode_end_txn_marker
from support.log_folder import (
    NOW_MS,
    LogFolder,
    append,
    batch_of,
    read_all,
    values_of,
)

FIRST = f"{offset_prefix(0)}"


def test_cut_at_every_byte_of_the_last_batches(tmp_path: Path) -> None:
    """A file that ends anywhere opens with exactly the batches that are whole."""
    source = LogFolder(tmp_path / "source", LogConfig(index_interval_bytes=100))
    os.makedirs(source.root)
    log = source.open()
    ends = []
    for number in range(4):
        append(log, b"v%d" % number, b"w%d" % number)
        ends.append(log.size)
    log.close()
    source.log = None
    data = (source.path / f"{FIRST}.log").read_bytes()
    for size in range(ends[1], ends[3] + 1):
        crashed = LogFolder(tmp_path / "crashed", source.config)
        shutil.copytree(source.root, crashed.root)
        (crashed.path / f"{FIRST}.log").write_bytes(data[:size])
        log = crashed.crash()
        whole = sum(1 for end in ends if end <= size)
        assert log.log_end_offset == 2 * whole, size
        assert log.size == ends[whole - 1]
        assert (crashed.path / f"{FIRST}.log").stat().st_size == log.size
        assert len(read_all(log)) == 2 * whole
        # It can be written on, and that survives the next crash.
        append(log, b"after")
        assert values_of(read_all(crashed.crash()))[-1] == (2 * whole, b"after")
        crashed.open().close(clean=False)
        shutil.rmtree(crashed.root)


def test_every_damaged_byte_of_the_last_batch_is_noticed(tmp_path: Path) -> None:
    """All but what the format leaves open: leader epoch and a base offset that only grows."""
    source = LogFolder(tmp_path / "source", LogConfig())
    os.makedirs(source.root)
    log = source.open()
    append(log, b"good")
    start = log.size
    append(log, b"last")
    log.close()
    source.log = None
    data = bytearray((source.path / f"{FIRST}.log").read_bytes())
    unprotected = {start + at for at in (5, 6, 7, 12, 13, 14, 15)}
    for at in range(start, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x80
        crashed = LogFolder(tmp_path / "crashed", source.config)
        shutil.copytree(source.root, crashed.root)
        (crashed.path / f"{FIRST}.log").write_bytes(damaged)
        log = crashed.crash()
        if at not in unprotected:
            assert log.log_end_offset == 1, at
        assert values_of(read_all(log, start=0))[0] == (0, b"good")
        log.close(clean=False)
        shutil.rmtree(crashed.root)


def fill(log: Log, batches: int) -> None:
    for number in range(batches):
        append(log, b"%04d" % number, b"x" * 50, timestamp=NOW_MS + number * 10)


def test_later_segments_go_when_an_earlier_one_is_cut(folder: LogFolder) -> None:
    log = folder.open()
    fill(log, 30)
    names = folder.files(".log")
    assert len(names) >= 4
    second = folder.path / names[1]
    base = int(names[1][:20])
    data = bytearray(second.read_bytes())
    data[-1] ^= 1
    second.write_bytes(data)
    log = folder.crash()
    assert folder.files(".log") == names[:2]
    expected = [(offset, value) for offset, value in values_of(read_all(log))]
    assert log.log_end_offset == expected[-1][0] + 1
    assert base < log.log_end_offset < int(names[2][:20])
    assert folder.files(".index") == [name.replace("log", "index") for name in names[:2]]


def test_below_the_recovery_point_nothing_is_checked(folder: LogFolder) -> None:
    log = folder.open()
    fill(log, 30)
    names = folder.files(".log")
    first = folder.path / names[0]
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    end = log.log_end_offset
    assert folder.crash(recovery_point=int(names[1][:20])).log_end_offset == end


def test_a_clean_stop_skips_the_check(folder: LogFolder) -> None:
    log = folder.open()
    fill(log, 5)
    end = log.log_end_offset
    log.flush()
    log.close()
    folder.log = None
    path = folder.path / folder.files(".log")[-1]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = folder.open(clean_shutdown=True)
    assert log.log_end_offset == end
    assert log.recovery_point == end
    # The same folder after an unclean stop is checked, which shows the damage was real.
    assert folder.crash().log_end_offset < end


def damage_last_entry(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-8:] = b"\xff" * 8
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        pytest.param(".index", Path.unlink, id="no offset index"),
        pytest.param(".timeindex", Path.unlink, id="no time index"),
        pytest.param(".index", lambda p: p.write_bytes(p.read_bytes()[:-3]), id="odd size"),
        pytest.param(".timeindex", lambda p: p.write_bytes(p.read_bytes()[:-3]), id="odd time"),
        pytest.param(".index", damage_last_entry, id="negative last entry"),
        pytest.param(".timeindex", damage_last_entry, id="negative last time"),
        pytest.param(
            ".index",
            lambda p: p.write_bytes(p.read_bytes()[:-4] + b"\x7f\xff\xff\xff"),
            id="beyond the end",
        ),
    ],
)
def test_bad_indexes_are_rebuilt_even_after_a_clean_stop(
    make_folder: Callable[..., LogFolder], suffix: str, damage: Callable[[Path], object]
) -> None:
    folder = make_folder(segment_bytes=3000, index_interval_bytes=100)
    log = folder.open()
    fill(log, 40)
    records = values_of(read_all(log))
    log.flush()
    log.close()
    folder.log = None
    before = {p.name: p.read_bytes() for p in folder.path.iterdir()}
    for name in folder.files(suffix):
        damage(folder.path / name)
    log = folder.open()
    assert values_of(read_all(log)) == records
    for offset, _ in records:
        found = log.read(offset, 0, upper_offset=log.log_end_offset, min_one_batch=True)
        assert int.from_bytes(found.buffers[0][:8], "big") in (offset, offset - 1)
    for number in range(40):
        assert log.offset_for_timestamp(NOW_MS + number * 10) == (
            NOW_MS + number * 10, 2 * number, 0,
        )  # fmt: skip
    folder.restart()
    after = {p.name: p.read_bytes() for p in folder.path.iterdir()}
    assert {n: d for n, d in after.items() if n.endswith("index")} == {
        n: d for n, d in before.items() if n.endswith("index")
    }


def test_an_index_that_lies_in_the_middle_is_seen_through(
    make_folder: Callable[..., LogFolder],
) -> None:
    folder = make_folder(segment_bytes=100_000, index_interval_bytes=0)
    log = folder.open()
    fill(log, 20)
    log.flush()
    log.close()
    folder.log = None
    path = folder.path / f"{FIRST}.index"
    data = bytearray(path.read_bytes())
    for entry in range(0, len(data) - 8, 8):
        data[entry + 4 : entry + 8] = (entry + 3).to_bytes(4, "big")
    path.write_bytes(data)
    log = folder.open()
    for offset in range(40):
        found = log.read(offset, 0, upper_offset=40, min_one_batch=True)
        assert int.from_bytes(found.buffers[0][:8], "big") == offset - offset % 2


def test_lost_or_damaged_epochs_come_from_the_batches(folder: LogFolder) -> None:
    log = folder.open()
    for epoch in (1, 4, 9):
        append(log, b"a" * 300, leader_epoch=epoch)
        append(log, b"b" * 300, leader_epoch=epoch)
    entries = log.leader_epochs.entries()
    assert entries == [(1, 0), (4, 2), (9, 4)]
    for content in (None, b"garbage"):
        log.close()
        folder.log = None
        path = folder.path / "leader-epoch-checkpoint"
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        log = folder.open()
        assert log.leader_epochs.entries() == entries
        assert path.read_text() == "0\n3\n1 0\n4 2\n9 4\n"


def test_recovery_replaces_no_file_that_the_next_flush_writes(folder: LogFolder) -> None:
    log = folder.open()
    append(log, b"a", leader_epoch=1)
    log.flush()
    append(log, b"b", leader_epoch=4)
    names = ("leader-epoch-checkpoint", f"{FIRST}.timeindex", f"{FIRST}.index")
    before = [(folder.path / name).stat() for name in names]
    for _ in range(2):
        log = folder.crash(recovery_point=1)
        assert log.leader_epochs.entries() == [(1, 0), (4, 1)]
        after = [(folder.path / name).stat() for name in names]
        assert [each.st_ino for each in after] == [each.st_ino for each in before]
        assert [each.st_mtime_ns for each in after] == [each.st_mtime_ns for each in before]
    log.flush()
    assert (folder.path / names[0]).read_text() == "0\n2\n1 0\n4 1\n"


def test_a_shorter_index_leaves_nothing_of_the_former_one(
    make_folder: Callable[..., LogFolder],
) -> None:
    folder = make_folder(index_interval_bytes=100)
    log = folder.open()
    fill(log, 20)
    log.close()
    times = folder.path / f"{FIRST}.timeindex"
    entries = times.read_bytes()
    folder.log = None
    with (folder.path / f"{FIRST}.log").open("r+b") as file:
        file.truncate(file.seek(0, 2) // 2)
    log = folder.open(clean_shutdown=False)
    end = log.log_end_offset
    log.close()
    assert 0 < len(times.read_bytes()) < len(entries)
    assert times.read_bytes()[-4:] == (end - 1).to_bytes(4, "big")


def idempotent(log: Log, sequence: int, value: bytes = b"x" * 100) -> int:
    info = log.append_as_leader(
        batch_of(value, producer_id=5, producer_epoch=0, base_sequence=sequence),
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    log.set_high_watermark(log.log_end_offset)
    return -1 if info.duplicate else info.base_offset


@pytest.mark.parametrize("snapshots", ["kept", "lost", "damaged"])
def test_duplicates_are_known_after_a_crash(folder: LogFolder, snapshots: str) -> None:
    log = folder.open()
    for sequence in range(20):
        assert idempotent(log, sequence) == sequence
    assert folder.files(".snapshot")
    for name in folder.files(".snapshot"):
        path = folder.path / name
        if snapshots == "lost":
            path.unlink()
        elif snapshots == "damaged":
            path.write_bytes(path.read_bytes()[:-1])
    log = folder.crash()
    assert idempotent(log, 19) == -1
    assert idempotent(log, 20) == 20
    log = folder.restart()
    assert idempotent(log, 20) == -1
    assert idempotent(log, 21) == 21


def test_open_and_aborted_transactions_survive(folder: LogFolder) -> None:
    log = folder.open()

    def data(pid: int, sequence: int) -> None:
        log.append_as_leader(
            batch_of(
                b"x" * 200, producer_id=pid, producer_epoch=0, base_sequence=sequence,
                is_transactional=True,
            ),
            leader_epoch=0,
            now_ms=NOW_MS,
        )  # fmt: skip

    def end(pid: int, *, committed: bool) -> None:
        marker = encode_end_txn_marker(
            producer_id=pid, producer_epoch=0, committed=committed, coordinator_epoch=0,
            timestamp=NOW_MS,
        )  # fmt: skip
        log.append_as_leader(
            bytearray(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )

    data(1, 0)  # 0
    data(2, 0)  # 1
    end(1, committed=False)  # 2
    for sequence in range(1, 8):
        data(2, sequence)  # 3-9
    data(3, 0)  # 10
    end(3, committed=False)  # 11
    log.set_high_watermark(log.log_end_offset)
    assert len(log.segments) > 1
    for reopened in (log, folder.crash(), folder.restart()):
        reopened.set_high_watermark(reopened.log_end_offset)
        assert reopened.last_stable_offset == 1
        aborted = [(e.producer_id, e.first_offset) for e in reopened.aborted_transactions(0, 12)]
        assert aborted == [(1, 0), (3, 10)]
        assert [e.producer_id for e in reopened.aborted_transactions(3, 12)] == [3]
        assert reopened.aborted_transactions(3, 10) == []
        log = reopened


def cleaned_copy(log: Log, old: list[Segment]) -> Segment:
    """What a cleaner makes: the batches of `old` without the first, in a .cleaned segment."""
    segment = create_segment(
        log.context.disk, log.dir, old[0].base_offset, index_size_max=1000,
        index_interval_bytes=100, created_ms=NOW_MS, suffix=".cleaned",
    )  # fmt: skip
    for source in old:
        for place in source.places(0):
            if place.base_offset > 0:
                segment.append(
                    source.file.read(place.position, place.size), place.size,
                    place.base_offset, place.last_offset, place.max_timestamp,
                )  # fmt: skip
    return segment


def test_replaced_segments_are_read_and_survive(folder: LogFolder) -> None:
    log = folder.open()
    fill(log, 30)
    records = values_of(read_all(log))[2:]
    old = list(log.segments)[:2]
    view = log.read(0, 100, upper_offset=60, min_one_batch=True).buffers[0]
    before = bytes(view)
    log.replace_segments([cleaned_copy(log, old)], old)
    assert values_of(read_all(log)) == records
    assert bytes(view) == before  # a response in flight is not disturbed
    assert not folder.files(".swap")
    assert values_of(read_all(folder.crash())) == records


@pytest.mark.parametrize("step", range(24))
def test_a_crash_at_any_step_of_replacing_loses_nothing(folder: LogFolder, step: int) -> None:
    """Kill it at the n-th rename: the log is the old one or the cleaned one, whole."""
    log = folder.open()
    fill(log, 30)
    records = values_of(read_all(log))
    old = list(log.segments)[:4]
    cleaned = [cleaned_copy(log, old[:2]), cleaned_copy(log, old[2:])]
    renames = 0
    rename = log.context.disk.rename

    class Killed(BaseException):
        pass

    def counted(source: str, target: str, *, sync: bool = False) -> None:
        nonlocal renames
        if renames == step:
            raise Killed
        renames += 1
        rename(source, target, sync=sync)

    log.context.disk.rename = counted  # type: ignore[method-assign]
    try:
        log.replace_segments(cleaned, old)
    except Killed:
        pass
    finally:
        log.context.disk.rename = rename  # type: ignore[method-assign]
    assert values_of(read_all(folder.crash())) in (records, records[2:])
    assert not [name for name in os.listdir(folder.path) if "swap" in name or "cleaned" in name]


def test_leftovers_and_orphans_are_cleared(folder: LogFolder) -> None:
    log = folder.open()
    fill(log, 3)
    records = values_of(read_all(log))
    for name in (
        f"{offset_prefix(50)}.log.deleted",
        f"{offset_prefix(50)}.index.deleted",
        f"{FIRST}.log.cleaned",
        f"{FIRST}.timeindex.cleaned",
        f"{offset_prefix(99)}.index",
        f"{offset_prefix(99)}.txnindex",
        "leader-epoch-checkpoint.tmp",
    ):
        (folder.path / name).write_bytes(b"junk")
    log = folder.crash()
    assert values_of(read_all(log)) == records
    log.flush()
    assert sorted(os.listdir(folder.path)) == [
        f"{FIRST}.index", f"{FIRST}.log", f"{FIRST}.timeindex", "leader-epoch-checkpoint",
    ]  # fmt: skip


def test_log_start_beyond_the_end_starts_afresh_there(folder: LogFolder) -> None:
    log = folder.open()
    fill(log, 3)
    log = folder.crash(log_start_offset=100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert append(log, b"x") == 100


def test_a_folder_made_by_hand_opens(tmp_path: Path) -> None:
    """Nothing but the .log file, as an operator might restore it."""
    folder = LogFolder(tmp_path, LogConfig())
    folder.path.mkdir()
    batches = batch_of(b"a", b"b", base_offset=0) + batch_of(b"c", base_offset=2)
    (folder.path / f"{FIRST}.log").write_bytes(batches)
    log = folder.open()
    assert values_of(read_all(log)) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert append(log, b"d") == 3
