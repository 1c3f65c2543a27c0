"""Brings groups' offsets to the target: as checkpoints, and committed if that is wanted."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping

from moldau.client import AsyncAdmin, AsyncProducer, KafkaError, OffsetAndMetadata, TopicPartition
from moldau.client.admin.group_values import GroupState
from moldau.client.errors import GroupIdNotFoundError, UnknownMemberIdError
from moldau.mirror.machine.checkpoints import Checkpoints, Translator
from moldau.mirror.machine.offset_map import OffsetMap
from moldau.mirror.machine.offset_syncs import OffsetSyncs
from moldau.mirror.machine.records import Checkpoint
from moldau.mirror.machine.settings import FlowSettings
from moldau.mirror.metrics import MirrorMetrics
from moldau.mirror.plugins import Plugins
from moldau.mirror.topic_store import TopicReader

__all__ = ["GroupSync", "Stores", "group_offsets"]

logger = logging.getLogger(__name__)


async def group_offsets(
    admin: AsyncAdmin, group: str
) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
    """What a group has committed; nothing for a group that does not exist."""
    try:
        return (await admin.list_consumer_group_offsets(group))[group]
    except GroupIdNotFoundError:
        return {}


class Stores:
    """The internal topics of a flow that say where records and groups are."""

    def __init__(
        self, settings: FlowSettings, plugins: Plugins, source: AsyncAdmin, target: AsyncAdmin
    ) -> None:
        self.runs = OffsetMap(settings["moldau.offset.map.runs.max"])
        self.syncs = OffsetSyncs()
        self.checkpoints = Checkpoints()
        self.translator = Translator(settings.name, plugins.policy, self.runs, self.syncs)
        consumer = settings.client("target", "consumer")
        checkpoints = plugins.policy.checkpoints_topic(settings.name.source)
        self._source: list[TopicReader] = []
        self._target = [
            TopicReader(settings.map_topic, self.runs.replay, consumer, target),
            TopicReader(checkpoints, self.checkpoints.replay, consumer, target),
        ]
        side = settings["offset-syncs.topic.location"]
        syncs = plugins.policy.offset_syncs_topic(
            settings.name.target if side == "source" else settings.name.source
        )
        reader = TopicReader(
            syncs,
            self.syncs.replay,
            settings.client(side, "consumer"),
            source if side == "source" else target,
        )
        (self._source if side == "source" else self._target).append(reader)

    async def catch_up(self, *, source: bool = True, timeout_s: float = 60.0) -> None:
        """Read what is new; without `source` only the target's topics, for when the source cannot
        be reached."""
        for reader in (*self._target, *(self._source if source else ())):
            await reader.catch_up(timeout_s=timeout_s)

    async def close(self) -> None:
        for reader in (*self._target, *self._source):
            await reader.close()


class GroupSync:
    """See the module; the calls are those of the flow's schedule."""

    def __init__(
        self,
        settings: FlowSettings,
        plugins: Plugins,
        source: AsyncAdmin,
        target: AsyncAdmin,
        metrics: MirrorMetrics,
    ) -> None:
        self._settings = settings
        self._plugins = plugins
        self._source = source
        self._target = target
        self._metrics = metrics
        self.topic = plugins.policy.checkpoints_topic(settings.name.source)
        self.stores = Stores(settings, plugins, source, target)
        self.groups: list[str] = []

    async def refresh(self) -> None:
        """Look for groups."""
        listed = await self._source.list_consumer_groups(check=False)
        names = {each.group_id for each in listed}
        self.groups = sorted(filter(self._plugins.groups.should_replicate_group, names))

    async def due(self, groups: Collection[str] | None = None) -> list[Checkpoint]:
        """Checkpoints of offsets that have changed; `written` is to be called for each."""
        await self.stores.catch_up()
        takes_topic = self._plugins.topics.should_replicate_topic
        found: list[Checkpoint] = []
        for group in self.groups if groups is None else groups:
            try:
                offsets = await group_offsets(self._source, group)
            except KafkaError as error:
                logger.warning("%s: offsets of %s: %s", self._settings.name, group, error)
                continue
            found += self.stores.checkpoints.new(
                group, offsets, self.stores.translator, takes_topic
            )
        return found

    def written(self, checkpoint: Checkpoint, latency_ms: float) -> None:
        self.stores.checkpoints.apply(checkpoint)
        name, group = self._settings.name, checkpoint.group_id
        self._metrics.checkpoint(name, group, checkpoint.partition, latency_ms)

    async def emit(self, producer: AsyncProducer) -> None:
        """Write the checkpoints that are due."""
        started_ms = time.time_ns() // 1_000_000
        due = await self.due()
        sent = [
            await producer.send(
                self.topic, each.value(), each.key(), partition=0, timestamp=started_ms
            )
            for each in due
        ]
        for each, future in zip(due, sent, strict=True):
            await future
            self.written(each, float(time.time_ns() // 1_000_000 - started_ms))

    async def sync(self) -> None:
        """Commit the offsets of checkpoints for groups that have no members in the target."""
        known = self.stores.checkpoints.groups()
        states = await self._target.describe_consumer_groups(known, check=False)
        for group in known:
            description = states.values_by_key.get(group)
            if description is not None and description.group_state not in (
                GroupState.EMPTY,
                GroupState.DEAD,
            ):
                continue
            present = await group_offsets(self._target, group)
            changes = self.stores.checkpoints.to_commit(group, present)
            if not changes:
                continue
            try:
                await self._target.alter_consumer_group_offsets(group, changes)
            except UnknownMemberIdError:
                logger.warning(
                    "%s: %s has members in the target, so its offsets stay",
                    self._settings.name, group,
                )  # fmt: skip
            except KafkaError as error:
                logger.warning("%s: offsets of %s: %s", self._settings.name, group, error)

    async def close(self) -> None:
        await self.stores.close()
