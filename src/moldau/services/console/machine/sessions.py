"""Sessions: who is logged in, and how many wrong passwords a user may try.

Invariants: at most `count_max` sessions, the one unused for longest goes first; a session that is
not used for `timeout_ms` is over; the ids come from the caller, and only their hashes are kept.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

__all__ = ["FailedLogins", "Session", "Sessions"]


@dataclass(slots=True)
class Session:
    """`secret` is the password or access token that the user's clients use."""

    user: str
    method: str
    secret: str | None = field(repr=False)
    used_ms: int
    expires_ms: int | None = None


class Sessions:
    """See the module."""

    def __init__(self, *, count_max: int, timeout_ms: int) -> None:
        self._count_max = count_max
        self._timeout_ms = timeout_ms
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, session_id: str, session: Session) -> None:
        self._sessions[_hash(session_id)] = session
        if len(self._sessions) > self._count_max:
            self._sessions.popitem(last=False)

    def find(self, session_id: str, now_ms: int) -> Session | None:
        key = _hash(session_id)
        found = self._sessions.get(key)
        if found is None:
            return None
        too_old = now_ms - found.used_ms > self._timeout_ms
        if too_old or (found.expires_ms is not None and now_ms >= found.expires_ms):
            del self._sessions[key]
            return None
        found.used_ms = now_ms
        self._sessions.move_to_end(key)
        return found

    def remove(self, session_id: str) -> Session | None:
        return self._sessions.pop(_hash(session_id), None)


class FailedLogins:
    """Refuses a user for a while after too many wrong passwords; at most `users_max` are kept."""

    def __init__(self, *, count_max: int, window_ms: int, users_max: int = 10_000) -> None:
        self._count_max = count_max
        self._window_ms = window_ms
        self._users_max = users_max
        self._failures: OrderedDict[str, list[int]] = OrderedDict()

    def is_blocked(self, user: str, now_ms: int) -> bool:
        recent = [at for at in self._failures.get(user, ()) if now_ms - at < self._window_ms]
        return len(recent) >= self._count_max

    def add(self, user: str, now_ms: int) -> None:
        recent = [at for at in self._failures.pop(user, ()) if now_ms - at < self._window_ms]
        self._failures[user] = [*recent, now_ms][-self._count_max :]
        if len(self._failures) > self._users_max:
            self._failures.popitem(last=False)

    def clear(self, user: str) -> None:
        self._failures.pop(user, None)


def _hash(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode()).digest()
