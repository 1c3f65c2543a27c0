"""Groups of all four kinds: members, lag, offsets and their reset."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from moldau.client import OffsetAndMetadata, OffsetSpec
from moldau.client.admin import ConfigResource, GroupListing, GroupType
from moldau.client.topics import TopicPartition
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.monitoring.machine.lag import PartitionLag
from moldau.services.console.api.bodies import Body, body_of, paging_of
from moldau.services.console.api.group_views import describe_group
from moldau.services.console.api.routing import CLUSTER, PAGING, api, fields, text
from moldau.services.console.api.settings import alter_settings, read_settings
from moldau.services.console.backend import Backend, Call
from moldau.services.console.machine.errors import bad_request, missing
from moldau.services.console.machine.paging import page_of
from moldau.services.console.machine.resets import TARGETS, Change, planned_changes

__all__ = ["GroupHandlers"]

GROUP: Final = CLUSTER + "/groups/{group}"


class GroupHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "groups"
        return [
            api("GET", f"{CLUSTER}/groups", self.list, "A page of the groups", tag=tag,
                parameters=(*PAGING, text("kind", "classic, consumer, share or streams"))),
            api("GET", GROUP, self.show, "One group: members, partitions, lag", tag=tag),
            api("DELETE", GROUP, self.delete, "Delete a group without members", tag=tag),
            api("POST", f"{GROUP}/offsets", self.reset,
                "Reset offsets; with dry_run only show what would change", tag=tag,
                body=fields("to", to="string", value="integer", topics="array", changes="array",
                            dry_run="boolean")),
            api("POST", f"{GROUP}/offsets/delete", self.delete_offsets,
                "Delete the offsets of a topic", tag=tag,
                body=fields("topic", topic="string", partitions="array", dry_run="boolean")),
            api("GET", f"{GROUP}/settings", self.settings, "Settings of a group, explained",
                tag=tag),
            api("PATCH", f"{GROUP}/settings", self.alter, "Change settings of a group", tag=tag,
                body=fields("set", set="object", delete="array", validate_only="boolean")),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        paging, kind = paging_of(request), request.text("kind")
        with self._backend.call(request) as call:
            listed = await call.admin.list_groups(check=False)
            rows = [_row(call, each) for each in listed]
            if kind:
                rows = [each for each in rows if each["kind"] == kind]

            def column(name: str) -> Any:
                return lambda row: row[name]

            names = ("kind", "state", "members", "lag", "lag_seconds", "clears_in")
            shown, counts = page_of(
                rows,
                paging,
                name=lambda row: str(row["group"]),
                columns={name: column(name) for name in names},
            )
            return {"data": shown, **counts}

    async def show(self, request: Request) -> dict[str, Any]:
        group = request.path["group"]
        with self._backend.call(request) as call:
            kind = await kind_of(call, group)
            described, offsets = await asyncio.gather(
                describe_group(call, group, kind), self._offsets(call, group, kind)
            )
            known = {each.place: each for each in call.watcher.snapshot.lags.get(group, [])}
            partitions = []
            for place, (position, end, lag) in sorted(offsets.items()):
                watched = known.get(place)
                partitions.append(
                    {
                        "topic": place[0],
                        "partition": place[1],
                        "offset": position,
                        "end": end,
                        "lag": lag,
                        "lag_seconds": None if watched is None else watched.seconds,
                        "trend": None if watched is None else watched.trend,
                        "clears_in": None if watched is None else watched.clears_in,
                        "stuck": watched is not None and watched.stuck,
                    }
                )
            totals = _totals(call.watcher.snapshot.lags.get(group, []))
            totals["lag"] = sum(each["lag"] or 0 for each in partitions)
            return {"group": group, "kind": kind, **described, **totals, "partitions": partitions}

    async def delete(self, request: Request) -> dict[str, Any]:
        group = request.path["group"]
        async with self._backend.change(request, "delete-group", group) as call:
            kind = await kind_of(call, group)
            if kind == "share":
                await call.admin.delete_share_groups([group])
            elif kind == "streams":
                await call.admin.delete_streams_groups([group])
            else:
                await call.admin.delete_consumer_groups([group])
            return {"deleted": group}

    async def reset(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        group = request.path["group"]
        if body.flag("dry_run"):
            with self._backend.call(request) as call:
                kind = await kind_of(call, group)
                return _shown(await self._plan(call, group, kind, body), dry_run=True)
        async with self._backend.change(request, "reset-offsets", group, body.fields) as call:
            kind = await kind_of(call, group)
            changes = await self._plan(call, group, kind, body)
            wanted = {TopicPartition(each.topic, each.partition): each.new for each in changes}
            if kind == "share":
                await call.admin.alter_share_group_offsets(group, wanted)
            else:
                offsets = {place: OffsetAndMetadata(at) for place, at in wanted.items()}
                if kind == "streams":
                    await call.admin.alter_streams_group_offsets(group, offsets)
                else:
                    await call.admin.alter_consumer_group_offsets(group, offsets)
            return _shown(changes, dry_run=False)

    async def delete_offsets(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        group, topic = request.path["group"], body.text("topic")
        with self._backend.call(request) as call:
            kind = await kind_of(call, group)
            offsets = await self._offsets(call, group, kind)
        chosen = body.items("partitions", [])
        places = [
            TopicPartition(*place)
            for place in offsets
            if place[0] == topic and (not chosen or place[1] in chosen)
        ]
        if not places:
            raise bad_request(f"The group {group} has no offsets in {topic}.")
        shown = {
            "data": [
                {"topic": each.topic, "partition": each.partition, "current": offsets[each][0]}
                for each in places
            ],
            "dry_run": body.flag("dry_run"),
        }
        if body.flag("dry_run"):
            return shown
        async with self._backend.change(request, "delete-offsets", group, body.fields) as call:
            if kind == "share":
                await call.admin.delete_share_group_offsets(group, [topic])
            elif kind == "streams":
                await call.admin.delete_streams_group_offsets(group, places)
            else:
                await call.admin.delete_consumer_group_offsets(group, places)
        return shown

    async def settings(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            return await read_settings(call, ConfigResource.group(request.path["group"]))

    async def alter(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        group = request.path["group"]
        async with self._backend.change(
            request, "alter-group-settings", group, body.fields
        ) as call:
            return await alter_settings(call, ConfigResource.group(group), body)

    # Offsets.

    async def _offsets(
        self, call: Call, group: str, kind: str
    ) -> dict[tuple[str, int], tuple[int | None, int | None, int | None]]:
        """Position, end and lag by partition."""
        lags: dict[tuple[str, int], int | None] = {}
        positions: dict[tuple[str, int], int | None] = {}
        if kind == "share":
            share = (await call.admin.list_share_group_offsets(group))[group]
            for place, info in share.items():
                positions[place] = None if info is None else info.start_offset
                if info is not None and info.lag is not None:
                    lags[place] = info.lag
        else:
            if kind == "streams":
                found = await call.admin.list_streams_group_offsets(group)
            else:
                found = await call.admin.list_consumer_group_offsets(group)
            for place, at in found[group].items():
                positions[place] = None if at is None else at.offset
        ends = await self._at(call, positions, OffsetSpec.latest())
        return {
            place: (
                position,
                ends.get(place),
                lags.get(place, _lag(position, ends.get(place))),
            )
            for place, position in positions.items()
        }

    async def _at(
        self, call: Call, places: Iterable[tuple[str, int]], spec: OffsetSpec
    ) -> dict[tuple[str, int], int]:
        wanted = {TopicPartition(*place): spec for place in places}
        if not wanted:
            return {}
        found = await call.admin.list_offsets(wanted, check=False)
        return {place: each.offset for place, each in found.values_by_key.items()}

    async def _plan(self, call: Call, group: str, kind: str, body: Body) -> Sequence[Change]:
        target, value = body.text("to"), body.integer("value", 0)
        if target not in TARGETS:
            raise bad_request(f"to {target}: use one of {', '.join(TARGETS)}")
        offsets = await self._offsets(call, group, kind)
        topics = [str(each) for each in body.items("topics", [])]
        places = set(offsets)
        if topics:
            described = await call.admin.describe_topics(topics)
            places = {
                (name, each.partition) for name in topics for each in described[name].partitions
            }
        if not places:
            raise bad_request("The group has no offsets: name the topics to set them for.")
        firsts = await self._at(call, places, OffsetSpec.earliest())
        ends = await self._at(call, places, OffsetSpec.latest())
        at_time: dict[tuple[str, int], int] = {}
        if target == "time":
            found = await self._at(call, places, OffsetSpec.for_timestamp(value))
            at_time = {place: at for place, at in found.items() if at >= 0}
        current = {place: offsets[place][0] if place in offsets else None for place in places}
        return planned_changes(
            target, value, current=current, firsts=firsts, ends=ends, at_time=at_time
        )


async def kind_of(call: Call, group: str) -> str:
    """classic, consumer, share or streams. Raises HttpError."""
    for each in await call.admin.list_groups(check=False):
        if each.group_id == group:
            return _kind(each)
    raise missing("group", group)


def _kind(listing: GroupListing) -> str:
    return (listing.type or GroupType.CLASSIC).value.lower()


def _lag(position: int | None, end: int | None) -> int | None:
    return None if position is None or end is None else max(0, end - position)


def _totals(lags: list[PartitionLag]) -> dict[str, Any]:
    """Of all partitions: the group is as late as its latest partition."""
    if not lags:
        return {"lag": None, "lag_seconds": None, "clears_in": None, "stuck": 0}
    open_ended = any(each.clears_in is None for each in lags)
    return {
        "lag": sum(each.records for each in lags),
        "lag_seconds": max(each.seconds for each in lags),
        "clears_in": None if open_ended else max(each.clears_in or 0.0 for each in lags),
        "stuck": sum(each.stuck for each in lags),
    }


def _row(call: Call, listing: GroupListing) -> dict[str, Any]:
    known = call.watcher.snapshot.groups.get(listing.group_id)
    return {
        "group": listing.group_id,
        "kind": _kind(listing),
        "protocol": listing.protocol,
        "state": None if listing.group_state is None else listing.group_state.value,
        "members": None if known is None else len(known.members),
        **_totals(call.watcher.snapshot.lags.get(listing.group_id, [])),
    }


def _shown(changes: Sequence[Change], *, dry_run: bool) -> dict[str, Any]:
    return {"data": [each._asdict() for each in changes], "dry_run": dry_run}
