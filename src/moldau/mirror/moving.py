"""Moves groups from one cluster to another, at the same records.

Nothing is changed before everything is known: groups that still have members, and partitions whose
offset is not exact, are reported instead of moved.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from moldau.client import AsyncAdmin, OffsetAndMetadata, OffsetSpec, TopicPartition
from moldau.client.admin.group_values import GroupState
from moldau.config import ConfigError
from moldau.mirror.groups import Stores, group_offsets
from moldau.mirror.machine.moves import Atlas, Move, moves_of
from moldau.mirror.machine.offset_map import OffsetMap
from moldau.mirror.machine.settings import CONNECTOR, FlowName, FlowSettings
from moldau.mirror.machine.source_positions import SourcePositions
from moldau.mirror.plugins import Plugins
from moldau.mirror.topic_store import TopicReader

__all__ = ["Moved", "move_groups"]

_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Moved:
    """What was found, and what became of it."""

    moves: list[Move]
    refused: dict[str, str] = field(default_factory=dict)
    """Groups that stay, and why."""
    is_done: bool = False


def _flow(flows: Mapping[FlowName, FlowSettings], left: str, reached: str) -> FlowSettings:
    settings = flows.get(FlowName(left, reached))
    if settings is None:
        known = ", ".join(map(str, flows)) or "none"
        raise ConfigError(f"there is no flow {left}->{reached}; the file has {known}")
    return settings


class _Clusters:
    """The clients and stores of a move."""

    def __init__(
        self, flows: Mapping[FlowName, FlowSettings], left: str, reached: str, *, has_source: bool
    ) -> None:
        self.out = _flow(flows, left, reached)
        back = flows.get(FlowName(reached, left))
        self.has_source = has_source
        self.left = AsyncAdmin(self.out.client("source", "admin"))
        self.reached = AsyncAdmin(self.out.client("target", "admin"))
        self.plugins = Plugins(self.out)
        self.stores = Stores(self.out, self.plugins, self.left, self.reached)
        self.positions = SourcePositions(CONNECTOR, self.out.name.source)
        self._reader = TopicReader(
            self.out.offsets_topic,
            self.positions.replay,
            self.out.client("target", "consumer"),
            self.reached,
        )
        self._back_map = OffsetMap()
        self._back: TopicReader | None = None
        back_policy = None
        if back is not None:
            back_policy = Plugins(back).policy
            if has_source:
                self._back = TopicReader(
                    back.map_topic,
                    self._back_map.replay,
                    self.out.client("source", "consumer"),
                    self.left,
                )
        self.atlas = Atlas(
            self.out.name,
            self.plugins.policy,
            self.stores.runs,
            back_policy,
            self._back_map if self._back is not None else None,
            self.positions.next,
        )

    def mixes(self, left: TopicPartition) -> bool:
        """Whether a partition holds records of both clusters, here and there."""
        return self._back is not None and self.plugins.keeps_name(left.topic)

    async def catch_up(self) -> None:
        await self.stores.catch_up(source=self.has_source)
        await self._reader.catch_up()
        if self._back is not None:
            await self._back.catch_up()

    async def close(self) -> None:
        await self.stores.close()
        await self._reader.close()
        if self._back is not None:
            await self._back.close()
        await self.left.close()
        await self.reached.close()


async def move_groups(
    flows: Mapping[FlowName, FlowSettings],
    *,
    left: str,
    reached: str,
    groups: Collection[str] = (),
    dry_run: bool = False,
    has_source: bool = True,
    wait_s: float = 30.0,
    force: bool = False,
) -> Moved:
    """See the module. Raises ConfigError and KafkaError."""
    async with AsyncExitStack() as stack:
        clusters = _Clusters(flows, left, reached, has_source=has_source)
        stack.push_async_callback(clusters.close)
        deadline = time.monotonic() + wait_s
        ends: dict[TopicPartition, int] | None = None
        while True:
            await clusters.catch_up()
            moves = await _planned(clusters, groups)
            if not has_source or time.monotonic() >= deadline:
                break
            if ends is None:
                ends = await _mixed_ends(clusters, moves)
            is_behind = any(each.behind for each in moves)
            if not is_behind and all(
                (clusters.positions.next(key) or 0) >= end for key, end in ends.items()
            ):
                break
            await asyncio.sleep(_LOOK_S)
        refused = await _refused(clusters, moves, force=force)
        if dry_run:
            return Moved(moves, refused)
        for group in sorted({each.group_id for each in moves} - set(refused)):
            offsets = {
                each.reached: OffsetAndMetadata(each.to_offset, each.metadata)
                for each in moves
                if each.group_id == group and each.to_offset is not None
            }
            if offsets:
                await clusters.reached.alter_consumer_group_offsets(group, offsets)
        return Moved(moves, refused, is_done=True)


async def _mixed_ends(clusters: _Clusters, moves: list[Move]) -> dict[TopicPartition, int]:
    """The ends of partitions with records of both clusters: all that is there is copied before the
    groups write and read in the other one, for in what is copied later the order is another, and
    no offset there would mean the same on the way back."""
    keys = [each.left for each in moves if clusters.mixes(each.left)]
    if not keys:
        return {}
    found = await clusters.left.list_offsets(
        dict.fromkeys(keys, OffsetSpec.latest()),
        isolation_level="read_committed" if clusters.out.is_exactly_once else "read_uncommitted",
        check=False,
    )
    return {key: each.offset for key, each in found.values_by_key.items()}


async def _planned(clusters: _Clusters, groups: Collection[str]) -> list[Move]:
    takes_group = clusters.plugins.groups.should_replicate_group
    if clusters.has_source:
        listed = await clusters.left.list_consumer_groups()
        names = sorted({each.group_id for each in listed})
    else:
        names = clusters.stores.checkpoints.groups()
    own = clusters.out.group_id
    wanted = set(groups) or {each for each in names if takes_group(each)}
    moves: list[Move] = []
    for name in sorted(wanted):
        if not name.endswith("-mm2") and name != own:
            moves += moves_of(name, await _offsets(clusters, name), clusters.atlas)
    return moves


async def _offsets(
    clusters: _Clusters, group: str
) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
    if clusters.has_source:
        return await group_offsets(clusters.left, group)
    policy, found = clusters.plugins.policy, {}
    for partition, checkpoint in clusters.stores.checkpoints.of(group).items():
        topic = policy.upstream_topic(partition.topic) or partition.topic
        found[TopicPartition(topic, partition.partition)] = OffsetAndMetadata(
            checkpoint.upstream_offset, checkpoint.metadata
        )
    return found


async def _refused(clusters: _Clusters, moves: list[Move], *, force: bool) -> dict[str, str]:
    names = sorted({each.group_id for each in moves})
    refused = {}
    for where, admin in (
        (clusters.out.name.source, clusters.left if clusters.has_source else None),
        (clusters.out.name.target, clusters.reached),
    ):
        states = {} if admin is None else await _states(admin, names)
        for name, state in states.items():
            if state not in (GroupState.EMPTY, GroupState.DEAD):
                refused[name] = f"has members in {where}: stop them first"
    for move in moves:
        if move.to_offset is None:
            refused.setdefault(move.group_id, f"nothing is known of {move.left} in the mirror")
        elif not move.is_exact and not force and clusters.has_source:
            reason = (
                f"{move.behind} offsets of {move.left} are not copied yet"
                if move.behind
                else f"the offset of {move.left} is not exact"
            )
            refused.setdefault(move.group_id, f"{reason}: wait, or use --force")
    return refused


async def _states(admin: AsyncAdmin, names: list[str]) -> dict[str, GroupState]:
    found = await admin.describe_consumer_groups(names, check=False)
    return {name: each.group_state for name, each in found.values_by_key.items()}
