"""Copies partitions of the source to the target: one task.

A session opens clients, fences earlier instances of the task, reads how far they came, and copies
until something fails; then the next session begins. What is copied is committed together with the
position in the source and the map of offsets: in one transaction with exactly once, otherwise one
after the other. Invariants: a position is written only after all records before it are in the
target; at most `moldau.transaction.bytes` are on their way between two commits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, suppress
from typing import Any

from moldau.client import AsyncAdmin, KafkaError, TopicPartition
from moldau.client._batch_builder import BatchBuilder
from moldau.client.batches import BatchConsumer, BatchCopy, BatchProducer, Polled, SentBatch
from moldau.mirror.machine.offset_map import OffsetMap
from moldau.mirror.machine.offset_syncs import SyncSchedule
from moldau.mirror.machine.pieces import Part, pieces_of
from moldau.mirror.machine.records import OffsetRun
from moldau.mirror.machine.settings import CONNECTOR, FlowSettings
from moldau.mirror.machine.source_positions import SourcePositions
from moldau.mirror.machine.throttle import Throttle
from moldau.mirror.metrics import MirrorMetrics
from moldau.mirror.plugins import Plugins
from moldau.mirror.topic_store import TopicReader

__all__ = ["Copier"]

logger = logging.getLogger(__name__)

_RETRY_S_MIN = 0.5
_RETRY_S_MAX = 10.0
_IDLE_POLL_S = 0.5
_BUSY_POLL_S = 0.01
_CLOSE_S = 5.0
_CALM = 10
"""So many times more often is committed what is copied without a backlog."""


class _Maker:
    """How pieces are made."""

    def copy(self, batch: Any) -> BatchCopy:
        return BatchCopy(batch)

    def builder(self, limit_bytes: int, compression: Any) -> BatchBuilder:
        return BatchBuilder(limit_bytes, compression=compression)


_MAKER = _Maker()


class _Open:
    """What was sent since the last commit."""

    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        self.bytes = 0
        self.sent: list[tuple[TopicPartition, SentBatch, tuple[Part, ...], int, int]] = []
        self.positions: dict[TopicPartition, int] = {}


class Copier:
    """One task of a flow; `assign` may be called at any time."""

    def __init__(
        self,
        settings: FlowSettings,
        plugins: Plugins,
        metrics: MirrorMetrics,
        *,
        task: int = 0,
        is_looped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_looped` says whether the target's topics are copied back under the same names."""
        self._settings = settings
        self._plugins = plugins
        self._metrics = metrics
        self._task = task
        self._is_looped = is_looped
        self._wanted: frozenset[TopicPartition] = frozenset()
        self._changed = asyncio.Event()
        #: Sessions that ended in an error.
        self.failures = 0
        self.commits = 0
        self.last_error: str | None = None

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Copy these partitions of the source from now on."""
        if frozenset(partitions) != self._wanted:
            self._wanted = frozenset(partitions)
            self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        pause_s = _RETRY_S_MIN
        while True:
            commits = self.commits
            try:
                await self._session()
            except KafkaError as error:
                self.failures += 1
                self.last_error = str(error)
                pause_s = _RETRY_S_MIN if self.commits > commits else pause_s
                logger.warning(
                    "%s task %d: copying failed and begins again in %.1f s: %s",
                    self._settings.name, self._task, pause_s, error,
                )  # fmt: skip
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _RETRY_S_MAX)

    async def _session(self) -> None:
        async with AsyncExitStack() as stack:
            session = _Session(self._settings, self._plugins, self._metrics, self._task)
            stack.push_async_callback(session.close)
            await session.open(looped=self._is_looped())
            self._changed.set()
            while True:
                if self._changed.is_set():
                    self._changed.clear()
                    await session.commit()
                    await session.assign(self._wanted)
                if not self._wanted:
                    await self._changed.wait()
                    continue
                await session.copy_some()
                self.commits = max(self.commits, session.commits)
                self.last_error = None


class _Session:
    """The clients of a task, and what they have under way."""

    def __init__(
        self, settings: FlowSettings, plugins: Plugins, metrics: MirrorMetrics, task: int
    ) -> None:
        self._settings = settings
        self._plugins = plugins
        self._metrics = metrics
        self._is_transactional = settings.is_exactly_once
        self._interval_s: float = settings["moldau.transaction.interval.ms"] / 1000
        self._bytes_max = settings["moldau.transaction.bytes"]
        self._throttle = Throttle(settings["moldau.throttle.bytes.per.second"])
        self._source_admin = AsyncAdmin(settings.client("source", "admin"))
        self._target_admin = AsyncAdmin(settings.client("target", "admin"))
        isolation = {"isolation.level": "read_committed"} if self._is_transactional else {}
        self._consumer = BatchConsumer(
            {
                "fetch.min.bytes": "1",
                **isolation,
                **settings.client("source", "consumer"),
                "enable.auto.commit": "false",
                "allow.auto.create.topics": "false",
                "max.poll.records": "1000",
            }
        )
        # As a Connect worker of MirrorMaker 2: that one and this one fence each other.
        identity = f"{settings.group_id}-{CONNECTOR}-{task}"
        own = {"transactional.id": identity} if self._is_transactional else {}
        self._producer = BatchProducer(
            {**settings.client("target", "producer"), **own, "acks": "all", "linger.ms": "0"}
        )
        self._syncs: BatchProducer | None = None
        if settings["emit.offset-syncs.enabled"]:
            side = settings["offset-syncs.topic.location"]
            self._syncs = BatchProducer({**settings.client(side, "producer"), "acks": "all"})
        self._schedule = SyncSchedule(settings["offset.lag.max"])
        self._positions = SourcePositions(CONNECTOR, settings.name.source)
        self._map = OffsetMap(settings["moldau.offset.map.runs.max"])
        self._back: TopicReader | None = None
        self._back_map = OffsetMap()
        self._open: _Open | None = None
        self._assigned: frozenset[TopicPartition] = frozenset()
        self.commits = 0

    async def open(self, *, looped: bool) -> None:
        if self._is_transactional:
            await self._producer.init_transactions()
        consumer = self._settings.client("target", "consumer")
        topics = [(self._settings.offsets_topic, self._positions.replay)]
        if self._settings["moldau.offset.map.enabled"]:
            topics.append((self._settings.map_topic, self._map.replay))
        for topic, apply in topics:
            reader = TopicReader(topic, apply, consumer, self._target_admin, must_exist=True)
            try:
                # What a fenced instance left open is ended by now.
                await reader.catch_up(include_open=self._is_transactional)
            finally:
                await reader.close()
        if looped:
            self._back = TopicReader(
                self._settings.back_map_topic,
                self._back_map.replay,
                self._settings.client("source", "consumer"),
                self._source_admin,
                must_exist=True,
            )

    async def assign(self, wanted: frozenset[TopicPartition]) -> None:
        """Begin with these partitions where they were left."""
        new = wanted - self._assigned
        gone = self._assigned - wanted
        positions = {}
        for key in self._assigned & wanted:
            positions[key] = await self._consumer.position(key)
        self._consumer.assign(sorted(wanted))
        for key in sorted(new):
            found = self._positions.next(key)
            if found is not None:
                positions[key] = found
        for key, position in positions.items():
            self._consumer.seek(key, position)
        for key in gone:
            self._metrics.forget(self._settings.name, self._remote(key))
        self._assigned = wanted

    def _remote(self, key: TopicPartition) -> TopicPartition:
        return TopicPartition(self._plugins.selection.remote(key.topic), key.partition)

    async def copy_some(self) -> None:
        """One poll; a commit if it is due."""
        is_open = self._open is not None
        timeout_s = _BUSY_POLL_S if is_open else _IDLE_POLL_S
        found = await self._consumer.poll_batches(timeout_s)
        if found and self._back is not None:
            await self._back.catch_up(include_open=True)
        size = 0
        for key, polled in found.items():
            size += await self._copy(key, polled)
        if found:
            delay_s = self._throttle.delay_s(size, time.monotonic())
            if delay_s:
                await asyncio.sleep(delay_s)
        opened = self._open
        if opened is None:
            return
        age_s = time.monotonic() - opened.since_s
        if age_s >= self._due_s(found) or opened.bytes >= self._bytes_max:
            await self.commit()

    def _due_s(self, found: Collection[TopicPartition]) -> float:
        """How old what was copied may get without a commit. Readers wait for the end of a
        transaction: sooner where all that is there has been copied; a backlog is copied with fewer
        commits."""
        is_behind = any(self._consumer.current_lag(key) for key in found)
        is_calm = not found or (self._is_transactional and not is_behind)
        return self._interval_s / _CALM if is_calm else self._interval_s

    async def _copy(self, key: TopicPartition, polled: Polled) -> int:
        """Send the batches of a partition; how many bytes that were."""
        remote = self._remote(key)
        opened = await self._begun()
        batches = polled.batches
        if self._back is not None and self._plugins.keeps_name(key.topic):
            copies = self._back_map.partition(remote).copies
            batches = [each for each in batches if not copies.contains(each.base_offset)]
        opened.positions[key] = polled.position
        figures = self._metrics.partition(self._settings.name, remote)
        now_ms = time.time_ns() // 1_000_000
        minimum = self._settings["moldau.batch.min.bytes"]
        total = 0
        for piece in pieces_of(batches, _MAKER, copy_min_bytes=minimum):
            count = sum(part.count for part in piece.parts)
            sent = await self._producer.send_batch(remote.topic, remote.partition, piece.content)
            opened.sent.append((key, sent, piece.parts, piece.size, piece.max_timestamp))
            figures.age.note(max(0, now_ms - piece.max_timestamp), count)
            total += piece.size
        opened.bytes += total
        figures.lag = self._consumer.current_lag(key) or 0
        return total

    async def _begun(self) -> _Open:
        if self._open is None:
            if self._is_transactional:
                await self._producer.begin_transaction()
            self._open = _Open(time.monotonic())
        return self._open

    async def commit(self) -> None:
        """Everything that was sent, the positions and the map; nothing if nothing was sent."""
        opened = self._open
        if opened is None:
            return
        await self._producer.flush()
        syncs = await self._write_map(opened)
        positions = [
            (self._positions.key(key), SourcePositions.value(position - 1))
            for key, position in opened.positions.items()
        ]
        for name, value in positions:
            await self._send(self._settings.offsets_topic, value, name)
        if self._is_transactional:
            await self._producer.commit_transaction()
        else:
            await self._producer.flush()
        self._open = None
        for name, value in positions:
            # A partition that is taken away and given back continues here.
            self._positions.replay(name, value)
        self.commits += 1
        await self._emit(syncs)

    async def _write_map(self, opened: _Open) -> list[Any]:
        """The runs of what was sent, now that the offsets in the target are known; the syncs that
        are due."""
        runs: dict[TopicPartition, OffsetRun] = {}
        syncs: list[Any] = []
        now_ms = time.time_ns() // 1_000_000
        for key, sent, parts, size, max_timestamp in opened.sent:
            figures = self._metrics.partition(self._settings.name, self._remote(key))
            figures.records += sent.record_count
            figures.bytes += size
            figures.newest_ms = max(figures.newest_ms, max_timestamp)
            figures.latency.note(max(0, now_ms - max_timestamp), sent.record_count)
            for upstream, downstream, count in _placed(sent.offsets(), parts):
                run = OffsetRun(key, upstream, downstream, count, upstream + count)
                await self._note_run(runs, run)
                sync = self._schedule.copied(key, upstream, downstream, count)
                if sync is not None:
                    syncs.append(sync)
        for key, position in opened.positions.items():
            last = runs.pop(key, None) or self._map.partition(key).last
            if last is not None and position >= last.upstream_end:
                await self._write_run(
                    OffsetRun(key, last.upstream, last.downstream, last.count, position)
                )
        return syncs

    async def _note_run(self, runs: dict[TopicPartition, OffsetRun], run: OffsetRun) -> None:
        """Runs that continue each other become one."""
        before = runs.get(run.partition)
        if before is not None and (
            before.upstream_end == run.upstream and before.downstream_end == run.downstream
        ):
            run = OffsetRun(
                run.partition, before.upstream, before.downstream,
                before.count + run.count, run.position,
            )  # fmt: skip
        elif before is not None:
            await self._write_run(before)
        runs[run.partition] = run

    async def _write_run(self, run: OffsetRun) -> None:
        if not self._settings["moldau.offset.map.enabled"]:
            return
        for key, value in self._map.records_for(run):
            self._map.replay(key, value)
            await self._send(self._settings.map_topic, value, key)

    async def _send(self, topic: str, value: bytes | None, key: bytes) -> None:
        """Without giving way to the sender, so that all records of a commit leave in one request:
        readers of the copy wait for each round trip."""
        if self._producer.send_nowait(topic, value, key) is None:
            await self._producer.send(topic, value, key)

    async def _emit(self, syncs: list[Any]) -> None:
        """Offset syncs, outside of the transaction as in MirrorMaker 2: after it, so that they
        never say more than is there."""
        producer = self._syncs
        if producer is None:
            return
        topic = self._plugins.policy.offset_syncs_topic(
            self._settings.name.target
            if self._settings["offset-syncs.topic.location"] == "source"
            else self._settings.name.source
        )
        for sync in (*syncs, *self._schedule.committed()):
            await producer.send(topic, sync.value(), sync.key(), partition=0)

    async def close(self) -> None:
        # An error here would take the place of a cancellation, and another session begin.
        for client in (self._producer, self._syncs, self._consumer):
            if client is not None:
                with suppress(KafkaError):
                    await client.close(timeout=_CLOSE_S)
        for other in (self._back, self._source_admin, self._target_admin):
            if other is not None:
                with suppress(KafkaError):
                    await other.close()


def _placed(
    offsets: list[tuple[int, int, int]], parts: tuple[Part, ...]
) -> list[tuple[int, int, int]]:
    """(upstream, downstream, count) of records whose offsets are consecutive on both sides."""
    found = []
    for part in parts:
        for index, offset, count in offsets:
            first = max(part.index, index)
            end = min(part.index + part.count, index + count)
            if first < end:
                upstream = part.upstream + first - part.index
                found.append((upstream, offset + first - index, end - first))
    return found
