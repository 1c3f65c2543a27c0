"""Indexes and producer snapshots beside a log, as Kafka prints and checks them."""

from __future__ import annotations

import struct
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from moldau.broker.log.machine.producer_state import CorruptSnapshot, decode_snapshot
from moldau.cli.files.dump_log_batches import Bytes, base_offset_of, batches_of, mapped
from moldau.cli.support.failures import ToolError
from moldau.wire.batch_header import HEADER_STRUCT, MAGIC, MAGIC_POSITION
from moldau.wire.constants import NO_TIMESTAMP
from moldau.wire.errors import WireError
from moldau.wire.records import decode_batch, header_from

__all__ = [
    "IndexErrors",
    "dump_index",
    "dump_producer_snapshot",
    "dump_time_index",
    "dump_transaction_index",
]

_INT32_MAX: Final = 2**31 - 1
_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_ABORT_ENTRY: Final = struct.Struct(">hqqqq")
_ABORT_VERSION: Final = 0


class IndexErrors:
    """Mismatches between indexes and their logs, printed together at the end."""

    def __init__(self) -> None:
        self.mismatches: dict[str, dict[int, int]] = defaultdict(dict)
        self.times: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.disorder: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.missing: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def show(self) -> None:
        for name, mismatches in self.mismatches.items():
            _tell(f"Mismatches in :{name}")
            for indexed, found in sorted(mismatches.items(), reverse=True):
                _tell(f"  Index offset: {indexed}, log offset: {found}")
        for name, pairs in self.times.items():
            _tell(f"Found timestamp mismatch in :{name}")
            for indexed, found in pairs:
                _tell(f"  Index timestamp: {indexed}, log timestamp: {found}")
        for name, pairs in self.disorder.items():
            _tell(f"Found out of order timestamp in :{name}")
            for indexed, before in pairs:
                _tell(f"  Index timestamp: {indexed}, Previously indexed timestamp: {before}")
        for name, pairs in self.missing.items():
            _tell(f"The following indexed offsets are not found in :{name}")
            for indexed, found in pairs:
                _tell(f"Indexed offset: {indexed}, found log offset: {found}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _entries(path: Path, layout: struct.Struct) -> tuple[list[tuple[int, int]], int]:
    """The whole entries of an index, and the size of its file."""
    data = path.read_bytes()
    whole = memoryview(data)[: len(data) - len(data) % layout.size]
    return [(first, second) for first, second in layout.iter_unpack(whole)], len(data)


def _last_offset(data: Bytes, position: int) -> int:
    """The last offset of the batch at `position`."""
    if data[position + MAGIC_POSITION] < MAGIC:
        return int(struct.unpack_from(">q", data, position)[0])
    return header_from(HEADER_STRUCT.unpack_from(data, position)).last_offset


def dump_index(
    path: Path,
    errors: IndexErrors,
    *,
    sanity_only: bool,
    verify_only: bool,
    max_message_size: int,
) -> None:
    base = base_offset_of(path)
    entries, size = _entries(path, _OFFSET_ENTRY)
    with mapped(path.with_suffix(".log")) as log:
        if not entries:
            print(f"{path} is empty.")
            return
        if sanity_only:
            _check_offset_index(path, base, entries, size)
            print(f"{path} passed sanity check.")
            return
        for index, (relative, position) in enumerate(entries):
            # After a crash the preallocated file still ends in zeros.
            if relative == 0 and index > 0:
                return
            end = min(len(log), position + max_message_size)
            first = next(batches_of(log, position, end), None)
            if first is None:
                raise ToolError(
                    f"{path}: entry {index} points to position {position} of the log, where no "
                    f"whole batch of at most {max_message_size} bytes is (--max-message-size)"
                )
            found = _last_offset(log, first[0])
            if found != base + relative:
                errors.mismatches[str(path.absolute())][base + relative] = found
            if not verify_only:
                print(f"offset: {base + relative} position: {position}")


def _check_offset_index(path: Path, base: int, entries: list[tuple[int, int]], size: int) -> None:
    last = base + entries[-1][0]
    if last < base:
        raise ToolError(
            f"Corrupt index found, index file {path.absolute()} has non-zero size but the last "
            f"offset is {last} which is less than the base offset {base}"
        )
    _check_size("Index file", path, size, _OFFSET_ENTRY.size)


def _check_size(what: str, path: Path, size: int, entry_size: int) -> None:
    if size % entry_size:
        raise ToolError(
            f"{what} {path.absolute()} is corrupt, found {size} bytes which is neither positive "
            f"nor a multiple of {entry_size}"
        )


def dump_time_index(
    path: Path, errors: IndexErrors, *, sanity_only: bool, verify_only: bool
) -> None:
    base = base_offset_of(path)
    entries, size = _entries(path, _TIME_ENTRY)
    positions, _ = _entries(path.with_suffix(".index"), _OFFSET_ENTRY)
    with mapped(path.with_suffix(".log")) as log:
        if sanity_only:
            _check_time_index(path, base, entries, size)
            print(f"{path} passed sanity check.")
            return
        name = str(path.absolute())
        previous = NO_TIMESTAMP
        for index, (timestamp, relative) in enumerate(entries):
            if relative == 0 and index > 0:
                return
            offset = base + relative
            found, largest = _largest_time(log, _position_of(positions, relative), offset)
            if found != offset:
                errors.missing[name].append((offset, found))
            else:
                if largest != timestamp:
                    errors.times[name].append((timestamp, largest))
                if previous >= timestamp:
                    errors.disorder[name].append((timestamp, previous))
            if not verify_only:
                print(f"timestamp: {timestamp} offset: {offset}")
            previous = timestamp


def _position_of(positions: list[tuple[int, int]], relative: int) -> int:
    """Where in the log to start the search for an offset."""
    real = positions
    for index, entry in enumerate(positions):
        if index > 0 and entry[0] == 0:
            real = positions[:index]
            break
    at = bisect_right(real, (relative, _INT32_MAX))
    return real[at - 1][1] if at else 0


def _largest_time(log: Bytes, start: int, offset: int) -> tuple[int, int]:
    """Last offset (-1 if there is none) and largest timestamp of the batch that holds `offset`."""
    for position, size in batches_of(log, start, len(log)):
        last = _last_offset(log, position)
        if last >= offset:
            if log[position + MAGIC_POSITION] < MAGIC:
                return last, int(struct.unpack_from(">q", log, position + 18)[0])
            try:
                records = decode_batch(log[position : position + size])
            except WireError as error:
                raise ToolError(f"the log at position {position}: {error}") from None
            return last, max((record.timestamp for record in records), default=NO_TIMESTAMP)
    return -1, NO_TIMESTAMP


def _check_time_index(path: Path, base: int, entries: list[tuple[int, int]], size: int) -> None:
    if entries:
        where = f"Corrupt time index found, time index file ({path.absolute()}) has non-zero size"
        last_time, relative = entries[-1]
        if last_time < entries[0][0]:
            raise ToolError(
                f"{where} but the last timestamp is {last_time} which is less than the first "
                f"timestamp {entries[0][0]}"
            )
        if relative < 0:
            raise ToolError(
                f"{where} but the last offset is {base + relative} which is less than the first "
                f"offset {base}"
            )
    _check_size("Time index file", path, size, _TIME_ENTRY.size)


def dump_transaction_index(path: Path) -> None:
    for version, producer_id, first, last, stable in _aborted(path):
        print(
            f"version: {version} producerId: {producer_id} firstOffset: {first} "
            f"lastOffset: {last} lastStableOffset: {stable}"
        )


def _aborted(path: Path) -> Iterator[tuple[int, int, int, int, int]]:
    base_offset_of(path)
    data = path.read_bytes()
    whole = memoryview(data)[: len(data) - len(data) % _ABORT_ENTRY.size]
    for entry in _ABORT_ENTRY.iter_unpack(whole):
        if entry[0] > _ABORT_VERSION:
            raise ToolError(f"{path}: entries of version {entry[0]} are not known, only 0 is")
        yield entry


def dump_producer_snapshot(path: Path) -> None:
    try:
        entries = decode_snapshot(path.name, path.read_bytes())
    except CorruptSnapshot as error:
        print(error, file=sys.stderr)
        return
    for entry in entries:
        first = entry.txn_first_offset
        shown = f"OptionalLong[{first}]" if first >= 0 else "OptionalLong.empty"
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {shown} "
            f"lastTimestamp: {entry.last_timestamp}"
        )
        if entry.batches:
            batch = entry.batches[0]
            before = batch.last_sequence - batch.offset_delta
            line += (
                f" firstSequence: {before if before >= 0 else before + _INT32_MAX + 1} "
                f"lastSequence: {batch.last_sequence} lastOffset: {batch.last_offset} "
                f"offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
            )
        print(line)
