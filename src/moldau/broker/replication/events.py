"""What happens to a partition that is led here, and what its leader decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Appended:
    """The leader's own log now ends at `next_offset`."""

    next_offset: int


@dataclass(frozen=True, slots=True)
class IsrCommitted:
    """The metadata log says who is assigned and who is in sync."""

    replicas: tuple[int, ...]
    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class MinIsrChanged:
    """The topic's min.insync.replicas is now `min_insync_replicas`."""

    min_insync_replicas: int


@dataclass(frozen=True, slots=True)
class CommitUpTo:
    """Everything below `offset` is committed: raise the high watermark to it."""

    offset: int


Event: TypeAlias = Appended | IsrCommitted | MinIsrChanged
Effect: TypeAlias = CommitUpTo
