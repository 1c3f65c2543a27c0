"""What one seed makes: chance, time, a disk, and the story of what happened on it.

Everything that a scenario lets happen is drawn from the seed through a `World`, each kind of
chance from its own stream, so that a change in one does not reshuffle the others. The trace is
the story as text: the same seed gives the same trace, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from moldau.sim.background import SimBackground
from moldau.sim.disk import Platter, Stopped
from moldau.sim.loop import VirtualLoop
from moldau.times import WallMs

START_MS = 1_700_000_000_000
TRACE_KEPT = 40


class Invariant(Enum):
    """What must hold, by the name that a failure is reported under."""

    FLUSHED_SURVIVES = "flushed records survive a power failure"
    WRITTEN_SURVIVES = "written records survive a kill"
    STOP_KEEPS_ALL = "a clean stop keeps everything"
    READS_AS_APPENDED = "reads give what was appended"
    NO_DAMAGED_BATCH = "no damaged batch is served"
    END_NOT_BEYOND = "the log end is never beyond what was appended"
    HIGH_WATERMARK_WITHIN = "the high watermark lies between log start and log end"
    START_NOT_BACK = "the log start goes back no further than its checkpoint"
    PRODUCERS_KNOWN = "producers continue where they were"
    TRANSACTIONS_RIGHT = "committed readers see committed records only"
    EPOCHS_KNOWN = "leader epochs are those of the batches"
    INDEXES_AGREE = "indexes agree with a scan"
    COMPACTION_KEEPS_LAST = "compaction keeps the last record of every key"
    FAILURES_CONTAINED = "a failed log directory does not affect the others"
    STARTS = "a stopped node starts again"
    METADATA_SURVIVES = "committed metadata survives"
    QUORUM_LEADER_ONE = "the quorum has one leader in an epoch"
    QUORUM_EPOCH_KEPT = "the epoch of a node of the quorum never goes back"
    QUORUM_VOTE_KEPT = "a node of the quorum votes once in an epoch and never forgets it"
    QUORUM_COMMIT_AGREES = "nodes of the quorum commit the same at an offset"
    QUORUM_OWN_EPOCH = "a leader of the quorum commits by entries of its own epoch"
    QUORUM_WATERMARK_KEPT = "the quorum's high watermark never retreats"
    LEADER_ONE = "a partition has one leader in a leader epoch"
    LEADER_COMPLETE = "an elected leader has everything that was committed"
    WATERMARK_KEPT = "the high watermark never retreats"
    REPLICAS_AGREE = "replicas have the same records below the high watermark"
    IN_SYNC_COMPLETE = "members of the ISR have everything below the high watermark"
    ACKNOWLEDGED_SURVIVES = "an acknowledged record stays readable"
    READERS_AGREE = "every reader sees the same record at an offset"
    NO_DUPLICATES = "an idempotent producer's records exist once and in order"
    TRANSACTIONS_ATOMIC = "a transaction is visible as a whole or not at all, an aborted one never"
    EXACTLY_ONCE = "offsets committed in transactions agree with the records written in them"
    STREAMS_RESULT = "an application's outputs are those that its input gives, each once"
    OFFSETS_KEPT = "a group's committed offset does not go back by itself"
    OWNED_ONCE = "a partition is owned by one member at a time"
    SHARED_ONCE = "an acknowledged shared record is not delivered again"
    HELD_ONCE = "a shared record is held by one member at a time"
    SETTLES = "everything works again once the faults are over"
    NO_SURPRISE = "no unexpected error is raised"


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: Invariant, detail: str) -> None:
        super().__init__(f"{invariant.value}: {detail}")
        self.invariant = invariant
        self.detail = detail


def require(condition: object, invariant: Invariant, detail: Callable[[], str]) -> None:
    if not condition:
        raise Violation(invariant, detail())


@dataclass(slots=True)
class Trace:
    """The last steps and a digest of all of them."""

    tell: Callable[[str], None] | None = None
    last: deque[str] = field(default_factory=lambda: deque(maxlen=TRACE_KEPT))
    _digest: hashlib.blake2b = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def note(self, line: str) -> None:
        self._digest.update(line.encode() + b"\n")
        self.last.append(line)
        if self.tell is not None:
            self.tell(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


class World:
    """One seed's chance, clock, disk and trace; scenarios run their nodes in it."""

    def __init__(self, seed: int, *, tell: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.random = Random(f"{seed}/steps")
        self._background_random = Random(f"{seed}/background")
        self.bytes_random = Random(f"{seed}/bytes")
        self.loop = VirtualLoop()
        self.platter = Platter(self.now_ms, Random(f"{seed}/disk"))
        self.trace = Trace(tell)
        self.steps = 0
        self.faults: Counter[str] = Counter()

    def now_ms(self) -> WallMs:
        return WallMs(START_MS + round(self.loop.time() * 1000))

    def note(self, text: str) -> None:
        self.trace.note(f"{self.loop.time():12.3f}s {text}")

    def fault(self, kind: str) -> None:
        self.faults[kind] += 1

    def background(self) -> SimBackground:
        return SimBackground(self.loop, self._background_random, self.platter.disk)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def check_errors(self) -> None:
        """Callbacks must not raise: no caller would see it."""
        for error in self.loop.errors:
            if not isinstance(error, Stopped):
                raise Violation(Invariant.NO_SURPRISE, f"a callback raised {error!r}")
