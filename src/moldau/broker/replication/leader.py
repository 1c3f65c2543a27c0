"""Decides which appended records are committed.

A record is committed when every replica in the ISR has it and the ISR has at least the effective
minimum of members (KIP-966). What always holds: the high watermark never goes back, and never
passes the leader's own end.

Transitions: Appended moves the leader's end, IsrCommitted changes who is counted, MinIsrChanged
how many must be counted; each may commit more.
"""

from __future__ import annotations

from typing import assert_never

from moldau.broker.replication.events import (
    Appended,
    CommitUpTo,
    Effect,
    Event,
    IsrCommitted,
    MinIsrChanged,
)
from moldau.invariant import invariant

_UNKNOWN_OFFSET = -1


class PartitionLeader:
    """The leader of one partition in one leader epoch."""

    __slots__ = (
        "_end_offsets",
        "_isr",
        "_leader_id",
        "_min_insync_replicas",
        "_replicas",
        "_sole_and_enough",
        "high_watermark",
    )

    def __init__(
        self,
        leader_id: int,
        *,
        replicas: tuple[int, ...],
        isr: frozenset[int],
        min_insync_replicas: int,
        end_offset: int,
        high_watermark: int,
    ) -> None:
        invariant(leader_id in isr, f"leader {leader_id} is not in its own ISR {sorted(isr)}")
        self._leader_id = leader_id
        self._replicas = replicas
        self._isr = isr
        self._min_insync_replicas = min_insync_replicas
        self._end_offsets = {leader_id: end_offset}
        self.high_watermark = high_watermark
        self._sole_and_enough = self._is_sole_and_enough()

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Appended(next_offset):
                before = self.high_watermark
                return self._commit_beyond(before, self.appended(next_offset))
            case IsrCommitted(replicas, isr):
                invariant(
                    self._leader_id in isr,
                    f"leader {self._leader_id} is not in its own ISR {sorted(isr)}",
                )
                self._replicas, self._isr = replicas, isr
            case MinIsrChanged(min_insync_replicas):
                self._min_insync_replicas = min_insync_replicas
            case _:
                assert_never(event)
        self._sole_and_enough = self._is_sole_and_enough()
        before = self.high_watermark
        return self._commit_beyond(before, self._advance())

    def appended(self, next_offset: int) -> int:
        """The high watermark after Appended(next_offset).

        The step that every produced batch takes, so it is spared the event and effect objects.
        """
        self._end_offsets[self._leader_id] = next_offset
        if self._sole_and_enough:
            if next_offset > self.high_watermark:
                self.high_watermark = next_offset
            return self.high_watermark
        return self._advance()

    @property
    def has_enough_in_sync(self) -> bool:
        """Whether acks=all may be promised."""
        return len(self._isr) >= self._effective_min_isr()

    def _effective_min_isr(self) -> int:
        return min(self._min_insync_replicas, len(self._replicas))

    def _is_sole_and_enough(self) -> bool:
        return len(self._isr) == 1 and self.has_enough_in_sync

    def _advance(self) -> int:
        if self.has_enough_in_sync:
            committed = min(self._end_offsets.get(each, _UNKNOWN_OFFSET) for each in self._isr)
            self.high_watermark = max(self.high_watermark, committed)
        return self.high_watermark

    @staticmethod
    def _commit_beyond(before: int, after: int) -> list[Effect]:
        return [CommitUpTo(after)] if after > before else []
