"""API v3: clusters, brokers, topics, partitions, replicas and reassignments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from moldau.client import NewPartitions, NewTopic, OffsetSpec, TopicPartition
from moldau.client.admin import AsyncAdmin, TopicDescription, TopicPartitionInfo
from moldau.http.machine.errors import HttpError, not_found
from moldau.http.machine.routes import Parameter, Route
from moldau.http.request import Answer, Request
from moldau.services.rest.backend import Backend
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import (
    bad_request,
    constraint,
    invalid_payload,
    partition_not_found,
)
from moldau.services.rest.v3.routing import CLUSTER, object_body, v3

__all__ = ["MetadataHandlers"]

_REPLICAS_MAX = 32767
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class MetadataHandlers:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        topic = f"{CLUSTER}/topics/{{topic_name}}"
        partition = f"{topic}/partitions/{{partition_id:int}}"
        broker = f"{CLUSTER}/brokers/{{broker_id:int}}"
        operations = Parameter(
            name="include_authorized_operations", schema={"type": "boolean"},
            description="Whether to show what the user may do.",
        )  # fmt: skip
        offset_type = Parameter(
            name="offset_type", description="Only earliest_and_latest.",
            schema={"type": "string", "enum": ["earliest_and_latest"]},
        )  # fmt: skip
        return [
            v3("GET", "/clusters", self._clusters, "List clusters", tag="cluster",
               answer="ClusterDataList"),
            v3("GET", CLUSTER, self._cluster, "Show the cluster", tag="cluster",
               answer="ClusterData"),
            v3("GET", f"{CLUSTER}/brokers", self._brokers, "List brokers", tag="broker",
               answer="BrokerDataList"),
            v3("GET", broker, self._broker, "Show a broker", tag="broker", answer="BrokerData"),
            v3("GET", f"{broker}/partition-replicas", self._replicas_of_broker,
               "List the replicas on a broker", tag="replica", answer="ReplicaDataList"),
            v3("GET", f"{CLUSTER}/topics", self._topics, "List topics", tag="topic",
               answer="TopicDataList",
               parameters=(replace(operations, name="includeAuthorizedOperations"),)),
            v3("POST", f"{CLUSTER}/topics", self._create, "Create a topic", tag="topic",
               answer="TopicData", status=201, body="CreateTopicRequestData"),
            v3("GET", topic, self._topic, "Show a topic", tag="topic", answer="TopicData",
               parameters=(operations,)),
            v3("PATCH", topic, self._extend, "Set the number of partitions", tag="topic",
               answer="TopicData", body="UpdatePartitionCountRequestData"),
            v3("DELETE", topic, self._delete, "Delete a topic", tag="topic"),
            v3("GET", f"{topic}/partitions", self._partitions, "List partitions",
               tag="partition", answer="PartitionDataList"),
            v3("GET", partition, self._partition, "Show a partition", tag="partition",
               answer="PartitionData"),
            v3("GET", f"{partition}/offset", self._offset, "First and last offset",
               tag="partition", answer="PartitionWithOffsetsData", parameters=(offset_type,)),
            v3("GET", f"{partition}/replicas", self._replicas, "List replicas", tag="replica",
               answer="ReplicaDataList"),
            v3("GET", f"{partition}/replicas/{{broker_id:int}}", self._replica,
               "Show a replica", tag="replica", answer="ReplicaData"),
            v3("GET", f"{partition}/reassignment", self._reassignment, "Show a reassignment",
               tag="partition", answer="ReassignmentData"),
            v3("GET", f"{topic}/partitions/-/reassignment", self._reassignments_of_topic,
               "List reassignments of a topic", tag="partition", answer="ReassignmentDataList"),
            v3("GET", f"{CLUSTER}/topics/-/partitions/-/reassignment", self._reassignments,
               "List all reassignments", tag="partition", answer="ReassignmentDataList"),
        ]  # fmt: skip

    # Clusters and brokers.

    async def _clusters(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            found = await call.clients.admin.describe_cluster()
            url = call.resources.links.url("clusters")
            return call.resources.collection("KafkaCluster", [call.resources.cluster(found)], url)

    async def _cluster(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            return call.resources.cluster(await call.clients.admin.describe_cluster())

    async def _brokers(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            nodes = sorted((await call.clients.admin.describe_cluster()).nodes)
            return call.resources.collection(
                "KafkaBroker", map(call.resources.broker, nodes), call.resources.url("brokers")
            )

    async def _broker(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            for node in (await call.clients.admin.describe_cluster()).nodes:
                if node.id == request.path["broker_id"]:
                    return call.resources.broker(node)
            raise not_found()

    async def _replicas_of_broker(self, request: Request) -> Any:
        broker_id = request.path["broker_id"]
        async with self._backend.v3(request) as call:
            nodes = (await call.clients.admin.describe_cluster()).nodes
            if all(each.id != broker_id for each in nodes):
                raise HttpError(404, f"Broker {broker_id} cannot be found.")
            found = [
                call.resources.replica(topic.name, partition, broker_id)
                for topic in await _all_topics(call.clients.admin)
                for partition in topic.partitions
                if any(each.id == broker_id for each in partition.replicas)
            ]
            url = call.resources.url("brokers", broker_id, "partition-replicas")
            return call.resources.collection("KafkaReplica", found, url)

    # Topics.

    async def _topics(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            include = request.flag("includeAuthorizedOperations")
            topics = await _all_topics(call.clients.admin, include_authorized_operations=include)
            return call.resources.collection(
                "KafkaTopic",
                map(call.resources.described_topic, topics),
                call.resources.url("topics"),
            )

    async def _create(self, request: Request) -> Answer:
        body = await object_body(request, "Request body is empty. Data is required.")
        validate_only = bodies.boolean(body, "validate_only")
        new = _new_topic(body)
        async with self._backend.v3(request) as call:
            results = await call.clients.admin.create_topics([new], validate_only=validate_only)
            made = results[new.name]
            count, factor = made.num_partitions, made.replication_factor
            topic = call.resources.topic(
                new.name,
                is_internal=False,
                replication_factor=factor if factor is not None else new.replication_factor or 0,
                partitions_count=count if count is not None else new.num_partitions or 0,
            )
            if validate_only:
                return Answer(status=200, body=topic)
            location = topic["metadata"]["self"]
            return Answer(status=201, body=topic, headers={"Location": location})

    async def _topic(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            name = request.path["topic_name"]
            include = request.flag("include_authorized_operations")
            found = await call.clients.admin.describe_topics(
                [name], include_authorized_operations=include
            )
            return call.resources.described_topic(found[name])

    async def _extend(self, request: Request) -> Any:
        body = await object_body(request, "Request body is empty. Partitions_count is required.")
        bodies.required(body, "partitions_count")
        count = bodies.integer(body, "partitions_count")
        if count is None or count < 1:
            raise HttpError(
                400, f"partitions_count must be at least 1 (was {count})", error_code=40002
            )
        async with self._backend.v3(request) as call:
            name = request.path["topic_name"]
            await call.clients.admin.create_partitions({name: NewPartitions(count)})
            found = (await call.clients.admin.describe_topics([name]))[name]
            return call.resources.topic(
                name,
                is_internal=found.is_internal,
                replication_factor=len(found.partitions[0].replicas),
                # What was asked for: another broker may not know of it yet.
                partitions_count=max(count, len(found.partitions)),
            )

    async def _delete(self, request: Request) -> Answer:
        async with self._backend.v3(request) as call:
            await call.clients.admin.delete_topics([request.path["topic_name"]])
            return Answer(status=204)

    # Partitions.

    async def _partitions(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            topic = await _topic(call.clients.admin, request)
            return call.resources.collection(
                "KafkaPartition",
                (call.resources.partition(topic.name, each) for each in topic.partitions),
                call.resources.url("topics", topic.name, "partitions"),
            )

    async def _partition(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            topic, partition = await _place(call.clients.admin, request)
            return call.resources.partition(topic, partition)

    async def _offset(self, request: Request) -> Any:
        offset_type = request.text("offset_type", "earliest_and_latest") or ""
        if offset_type != "earliest_and_latest":
            raise bad_request(f"offset_type:{offset_type} is invalid")
        async with self._backend.v3(request) as call:
            topic = await _topic(call.clients.admin, request)
            number = request.path["partition_id"]
            if all(each.partition != number for each in topic.partitions):
                raise partition_not_found()
            place = TopicPartition(topic.name, number)
            first = await call.clients.admin.list_offsets({place: OffsetSpec.earliest()})
            last = await call.clients.admin.list_offsets({place: OffsetSpec.latest()})
            return call.resources.partition_offsets(
                topic.name,
                number,
                earliest=first[place].offset,
                latest=last[place].offset,
                offset_type=offset_type,
            )

    # Replicas and reassignments.

    async def _replicas(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            topic, partition = await _place(call.clients.admin, request)
            return call.resources.collection(
                "KafkaReplica",
                (call.resources.replica(topic, partition, each.id) for each in partition.replicas),
                call.resources.url("topics", topic, "partitions", partition.partition, "replicas"),
            )

    async def _replica(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            topic, partition = await _place(call.clients.admin, request)
            broker_id = request.path["broker_id"]
            if all(each.id != broker_id for each in partition.replicas):
                raise not_found()
            return call.resources.replica(topic, partition, broker_id)

    async def _reassignment(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            place = TopicPartition(request.path["topic_name"], request.path["partition_id"])
            found = await call.clients.admin.list_partition_reassignments()
            if place not in found:
                raise not_found()
            return call.resources.reassignment(place, found[place])

    async def _reassignments_of_topic(self, request: Request) -> Any:
        return await self._listed(request, request.path["topic_name"])

    async def _reassignments(self, request: Request) -> Any:
        return await self._listed(request, None)

    async def _listed(self, request: Request, topic: str | None) -> Any:
        async with self._backend.v3(request) as call:
            found = await call.clients.admin.list_partition_reassignments()
            shown = [
                call.resources.reassignment(place, found[place])
                for place in sorted(found)
                if topic is None or place.topic == topic
            ]
            url = call.resources.url("topics", topic or "-", "partitions", "-", "reassignment")
            return call.resources.collection("KafkaReassignment", shown, url)


def _new_topic(body: Mapping[str, Any]) -> NewTopic:
    """Raises HttpError."""
    bodies.required(body, "topic_name")
    name = bodies.text(body, "topic_name") or ""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise invalid_payload("Invalid topic name.")
    count = bodies.integer(body, "partitions_count")
    factor = bodies.integer(body, "replication_factor")
    if factor is not None and not -1 <= factor <= _REPLICAS_MAX:
        raise HttpError(400, f"replication_factor is out of range: {factor}", error_code=40002)
    configs: dict[str, str | None] = {}
    for each in bodies.items(body, "configs") or ():
        bodies.required(each, "name")
        configs[bodies.text(each, "name") or ""] = bodies.text(each, "value")
    assignments = _assignments(body)
    if assignments is not None and (count is not None or factor is not None):
        raise bad_request(
            "replicas_assignments cannot be combined with partitions_count or replication_factor."
        )
    return NewTopic(
        name,
        num_partitions=count,
        replication_factor=factor,
        configs=configs,
        replicas_assignments=assignments,
    )


def _assignments(body: Mapping[str, Any]) -> dict[int, list[int]] | None:
    given = body.get("replicas_assignments")
    if given is None:
        return None
    found = {}
    for number, brokers in bodies.mapping(given, "replicas_assignments").items():
        known = isinstance(brokers, list) and all(
            isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**31
            for each in brokers
        )
        if not known or not number.isdecimal() or not number.isascii() or len(number) > 9:
            raise constraint("replicas_assignments must have lists of broker IDs by partition ID")
        found[int(number)] = brokers
    return found or None


async def _all_topics(
    admin: AsyncAdmin, *, include_authorized_operations: bool = False
) -> list[TopicDescription]:
    names = sorted(await admin.list_topics(list_internal=True))
    if not names:
        return []
    # One that is deleted meanwhile is left out.
    found = await admin.describe_topics(
        names, include_authorized_operations=include_authorized_operations, check=False
    )
    return [found.values_by_key[name] for name in names if name in found.values_by_key]


async def _topic(admin: AsyncAdmin, request: Request) -> TopicDescription:
    name = request.path["topic_name"]
    return (await admin.describe_topics([name]))[name]


async def _place(admin: AsyncAdmin, request: Request) -> tuple[str, TopicPartitionInfo]:
    topic = await _topic(admin, request)
    for each in topic.partitions:
        if each.partition == request.path["partition_id"]:
            return topic.name, each
    raise not_found()
