"""Reports how far flows are, from what is in the clusters.

What the target alone knows (heartbeats, checkpoints) is reported also while the source cannot be
reached: that is when it is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from moldau.client import AsyncAdmin, AsyncConsumer, KafkaError, OffsetSpec, TopicPartition
from moldau.mirror.machine.checkpoints import Checkpoints
from moldau.mirror.machine.policies import ReplicationPolicy
from moldau.mirror.machine.records import Heartbeat
from moldau.mirror.machine.settings import CONNECTOR, FlowSettings
from moldau.mirror.machine.source_positions import SourcePositions
from moldau.mirror.plugins import Plugins
from moldau.mirror.topic_store import TopicReader

__all__ = [
    "FlowStatus",
    "GroupStatus",
    "TopicStatus",
    "flow_status",
    "read_checkpoints",
    "read_heartbeats",
]

_RECENT = 1_000
"""Heartbeats that are looked at first: the topic has one for each second."""


@dataclass(frozen=True, slots=True)
class TopicStatus:
    topic: str
    remote: str
    partitions: int
    records_behind: int
    seconds_behind: float
    """Age of the oldest record that is not copied."""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The last checkpoint of a group and a partition."""

    group: str
    topic: str
    partition: int
    offset: int
    remote: str
    remote_offset: int


@dataclass(frozen=True, slots=True)
class FlowStatus:
    source: str
    target: str
    is_enabled: bool
    heartbeat_age_s: float | None
    topics: list[TopicStatus] = field(default_factory=list)
    groups: int = 0
    checkpoints: list[GroupStatus] = field(default_factory=list)
    error: str | None = None
    """Which cluster cannot be reached, and why."""

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"


async def flow_status(settings: FlowSettings) -> FlowStatus:
    """A cluster that cannot be reached is named in the status. Raises KafkaError for what is
    refused, for example by ACLs."""
    name = settings.name
    async with AsyncExitStack() as stack:
        source = AsyncAdmin(settings.client("source", "admin"))
        stack.push_async_callback(source.close)
        target = AsyncAdmin(settings.client("target", "admin"))
        stack.push_async_callback(target.close)
        try:
            await target.describe_cluster()
        except KafkaError as problem:
            error = f"{name.target} cannot be read: {problem}"
            return FlowStatus(name.source, name.target, settings["enabled"], None, error=error)
        plugins = Plugins(settings)
        consumer = settings.client("target", "consumer")
        beats = await read_heartbeats(
            plugins.policy.heartbeats_topic(), consumer, target, (name.source, name.target)
        )
        at_ms = beats.get((name.source, name.target))
        age = None if at_ms is None else max(0.0, time.time() - at_ms / 1000)
        if not settings["enabled"]:
            return FlowStatus(name.source, name.target, False, age)
        positions = SourcePositions(CONNECTOR, name.source)
        reader = TopicReader(settings.offsets_topic, positions.replay, consumer, target)
        stack.push_async_callback(reader.close)
        await reader.catch_up()
        groups = await read_checkpoints(plugins.policy, name.source, consumer, target)
        topics, unread = [], None
        try:
            topics = await _topics(settings, plugins, source, positions)
        except KafkaError as problem:
            unread = f"{name.source} cannot be read: {problem}"
        count = len({each.group for each in groups})
        return FlowStatus(name.source, name.target, True, age, topics, count, groups, unread)


async def read_heartbeats(
    topic: str, consumer: Mapping[str, Any], admin: AsyncAdmin, wanted: tuple[str, str] | None
) -> dict[tuple[str, str], int]:
    """The time of the newest heartbeat by source and target, among the last ones; all are read if
    the `wanted` flow has none there."""
    newest: dict[tuple[str, str], int] = {}

    def note(key: bytes | None, value: bytes | None) -> None:
        beat = Heartbeat.parse(key, value)
        newest[beat.source, beat.target] = beat.timestamp

    for last in (_RECENT, None):
        reader = TopicReader(topic, note, consumer, admin, last=last)
        try:
            await reader.catch_up()
        finally:
            await reader.close()
        if wanted is None or wanted in newest:
            break
    return newest


async def read_checkpoints(
    policy: ReplicationPolicy, source: str, consumer: Mapping[str, Any], admin: AsyncAdmin
) -> list[GroupStatus]:
    """The last checkpoints of all groups, in the order of their names."""
    known = Checkpoints()
    reader = TopicReader(policy.checkpoints_topic(source), known.replay, consumer, admin)
    try:
        await reader.catch_up()
    finally:
        await reader.close()
    return [
        GroupStatus(
            group,
            policy.upstream_topic(place.topic) or place.topic,
            place.partition,
            each.upstream_offset,
            place.topic,
            each.downstream_offset,
        )
        for group in known.groups()
        for place, each in sorted(known.of(group).items())
    ]


async def _topics(
    settings: FlowSettings, plugins: Plugins, source: AsyncAdmin, positions: SourcePositions
) -> list[TopicStatus]:
    names = [each for each in await source.list_topics() if plugins.selection.takes(each)]
    described = await source.describe_topics(names, check=False)
    keys = [
        TopicPartition(str(name), each.partition)
        for name, topic in described.values_by_key.items()
        for each in topic.partitions
    ]
    isolation = "read_committed" if settings.is_exactly_once else "read_uncommitted"
    ends = await source.list_offsets(
        dict.fromkeys(keys, OffsetSpec.latest()), isolation_level=isolation, check=False
    )
    starts = await source.list_offsets(dict.fromkeys(keys, OffsetSpec.earliest()), check=False)
    behind: dict[TopicPartition, tuple[int, int]] = {}
    for key in ends.values_by_key:
        start = starts.values_by_key[key].offset if key in starts.values_by_key else 0
        position = max(positions.next(key) or start, start)
        behind[key] = (max(0, ends[key].offset - position), position)
    ages = await _ages(settings, {key: at for key, (lag, at) in behind.items() if lag})
    found = []
    for name in sorted({key.topic for key in behind}):
        own = [key for key in behind if key.topic == name]
        lag = sum(behind[key][0] for key in own)
        seconds = max((ages.get(key, 0.0) for key in own), default=0.0)
        remote = plugins.selection.remote(name)
        found.append(TopicStatus(name, remote, len(own), lag, seconds))
    return found


async def _ages(
    settings: FlowSettings, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    """How old the records at these offsets are."""
    if not positions:
        return {}
    consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
        {**settings.client("source", "consumer"), "max.partition.fetch.bytes": "1"}
    )
    found: dict[TopicPartition, float] = {}
    try:
        consumer.assign(list(positions))
        for key, position in positions.items():
            consumer.seek(key, position)
        deadline = time.monotonic() + 5.0
        while len(found) < len(positions) and time.monotonic() < deadline:
            for record in await consumer.poll(0.2):
                key = TopicPartition(record.topic, record.partition)
                found.setdefault(key, max(0.0, time.time() - record.timestamp / 1000))
    finally:
        with suppress(KafkaError):
            await consumer.close()
    return found
