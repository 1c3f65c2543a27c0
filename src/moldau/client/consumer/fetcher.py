"""Fetches ahead of the application: one Fetch at a time per node, on a connection of its own.

Decided here: what is asked of whom, and what an answer means for each partition. What always
holds: a partition is asked for only while it may be fetched, at the offset after what is buffered
of it; at most two parts of it are buffered, and only one once `fetch.max.bytes` are buffered in
all; an error that concerns the position is dealt with when the position has got there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from moldau.client._fetch_reader import FetchReader
from moldau.client.cluster import LANE_FETCH, ClusterClient
from moldau.client.consumer.machine.fetch_buffer import CompletedFetch, FetchBuffer, end_of_batches
from moldau.client.consumer.machine.fetch_request import fetch_request
from moldau.client.consumer.machine.fetch_session import (
    ConsumerFetchSession,
    Wanted,
)
from moldau.client.consumer.machine.positions import PositionState, ResetKind
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError, OffsetOutOfRangeError, error_for
from moldau.client.metrics import ConsumerMetrics
from moldau.client.topics import Node, TopicPartition
from moldau.times import ElapsedMs
from moldau.wire.batch_header import MAGIC, MAGIC_POSITION
from moldau.wire.errors import FETCH_METADATA_STALE, ErrorCode, WireError
from moldau.wire.fetch_response import (
    TOPIC_ID_VERSION,
    FetchedPart,
    FetchedResponse,
    read_fetch_response,
)
from moldau.wire.uuids import ZERO_UUID

__all__ = ["Fetcher"]

_log = logging.getLogger(__name__)

BUFFERED_PARTS_MAX = 2
# An answer may wait for fetch.max.wait.ms at the broker, whatever request.timeout.ms says.
_WAIT_MARGIN_MS = 1_000
# What closing may cost for the brokers' convenience.
_CLOSE_SESSION_MS = 500


class _Asked(NamedTuple):
    """What a request asked of a partition: state and version show whether it still matters."""

    state: PositionState
    version: int
    offset: int


class Fetcher:
    """See the module. Lives on the loop; `kick` is called whenever something may be fetched."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        settings: ConsumerSettings,
        metrics: ConsumerMetrics,
        on_arrival: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._buffer = buffer
        self._settings = settings
        self._metrics = metrics
        self._on_arrival = on_arrival
        #: Reads the records of a partition; another one returns whole batches.
        self.reader: Callable[..., Any] = FetchReader
        self._sessions: dict[int, ConsumerFetchSession] = {}
        self._in_flight: dict[int, asyncio.Task[None]] = {}
        self._closed = False
        self._retry_scheduled = False

    def kick(self) -> None:
        """Ask every node that is not being asked for what may be fetched there."""
        if self._closed:
            return
        for node_id, wanted in self._plan().items():
            task = asyncio.get_running_loop().create_task(self._fetch(node_id, wanted))
            self._in_flight[node_id] = task
            task.add_done_callback(partial(self._on_done, node_id))

    def _on_done(self, node_id: int, task: asyncio.Task[None]) -> None:
        self._in_flight.pop(node_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self.kick()
            return
        # A fault of ours: it is logged, and nothing is lost.
        _log.error("A Fetch from node %s failed inside the client", node_id, exc_info=error)
        self._kick_later()

    def _kick_later(self) -> None:
        if self._retry_scheduled or self._closed:
            return
        self._retry_scheduled = True
        self._cluster.clock.call_later(self._cluster.settings.retry_backoff_ms, self._kick_again)

    def _kick_again(self) -> None:
        self._retry_scheduled = False
        self.kick()

    # What to ask for.

    def _plan(self) -> dict[int, dict[TopicPartition, _Asked]]:
        plan: dict[int, dict[TopicPartition, _Asked]] = {}
        now_ms = self._cluster.clock.elapsed_ms()
        full = self._buffer.byte_count >= self._settings.fetch_max_bytes
        parts_max = 1 if full else BUFFERED_PARTS_MAX
        nodes = self._cluster.metadata.nodes
        stale = False
        with self._subscription.lock:
            self._buffer.short_of_room = False
            for key, state in self._subscription.assignment.items():
                if not state.is_fetchable:
                    continue
                if state.buffered_count >= parts_max:
                    self._buffer.short_of_room = True
                    continue
                if state.retry_at_ms > now_ms:
                    continue
                node_id = self._node_for(state, now_ms)
                if node_id not in nodes:
                    state.preferred_replica = None
                    stale = True
                elif node_id not in self._in_flight:
                    asked = _Asked(state, state.version, state.fetch_offset)
                    plan.setdefault(node_id, {})[key] = asked
        if stale:
            self._cluster.request_refresh()
            self._kick_later()
        return plan

    def _node_for(self, state: PositionState, now_ms: ElapsedMs) -> int:
        """The leader, or the replica that it named as nearer (KIP-392)."""
        if state.preferred_replica is not None:
            if now_ms < state.preferred_until_ms:
                return state.preferred_replica
            state.preferred_replica = None
        return -1 if state.position is None else state.position.leader_id

    # Asking.

    async def _fetch(self, node_id: int, asked: dict[TopicPartition, _Asked]) -> None:
        metadata = self._cluster.metadata
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = ConsumerFetchSession()
        wanted = {
            key: Wanted(
                metadata.topic_id(key.topic),
                each.offset,
                -1 if each.state.position is None else each.state.position.leader_epoch,
                self._settings.max_partition_fetch_bytes,
            )
            for key, each in asked.items()
        }
        by_id = all(each.topic_id != ZERO_UUID for each in wanted.values())
        request = fetch_request(session.request(wanted), self._settings, by_id=by_id)
        started_ms = self._cluster.clock.elapsed_ms()
        try:
            raw = await self._cluster.call_raw(
                node_id,
                request,
                timeout_ms=max(
                    self._cluster.settings.request_timeout_ms,
                    self._settings.fetch_max_wait_ms + _WAIT_MARGIN_MS,
                ),
                max_version=None if by_id else TOPIC_ID_VERSION - 1,
                lane=LANE_FETCH,
            )
            response = read_fetch_response(raw.version, raw.body)
        except (KafkaError, WireError) as error:
            session.failed()
            self._on_failure(node_id, asked, error)
            return
        self._cluster.note_throttle(node_id, response.throttle_time_ms)
        if not session.answered(response.error_code, response.session_id):
            self._on_session_refused(response.error_code)
            return
        latency_ms = self._cluster.clock.elapsed_ms() - started_ms
        self._metrics.fetch_answered(latency_ms, response.throttle_time_ms)
        self._on_response(asked, wanted, response)

    def _on_failure(
        self, node_id: int, asked: dict[TopicPartition, _Asked], error: Exception
    ) -> None:
        _log.debug("Fetch from node %s failed: %s", node_id, error)
        with self._subscription.lock:
            for each in asked.values():
                # A replica that cannot be reached is not preferred; the leader names another.
                each.state.preferred_replica = None
                each.state.retry_at_ms = (
                    self._cluster.clock.elapsed_ms() + self._cluster.settings.retry_backoff_ms
                )
        self._cluster.request_refresh()
        self._kick_later()

    def _on_session_refused(self, error_code: int) -> None:
        if error_code in (
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
            ErrorCode.INCONSISTENT_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ):
            self._cluster.request_refresh()
        self._kick_later()

    # Answers.

    def _on_response(
        self,
        asked: dict[TopicPartition, _Asked],
        wanted: dict[TopicPartition, Wanted],
        response: FetchedResponse,
    ) -> None:
        topic_ids = {key.topic: each.topic_id for key, each in wanted.items()}
        by_id = {topic_id.bytes: name for name, topic_id in topic_ids.items()}
        hints: dict[TopicPartition, tuple[int, int]] = {}
        for topic, part in response.parts:
            name = topic if isinstance(topic, str) else by_id.get(topic)
            if name is None:
                continue
            key = TopicPartition(name, part.partition)
            each = asked.get(key)
            if each is None or each.state.version != each.version:
                continue
            if part.current_leader is not None and part.current_leader[1] >= 0:
                hints[key] = part.current_leader
            self._on_part(key, each, part)
        if hints:
            picture = self._cluster.metadata.with_leaders(
                hints, [Node(*node) for node in response.nodes]
            )
            self._cluster.apply_leader_hints(picture)
        if response.parts:
            self._on_arrival()

    def _on_part(self, key: TopicPartition, asked: _Asked, part: FetchedPart) -> None:
        if part.error_code != ErrorCode.NONE:
            self._on_part_error(key, asked, part.error_code)
            return
        state = asked.state
        with self._subscription.lock:
            if part.high_watermark >= 0:
                state.high_watermark = part.high_watermark
            if part.log_start_offset >= 0:
                state.log_start_offset = part.log_start_offset
            if part.last_stable_offset >= 0:
                state.last_stable_offset = part.last_stable_offset
            if part.preferred_read_replica >= 0:
                state.preferred_replica = part.preferred_read_replica
                state.preferred_until_ms = (
                    self._cluster.clock.elapsed_ms() + self._cluster.settings.metadata_max_age_ms
                )
        if part.records is not None:
            self._buffer.add(self._completed(key, asked, part, part.records))

    def _completed(
        self, key: TopicPartition, asked: _Asked, part: FetchedPart, records: memoryview
    ) -> CompletedFetch:
        settings = self._settings
        end_offset = end_of_batches(records)
        if end_offset is None and not _is_older_format(records):
            problem = KafkaError(
                f"Failed to make progress reading messages at {key}={asked.offset}. Received a "
                "non-empty fetch response from the server, but no complete records were found.",
                advice="raise max.partition.fetch.bytes and fetch.max.bytes",
            )
            return self._failed_part(key, asked, lambda: problem)
        reader = self.reader(
            records,
            key.topic,
            key.partition,
            asked.offset,
            key_deserializer=settings.key_deserializer,
            value_deserializer=settings.value_deserializer,
            check_crcs=settings.check_crcs,
            read_committed=settings.read_committed,
            aborted=part.aborted or (),
        )
        return CompletedFetch(
            key,
            asked.state,
            version=asked.version,
            start_offset=asked.offset,
            end_offset=asked.offset if end_offset is None else end_offset,
            size=len(records),
            reader=reader,
        )

    def _failed_part(
        self, key: TopicPartition, asked: _Asked, error: Callable[[], KafkaError | None]
    ) -> CompletedFetch:
        return CompletedFetch(
            key,
            asked.state,
            version=asked.version,
            start_offset=asked.offset,
            end_offset=asked.offset,
            size=0,
            reader=None,
            error=error,
        )

    def _on_part_error(self, key: TopicPartition, asked: _Asked, error_code: int) -> None:
        state = asked.state
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            with self._subscription.lock:
                if state.preferred_replica is not None:
                    # A follower may not have it yet, or have it no longer: the leader knows.
                    state.preferred_replica = None
                    return
            self._buffer.add(self._failed_part(key, asked, partial(self._out_of_range, key, asked)))
            return
        with self._subscription.lock:
            state.retry_at_ms = (
                self._cluster.clock.elapsed_ms() + self._cluster.settings.retry_backoff_ms
            )
            if error_code in FETCH_METADATA_STALE:
                state.preferred_replica = None
        self._kick_later()
        if error_code in FETCH_METADATA_STALE:
            _log.debug("Fetch of %s: error %s", key, error_code)
            self._cluster.request_refresh()
        elif error_code == ErrorCode.UNKNOWN_LEADER_EPOCH:
            _log.debug("Fetch of %s: the broker does not know our leader epoch yet", key)
        elif error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            _log.warning("Unknown server error while fetching offset %s of %s", asked.offset, key)
        else:
            error = error_for(error_code, f"fetching offset {asked.offset} of {key}")
            if error.retriable and error_code != ErrorCode.CORRUPT_MESSAGE:
                _log.debug("Fetch of %s is retried: %s", key, error)
            else:
                self._buffer.add(self._failed_part(key, asked, lambda: error))

    def _out_of_range(self, key: TopicPartition, asked: _Asked) -> KafkaError | None:
        """The log does not have the position: reset it, or raise."""
        strategy = self._subscription.default_reset
        if strategy.kind is not ResetKind.NONE:
            _log.info("Fetch offset %s of %s is out of range, resetting it", asked.offset, key)
            self._subscription.request_reset(key, strategy)
            return None
        return OffsetOutOfRangeError(
            f"Fetch position {asked.offset} is out of range for partition {key}"
        )

    async def close(self, deadline: Deadline) -> None:
        """End what is under way, and let the nodes forget their sessions if they can be asked."""
        self._closed = True
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        timeout_ms = min(deadline.left_ms(), _CLOSE_SESSION_MS)
        nodes = self._cluster.metadata.nodes
        await asyncio.gather(
            *(
                self._close_session(node_id, session, timeout_ms)
                for node_id, session in self._sessions.items()
                if session.is_open and node_id in nodes and timeout_ms > 0
            )
        )

    async def _close_session(
        self, node_id: int, session: ConsumerFetchSession, timeout_ms: int
    ) -> None:
        request = fetch_request(session.final_request(), self._settings, by_id=True)
        request.max_wait_ms = request.min_bytes = 0
        # Not behind a Fetch that the node may hold back.
        with suppress(KafkaError):
            await self._cluster.call_raw(node_id, request, timeout_ms=timeout_ms)


def _is_older_format(records: memoryview) -> bool:
    """Whether these are messages of the formats before record batches; their reader refuses them
    with the reason."""
    return len(records) > MAGIC_POSITION and records[MAGIC_POSITION] != MAGIC
