"""The events of a partition that this node leads, and what its leader decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from moldau.times import ELAPSED_ZERO, ElapsedMs
from moldau.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Appended:
    """The leader's own log now ends at `next_offset`."""

    next_offset: int
    now_ms: ElapsedMs = ELAPSED_ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFetched:
    """A follower fetched from `fetch_offset`: it has everything below.

    `broker_epoch` is the one in its request, -1 if there was none.
    """

    replica_id: int
    fetch_offset: int
    log_start_offset: int
    broker_epoch: int
    now_ms: ElapsedMs


@dataclass(frozen=True, slots=True)
class IsrCommitted:
    """The metadata log has the replicas and the ISR."""

    replicas: tuple[int, ...]
    isr: frozenset[int]
    partition_epoch: int = 0
    now_ms: ElapsedMs = ELAPSED_ZERO


@dataclass(frozen=True, slots=True)
class MinIsrChanged:
    """The topic's min.insync.replicas is now `min_insync_replicas`."""

    min_insync_replicas: int
    now_ms: ElapsedMs = ELAPSED_ZERO


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: a follower may have been behind for too long."""

    now_ms: ElapsedMs


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Ask the controller (AlterPartition) to make `isr` the in-sync replicas.

    Each member comes with the broker epoch of its last fetch. The proposal is repeated until the
    controller responds or the metadata log brings another change.
    """

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]

    @property
    def members(self) -> frozenset[int]:
        return frozenset(replica_id for replica_id, _ in self.isr)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrAccepted:
    """The controller made the proposed change, or had made it already: the new state."""

    proposal: ProposeIsr
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]
    now_ms: ElapsedMs


@dataclass(frozen=True, slots=True)
class IsrRefused:
    """The controller rejected the proposal with an error."""

    proposal: ProposeIsr
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class CommitUpTo:
    """Everything below `offset` is committed: raise the high watermark to it."""

    offset: int


Event: TypeAlias = (
    Appended | FollowerFetched | IsrCommitted | MinIsrChanged | Tick | IsrAccepted | IsrRefused
)
Effect: TypeAlias = CommitUpTo | ProposeIsr
