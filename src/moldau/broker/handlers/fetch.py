"""Fetch (key 1), v4-18: read batches from partitions, in full or incremental sessions.

The handler decodes, finds or makes the session, reads, and either answers at once or leaves a
waiting fetch behind. Records go from the log's memory to the socket without being copied here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from moldau.broker.fetch_sessions.cache import NO_SESSION, FetchSessionCache
from moldau.broker.fetch_sessions.delayed_fetch import DelayedFetch, Fetch
from moldau.broker.fetch_sessions.reader import FetchLimits, Reading, Replicas, SlotReader
from moldau.broker.fetch_sessions.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    SlotKey,
    WaitingFetch,
    grouped,
    next_epoch,
    slots_of,
)
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.handlers.support.fetch_codec import (
    NODE_ENDPOINTS_SINCE,
    SESSIONS_SINCE,
    TOPIC_IDS_SINCE,
    decode_fetch,
    encode_fetch_response,
)
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.machine.fetch_data import Buffer, FetchBody, PartitionData
from moldau.broker.replication.machine.names import CurrentLeader, NodeEndpoint, TopicKey
from moldau.broker.replication.machine.purgatory import WAITERS_MAX, Purgatory, Timers
from moldau.broker.replication.machine.throttle import ReplicationThrottle
from moldau.wire.errors import ErrorCode

READ_COMMITTED = 1
IDLE_NOTES_PER_LAG = 10
_new_tuple = tuple.__new__  # What NamedTuples do for themselves, less a call for each request.
_LEADER_ERRORS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class FetchReplicas(Replicas, Protocol):
    def current_leader(
        self, key: TopicKey, index: int, listener_name: str
    ) -> CurrentLeader | None: ...


class FetchLoop(Timers, Protocol):
    def create_future(self) -> asyncio.Future[Any]: ...


class FetchHandler:
    """Answers Fetch."""

    def __init__(
        self,
        replicas: FetchReplicas,
        *,
        loop: FetchLoop,
        clock_ms: Callable[[], int],
        random_id: Callable[[], int],
        session_slots_max: int = 1000,
        fetch_max_bytes: int = 55 * 1024 * 1024,
        waiters_max: int = WAITERS_MAX,
        rack_aware: bool = False,
        lag_ms_max: Callable[[], int] = lambda: 30_000,
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """`rack_aware`: consumers are sent to a replica in their own rack (KIP-392);
        `lag_ms_max` is replica.lag.time.max.ms; `throttle` holds up followers
        (leader.replication.throttled.rate)."""
        self._rack_aware = rack_aware
        self._lag_ms_max = lag_ms_max
        self._replicas = replicas
        self._loop = loop
        self._clock_ms = clock_ms
        self._fetch_max_bytes = fetch_max_bytes
        self._reader = SlotReader(replicas, throttle=throttle, elapsed_ms=clock_ms)
        self.sessions = FetchSessionCache(session_slots_max, random_id=random_id)
        self.purgatory = Purgatory(loop, waiters_max)

    def handle(
        self, context: RequestContext, frame: memoryview, body_position: int
    ) -> list[Buffer] | asyncio.Future[list[Buffer]]:
        version = context.api_version
        body = decode_fetch(version, frame, body_position)
        from_follower = body.replica_id >= 0
        max_bytes = min(body.max_bytes, self._fetch_max_bytes)
        limits = _new_tuple(
            FetchLimits,
            (
                version,
                body.replica_id,
                min(body.min_bytes, max_bytes),
                max_bytes,
                body.isolation_level == READ_COMMITTED,
                body.replica_epoch,
                body.rack if self._rack_aware and not from_follower else "",
                context.listener_name,
            ),
        )
        responder = _Responder(
            self._replicas, context, version, self._reader if from_follower else None
        )
        fetch: Fetch
        session: FetchSession | None = None
        if body.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if body.session_id != NO_SESSION:
                self.sessions.remove(body.session_id)
            wants_session = body.session_epoch == INITIAL_EPOCH and version >= SESSIONS_SINCE
            fetch = _FullFetch(self, body, limits, responder, wants_session)
        else:
            session = self.sessions.get(body.session_id)
            error = self._session_error(session, body, version)
            if session is None or error is not ErrorCode.NONE:
                return responder.error(error)
            fetch = self._continue(session, body, limits, responder)
        if from_follower:
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
        """With every request a follower says of all its partitions how far it has come.

        Of those with nothing new that is the same as before, so they are told only now and then,
        often enough to tell a follower at their end from one that is gone.
        """
        now_ms = self._clock_ms()
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
        responder: _Responder,
    ) -> Fetch:
        if session.waiting is not None:
            # Only a client that lost its answer asks again while the former request waits.
            session.waiting.supersede(
                responder.error(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
            )
        session.update(body)
        if not session.slots:
            self.sessions.remove(session.id)
            return _FullFetch(self, body, limits, responder, wants_session=False)
        self.sessions.touch(session, self._clock_ms())
        session.epoch = next_epoch(session.epoch)
        return _IncrementalFetch(session, limits, responder)

    def create_session(
        self, slots: dict[SlotKey, FetchSlot], limits: FetchLimits
    ) -> FetchSession | None:
        return self.sessions.create(
            slots,
            privileged=limits.replica_id >= 0,
            uses_topic_ids=limits.version >= TOPIC_IDS_SINCE,
            now_ms=self._clock_ms(),
        )


class _Responder:
    """Writes the response to one request."""

    __slots__ = ("_correlation_id", "_follower", "_listener_name", "_replicas", "_version")

    def __init__(
        self,
        replicas: FetchReplicas,
        context: RequestContext,
        version: int,
        follower: SlotReader | None = None,
    ) -> None:
        """`follower` counts what a follower is sent."""
        self._replicas = replicas
        self._follower = follower
        self._correlation_id = context.correlation_id
        self._listener_name = context.listener_name
        self._version = version

    def error(self, code: ErrorCode, session_id: int = NO_SESSION) -> list[Buffer]:
        return encode_fetch_response(self._version, self._correlation_id, session_id, code, ())

    def data(
        self, session_id: int, results: Sequence[tuple[FetchSlot, PartitionData]]
    ) -> list[Buffer]:
        if self._follower is not None:
            self._follower.count_sent(results)
        nodes: Sequence[NodeEndpoint] = ()
        if self._version >= NODE_ENDPOINTS_SINCE and any(
            data.error_code in _LEADER_ERRORS for _, data in results if data.error_code
        ):
            results, nodes = self._with_leaders(results)
        return encode_fetch_response(
            self._version, self._correlation_id, session_id, 0, grouped(results), nodes
        )

    def _with_leaders(
        self, results: Sequence[tuple[FetchSlot, PartitionData]]
    ) -> tuple[list[tuple[FetchSlot, PartitionData]], list[NodeEndpoint]]:
        """Tell who leads the partitions that were asked of the wrong node (KIP-951)."""
        told: list[tuple[FetchSlot, PartitionData]] = []
        nodes: dict[int, NodeEndpoint] = {}
        for slot, data in results:
            if data.error_code in _LEADER_ERRORS:
                leader = self._replicas.current_leader(
                    slot.key, data.partition, self._listener_name
                )
                if leader is not None:
                    leader_id, epoch, node = leader
                    data = data._replace(current_leader=(leader_id, epoch))
                    if node is not None:
                        nodes[leader_id] = node
            told.append((slot, data))
        return told, list(nodes.values())


class _FullFetch:
    """A request that names all its partitions; it may leave a session behind."""

    __slots__ = ("_handler", "_limits", "_responder", "_slots", "_wants_session")

    def __init__(
        self,
        handler: FetchHandler,
        body: FetchBody,
        limits: FetchLimits,
        responder: _Responder,
        wants_session: bool,
    ) -> None:
        self._handler = handler
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
            session = self._handler.create_session(self._slots, self._limits)
            if session is not None:
                session_id = session.id
                session.settle(results, self._limits.read_committed)
        return self._responder.data(session_id, results)


class _IncrementalFetch:
    """A request within a session: it covers all partitions of the session."""

    __slots__ = ("_limits", "_responder", "_session")

    def __init__(self, session: FetchSession, limits: FetchLimits, responder: _Responder) -> None:
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
