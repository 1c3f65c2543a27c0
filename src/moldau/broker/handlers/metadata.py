"""Metadata (key 3), v0-13: brokers, topics, partitions and leaders; may create topics.

v0 asks for all topics with an empty list, v1+ with null. v4 added the switch for auto-creation,
v7 leader epochs, v8 authorised operations, v10 topic ids in answers, v12 lookups by topic id,
v13 a top-level error.

A topic that the request creates is returned as it was found, UNKNOWN_TOPIC_OR_PARTITION, and at
once, as Kafka does. Programs check with this request whether a topic is gone, and must not find the
one that their own request created; kafka-go's groups see a topic appear only if it was missing at
first. If the controller rejects the topic, the next request that names it returns the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from moldau.broker.handlers.support.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED_FOR,
    TOPIC_OPERATIONS,
)
from moldau.broker.handlers.support.offline_replicas import offline_replicas
from moldau.broker.machine.topics import INTERNAL_TOPICS, topic_name_problem
from moldau.broker.metadata.machine import model
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import MetadataRequest, MetadataResponse
from moldau.wire.uuids import ZERO_UUID

Topic = MetadataResponse.MetadataResponseTopic
Partition = MetadataResponse.MetadataResponsePartition

StartCreation = Callable[[Iterable[str]], Mapping[str, ErrorCode]]


class MetadataHandler:
    def __init__(
        self,
        image: Callable[[], MetadataImage],
        *,
        node_id: int,
        cluster_id: str,
        controller_id: Callable[[], int],
        auto_create: Callable[[], bool],
        start_creation: StartCreation,
    ) -> None:
        self._image = image
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._controller_id = controller_id
        self._auto_create = auto_create
        self._start_creation = start_creation

    def handle(self, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
        version = context.api_version
        wanted = request.topics
        everything = wanted is None or (version == 0 and not wanted)
        with_operations = request.include_topic_authorized_operations
        if everything:
            image = self._image()
            topics = [_found(topic, image) for topic in image.topics_by_name.values()]
        elif wanted and (ids := _ids_asked_for(wanted, version)):
            image = self._image()
            topics = [_by_id(topic_id, image) for topic_id in ids]
        else:
            names = dict.fromkeys(topic.name or "" for topic in wanted or ())
            topics = self._by_name(names, allow_create=request.allow_auto_topic_creation)
        if with_operations:
            for topic in topics:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
        return self._response(context, request, topics)

    def _by_name(self, names: Iterable[str], *, allow_create: bool) -> list[Topic]:
        image = self._image()
        missing = [name for name in names if name not in image.topics_by_name]
        errors: Mapping[str, ErrorCode] = {}
        if missing and allow_create and self._auto_create():
            errors = self._start_creation(missing)
        topics = []
        for name in names:
            found = image.topics_by_name.get(name)
            if found is not None:
                topics.append(_found(found, image))
            else:
                topics.append(_missing(name, errors.get(name)))
        return topics

    def _response(
        self, context: RequestContext, request: MetadataRequest, topics: list[Topic]
    ) -> MetadataResponse:
        brokers = [
            MetadataResponse.MetadataResponseBroker(
                node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker in self._brokers()
            if (endpoint := broker.endpoint(context.listener_name)) is not None
        ]
        with_cluster = request.include_cluster_authorized_operations
        return MetadataResponse(
            brokers=brokers,
            cluster_id=self._cluster_id,
            controller_id=self._controller_id(),
            topics=topics,
            cluster_authorized_operations=CLUSTER_OPERATIONS if with_cluster else NOT_ASKED_FOR,
        )

    def _brokers(self) -> list[model.Broker]:
        """Those that can be used. A node that is the only one, and stops, is fenced while it still
        answers; it names itself then: librdkafka forgets brokers that are not named, and with the
        last one the way back to the cluster."""
        brokers = self._image().brokers
        alive = [broker for broker in brokers.values() if not broker.fenced]
        return alive or [broker for broker in brokers.values() if broker.id == self._node_id]


def _missing(name: str, error: ErrorCode | None) -> Topic:
    if topic_name_problem(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is None else error
    return Topic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _ids_asked_for(
    wanted: Iterable[MetadataRequest.MetadataRequestTopic], version: int
) -> list[UUID]:
    ids = [topic.topic_id for topic in wanted if topic.topic_id != ZERO_UUID]
    if version < 12 and (ids or any(topic.name is None for topic in wanted)):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Metadata v{version} finds topics by name only; topic ids need v12 or later",
        )
    return list(dict.fromkeys(ids))


def _by_id(topic_id: UUID, image: MetadataImage) -> Topic:
    found = image.topics_by_id.get(topic_id)
    if found is None:
        return Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    return _found(found, image)


def _found(topic: model.Topic, image: MetadataImage) -> Topic:
    return Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(index, partition, image)
            for index, partition in sorted(topic.partitions.items())
        ],
    )


def _partition(index: int, partition: model.Partition, image: MetadataImage) -> Partition:
    no_leader = partition.leader < 0
    return Partition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if no_leader else ErrorCode.NONE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline_replicas(partition, image),
    )
