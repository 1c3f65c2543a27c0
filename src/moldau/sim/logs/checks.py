"""The invariants of one partition's log, checked against its model."""

from __future__ import annotations

from random import Random
from struct import Struct

from moldau.broker.log.log import Log
from moldau.broker.log.segment import Segment
from moldau.sim.logs.model import ModelBatch, ModelPartition
from moldau.sim.logs.reading import (
    Found,
    Mismatch,
    check_last_records,
    committed_records,
    match,
    read_batches,
)
from moldau.sim.world import Invariant, Violation, require
from moldau.wire.errors import ApiError
from moldau.wire.records import decode_batch

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


class Checker:
    """`random` chooses where to look; what is looked at never changes."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def check(self, partition: ModelPartition, log: Log, *, thorough: bool) -> None:
        """Everything that holds between a running log and its model."""
        self.check_offsets(partition, log)
        self.check_reading(partition, log, whole=thorough)
        self.check_producers(partition, log)
        self.check_stable_offset(partition, log)
        if thorough:
            self.check_epochs(partition, log)
            self.check_committed(partition, log)
            self.check_indexes(partition, log)

    def check_offsets(self, partition: ModelPartition, log: Log) -> None:
        require(
            log.log_end_offset == partition.end,
            Invariant.END_NOT_BEYOND,
            lambda: f"{log.dir} ends at {log.log_end_offset}, appended was up to {partition.end}",
        )
        require(
            log.log_start_offset == partition.start,
            Invariant.START_NOT_BACK,
            lambda: f"{log.dir} starts at {log.log_start_offset}, not {partition.start}",
        )
        require(
            log.log_start_offset <= log.high_watermark <= log.log_end_offset
            and log.high_watermark == partition.high_watermark,
            Invariant.HIGH_WATERMARK_WITHIN,
            lambda: (
                f"{log.dir}: {log.log_start_offset} <= {log.high_watermark} (should be "
                f"{partition.high_watermark}) <= {log.log_end_offset}"
            ),
        )

    def check_reading(self, partition: ModelPartition, log: Log, *, whole: bool) -> None:
        start, upper = partition.start, partition.end
        if not whole and start < upper:
            start = self._random.randint(start, upper)
            upper = self._random.choice((upper, partition.high_watermark))
        max_bytes = self._random.choice((1, 100, 1000, 1 << 20))
        found = read_batches(log, start, upper, max_bytes)
        expected = [batch for batch in partition.batches if start < batch.next_offset <= upper]
        self._compare(partition, log, expected, found)
        if partition.clean_below and whole:
            check_last_records(partition, partition.batches, found, start, upper)

    def _compare(
        self, partition: ModelPartition, log: Log, expected: list[ModelBatch], found: list[Found]
    ) -> None:
        try:
            match(partition, expected, found)
        except Mismatch as mismatch:
            raise Violation(Invariant.READS_AS_APPENDED, f"{log.dir}: {mismatch}") from mismatch
        offsets = {item.header.base_offset for item in found}
        for batch in expected:
            require(
                batch.base_offset in offsets or batch.base_offset < partition.clean_below,
                Invariant.READS_AS_APPENDED,
                lambda batch=batch: f"{log.dir}: the batch at {batch.base_offset} is missing",  # type: ignore[misc]
            )

    def check_producers(self, partition: ModelPartition, log: Log) -> None:
        known = partition.history.producers
        for producer_id, entry in log.producers.entries.items():
            require(
                producer_id in known or entry.last_offset < partition.start,
                Invariant.PRODUCERS_KNOWN,
                lambda producer_id=producer_id: f"{log.dir} knows producer {producer_id}",  # type: ignore[misc]
            )
        for producer_id, producer in known.items():
            last = producer.last
            visible = producer.seen_at if last is None else last.last_offset
            if visible < partition.start_max:
                # Forgotten with the records, even if a crash has brought those back.
                continue
            state = log.producers.entries.get(producer_id)
            problem = ""
            if state is None:
                problem = "is not known"
            elif state.epoch != producer.epoch:
                problem = f"has epoch {state.epoch}, not {producer.epoch}"
            elif last is not None:
                problem = self._sequence_problem(log, producer_id, last, producer.open_since)
            require(
                not problem,
                Invariant.PRODUCERS_KNOWN,
                lambda producer_id=producer_id, problem=problem: (  # type: ignore[misc]
                    f"{log.dir}: producer {producer_id} {problem}"
                ),
            )

    def _sequence_problem(
        self, log: Log, producer_id: int, last: ModelBatch, open_since: int | None
    ) -> str:
        epoch = last.producer_epoch
        kept = log.producers.find_duplicate(
            producer_id, epoch, last.base_sequence, last.last_sequence
        )
        if kept is None:
            return f"may repeat sequences {last.base_sequence}..{last.last_sequence}"
        if (kept.first_offset, kept.last_offset) != (last.base_offset, last.last_offset):
            return f"repeats {last.base_offset}, but gets {kept.first_offset}"
        try:
            log.producers.check(
                producer_id,
                epoch,
                (last.last_sequence + 1) & 0x7FFFFFFF,
                transactional=open_since is not None,
            )
        except ApiError as error:
            return f"cannot go on: {error.message}"
        return ""

    def check_stable_offset(self, partition: ModelPartition, log: Log) -> None:
        if partition.has_transaction_below(partition.start_max):
            # Cut into by the log start: a restart may know less of it than before.
            right = partition.start <= log.last_stable_offset <= partition.high_watermark
        else:
            # A restart forgets that an ended transaction waits for the high watermark; its
            # marker is in the log, so readers get it all the same.
            lowest, highest = partition.last_stable_offset(), partition.first_open_offset()
            right = lowest <= log.last_stable_offset <= highest
        require(
            right,
            Invariant.TRANSACTIONS_RIGHT,
            lambda: (
                f"{log.dir} is stable up to {log.last_stable_offset}, not "
                f"{partition.last_stable_offset()}"
            ),
        )

    def check_committed(self, partition: ModelPartition, log: Log) -> None:
        # Deleted records that a crash brings back have lost what was known of their producers.
        start = partition.start_max
        stable = min(log.last_stable_offset, partition.last_stable_offset())
        if start < stable and self._random.random() < 0.5:
            start = self._random.randint(start, stable)
        found = read_batches(log, start, stable, 1 << 20)
        got = [(r.offset, r.value) for r in committed_records(log, found, start, stable)]
        served = {item.header.base_offset for item in found}
        kept = {
            record.offset
            for item in found
            if item.header.record_count and not item.header.is_control
            for record in decode_batch(item.data)
        }
        wanted = [
            (record.offset, record.value)
            for batch in partition.batches
            if batch.base_offset in served and batch.control is None
            if not partition.is_aborted(batch)
            for record in batch.records
            if record.offset >= start
            if record.offset in kept or batch.base_offset >= partition.clean_below
        ]
        require(
            got == wanted,
            Invariant.TRANSACTIONS_RIGHT,
            lambda: (
                f"{log.dir}: committed readers get {_difference(got, wanted)} from {start} "
                f"to {stable}"
            ),
        )

    def check_epochs(self, partition: ModelPartition, log: Log) -> None:
        for epoch, start_offset in log.leader_epochs.entries():
            require(
                start_offset <= partition.end,
                Invariant.EPOCHS_KNOWN,
                lambda epoch=epoch, start_offset=start_offset: (  # type: ignore[misc]
                    f"{log.dir}: epoch {epoch} is said to begin at {start_offset}, beyond the end"
                ),
            )
        for batch in partition.batches:
            offset = max(batch.base_offset, partition.start_max)
            if batch.next_offset <= offset or batch.base_offset < partition.clean_below:
                continue
            epoch = log.leader_epochs.epoch_for_offset(offset)
            require(
                epoch == batch.epoch,
                Invariant.EPOCHS_KNOWN,
                lambda offset=offset, epoch=epoch, batch=batch: (  # type: ignore[misc]
                    f"{log.dir}: offset {offset} is said to be of epoch {epoch}, not {batch.epoch}"
                ),
            )

    def check_indexes(self, partition: ModelPartition, log: Log) -> None:
        for segment in log.segments:
            try:
                problem = _index_problem(segment)
            except OSError:
                # This looks into the files on its own; a broken folder shows elsewhere.
                return
            require(
                not problem,
                Invariant.INDEXES_AGREE,
                lambda segment=segment, problem=problem: f"{segment.file.path}: {problem}",  # type: ignore[misc]
            )
        if partition.clean_below or not partition.batches:
            return
        records = [
            record
            for batch in partition.batches
            for record in batch.records
            if record.offset >= partition.start
        ]
        if not records:
            return
        timestamp = self._random.choice(records).timestamp + self._random.randint(-1, 1)
        expected = next((r.offset for r in records if r.timestamp >= timestamp), None)
        answer = log.offset_for_timestamp(timestamp)
        require(
            (None if answer is None else answer.offset) == expected,
            Invariant.INDEXES_AGREE,
            lambda: f"{log.dir}: timestamp {timestamp} leads to {answer}, not {expected}",
        )


def _difference(got: list[tuple[int, bytes | None]], wanted: list[tuple[int, bytes | None]]) -> str:
    extra = [offset for offset, _ in got if offset not in {o for o, _ in wanted}]
    missing = [offset for offset, _ in wanted if offset not in {o for o, _ in got}]
    return f"{extra} too many and {missing} too few"


def _index_problem(segment: Segment) -> str:
    """What of the indexes contradicts the batches, if anything."""
    places = list(segment.places(0))
    ends = {place.position: place.last_offset for place in places}
    index = segment.offset_index
    previous = -1
    if index.entry_count:
        data = index.file().read(0, index.entry_count * 8)
        for relative, position in _OFFSET_ENTRY.iter_unpack(data):
            if relative <= previous or ends.get(position) != segment.base_offset + relative:
                return f"offset index entry ({relative}, {position}) points at no such batch"
            previous = relative
    times = segment.time_index
    last_time = -1
    if times.entry_count:
        data = times.file().read(0, times.entry_count * 12)
        for timestamp, relative in _TIME_ENTRY.iter_unpack(data):
            offset = segment.base_offset + relative
            if timestamp <= last_time or any(
                place.max_timestamp > timestamp for place in places if place.last_offset <= offset
            ):
                return f"time index entry ({timestamp}, {relative}) is wrong"
            last_time = timestamp
    newest = max((place.max_timestamp for place in places), default=-1)
    if places and segment.max_timestamp != newest:
        return f"its newest timestamp is said to be {segment.max_timestamp}, not {newest}"
    return ""
