"""Writing the inventory of a log directory at a clean stop and reading it at the next start."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moldau.broker.log.disk import Disk
from moldau.broker.log.leftovers import has_leftovers
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.machine.inventory import (
    LogFacts,
    SegmentFacts,
    decode_inventory,
    encode_inventory,
)
from moldau.broker.log.machine.names import (
    INDEX_SUFFIX,
    INVENTORY_FILE,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    offset_prefix,
)
from moldau.broker.log.registry import KnownLog
from moldau.broker.log.segment import Segment
from moldau.broker.log.waiting_log import WaitingLog

logger = logging.getLogger(__name__)


def read_inventory(directory: LogDir) -> dict[str, LogFacts]:
    """The facts by directory names that the last clean stop has written."""
    if directory.inventory is None:
        return {}
    data, directory.inventory = directory.inventory, None
    return decode_inventory(data, directory.mark_ms if directory.clean_shutdown else None)


def write_inventory(disk: Disk, directory: LogDir, logs: Iterable[KnownLog]) -> None:
    """Record the closed logs of a directory that has its clean-shutdown mark.

    Without an inventory the next start takes longer, so a failure is no reason to fail.
    """
    try:
        facts = {log.dir.rpartition("/")[2]: facts_of(disk, log) for log in logs}
        settled = {name: each for name, each in facts.items() if each is not None}
        data = encode_inventory(directory.clean_mark_ms(), settled)
        disk.write_atomic(f"{directory.path}/{INVENTORY_FILE}", data)
    except OSError as error:
        logger.warning("%s: cannot write the inventory of its logs: %s", directory.path, error)


def facts_of(disk: Disk, log: KnownLog) -> LogFacts | None:
    """What a closed log looks like to the next start; None if that has to look at the files, as
    some of them may wait for their removal."""
    if isinstance(log, WaitingLog):
        return log.facts
    opened = log.opened_from
    facts = LogFacts(
        entries_changed=opened.entries_changed if opened is not None else -1,
        written_ms=opened.written_ms if opened is not None else (),
        topic_id=log.topic_id,
        end_offset=log.log_end_offset,
        # A start drops epochs without a batch.
        epochs=tuple(each for each in log.leader_epochs.entries() if each[1] < log.log_end_offset),
        snapshots=tuple(sorted(log.snapshots.offsets)),
        segments=tuple(map(_segment_facts, log.segments)),
    )
    # If files have changed all the same, the next start finds another time and reads them.
    if facts == opened:
        return facts
    # A log knows its files, except those that were put aside or that the cleaner has left.
    may_have = log.has_retired_files or log.config.compact
    if may_have and has_leftovers(disk.scan_files(log.dir)):
        return None
    return facts._replace(
        entries_changed=disk.entries_changed(log.dir),
        written_ms=tuple(disk.mtime_ms(segment.file.path) for segment in log.segments),
    )


def is_as_recorded(disk: Disk, directory: str, facts: LogFacts, *, clean: bool) -> bool:
    """Whether a log's directory is still as the clean stop has left it, which was not the last
    stop unless `clean`."""
    try:
        if disk.entries_changed(directory) != facts.entries_changed:
            return False
        for each in facts.segments:
            if disk.size(f"{directory}/{offset_prefix(each.base_offset)}{LOG_SUFFIX}") != each.size:
                return False
        return clean or _is_untouched(disk, directory, facts)
    except FileNotFoundError:
        return False


def _is_untouched(disk: Disk, directory: str, facts: LogFacts) -> bool:
    """Whether no segment was written to, although all have their sizes: one may have been cut and
    have grown again. A Kafka that was killed leaves indexes longer than their entries."""
    for each, written_ms in zip(facts.segments, facts.written_ms, strict=True):
        path = f"{directory}/{offset_prefix(each.base_offset)}"
        if (
            disk.mtime_ms(path + LOG_SUFFIX) != written_ms
            or disk.size(path + INDEX_SUFFIX) != each.offset_index_size
            or disk.size(path + TIME_INDEX_SUFFIX) != each.time_index_size
        ):
            return False
    return True


def _segment_facts(segment: Segment) -> SegmentFacts:
    return SegmentFacts(
        segment.base_offset,
        segment.size,
        segment.offset_index.file_size,
        segment.time_index.file_size,
        segment.txn_index.file_size,
        segment.offset_index.last_entry,
        segment.time_index.last_entry,
        segment.max_timestamp,
        segment.max_timestamp_offset,
    )
