"""One flow, from a source to a target: its tasks, and what is done by the clock.

Every process looks for topics; the one that has task 0 also copies settings and ACLs, follows
groups and sends heartbeats. A flow that is not enabled only sends heartbeats. Invariant: whatever
fails is logged and tried again; nothing ends a flow but `stop`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from moldau.client import AsyncAdmin, AsyncProducer, KafkaError, TopicPartition
from moldau.mirror.copying import Copier
from moldau.mirror.groups import GroupSync
from moldau.mirror.machine.records import Heartbeat
from moldau.mirror.machine.settings import FlowSettings
from moldau.mirror.membership import TaskShare
from moldau.mirror.metrics import MirrorMetrics
from moldau.mirror.plugins import Plugins
from moldau.mirror.topic_store import ensure_compacted
from moldau.mirror.topics import TopicSync

__all__ = ["Flow", "create_internal_topics"]

logger = logging.getLogger(__name__)

_RETRY_S = 2.0
# Longer than all clients of a task take to close.
_STOP_S = 60.0
_OFFSETS_PARTITIONS = 25


async def create_internal_topics(
    settings: FlowSettings,
    plugins: Plugins,
    source: AsyncAdmin,
    target: AsyncAdmin,
    *,
    is_looped: bool = False,
) -> None:
    """The topics that a flow keeps its state in. A replication factor that is not set is no
    higher than the cluster allows."""
    policy, name = plugins.policy, settings.name
    sides = {"source": source, "target": target}

    async def create(side: str, topic: str, key: str, partitions: int = 1) -> None:
        given = settings.properties.get(key)
        factor = int(given) if given is not None else int(settings.values.get(key, 3))
        if given is None and factor > 0:
            factor = min(factor, len((await sides[side].describe_cluster()).nodes))
        await ensure_compacted(sides[side], topic, partitions=partitions, replication_factor=factor)

    tasks = settings["tasks.max"]
    await create("target", settings.tasks_topic, "status.storage.replication.factor", tasks)
    if settings["emit.heartbeats.enabled"]:
        heartbeats = policy.heartbeats_topic()
        await create("target", heartbeats, "heartbeats.topic.replication.factor")
    if not settings["enabled"]:
        return
    count = int(settings.properties.get("offset.storage.partitions", _OFFSETS_PARTITIONS))
    await create("target", settings.offsets_topic, "offset.storage.replication.factor", count)
    if settings["moldau.offset.map.enabled"]:
        await create("target", settings.map_topic, "moldau.offset.map.replication.factor")
    if is_looped:
        # Created, so that it is never taken to be empty while a broker does not know it yet.
        await create("source", settings.back_map_topic, "moldau.offset.map.replication.factor")
    if settings["emit.checkpoints.enabled"]:
        checkpoints = policy.checkpoints_topic(name.source)
        await create("target", checkpoints, "checkpoints.topic.replication.factor")
    if settings["emit.offset-syncs.enabled"]:
        side = settings["offset-syncs.topic.location"]
        topic = policy.offset_syncs_topic(name.target if side == "source" else name.source)
        await create(side, topic, "offset-syncs.topic.replication.factor")


class Flow:
    """See the module."""

    def __init__(
        self, settings: FlowSettings, metrics: MirrorMetrics, *, is_looped: bool = False
    ) -> None:
        """`is_looped`: the flow back is enabled too, and topics keep their names."""
        self.settings = settings
        self.plugins = Plugins(settings)
        self._metrics = metrics
        self._is_looped = is_looped
        self._source = AsyncAdmin(settings.client("source", "admin"))
        self._target = AsyncAdmin(settings.client("target", "admin"))
        self._topics = TopicSync(settings, self.plugins, self._source, self._target)
        self._producer: AsyncProducer | None = None
        self._groups: GroupSync | None = None
        self._partitions: list[TopicPartition] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._main: asyncio.Task[None] | None = None
        self.copiers: dict[int, Copier] = {}

    def start(self) -> None:
        self._main = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        tasks = [*self._running.values(), *([self._main] if self._main else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_STOP_S)
            for task in late:
                logger.warning("%s: %s does not end", self.settings.name, task.get_name())
        if self._groups is not None:
            await self._groups.close()
        if self._producer is not None:
            await self._producer.close(timeout=5.0)
        await self._source.close()
        await self._target.close()

    async def _run(self) -> None:
        while True:
            try:
                await create_internal_topics(
                    self.settings,
                    self.plugins,
                    self._source,
                    self._target,
                    is_looped=self._is_looped,
                )
                break
            except KafkaError as error:
                logger.warning("%s: internal topics are tried again: %s", self.settings.name, error)
                await asyncio.sleep(_RETRY_S)
        if self.settings["enabled"]:
            await self._retried(self._refresh_topics, "looking for topics")
            self._schedule("refresh.topics", self._refresh_topics, "looking for topics", wait=True)
        share = TaskShare(self.settings, self._on_tasks)
        self._spawn("share", share.run())

    # Tasks.

    def _on_tasks(self, mine: frozenset[int]) -> None:
        logger.info("%s: tasks %s run here", self.settings.name, sorted(mine) or "none")
        for number in set(self.copiers) - mine:
            self._end(f"copier {number}")
            del self.copiers[number]
        if self.settings["enabled"]:
            for number in mine - set(self.copiers):
                self.copiers[number] = Copier(
                    self.settings,
                    self.plugins,
                    self._metrics,
                    task=number,
                    is_looped=lambda: self._is_looped,
                )
                self._spawn(f"copier {number}", self.copiers[number].run())
            self._hand_out()
        if 0 in mine:
            self._begin_duties()
        else:
            for name in [each for each in self._running if each.startswith("duty ")]:
                self._end(name)

    def _hand_out(self) -> None:
        """Partitions to tasks, round robin as in MirrorMaker 2."""
        count = self.settings["tasks.max"]
        for number, copier in self.copiers.items():
            copier.assign(self._partitions[number::count])

    def _begin_duties(self) -> None:
        if self._producer is None:
            self._producer = AsyncProducer(
                {**self.settings.client("target", "producer"), "acks": "all"}
            )
        self._schedule("duty emit.heartbeats", self._beat, "sending heartbeats")
        if not self.settings["enabled"]:
            return
        if self._groups is None:
            self._groups = GroupSync(
                self.settings,
                self.plugins,
                self._source,
                self._target,
                self._metrics,
            )
        groups = self._groups
        self._schedule("duty sync.topic.configs", self._sync_configs, "copying settings")
        self._schedule("duty sync.topic.acls", self._topics.sync_acls, "copying ACLs")
        self._schedule("duty refresh.groups", groups.refresh, "looking for groups")
        self._schedule("duty emit.checkpoints", self._checkpoint, "writing checkpoints")
        self._schedule("duty sync.group.offsets", groups.sync, "committing groups' offsets")

    # What is done by the clock.

    async def _refresh_topics(self) -> None:
        found = await self._topics.refresh()
        if set(self._partitions) - set(found):
            # Deleted, or a broker that has just started does not know them yet.
            await asyncio.sleep(_RETRY_S)
            found = await self._topics.refresh()
        self._partitions = found
        self._hand_out()

    async def _sync_configs(self) -> None:
        await self._topics.sync_configs(self._partitions)

    async def _beat(self) -> None:
        now_ms = time.time_ns() // 1_000_000
        beat = Heartbeat(self.settings.name.source, self.settings.name.target, now_ms)
        topic = self.plugins.policy.heartbeats_topic()
        if self._producer is not None:
            sent = await self._producer.send(
                topic, beat.value(), beat.key(), partition=0, timestamp=now_ms
            )
            await sent

    async def _checkpoint(self) -> None:
        groups, producer = self._groups, self._producer
        if groups is not None and producer is not None:
            if not groups.groups:
                await groups.refresh()
            await groups.emit(producer)

    def _schedule(
        self, name: str, call: Callable[[], Awaitable[None]], what: str, *, wait: bool = False
    ) -> None:
        """Call it again and again, as the settings say; `wait` if it was called just now."""
        interval_s = self.settings.interval_s(name.removeprefix("duty "))
        if interval_s is not None and name not in self._running:
            self._spawn(name, self._repeat(call, max(interval_s, 0.1), what, wait=wait))

    async def _repeat(
        self, call: Callable[[], Awaitable[None]], interval_s: float, what: str, *, wait: bool
    ) -> None:
        if wait:
            await asyncio.sleep(interval_s)
        while True:
            started_s = time.monotonic()
            await self._retried(call, what)
            await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))

    async def _retried(self, call: Callable[[], Awaitable[None]], what: str) -> None:
        while True:
            try:
                await call()
                return
            except KafkaError as error:
                logger.warning("%s: %s is tried again: %s", self.settings.name, what, error)
                await asyncio.sleep(_RETRY_S)

    def _spawn(self, name: str, work: Awaitable[None]) -> None:
        async def watched() -> None:
            try:
                await work
            except Exception:
                logger.exception("%s: %s ended", self.settings.name, name)

        self._running[name] = asyncio.get_running_loop().create_task(watched(), name=name)

    def _end(self, name: str) -> None:
        task = self._running.pop(name, None)
        if task is not None:
            task.cancel()
