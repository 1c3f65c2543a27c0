"""Where a consumer stands in one partition, and what may be done with it.

A partition is INITIALIZING (a committed offset is to be looked up), AWAIT_RESET (an offset is to be
found by a reset strategy), AWAIT_VALIDATION (the offset is to be compared with a new leader's
epochs, KIP-320) or FETCHING. Pure.

    assigned -> INITIALIZING -> FETCHING        a committed offset, or a seek
    INITIALIZING -> AWAIT_RESET                 none committed
    any -> AWAIT_RESET -> FETCHING              a reset was asked for, the offset was found
    FETCHING -> AWAIT_VALIDATION -> FETCHING    another leader, the log is the same up to here

Invariants: `version` changes with every jump of the position and with every departure from
FETCHING, so what was fetched for an older version is never handed out.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from moldau.client.machine.metadata import PartitionView
from moldau.client.topics import OffsetAndMetadata
from moldau.times import WallMs

__all__ = [
    "FetchState",
    "Position",
    "PositionState",
    "ResetKind",
    "ResetStrategy",
    "sought_position",
]

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class ResetKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"
    NONE = "none"


class ResetStrategy(NamedTuple):
    """What `auto.offset.reset` says."""

    kind: ResetKind
    duration_ms: int = 0

    def timestamp(self, now_ms: WallMs) -> int:
        """What to ask ListOffsets for."""
        if self.kind is ResetKind.EARLIEST:
            return EARLIEST_TIMESTAMP
        if self.kind is ResetKind.LATEST:
            return LATEST_TIMESTAMP
        return max(0, now_ms - self.duration_ms)


EARLIEST = ResetStrategy(ResetKind.EARLIEST)
LATEST = ResetStrategy(ResetKind.LATEST)


class Position(NamedTuple):
    """The next offset to hand out, the epoch of the record before it if it is known, and the
    leader and its epoch that it was last compared with (-1: unknown)."""

    offset: int
    offset_epoch: int | None = None
    leader_id: int = -1
    leader_epoch: int = -1


def sought_position(sought: int | OffsetAndMetadata, view: PartitionView | None) -> Position:
    """Where a seek leads to, and which leader it has to be compared with, if one is known."""
    epoch: int | None = None
    if isinstance(sought, OffsetAndMetadata):
        epoch = sought.leader_epoch
        sought = sought.offset
    if sought < 0:
        raise ValueError("seek offset must not be a negative number")
    if view is None:
        return Position(sought, epoch)
    return Position(sought, epoch, view.leader_id, view.leader_epoch)


class FetchState(Enum):
    INITIALIZING = 0
    FETCHING = 1
    AWAIT_RESET = 2
    AWAIT_VALIDATION = 3


class PositionState:
    """One assigned partition. Its owner, `SubscriptionState`, holds the lock over it."""

    __slots__ = (
        "awaits_listener",
        "buffered_bytes",
        "buffered_count",
        "fetch_offset",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "paused",
        "pending_revocation",
        "position",
        "preferred_replica",
        "preferred_until_ms",
        "reset_strategy",
        "retry_at_ms",
        "state",
        "unsubscribed",
        "version",
    )

    def __init__(self) -> None:
        self.state = FetchState.INITIALIZING
        self.position: Position | None = None
        self.reset_strategy: ResetStrategy | None = None
        self.version = 0
        # The application does not want it now; its position stays, and what is buffered for it.
        self.paused = False
        # A rebalance takes it away, or its listener was not called for it yet.
        self.pending_revocation = False
        self.awaits_listener = False
        # Its topic is no longer subscribed to; the group has yet to take it back.
        self.unsubscribed = False
        # Not asked for again before, after an error.
        self.retry_at_ms = 0
        # From the last Fetch response; None before.
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        # KIP-392: fetch from there until then.
        self.preferred_replica: int | None = None
        self.preferred_until_ms = 0
        # What was fetched ahead of the position, and where the next Fetch goes on.
        self.buffered_count = 0
        self.buffered_bytes = 0
        self.fetch_offset = 0

    @property
    def is_fetchable(self) -> bool:
        """Whether its records may be fetched and handed out."""
        return (
            self.state is FetchState.FETCHING
            and not self.paused
            and not self.pending_revocation
            and not self.awaits_listener
            and not self.unsubscribed
        )

    def seek(self, position: Position) -> None:
        """Go on at a position; it is validated first if its epoch and the leader's are known."""
        self.reset_strategy = None
        self._jump(position)
        self._validate_or_fetch()

    def seek_validated(self, position: Position) -> None:
        self.reset_strategy = None
        self._jump(position)
        self.state = FetchState.FETCHING

    def await_reset(self, strategy: ResetStrategy) -> None:
        self.state = FetchState.AWAIT_RESET
        self.reset_strategy = strategy
        self.position = None
        self.retry_at_ms = 0
        self._forget_fetched()

    def on_leader(self, leader_id: int, leader_epoch: int) -> None:
        """The metadata names this leader now."""
        position = self.position
        if self.reset_strategy is not None or position is None or leader_id < 0:
            return
        if (position.leader_id, position.leader_epoch) == (leader_id, leader_epoch):
            return
        same_epoch = position.leader_epoch == leader_epoch
        self.position = position._replace(leader_id=leader_id, leader_epoch=leader_epoch)
        self.preferred_replica = None
        self.retry_at_ms = 0
        if same_epoch and self.state is FetchState.FETCHING:
            # The same leader under another address, or one that became known.
            return
        self._validate_or_fetch()

    def complete_validation(self) -> None:
        if self.state is FetchState.AWAIT_VALIDATION:
            self.state = FetchState.FETCHING

    def advance(self, offset: int, epoch: int | None) -> None:
        """Records up to `offset` were handed out."""
        position = self.position
        if position is not None:
            self.position = Position(
                offset,
                position.offset_epoch if epoch is None else epoch,
                position.leader_id,
                position.leader_epoch,
            )

    def _validate_or_fetch(self) -> None:
        position = self.position
        if position is None:
            return
        if position.offset_epoch is not None and position.leader_epoch >= 0:
            self.state = FetchState.AWAIT_VALIDATION
            self.retry_at_ms = 0
            self._forget_fetched()
        else:
            self.state = FetchState.FETCHING

    def _jump(self, position: Position) -> None:
        self.position = position
        self.retry_at_ms = 0
        self._forget_fetched()

    def _forget_fetched(self) -> None:
        self.version += 1
        self.buffered_count = 0
        self.buffered_bytes = 0
        if self.position is not None:
            self.fetch_offset = self.position.offset
