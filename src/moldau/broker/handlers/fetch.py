"""Fetch (key 1), v4-18: read batches from partitions, in full or incremental sessions.

The handler decodes, has the fetch answered (`fetch_sessions/fetches.py`), and encodes the response.
Records go from the log's memory to the socket without being copied here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from moldau.broker.fetch_sessions.cache import NO_SESSION, FetchSessionCache
from moldau.broker.fetch_sessions.delayed_fetch import Fetch
from moldau.broker.fetch_sessions.fetches import Fetches, FetchLoop
from moldau.broker.fetch_sessions.limited_fetch import LimitedFetch, Limiter
from moldau.broker.fetch_sessions.reader import FetchLimits, Replicas, SlotReader
from moldau.broker.fetch_sessions.session import grouped
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.handlers.support._fetch_codec import (
    NODE_ENDPOINTS_SINCE,
    decode_fetch,
    encode_fetch_response,
)
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.machine.fetch_data import PartitionData
from moldau.broker.replication.machine.names import CurrentLeader, NodeEndpoint, TopicKey
from moldau.broker.replication.machine.purgatory import WAITERS_MAX, Purgatory
from moldau.broker.replication.machine.throttle import ReplicationThrottle
from moldau.broker.security.authorization.topic_guard import DeniesTopic, TopicGuard
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.clock import Clock
from moldau.wire.constants import Buffer
from moldau.wire.errors import LEADER_CHANGED, ErrorCode

READ_COMMITTED = 1
_NONE: Final[frozenset[TopicKey]] = frozenset()
_new_tuple = tuple.__new__  # What NamedTuples do themselves, less a call for each request.


class FetchReplicas(Replicas, Protocol):
    def current_leader(
        self, key: TopicKey, index: int, listener_name: str
    ) -> CurrentLeader | None: ...


class FetchHandler:
    """Answers Fetch."""

    def __init__(
        self,
        replicas: FetchReplicas,
        *,
        loop: FetchLoop,
        clock: Clock,
        random_id: Callable[[], int],
        session_slots_max: int = 1000,
        fetch_max_bytes: int = 55 * 1024 * 1024,
        waiters_max: int = WAITERS_MAX,
        rack_aware: bool = False,
        lag_ms_max: Callable[[], int] = lambda: 30_000,
        throttle: ReplicationThrottle | None = None,
        guard: TopicGuard | None = None,
        quotas: ClientQuotas | None = None,
    ) -> None:
        """`rack_aware`: consumers are redirected to a replica in their own rack (KIP-392);
        `lag_ms_max` is replica.lag.time.max.ms; `throttle` limits what followers get
        (leader.replication.throttled.rate); without a `guard` everybody may read."""
        self._guard = guard
        self._rack_aware = rack_aware
        self._quotas = quotas
        self._replicas = replicas
        self._fetch_max_bytes = fetch_max_bytes
        self._reader = SlotReader(replicas, throttle=throttle, elapsed_ms=clock.elapsed_ms)
        self._fetches = Fetches(
            self._reader,
            loop=loop,
            clock=clock,
            random_id=random_id,
            session_slots_max=session_slots_max,
            waiters_max=waiters_max,
            lag_ms_max=lag_ms_max,
        )

    @property
    def sessions(self) -> FetchSessionCache:
        return self._fetches.sessions

    @property
    def purgatory(self) -> Purgatory:
        return self._fetches.purgatory

    def handle(
        self, context: RequestContext, frame: memoryview, body_position: int
    ) -> list[Buffer] | asyncio.Future[list[Buffer]]:
        version = context.api_version
        body = decode_fetch(version, frame, body_position)
        from_follower = body.replica_id >= 0
        context.connection.is_follower = from_follower
        replica_id = body.replica_id
        denies: DeniesTopic | None = None
        if self._guard is not None:
            if not from_follower:
                denies = self._guard.denies_read(context)
            elif self._guard.denies_follower(context):
                # It is not a follower, so its position must not be recorded either.
                replica_id, denies = -1, _denies_all
        max_bytes = min(body.max_bytes, self._fetch_max_bytes)
        quotas = self._quotas
        limiter: Limiter | None = None
        if quotas is not None and quotas.active and not from_follower:
            max_bytes = quotas.fetch_size_max(context, max_bytes)
            limiter = _limiter(quotas, context)
        limits = _new_tuple(
            FetchLimits,
            (
                version,
                replica_id,
                min(body.min_bytes, max_bytes),
                max_bytes,
                body.isolation_level == READ_COMMITTED,
                body.replica_epoch,
                body.rack if self._rack_aware and not from_follower else "",
                context.listener_name,
                denies,
                context,
                context.connection.grants.reads if denies is not _denies_all else _NONE,
            ),
        )
        responder = _Responder(
            self._replicas, context, version, self._reader if from_follower else None
        )
        return self._fetches.fetch(body, limits, responder, limiter)


def _limiter(quotas: ClientQuotas, context: RequestContext) -> Limiter:
    started_ns = quotas.cpu_ns()

    def limit(fetch: Fetch, session_id: int) -> Fetch:
        return LimitedFetch(
            fetch,
            lambda size, spent_ns: quotas.on_fetched(context, size, spent_ns),
            lambda throttle_ms: encode_fetch_response(
                context.api_version,
                context.correlation_id,
                session_id,
                0,
                (),
                throttle_time_ms=throttle_ms,
            ),
            quotas.cpu_ns,
            started_ns,
        )

    return limit


def _denies_all(context: RequestContext, key: TopicKey) -> bool:
    return True


class _Responder:
    """Encodes the response to one request; implements `fetches.Responder`."""

    __slots__ = ("_correlation_id", "_follower", "_listener_name", "_replicas", "_version")

    def __init__(
        self,
        replicas: FetchReplicas,
        context: RequestContext,
        version: int,
        follower: SlotReader | None = None,
    ) -> None:
        """`follower` counts what a follower gets, for its throttle."""
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
        for slot, data in results:
            partition = slot.partition
            meters = None if partition is None else partition.meters
            if meters is None:
                continue
            if self._follower is None:
                meters.sent(data.records_size)
            else:
                meters.topic.sent_to_follower(data.records_size)
            if data.error_code:
                meters.topic.mark("FailedFetchRequestsPerSec")
        nodes: Sequence[NodeEndpoint] = ()
        if self._version >= NODE_ENDPOINTS_SINCE and any(
            data.error_code in LEADER_CHANGED for _, data in results if data.error_code
        ):
            results, nodes = self._with_leaders(results)
        return encode_fetch_response(
            self._version, self._correlation_id, session_id, 0, grouped(results), nodes
        )

    def _with_leaders(
        self, results: Sequence[tuple[FetchSlot, PartitionData]]
    ) -> tuple[list[tuple[FetchSlot, PartitionData]], list[NodeEndpoint]]:
        """Add the leaders of partitions that this node does not lead (KIP-951)."""
        found: list[tuple[FetchSlot, PartitionData]] = []
        nodes: dict[int, NodeEndpoint] = {}
        for slot, data in results:
            if data.error_code in LEADER_CHANGED:
                leader = self._replicas.current_leader(
                    slot.key, data.partition, self._listener_name
                )
                if leader is not None:
                    leader_id, epoch, node = leader
                    data = data._replace(current_leader=(leader_id, epoch))
                    if node is not None:
                        nodes[leader_id] = node
            found.append((slot, data))
        return found, list(nodes.values())
