"""What a partition should hold, kept as plainly as possible.

A partition is a list of batches. What a crash may bring back instead (a truncation that was not
synced yet, an operation that was under way) is kept as further lists beside it. Producers and
transactions are found by going through the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from moldau.broker.config import LogConfig

FORMER_KEPT = 4

# Ways to stop; the last keeps the least.
CLEAN, KILL, POWER = "clean stop", "kill", "power failure"


class ModelRecord(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class ModelBatch:
    """A batch as it should be in the log."""

    base_offset: int
    next_offset: int
    data: bytes
    epoch: int
    records: tuple[ModelRecord, ...]
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    last_sequence: int = -1
    transactional: bool = False
    control: str | None = None  # "commit" or "abort"

    @property
    def last_offset(self) -> int:
        return self.next_offset - 1


@dataclass(slots=True)
class ModelProducer:
    epoch: int
    seen_at: int = -1
    last: ModelBatch | None = None  # its last data batch of this epoch
    open_since: int | None = None


class ModelTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # the marker's
    aborted: bool


@dataclass(slots=True)
class History:
    """What going through batches tells of producers and transactions."""

    producers: dict[int, ModelProducer] = field(default_factory=dict)
    ended: list[ModelTransaction] = field(default_factory=list)

    def add(self, batch: ModelBatch) -> None:
        if batch.producer_id < 0:
            return
        producer = self.producers.get(batch.producer_id)
        if producer is None:
            producer = self.producers[batch.producer_id] = ModelProducer(batch.producer_epoch)
        if producer.epoch != batch.producer_epoch:
            producer.epoch, producer.last = batch.producer_epoch, None
        producer.seen_at = batch.last_offset
        if batch.control is None:
            producer.last = batch
            if batch.transactional and producer.open_since is None:
                producer.open_since = batch.base_offset
        elif producer.open_since is not None:
            self.ended.append(
                ModelTransaction(
                    batch.producer_id,
                    producer.open_since,
                    batch.last_offset,
                    batch.control == "abort",
                )
            )
            producer.open_since = None

    @classmethod
    def of(cls, batches: Iterable[ModelBatch]) -> History:
        history = cls()
        for batch in batches:
            history.add(batch)
        return history


@dataclass(slots=True, eq=False)
class ModelPartition:
    """One incarnation of a topic's partition."""

    topic: str
    index: int
    topic_id: UUID
    config: LogConfig
    batches: list[ModelBatch] = field(default_factory=list)
    history: History = field(default_factory=History)
    # Other contents that the next restart may find: after any crash what an operation under way
    # was about to make, after a power failure also what was before a truncation.
    in_doubt: list[list[ModelBatch]] = field(default_factory=list)
    before_cuts: list[list[ModelBatch]] = field(default_factory=list)
    start: int = 0
    # The furthest it has been: epochs of what is below may have been forgotten.
    start_max: int = 0
    # Log starts below this are no longer possible after a crash.
    start_durable: int = 0
    # Where the log ends at least, batches or not, and whether a crash may have left it elsewhere.
    empty_end: int = 0
    end_in_doubt: bool = False
    # Where a truncation under way cuts: what was promised of the rest is void.
    cutting_at: int | None = None
    # Everything below is promised to survive a power failure.
    durable: int = 0
    # Whether the id of the topic is promised to survive, too.
    promised: bool = False
    high_watermark: int = 0
    epoch: int = 0
    # Batches that begin below may have been compacted.
    clean_below: int = 0
    # Where the log ended when it was last cleaned, which was done by all that was known then.
    clean_end: int = 0
    # In a folder that could not be used at the last start, so what is left of it is not known.
    offline: bool = False
    # The worst that has happened since the model was last compared with the log.
    crash: str = ""
    # Told apart from those of former contents by number.
    generation: int = 0

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def end(self) -> int:
        return max(self.batches[-1].next_offset, self.empty_end) if self.batches else self.empty_end

    def set_start(self, offset: int) -> None:
        self.start = offset
        self.start_max = max(self.start_max, offset)
        self.high_watermark = max(self.high_watermark, offset)

    def append(self, batch: ModelBatch) -> None:
        self.batches.append(batch)
        self.history.add(batch)

    def replace(self, batches: Sequence[ModelBatch]) -> None:
        self.batches = list(batches)
        self.history = History.of(self.batches)

    def cut(self, offset: int) -> None:
        """The log was truncated; a power failure may undo it until the next flush."""
        self.before_cuts.append(self.batches)
        del self.before_cuts[:-FORMER_KEPT]
        self.empty_end = offset
        self.replace([batch for batch in self.batches if batch.next_offset <= offset])
        self.durable = min(self.durable, offset)
        self.cutting_at = None
        self.start = min(self.start, offset)
        self.start_durable = min(self.start_durable, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.generation += 1

    def settle(self, batches: Sequence[ModelBatch], empty_end: int) -> None:
        """After a restart it is known what the log holds. A truncation that is not synced yet
        can still be undone after a kill."""
        if self.crash == KILL and self.cutting_at is not None:
            self.before_cuts.append(self.batches)
        self.replace(batches)
        self.empty_end = empty_end
        self.in_doubt.clear()
        if self.crash != KILL:
            self.before_cuts.clear()
        self.end_in_doubt = False
        self.durable = min(self.durable, self.end)
        self.start_durable = min(self.start_durable, self.end)
        self.cutting_at = None
        self.generation += 1

    def note_durable(self, offset: int, generation: int) -> None:
        """A flush up to `offset` was acknowledged; it made earlier truncations durable too."""
        if generation != self.generation:
            return
        self.durable = max(self.durable, min(offset, self.end))
        self.promised = True

    def note_recovery_point(self, offset: int) -> None:
        """A promise, too: at the next start nothing below is checked."""
        if self.batches and self.cutting_at is None and offset > self.batches[0].base_offset:
            self.durable = max(self.durable, min(offset, self.batches[-1].next_offset))

    def last_stable_offset(self) -> int:
        """Below it every transaction has ended, its marker below the high watermark."""
        ended = (
            ended.first_offset
            for ended in self.history.ended
            if ended.last_offset >= self.high_watermark
        )
        return max(min([self.first_open_offset(), *ended]), self.start)

    def first_open_offset(self) -> int:
        """Where the oldest transaction without a marker began, or the high watermark."""
        began = (
            producer.open_since
            for producer in self.history.producers.values()
            if producer.open_since is not None
        )
        return max(min([self.high_watermark, *began]), self.start)

    def has_transaction_below(self, offset: int) -> bool:
        """Whether an undecided transaction began below `offset` (the log start)."""
        return any(
            producer.open_since is not None and producer.open_since < offset
            for producer in self.history.producers.values()
        ) or any(ended.first_offset < offset <= ended.last_offset for ended in self.history.ended)

    def aborted(self) -> list[ModelTransaction]:
        return [ended for ended in self.history.ended if ended.aborted]

    def is_aborted(self, batch: ModelBatch) -> bool:
        return batch.transactional and any(
            ended.aborted
            and ended.producer_id == batch.producer_id
            and ended.first_offset <= batch.base_offset <= ended.last_offset
            for ended in self.history.ended
        )
