"""Reading a log the way its users do, and telling whether that is what was appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.broker.log.log import Log
from moldau.sim.logs.model import History, ModelBatch, ModelPartition
from moldau.sim.world import Invariant, Violation, require
from moldau.wire.errors import WireError
from moldau.wire.records import BatchHeader, Record, crc_matches, decode_batch, iterate_headers

NO_HOLES = 2**63


class Found(NamedTuple):
    """A batch that the log has served."""

    header: BatchHeader
    data: bytes


def read_batches(log: Log, start: int, upper: int, max_bytes: int) -> list[Found]:
    """Everything from the batch with `start` up to `upper`, as a consumer fetches it."""
    found: list[Found] = []
    offset = start
    while offset < upper:
        result = log.read(offset, max_bytes, upper_offset=upper, min_one_batch=True)
        data = b"".join(result.buffers)
        before = offset
        for header, batch in _whole_batches(log, data):
            if header.last_offset >= before:
                found.append(Found(header, batch))
            offset = max(offset, header.next_offset)
        if offset == before:
            break
    return found


def _whole_batches(log: Log, data: bytes) -> list[Found]:
    found = []
    try:
        for position, header in iterate_headers(data):
            require(
                crc_matches(data, position, header),
                Invariant.NO_DAMAGED_BATCH,
                lambda header=header: (
                    f"{log.dir}: batch at {header.base_offset} fails its checksum"
                ),  # type: ignore[misc]
            )
            found.append(Found(header, data[position : position + header.size]))
    except WireError as error:
        raise Violation(Invariant.NO_DAMAGED_BATCH, f"{log.dir}: {error}") from error
    return found


class Mismatch(Exception):
    """What was found is not a run of what was appended."""


def match(
    partition: ModelPartition,
    batches: Sequence[ModelBatch],
    found: Sequence[Found],
    holes_from: int = NO_HOLES,
) -> list[ModelBatch]:
    """The batches that `found` is made of; only cleaned ones may be missing or thinned.

    From `holes_from` on batches may be missing as well.
    """
    if not found:
        return []
    matched: list[ModelBatch] = []
    places = {batch.base_offset: index for index, batch in enumerate(batches)}
    index = places.get(found[0].header.base_offset)
    if index is None:
        raise Mismatch(f"nothing was appended at {found[0].header.base_offset}")
    for item in found:
        while index < len(batches) and batches[index].base_offset < item.header.base_offset:
            if partition.clean_below <= batches[index].base_offset < holes_from:
                raise Mismatch(f"the batch at {batches[index].base_offset} is missing")
            index += 1
        if index == len(batches) or batches[index].base_offset != item.header.base_offset:
            raise Mismatch(f"nothing was appended at {item.header.base_offset}")
        _match_batch(partition, batches[index], item)
        matched.append(batches[index])
        index += 1
    return matched


def _match_batch(partition: ModelPartition, batch: ModelBatch, found: Found) -> None:
    if batch.data == found.data:
        return
    header = found.header
    if batch.base_offset >= partition.clean_below:
        raise Mismatch(f"the batch at {batch.base_offset} has other bytes")
    if (
        header.last_offset != batch.last_offset
        or header.partition_leader_epoch != batch.epoch
        or header.producer_id != batch.producer_id
        or header.last_sequence != batch.last_sequence
        or header.is_transactional != batch.transactional
    ):
        raise Mismatch(f"cleaning changed the header of the batch at {batch.base_offset}")
    if batch.control is not None:
        return
    known = {record.offset: record for record in batch.records}
    for record in decode_batch(found.data) if header.record_count else ():
        expected = known.get(record.offset)
        if expected is None or (record.key, record.value) != (expected.key, expected.value):
            raise Mismatch(f"the record at {record.offset} is not the one appended")


def check_last_records(
    partition: ModelPartition,
    batches: Sequence[ModelBatch],
    found: Sequence[Found],
    start: int,
    end: int,
) -> None:
    """Whatever cleaning has taken out of [start, end) is aborted, replaced or a tombstone."""
    aborted = [ended for ended in History.of(batches).ended if ended.aborted]
    present = {
        record.offset
        for item in found
        if item.header.record_count and not item.header.is_control
        for record in decode_batch(item.data)
    }
    # From the end on: keys for which something later is there, or was a tombstone.
    replaced: set[bytes | None] = set()
    for batch in reversed(batches):
        if batch.next_offset > end or batch.control is not None:
            continue
        if batch.next_offset <= start:
            break
        if batch.transactional and any(
            ended.producer_id == batch.producer_id
            and ended.first_offset <= batch.base_offset <= ended.last_offset
            for ended in aborted
        ):
            continue
        for record in reversed(batch.records):
            if record.offset < start:
                continue
            require(
                record.offset in present or record.key in replaced or record.value is None,
                Invariant.COMPACTION_KEEPS_LAST,
                lambda record=record: (  # type: ignore[misc]
                    f"{partition.name}: the last record of key {record.key!r}, at {record.offset}, "
                    "is gone"
                ),
            )
            if record.offset in present or record.value is None:
                replaced.add(record.key)


def committed_records(log: Log, found: Sequence[Found], start: int, upper: int) -> list[Record]:
    """What a read_committed consumer makes of the batches and the broker's list of aborts."""
    aborted = [
        (entry.first_offset, entry.producer_id) for entry in log.aborted_transactions(start, upper)
    ]
    aborted.sort(reverse=True)
    ignoring: set[int] = set()
    records: list[Record] = []
    for item in found:
        header = item.header
        while aborted and aborted[-1][0] <= header.last_offset:
            ignoring.add(aborted.pop()[1])
        if header.is_control:
            ignoring.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ignoring):
            records += decode_batch(item.data) if header.record_count else []
    return [record for record in records if record.offset >= start]
