"""Reads what groups of every kind have committed, and where partitions end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from moldau.client import Admin, Consumer
from moldau.client.admin import GroupType, OffsetSpec
from moldau.client.topics import TopicPartition
from moldau.monitoring.machine.lag import GroupState, Place

__all__ = ["LagReader", "record_times"]

#: What is not read in time is read in the next round.
_READ_S: Final = 3.0


class LagReader:
    """One round costs a few requests per kind of group, not per group."""

    def __init__(self, admin: Admin, *, exclude: re.Pattern[str] | None = None) -> None:
        self._admin = admin
        self._exclude = exclude

    def read(self) -> tuple[dict[Place, int], list[GroupState]]:
        """The ends of partitions, and all groups."""
        groups: list[GroupState] = []
        listed = [
            each
            for each in self._admin.list_groups(check=False)
            if self._exclude is None or not self._exclude.search(each.group_id)
        ]
        by_type: dict[str, list[str]] = {}
        for each in listed:
            group_type = each.type or GroupType.CLASSIC
            by_type.setdefault(group_type.value.lower(), []).append(each.group_id)
        for kind, names in by_type.items():
            groups += self._groups(kind, names)
        places = {place for group in groups for place in group.positions}
        return self._ends(places), groups

    def _groups(self, kind: str, names: list[str]) -> Iterable[GroupState]:
        admin = self._admin
        if kind == "share":
            described = admin.describe_share_groups(names, check=False)
            offsets = admin.list_share_group_offsets(dict.fromkeys(names), check=False)
            for name, group in described.values_by_key.items():
                found = {
                    Place(place.topic, place.partition): info
                    for place, info in (offsets.values_by_key.get(name) or {}).items()
                    if info is not None
                }
                yield GroupState(
                    name,
                    kind,
                    group.group_state.value,
                    frozenset(each.consumer_id for each in group.members),
                    {place: info.start_offset for place, info in found.items()},
                    {place: info.lag for place, info in found.items() if info.lag is not None},
                )
            return
        if kind == "streams":
            states = {
                name: (group.group_state.value, frozenset(m.member_id for m in group.members))
                for name, group in admin.describe_streams_groups(
                    names, check=False
                ).values_by_key.items()
            }
            assignors: dict[str, str] = {}
            committed = admin.list_streams_group_offsets(dict.fromkeys(names), check=False)
        else:
            found_groups = admin.describe_consumer_groups(names, check=False).values_by_key
            states = {
                name: (group.group_state.value, frozenset(m.consumer_id for m in group.members))
                for name, group in found_groups.items()
            }
            assignors = {name: group.partition_assignor for name, group in found_groups.items()}
            committed = admin.list_consumer_group_offsets(dict.fromkeys(names), check=False)
        for name, (state, members) in states.items():
            positions = {
                Place(place.topic, place.partition): found.offset
                for place, found in (committed.values_by_key.get(name) or {}).items()
                if found is not None and found.offset >= 0
            }
            yield GroupState(
                name, kind, state, members, positions, assignor=assignors.get(name, "")
            )

    def _ends(self, places: Iterable[Place]) -> dict[Place, int]:
        wanted = {TopicPartition(*place): OffsetSpec.latest() for place in places}
        if not wanted:
            return {}
        found = self._admin.list_offsets(wanted, check=False)
        return {
            Place(each.topic, each.partition): info.offset
            for each, info in found.values_by_key.items()
        }


def record_times(
    settings: Mapping[str, str], positions: Iterable[tuple[Place, int]]
) -> Iterator[tuple[Place, int, float]]:
    """When the records at these positions, or the first after each, were written, in seconds.

    Reads as little of each partition as a broker sends, and one position of each: of several, the
    first.
    """
    wanted: dict[TopicPartition, tuple[Place, int]] = {}
    for place, position in positions:
        wanted.setdefault(TopicPartition(*place), (place, position))
    if not wanted:
        return
    least = {"max.partition.fetch.bytes": "1", "auto.offset.reset": "earliest"}
    with Consumer({**settings, **least, "enable.auto.commit": "false"}) as consumer:
        consumer.assign(list(wanted))
        for partition, (_, position) in wanted.items():
            consumer.seek(partition, position)
        until_s = time.monotonic() + _READ_S
        while wanted and (left_s := until_s - time.monotonic()) > 0:
            for record in consumer.poll(left_s):
                found = wanted.pop(TopicPartition(record.topic, record.partition), None)
                if found is not None:
                    yield *found, record.timestamp / 1000
            consumer.assign(list(wanted))
