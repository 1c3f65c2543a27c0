"""Leadership: how far the replicas are that fetch from a leader, and what is committed by that.

Invariants: the high watermark moves only to an offset that a majority of the voters has on disk,
and only past the start of the leader's own epoch (records of an older epoch alone could still be
overwritten); a leader from which no majority has fetched for one and a half fetch timeouts resigns,
because another node may lead without its knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterSet
from moldau.times import ElapsedMs
from moldau.wire.constants import UNKNOWN_OFFSET

OBSERVER_SESSION_TIMEOUT_MS = 300_000
CAUGHT_UP_WITHIN_MS = 3_600_000
NEVER: Final = ElapsedMs(-1)


@dataclass(slots=True)
class Progress:
    """How far one replica is; the times are NEVER before its first fetch."""

    key: ReplicaKey
    end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: ElapsedMs = NEVER
    caught_up_ms: ElapsedMs = NEVER
    leader_end_at_fetch: int = UNKNOWN_OFFSET

    def fetched(self, offset: int, leader_end_offset: int, now_ms: ElapsedMs) -> None:
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif 0 < self.leader_end_at_fetch <= offset:
            # It has everything that there was at its last fetch.
            self.caught_up_ms = max(self.caught_up_ms, self.last_fetch_ms)
        self.leader_end_at_fetch = leader_end_offset
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset


class Leadership:
    def __init__(
        self,
        local: ReplicaKey,
        epoch: int,
        voters: VoterSet,
        *,
        epoch_start_offset: int,
        fetch_timeout_ms: int,
        now_ms: ElapsedMs,
    ) -> None:
        self.epoch = epoch
        self.epoch_start_offset = epoch_start_offset
        self.resign_requested = False
        self._local = local
        self.voters = voters
        self._by_id = {node_id: Progress(v.key) for node_id, v in voters.voters.items()}
        self._local_progress = self._by_id.get(local.id, Progress(local))
        self._observers: dict[ReplicaKey, Progress] = {}
        self._fetched: set[int] = set()
        self._check_quorum_ms = fetch_timeout_ms * 3 // 2
        self._check_deadline_ms = ElapsedMs(now_ms + self._check_quorum_ms)
        self.begin_interval_ms = max(1, fetch_timeout_ms // 2)
        self.begin_at_ms = now_ms

    # Progress ---------------------------------------------------------------------------

    def synced(self, end_offset: int) -> None:
        progress = self._local_progress
        progress.end_offset = max(progress.end_offset, end_offset)

    def fetched(
        self, replica: ReplicaKey, offset: int, leader_end_offset: int, now_ms: ElapsedMs
    ) -> None:
        if replica in self.voters:
            progress = self._by_id[replica.id]
        else:
            progress = self._observer(replica, now_ms)
        progress.fetched(offset, leader_end_offset, now_ms)
        self.on_contact(replica, now_ms)

    def _observer(self, replica: ReplicaKey, now_ms: ElapsedMs) -> Progress:
        progress = self._observers.get(replica)
        if progress is None:
            # Observers that come and go must not add up.
            self._forget_observers(now_ms)
            progress = self._observers[replica] = Progress(replica)
        return progress

    def on_contact(self, replica: ReplicaKey, now_ms: ElapsedMs) -> None:
        """Voters that fetch count for the check that a majority still follows."""
        if replica not in self.voters:
            return
        self._fetched.add(replica.id)
        needed = self.voters.majority - (1 if self._local in self.voters else 0)
        if len(self._fetched) >= needed:
            self._fetched.clear()
            self._check_deadline_ms = ElapsedMs(now_ms + self._check_quorum_ms)

    def majority_offset(self) -> int:
        offsets = {node_id: max(0, p.end_offset) for node_id, p in self._by_id.items()}
        return self.voters.majority_offset(offsets)

    def set_voters(self, voters: VoterSet, now_ms: ElapsedMs) -> None:
        """Replicas keep their progress when they become voters or observers."""
        if self.voters.is_only(self._local):
            # It needed no other voter before; from now on it does.
            self._check_deadline_ms = ElapsedMs(now_ms + self._check_quorum_ms)
        known = {**self._observers, **{p.key: p for p in self._by_id.values()}}
        by_id: dict[int, Progress] = {}
        for node_id, voter in voters.voters.items():
            old = self._by_id.get(node_id)
            if old is not None and old.key.matches(voter.key):
                progress = old
            else:
                progress = known.get(voter.key) or Progress(voter.key)
            known.pop(progress.key, None)
            progress.key = voter.key
            by_id[node_id] = progress
        self._by_id = by_id
        self._observers = known
        self.voters = voters
        self._fetched &= by_id.keys()
        if self._local in voters:
            by_id[self._local.id] = self._local_progress

    # Time -------------------------------------------------------------------------------

    @property
    def check_deadline_ms(self) -> ElapsedMs | None:
        """When to resign; None for the only voter, which needs no other."""
        return None if self.voters.is_only(self._local) else self._check_deadline_ms

    def silent_voters(self, now_ms: ElapsedMs) -> list[Voter]:
        """Voters that have not fetched lately: they may not know the leader."""
        return [
            voter
            for voter in self.voters.others(self._local)
            if self._by_id[voter.key.id].last_fetch_ms == NEVER
            or now_ms - self._by_id[voter.key.id].last_fetch_ms >= self.begin_interval_ms
        ]

    # Views ------------------------------------------------------------------------------

    def successors(self) -> tuple[ReplicaKey, ...]:
        """The other voters, the one with the longest log first."""
        others = (p for p in self._by_id.values() if not p.key.matches(self._local))
        return tuple(p.key for p in sorted(others, key=lambda p: (-p.end_offset, p.key.id)))

    def is_caught_up(self, replica: ReplicaKey, now_ms: ElapsedMs) -> bool:
        progress = self._observers.get(replica)
        return (
            progress is not None
            and progress.caught_up_ms != NEVER
            and progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    def voter_progress(self) -> list[Progress]:
        return list(self._by_id.values())

    def observer_progress(self, now_ms: ElapsedMs) -> list[Progress]:
        """Observers that have fetched lately."""
        self._forget_observers(now_ms)
        return list(self._observers.values())

    def _forget_observers(self, now_ms: ElapsedMs) -> None:
        """The ones that have not fetched for the session timeout."""
        self._observers = {
            key: progress
            for key, progress in self._observers.items()
            if now_ms - progress.last_fetch_ms < OBSERVER_SESSION_TIMEOUT_MS or key == self._local
        }
