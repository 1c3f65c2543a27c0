"""Fetches: within a session or not, answered immediately or left to wait.

Decided here: which partitions a request covers, what it means for the sessions, and whether its
response can be sent now.

Invariants: a request of a session covers all its partitions; a session has at most one waiting
fetch; a follower's position is recorded before its request is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from moldau.broker.fetch_sessions.cache import NO_SESSION, FetchSessionCache
from moldau.broker.fetch_sessions.delayed_fetch import DelayedFetch, Fetch
from moldau.broker.fetch_sessions.limited_fetch import Limiter
from moldau.broker.fetch_sessions.reader import FetchLimits, Reading, SlotReader
from moldau.broker.fetch_sessions.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    SlotKey,
    WaitingFetch,
    next_epoch,
    slots_of,
)
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.replication.machine.fetch_data import (
    SESSIONS_SINCE,
    TOPIC_IDS_SINCE,
    FetchBody,
    PartitionData,
)
from moldau.broker.replication.machine.purgatory import WAITERS_MAX, Purgatory, Timers
from moldau.clock import Clock
from moldau.wire.constants import Buffer
from moldau.wire.errors import ErrorCode

IDLE_NOTES_PER_LAG: Final = 10


class FetchLoop(Timers, Protocol):
    def create_future(self) -> asyncio.Future[Any]: ...


class Responder(Protocol):
    """Encodes the response to one request."""

    def error(self, code: ErrorCode, session_id: int = NO_SESSION) -> list[Buffer]: ...

    def data(
        self, session_id: int, results: Sequence[tuple[FetchSlot, PartitionData]]
    ) -> list[Buffer]: ...


class Fetches:
    """All fetch sessions and waiting fetches of this node."""

    def __init__(
        self,
        reader: SlotReader,
        *,
        loop: FetchLoop,
        clock: Clock,
        random_id: Callable[[], int],
        session_slots_max: int,
        waiters_max: int = WAITERS_MAX,
        lag_ms_max: Callable[[], int],
    ) -> None:
        """`lag_ms_max` is replica.lag.time.max.ms."""
        self._reader = reader
        self._loop = loop
        self._clock = clock
        self._lag_ms_max = lag_ms_max
        self.sessions = FetchSessionCache(session_slots_max, random_id=random_id)
        self.purgatory = Purgatory(loop, waiters_max)

    def fetch(
        self,
        body: FetchBody,
        limits: FetchLimits,
        responder: Responder,
        limiter: Limiter | None = None,
    ) -> list[Buffer] | asyncio.Future[list[Buffer]]:
        fetch: Fetch
        session: FetchSession | None = None
        if body.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if body.session_id != NO_SESSION:
                self.sessions.remove(body.session_id)
            wants_session = body.session_epoch == INITIAL_EPOCH and limits.version >= SESSIONS_SINCE
            fetch = _FullFetch(self, body, limits, responder, wants_session)
        else:
            session = self.sessions.get(body.session_id)
            error = self._session_error(session, body, limits.version)
            if session is None or error is not ErrorCode.NONE:
                return responder.error(error)
            fetch = self._continue(session, body, limits, responder)
        if limiter is not None:
            # The session may have ended with this request.
            in_session = session is not None and isinstance(fetch, _IncrementalFetch)
            fetch = limiter(fetch, body.session_id if in_session else NO_SESSION)
        if limits.replica_id >= 0:
            self._note_follower(fetch, session, limits)
        reading = self._reader.read_all(fetch.slots, limits, fetch.others_count)
        if body.max_wait_ms <= 0 or reading.size >= limits.min_bytes or reading.urgent:
            return fetch.answer(reading.results)
        answer = self._loop.create_future()
        waiting = DelayedFetch(fetch, limits, self._reader, self.purgatory, answer)
        if not waiting.start(reading, body.max_wait_ms):
            return fetch.answer(reading.results)
        answer.add_done_callback(lambda done: waiting.cancel() if done.cancelled() else None)
        return answer

    def _note_follower(
        self, fetch: Fetch, session: FetchSession | None, limits: FetchLimits
    ) -> None:
        """Every request of a follower implies its position in all partitions of its session.

        For those with nothing new it is the same as before, so these are recorded only now and
        then, often enough to tell a follower at the log end from one that is gone.
        """
        now_ms = self._clock.elapsed_ms()
        slots = fetch.slots
        interval_ms = self._lag_ms_max() // IDLE_NOTES_PER_LAG
        if session is not None and not 0 <= now_ms - session.noted_ms < interval_ms:
            session.noted_ms = now_ms
            slots = list(session.slots.values())
        self._reader.note_follower(slots, limits)

    @staticmethod
    def _session_error(session: FetchSession | None, body: FetchBody, version: int) -> ErrorCode:
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != body.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != (version >= TOPIC_IDS_SINCE):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return ErrorCode.NONE

    def _continue(
        self,
        session: FetchSession,
        body: FetchBody,
        limits: FetchLimits,
        responder: Responder,
    ) -> Fetch:
        if session.waiting is not None:
            # Only a client that lost its response fetches again while the previous request waits.
            session.waiting.supersede(
                responder.error(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
            )
        session.update(body)
        if not session.slots:
            self.sessions.remove(session.id)
            return _FullFetch(self, body, limits, responder, wants_session=False)
        self.sessions.touch(session, self._clock.elapsed_ms())
        session.epoch = next_epoch(session.epoch)
        return _IncrementalFetch(session, limits, responder)

    def create_session(
        self, slots: dict[SlotKey, FetchSlot], limits: FetchLimits
    ) -> FetchSession | None:
        return self.sessions.create(
            slots,
            privileged=limits.replica_id >= 0,
            uses_topic_ids=limits.version >= TOPIC_IDS_SINCE,
            now_ms=self._clock.elapsed_ms(),
        )


class _FullFetch:
    """A request that names all its partitions; it may leave a session behind."""

    __slots__ = ("_fetches", "_limits", "_responder", "_slots", "_wants_session")

    def __init__(
        self,
        fetches: Fetches,
        body: FetchBody,
        limits: FetchLimits,
        responder: Responder,
        wants_session: bool,
    ) -> None:
        self._fetches = fetches
        self._limits = limits
        self._responder = responder
        self._wants_session = wants_session
        self._slots = slots_of(body)

    @property
    def slots(self) -> Iterable[FetchSlot]:
        return self._slots.values()

    @property
    def others_count(self) -> int:
        return 0

    def wait(self, owner: WaitingFetch, reading: Reading) -> None:
        for slot in self._slots.values():
            slot.owner = owner
            slot.watch()

    def stop_waiting(self, owner: WaitingFetch) -> None:
        for slot in self._slots.values():
            slot.owner = None
            slot.unwatch()

    def answer(self, results: Sequence[tuple[FetchSlot, PartitionData]]) -> list[Buffer]:
        session_id = NO_SESSION
        if self._wants_session:
            session = self._fetches.create_session(self._slots, self._limits)
            if session is not None:
                session_id = session.id
                session.settle(results, self._limits.read_committed)
        return self._responder.data(session_id, results)


class _IncrementalFetch:
    """A request within a session: it covers all partitions of the session."""

    __slots__ = ("_limits", "_responder", "_session")

    def __init__(self, session: FetchSession, limits: FetchLimits, responder: Responder) -> None:
        self._session = session
        self._limits = limits
        self._responder = responder

    @property
    def slots(self) -> Iterable[FetchSlot]:
        return list(self._session.candidates)

    @property
    def others_count(self) -> int:
        return len(self._session.slots) - len(self._session.candidates)

    def wait(self, owner: WaitingFetch, reading: Reading) -> None:
        session = self._session
        session.sort(reading.results, self._limits.read_committed)
        for slot, _ in reading.results:
            slot.watch()
        session.waiting = owner

    def stop_waiting(self, owner: WaitingFetch) -> None:
        if self._session.waiting is owner:
            self._session.waiting = None

    def answer(self, results: Sequence[tuple[FetchSlot, PartitionData]]) -> list[Buffer]:
        session = self._session
        return self._responder.data(
            session.id, session.settle(results, self._limits.read_committed)
        )
