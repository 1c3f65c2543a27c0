"""What a crash leaves in a partition's directory, and how it is settled at the next start.

`.deleted` files were on their way out and go. `.cleaned` files are an unfinished cleaning
and go. `.swap` files are a finished cleaning that must take the place of the segments it
covers, unless `.cleaned` files below them show that their set was never complete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moldau.broker.log.disk import Disk
from moldau.broker.log.machine.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_of_file,
)
from moldau.broker.log.segment import Segment

logger = logging.getLogger(__name__)

_LEFTOVER_SUFFIXES = frozenset({DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX, SWAP_SUFFIX})
_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def has_leftovers(files: Iterable[str]) -> bool:
    return not _LEFTOVER_SUFFIXES.isdisjoint({name[name.rfind(".") :] for name in files})


def settle_leftovers(disk: Disk, directory: str, files: dict[str, int]) -> None:
    """Finish or undo what a crash interrupted; then `files` are those of the log, with sizes."""
    if has_leftovers(files):
        _settle(disk, directory, files)
    _remove_orphans(disk, directory, files)


def _settle(disk: Disk, directory: str, files: dict[str, int]) -> None:
    cleaned_offsets: list[int] = []
    segment_removed = False
    for name in list(files):
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX)):
            offset = offset_of_file(name)
            if name.endswith(CLEANED_SUFFIX) and offset is not None:
                cleaned_offsets.append(offset)
            segment_removed |= name.endswith(LOG_SUFFIX + DELETED_SUFFIX)
            _remove(disk, directory, files, name)
    if segment_removed:
        # A segment cut off just before a kill must not be back after a power failure, behind
        # what was written in its place: only a synced directory has forgotten its old name.
        disk.sync_dir(directory)
    swaps = [name for name in files if name.endswith(SWAP_SUFFIX)]
    if cleaned_offsets:
        for name in list(swaps):
            offset = offset_of_file(name)
            if offset is not None and offset >= min(cleaned_offsets):
                _remove(disk, directory, files, name)
                swaps.remove(name)
    if swaps:
        _complete_swap(disk, directory, files, swaps)


def _remove(disk: Disk, directory: str, files: dict[str, int], name: str) -> None:
    disk.remove(f"{directory}/{name}", missing_ok=True)
    del files[name]


def _complete_swap(disk: Disk, directory: str, files: dict[str, int], swaps: list[str]) -> None:
    first: int | None = None
    end = 0
    for name in swaps:
        base_offset = offset_of_file(name)
        if base_offset is None or not name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            continue
        file = disk.open(f"{directory}/{name}", size=files[name])
        segment = Segment(
            disk,
            directory,
            base_offset,
            file=file,
            index_size_max=0,
            index_interval_bytes=0,
            created_ms=0,
            suffix=SWAP_SUFFIX,
        )
        first = base_offset if first is None else min(first, base_offset)
        end = max(end, segment.next_offset(), base_offset + 1)
        file.close()
    if first is not None:
        for name in list(files):
            offset = offset_of_file(name)
            if name.endswith(SEGMENT_SUFFIXES) and offset is not None and first <= offset < end:
                logger.info("%s/%s: replaced by a finished cleaning", directory, name)
                _remove(disk, directory, files, name)
    for name in swaps:
        target = name.removesuffix(SWAP_SUFFIX)
        disk.rename(f"{directory}/{name}", f"{directory}/{target}")
        files[target] = files.pop(name)
    disk.sync_dir(directory)


def _remove_orphans(disk: Disk, directory: str, files: dict[str, int]) -> None:
    for name in [name for name in files if name.endswith(_INDEX_SUFFIXES)]:
        segment = name.rpartition(".")[0] + LOG_SUFFIX
        if segment not in files and offset_of_file(name) is not None:
            logger.warning("%s/%s: no such segment, removing it", directory, name)
            _remove(disk, directory, files, name)
