"""Topics: the list, one topic with its partitions and consumers, create, alter, delete."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from moldau.client import NewPartitions, NewTopic, OffsetSpec
from moldau.client.admin import (
    ConfigResource,
    NewPartitionReassignment,
    RecordsToDelete,
    TopicDescription,
)
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import Body, body_of, paging_of
from moldau.services.console.api.routing import CLUSTER, PAGING, api, fields, text
from moldau.services.console.api.settings import alter_settings, read_settings
from moldau.services.console.backend import Backend, Call
from moldau.services.console.lists import forget_topics, topic_names
from moldau.services.console.machine.errors import bad_request
from moldau.services.console.machine.paging import page_of
from moldau.services.console.watcher import TopicFacts

__all__ = ["TopicHandlers"]

TOPIC: Final = CLUSTER + "/topics/{topic}"
#: Sizes are asked for on the spot for topics with up to so many partitions.
PARTITIONS_SHOWN_MAX: Final = 2000
KEPT: Final = ("cleanup.policy", "retention.ms", "retention.bytes")


class TopicHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "topics"
        new = fields(
            "name", name="string", partitions="integer", replication_factor="integer",
            configs="object", validate_only="boolean",
        )  # fmt: skip
        return [
            api("GET", f"{CLUSTER}/topics", self.list, "A page of the topics", tag=tag,
                parameters=(*PAGING, text("internal", "true: also internal topics"))),
            api("POST", f"{CLUSTER}/topics", self.create, "Create a topic", tag=tag, body=new),
            api("GET", TOPIC, self.show, "One topic with its partitions", tag=tag),
            api("DELETE", TOPIC, self.delete, "Delete a topic", tag=tag),
            api("GET", f"{TOPIC}/settings", self.settings, "Settings of a topic, explained",
                tag=tag),
            api("PATCH", f"{TOPIC}/settings", self.alter, "Change settings of a topic", tag=tag,
                body=fields("set", set="object", delete="array", validate_only="boolean")),
            api("POST", f"{TOPIC}/partitions", self.add_partitions, "Add partitions", tag=tag,
                body=fields("total", total="integer", validate_only="boolean")),
            api("PUT", f"{TOPIC}/replicas", self.move, "Place the replicas of partitions", tag=tag,
                body=fields("partitions", partitions="array")),
            api("POST", f"{TOPIC}/truncate", self.truncate,
                "Delete records: all, or those before an offset of each partition", tag=tag,
                body=fields(offsets="object")),
            api("GET", f"{TOPIC}/groups", self.groups, "Groups that read the topic", tag=tag),
            api("GET", f"{CLUSTER}/topic-settings", self.new_settings,
                "Settings that a new topic can have, explained", tag=tag),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        paging = paging_of(request)
        with self._backend.call(request) as call:
            listed = await topic_names(call)
            internal = request.flag("internal")
            facts = call.watcher.snapshot.topics
            names = [name for name, is_internal in listed.items() if internal or not is_internal]

            def fact(column: str) -> Any:
                return lambda name: getattr(facts[name], column) if name in facts else None

            columns = {
                "partitions": fact("partitions"),
                "replicas": fact("replicas"),
                "size": fact("bytes_all"),
                "records": fact("records"),
                "rate": fact("rate"),
            }
            shown, counts = page_of(names, paging, name=lambda name: name, columns=columns)
            unknown = [name for name in shown if name not in facts]
            described = await call.admin.describe_topics(unknown, check=False) if unknown else {}
            rows = []
            for name in shown:
                if name in facts:
                    rows.append(_row(name, listed[name], facts[name]))
                elif name in described and name not in getattr(described, "errors", {}):
                    rows.append(_described_row(described[name]))
                else:
                    rows.append({"name": name, "internal": listed[name]})
            return {"data": rows, **counts}

    async def show(self, request: Request) -> dict[str, Any]:
        name = request.path["topic"]
        with self._backend.call(request) as call:
            found = (await call.admin.describe_topics([name], include_authorized_operations=True))[
                name
            ]
            places = [
                TopicPartition(name, each.partition)
                for each in found.partitions[:PARTITIONS_SHOWN_MAX]
            ]
            alive = [
                place
                for place, each in zip(places, found.partitions, strict=False)
                if each.leader is not None
            ]
            firsts, lasts, sizes, moving, kept = await asyncio.gather(
                call.admin.list_offsets(dict.fromkeys(alive, OffsetSpec.earliest()), check=False),
                call.admin.list_offsets(dict.fromkeys(alive, OffsetSpec.latest()), check=False),
                _sizes(call, found),
                _moving(call, places),
                _kept(call, name),
            )
            partitions = []
            for each in found.partitions[:PARTITIONS_SHOWN_MAX]:
                place = TopicPartition(name, each.partition)
                first = firsts.values_by_key.get(place)
                last = lasts.values_by_key.get(place)
                partitions.append(
                    {
                        "partition": each.partition,
                        "leader": None if each.leader is None else each.leader.id,
                        "leader_epoch": each.leader_epoch,
                        "replicas": [node.id for node in each.replicas],
                        "isr": [node.id for node in each.isr],
                        "offline": [node.id for node in each.offline_replicas],
                        "first": None if first is None else first.offset,
                        "end": None if last is None else last.offset,
                        "bytes": sizes.get(place),
                        "moving": moving.get(place),
                    }
                )
            facts = call.watcher.snapshot.topics.get(name)
            operations = found.authorized_operations
            return {
                "name": name,
                "id": str(found.topic_id),
                "internal": found.is_internal,
                "partition_count": len(found.partitions),
                "partitions": partitions,
                "rate": None if facts is None else facts.rate,
                "kept": kept,
                "operations": sorted(each.name for each in operations or ()),
            }

    async def create(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        name = body.text("name")
        configs = {
            key: None if value is None else str(value)
            for key, value in body.mapping("configs").items()
        }
        topic = NewTopic(
            name,
            body.optional_integer("partitions"),
            body.optional_integer("replication_factor"),
            configs,
        )
        async with self._backend.change(request, "create-topic", name, body.fields) as call:
            made = await call.admin.create_topics([topic], validate_only=body.flag("validate_only"))
            forget_topics(call)
            return {
                "name": name,
                "partitions": made[name].num_partitions,
                "replication_factor": made[name].replication_factor,
            }

    async def delete(self, request: Request) -> dict[str, Any]:
        name = request.path["topic"]
        async with self._backend.change(request, "delete-topic", name) as call:
            await call.admin.delete_topics([name])
            forget_topics(call)
            return {"deleted": name}

    async def settings(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            return await read_settings(call, ConfigResource.topic(request.path["topic"]))

    async def alter(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        name = request.path["topic"]
        async with self._backend.change(request, "alter-topic-settings", name, body.fields) as call:
            return await alter_settings(call, ConfigResource.topic(name), body)

    async def add_partitions(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        name, total = request.path["topic"], body.integer("total")
        async with self._backend.change(request, "add-partitions", name, body.fields) as call:
            await call.admin.create_partitions(
                {name: NewPartitions.increase_to(total)}, validate_only=body.flag("validate_only")
            )
            return {"name": name, "partitions": total}

    async def move(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        name = request.path["topic"]
        wanted = {
            TopicPartition(name, each.integer("partition")): _replicas(each)
            for each in body.objects("partitions")
        }
        async with self._backend.change(request, "move-replicas", name, body.fields) as call:
            await call.admin.alter_partition_reassignments(wanted)
            return {"moved": len(wanted)}

    async def truncate(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        name = request.path["topic"]
        async with self._backend.change(request, "delete-records", name, body.fields) as call:
            if "offsets" in body:
                before = _before(name, body.mapping("offsets"))
            else:
                found = (await call.admin.describe_topics([name]))[name]
                before = {
                    TopicPartition(name, each.partition): RecordsToDelete.before(-1)
                    for each in found.partitions
                }
            deleted = await call.admin.delete_records(before)
            return {
                "data": [
                    {"partition": place.partition, "first": each.low_watermark}
                    for place, each in sorted(deleted.values_by_key.items())
                ]
            }

    async def groups(self, request: Request) -> dict[str, Any]:
        name = request.path["topic"]
        with self._backend.call(request) as call:
            visible = {each.group_id for each in await call.admin.list_groups(check=False)}
            rows = []
            for group_id, lags in call.watcher.snapshot.lags.items():
                own = [each for each in lags if each.place.topic == name]
                if not own or group_id not in visible:
                    continue
                group = call.watcher.snapshot.groups[group_id]
                rows.append(
                    {
                        "group": group_id,
                        "kind": group.kind,
                        "state": group.state,
                        "members": len(group.members),
                        "partitions": len(own),
                        "lag": sum(each.records for each in own),
                        "lag_seconds": max(each.seconds for each in own),
                    }
                )
            return {"data": sorted(rows, key=lambda each: str(each["group"]))}

    async def new_settings(self, request: Request) -> dict[str, Any]:
        """Those of any topic, with the defaults of the cluster; a cluster without one has none to
        show."""
        with self._backend.call(request) as call:
            for name in await topic_names(call):
                try:
                    found = await read_settings(call, ConfigResource.topic(name))
                except KafkaError:
                    continue
                for each in found["data"]:
                    own = [
                        synonym
                        for synonym in each["synonyms"]
                        if synonym["source"] != "DYNAMIC_TOPIC_CONFIG"
                    ]
                    each["value"] = own[0]["value"] if own else each["value"]
                return found
            return {"data": []}


def _before(topic: str, offsets: dict[str, Any]) -> dict[TopicPartition, RecordsToDelete]:
    try:
        return {
            TopicPartition(topic, int(partition)): RecordsToDelete.before(int(offset))
            for partition, offset in offsets.items()
        }
    except (TypeError, ValueError):
        raise bad_request('offsets must be numbers by partition: {"0": 100, ...}') from None


def _replicas(body: Body) -> NewPartitionReassignment | None:
    """None cancels a move that is under way."""
    if body.fields.get("replicas") is None:
        return None
    replicas = body.items("replicas")
    if not replicas or not all(isinstance(each, int) for each in replicas):
        raise bad_request("The field replicas must be a list of broker ids.")
    return NewPartitionReassignment(tuple(replicas))


def _row(name: str, internal: bool, facts: TopicFacts) -> dict[str, Any]:
    return {
        "name": name,
        "internal": internal,
        "partitions": facts.partitions,
        "replicas": facts.replicas,
        "under_replicated": facts.under_replicated,
        "offline": facts.offline,
        "size": facts.bytes_all,
        "records": facts.records,
        "rate": facts.rate,
    }


def _described_row(topic: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": max((len(each.replicas) for each in topic.partitions), default=0),
        "under_replicated": sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        "offline": sum(each.leader is None for each in topic.partitions),
    }


async def _sizes(call: Call, topic: TopicDescription) -> dict[TopicPartition, int]:
    """Of the leaders' logs; none if the user may not see log directories."""
    leaders = {
        TopicPartition(topic.name, each.partition): each.leader.id
        for each in topic.partitions
        if each.leader is not None
    }
    found = await call.admin.describe_log_dirs(
        sorted(set(leaders.values())), partitions=list(leaders), check=False
    )
    sizes = {}
    for broker, folders in found.values_by_key.items():
        for folder in folders.values():
            for place, info in folder.replica_infos.items():
                if leaders.get(place) == broker and not info.is_future:
                    sizes[place] = info.size
    return sizes


async def _kept(call: Call, topic: str) -> dict[str, str | None]:
    """How long records stay; nothing if the user may not see settings."""
    resource = ConfigResource.topic(topic)
    try:
        found = (await call.admin.describe_configs([resource]))[resource]
    except KafkaError:
        return {}
    return {name: found[name].value for name in KEPT if name in found}


async def _moving(
    call: Call, places: list[TopicPartition]
) -> dict[TopicPartition, dict[str, list[int]]]:
    try:
        found = await call.admin.list_partition_reassignments(places)
    except KafkaError:
        return {}
    return {
        place: {"adding": list(each.adding_replicas), "removing": list(each.removing_replicas)}
        for place, each in found.items()
    }
