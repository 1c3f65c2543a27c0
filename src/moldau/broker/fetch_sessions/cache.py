"""Which fetch sessions are kept (KIP-227).

A new session may take the place of one that was not used for `eviction_ms`, of a consumer's if
it belongs to a follower (a privileged session), or of a smaller one that is no longer young.

Invariants: there are never more than `slots_max` sessions, and every id is positive and unique.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.fetch_sessions.session import FetchSession, SlotKey
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.times import ElapsedMs

NO_SESSION = 0
MIN_EVICTION_MS = 120_000


class FetchSessionCache:
    """All sessions, least recently used first."""

    def __init__(
        self,
        slots_max: int,
        *,
        random_id: Callable[[], int],
        eviction_ms: int = MIN_EVICTION_MS,
    ) -> None:
        self._slots_max = slots_max
        self._random_id = random_id
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}
        self.evictions_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions_count(self) -> int:
        return sum(len(session.slots) for session in self._sessions.values())

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def touch(self, session: FetchSession, now_ms: ElapsedMs) -> None:
        session.last_used_ms = now_ms
        # Reinsertion keeps the dict in order of last use.
        self._sessions[session.id] = self._sessions.pop(session.id)

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def create(
        self,
        slots: dict[SlotKey, FetchSlot],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: ElapsedMs,
    ) -> FetchSession | None:
        """A new session over `slots`, or None if there is no place for it."""
        if len(self._sessions) >= self._slots_max and not self._evict(
            privileged, len(slots), now_ms
        ):
            return None
        session = FetchSession(
            self._new_id(),
            slots,
            privileged=privileged,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
        )
        self._sessions[session.id] = session
        return session

    def _evict(self, privileged: bool, size: int, now_ms: ElapsedMs) -> bool:
        victim = self._victim(privileged, size, now_ms)
        if victim is None:
            return False
        self.remove(victim.id)
        self.evictions_count += 1
        return True

    def _victim(self, privileged: bool, size: int, now_ms: ElapsedMs) -> FetchSession | None:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return None
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            return oldest
        evictable = [
            session
            for session in self._sessions.values()
            if session.last_used_ms - session.created_ms > self._eviction_ms
            or (privileged and not session.privileged)
        ]
        if not evictable:
            return None
        least = min(evictable, key=lambda each: (each.privileged, len(each.slots), each.id))
        if (privileged, size) > (least.privileged, len(least.slots)):
            return least
        return None

    def _new_id(self) -> int:
        while True:
            session_id = self._random_id() & 0x7FFFFFFF
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id
