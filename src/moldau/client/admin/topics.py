"""Topics: create, delete, list, describe, more partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from moldau.client.admin.base import AdminBase, node_of, several
from moldau.client.admin.config_values import ConfigEntry, ConfigSource
from moldau.client.admin.driver import NO_CODES, Answer, Call
from moldau.client.admin.routes import AnyRoute, ControllerRoute
from moldau.client.admin.topic_values import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
    TopicPartitionInfo,
)
from moldau.client.errors import InvalidTopicError, KafkaError, UnsupportedVersionError, error_for
from moldau.client.results import Results
from moldau.client.topics import Node
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from moldau.wire.uuids import ZERO_UUID

__all__ = ["TopicOperations"]

_QUOTA = frozenset({ErrorCode.THROTTLING_QUOTA_EXCEEDED})
_DELETE_BY_STATE = 6
_UNKNOWN = -1


class TopicOperations(AdminBase):
    """Topics."""

    async def create_topics(
        self,
        topics: Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, CreatedTopic]:
        """Create topics; a plain name takes the broker's defaults.

        With `validate_only` nothing is created, only checked.

        >>> await admin.create_topics([NewTopic("orders", 3, configs={"retention.ms": "3600000"})])
        """
        wanted = {each.name: each for each in map(_new_topic, several(topics))}

        async def ask(call: Call, names: Sequence[str]) -> Answer[str, CreatedTopic]:
            response: CreateTopicsResponse = await call(
                CreateTopicsRequest(
                    topics=[_creatable(wanted[name]) for name in names],
                    timeout_ms=call.timeout_ms,
                    validate_only=validate_only,
                )
            )
            answer: Answer[str, CreatedTopic] = Answer()
            for each in response.topics:
                if each.error_code == ErrorCode.NONE:
                    answer.put(each.name, _created(each))
                else:
                    answer.fail(each.name, each.error_code, each.error_message)
            return answer

        return await self._run(
            "CreateTopics",
            wanted,
            ControllerRoute(),
            ask,
            timeout=timeout,
            check=check,
            retried=_QUOTA if retry_on_quota_violation else NO_CODES,
            refused=_bad_names(wanted),
        )

    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str | UUID, None]:
        """Delete topics by name or by id.

        >>> await admin.delete_topics(["orders"])
        """

        async def ask(call: Call, keys: Sequence[str | UUID]) -> Answer[str | UUID, None]:
            response = await _delete(call, keys)
            asked = set(keys)
            answer: Answer[str | UUID, None] = Answer()
            for each in response.responses:
                key = each.name if each.name in asked else each.topic_id
                if key is None:
                    continue
                answer.settle(key, each.error_code, each.error_message, None)
            return answer

        wanted = several(topics)
        return await self._run(
            "DeleteTopics",
            wanted,
            ControllerRoute(),
            ask,
            timeout=timeout,
            check=check,
            retried=_QUOTA if retry_on_quota_violation else NO_CODES,
            refused=_bad_names(wanted),
        )

    async def list_topics(
        self, *, list_internal: bool = False, timeout: float | None = None
    ) -> dict[str, TopicListing]:
        """All topics by name, the internal ones only if asked for.

        >>> print(sorted(await admin.list_topics()))
        """

        async def ask(call: Call) -> dict[str, TopicListing]:
            response: MetadataResponse = await call(MetadataRequest(topics=None))
            return {
                each.name: TopicListing(each.name, each.topic_id, each.is_internal)
                for each in sorted(response.topics, key=lambda each: each.name or "")
                if each.name is not None and (list_internal or not each.is_internal)
            }

        return await self._run_one("ListTopics", AnyRoute(), ask, timeout=timeout)

    async def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        partition_size_limit_per_response: int = 2000,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str | UUID, TopicDescription]:
        """What topics are, by name or by id, with leader, replicas and ISR of each partition.

        By name, large topics come in pages, so that no response grows without bound.

        >>> print(len((await admin.describe_topics(["orders"]))["orders"].partitions))
        """
        describer = _Describer(include_authorized_operations, partition_size_limit_per_response)

        async def ask(
            call: Call, keys: Sequence[str | UUID]
        ) -> Answer[str | UUID, TopicDescription]:
            answer: Answer[str | UUID, TopicDescription] = Answer()
            names = sorted(key for key in keys if isinstance(key, str))
            if names:
                await describer.by_name(call, names, answer)
            ids = [key for key in keys if isinstance(key, UUID)]
            if ids:
                await describer.by_id(call, ids, answer)
            return answer

        wanted = several(topics)
        return await self._run(
            "DescribeTopics",
            wanted,
            AnyRoute(),
            ask,
            timeout=timeout,
            check=check,
            refused=_bad_names(wanted),
        )

    async def create_partitions(
        self,
        new_partitions: Mapping[str, NewPartitions | int],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Raise the number of partitions; a plain number is the total that is wanted.

        >>> await admin.create_partitions({"orders": 6})
        """
        wanted = {
            name: NewPartitions(each) if isinstance(each, int) else each
            for name, each in new_partitions.items()
        }

        async def ask(call: Call, names: Sequence[str]) -> Answer[str, None]:
            response: CreatePartitionsResponse = await call(
                CreatePartitionsRequest(
                    topics=[_more_partitions(name, wanted[name]) for name in names],
                    timeout_ms=call.timeout_ms,
                    validate_only=validate_only,
                )
            )
            answer: Answer[str, None] = Answer()
            for each in response.results:
                answer.settle(each.name, each.error_code, each.error_message, None)
            return answer

        return await self._run(
            "CreatePartitions",
            wanted,
            ControllerRoute(),
            ask,
            timeout=timeout,
            check=check,
            retried=_QUOTA if retry_on_quota_violation else NO_CODES,
            refused=_bad_names(wanted),
        )


def _new_topic(given: NewTopic | str) -> NewTopic:
    if isinstance(given, str):
        return NewTopic(given)
    if not isinstance(given, NewTopic):
        raise TypeError(f"a topic to create is a name or a NewTopic, not {given!r}")
    return given


def _bad_names(keys: Iterable[Any]) -> dict[Any, KafkaError]:
    """What no request can name."""
    return {
        key: InvalidTopicError(f"{key!r} is not a valid topic name")
        for key in keys
        if key in ("", ZERO_UUID)
    }


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    request = CreateTopicsRequest
    given = topic.replicas_assignments or {}
    return request.CreatableTopic(
        name=topic.name,
        num_partitions=_UNKNOWN if topic.num_partitions is None else topic.num_partitions,
        replication_factor=(
            _UNKNOWN if topic.replication_factor is None else topic.replication_factor
        ),
        assignments=[
            request.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in given.items()
        ],
        configs=[
            request.CreatableTopicConfig(name=name, value=None if value is None else str(value))
            for name, value in topic.configs.items()
        ],
    )


def _created(found: CreateTopicsResponse.CreatableTopicResult) -> CreatedTopic:
    if found.topic_config_error_code or found.num_partitions == _UNKNOWN or found.configs is None:
        return CreatedTopic(found.name, found.topic_id, None, None, None)
    config = {
        each.name: ConfigEntry(
            each.name,
            each.value,
            ConfigSource(each.config_source),
            each.is_sensitive,
            each.read_only,
        )
        for each in found.configs
    }
    return CreatedTopic(
        found.name, found.topic_id, found.num_partitions, found.replication_factor, config
    )


def _more_partitions(
    name: str, wanted: NewPartitions
) -> CreatePartitionsRequest.CreatePartitionsTopic:
    request = CreatePartitionsRequest
    assignments = wanted.new_assignments
    return request.CreatePartitionsTopic(
        name=name,
        count=wanted.total_count,
        assignments=None
        if assignments is None
        else [request.CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments],
    )


async def _delete(call: Call, keys: Sequence[str | UUID]) -> DeleteTopicsResponse:
    states = [
        DeleteTopicsRequest.DeleteTopicState(
            name=key if isinstance(key, str) else None,
            topic_id=key if isinstance(key, UUID) else ZERO_UUID,
        )
        for key in keys
    ]
    response: DeleteTopicsResponse
    try:
        response = await call(DeleteTopicsRequest(topics=states, timeout_ms=call.timeout_ms))
    except UnsupportedVersionError:
        names = [key for key in keys if isinstance(key, str)]
        if len(names) < len(keys):
            raise
        response = await call(
            DeleteTopicsRequest(topic_names=names, timeout_ms=call.timeout_ms),
            max_version=_DELETE_BY_STATE - 1,
        )
    return response


class _Describer:
    """Asks for topics in pages by name, or whole by id."""

    def __init__(self, authorized_operations: bool, limit: int) -> None:
        self._authorized_operations = authorized_operations
        self._limit = limit

    async def by_name(
        self, call: Call, names: Sequence[str], answer: Answer[str | UUID, TopicDescription]
    ) -> None:
        try:
            nodes = await _nodes(call)
            await self._pages(call, names, nodes, answer)
        except UnsupportedVersionError:
            topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
            for topic, described in await self._whole(call, topics):
                if topic.name is not None:
                    _put(answer, topic.name, topic.error_code, topic.name, described)

    async def by_id(
        self, call: Call, ids: Sequence[UUID], answer: Answer[str | UUID, TopicDescription]
    ) -> None:
        topics = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=each) for each in ids]
        for topic, described in await self._whole(call, topics):
            if topic.name is None and not topic.error_code:
                answer.fail(topic.topic_id, ErrorCode.UNKNOWN_TOPIC_ID, str(topic.topic_id))
            else:
                shown = str(topic.topic_id)
                _put(answer, topic.topic_id, topic.error_code, shown, described)

    async def _pages(
        self,
        call: Call,
        names: Sequence[str],
        nodes: Mapping[int, Node],
        answer: Answer[str | UUID, TopicDescription],
    ) -> None:
        request = DescribeTopicPartitionsRequest
        cursor = None
        parts: dict[str, TopicDescription] = {}
        left = list(names)
        while left:
            response: DescribeTopicPartitionsResponse = await call(
                request(
                    topics=[request.TopicRequest(name=name) for name in left],
                    response_partition_limit=self._limit,
                    cursor=cursor,
                )
            )
            for topic in response.topics:
                name = topic.name or ""
                if topic.error_code != ErrorCode.NONE:
                    answer.fail(name, topic.error_code, name)
                    parts.pop(name, None)
                    continue
                page = self._described(topic, lambda each: _partition_of_page(each, nodes))
                before = parts.get(name)
                if before is not None:
                    page = page._replace(partitions=before.partitions + page.partitions)
                parts[name] = page
            next_cursor = response.next_cursor
            if next_cursor is None:
                break
            # Topics come sorted by name: what is before the cursor is complete.
            left = [name for name in left if name >= next_cursor.topic_name]
            cursor = request.Cursor(
                topic_name=next_cursor.topic_name, partition_index=next_cursor.partition_index
            )
        answer.values.update(parts)

    async def _whole(
        self, call: Call, topics: list[MetadataRequest.MetadataRequestTopic]
    ) -> list[tuple[MetadataResponse.MetadataResponseTopic, TopicDescription]]:
        response: MetadataResponse = await call(
            MetadataRequest(
                topics=topics,
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=self._authorized_operations,
            )
        )
        nodes = _nodes_of(response)
        return [
            (topic, self._described(topic, lambda each: _partition_of_metadata(each, nodes)))
            for topic in response.topics
        ]

    def _described(
        self, topic: Any, partition: Callable[[Any], TopicPartitionInfo]
    ) -> TopicDescription:
        from moldau.client.admin.acl_values import operations_of

        operations = operations_of(topic.topic_authorized_operations)
        return TopicDescription(
            topic.name or "",
            topic.topic_id,
            topic.is_internal,
            tuple(sorted(map(partition, topic.partitions), key=lambda each: each.partition)),
            operations if self._authorized_operations else None,
        )


def _put(
    answer: Answer[str | UUID, TopicDescription],
    key: str | UUID,
    code: int,
    shown: str,
    described: TopicDescription,
) -> None:
    if code == ErrorCode.NONE:
        answer.put(key, described)
    else:
        answer.errors[key] = error_for(code, shown)


async def _nodes(call: Call) -> dict[int, Node]:
    return _nodes_of(await call(MetadataRequest(topics=[])))


def _nodes_of(response: MetadataResponse) -> dict[int, Node]:
    return {
        each.node_id: Node(each.node_id, each.host, each.port, each.rack)
        for each in response.brokers
    }


def _partition_of_page(
    each: DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition,
    nodes: Mapping[int, Node],
) -> TopicPartitionInfo:
    elr, last_elr = each.eligible_leader_replicas, each.last_known_elr
    return TopicPartitionInfo(
        each.partition_index,
        nodes.get(each.leader_id),
        tuple(node_of(nodes, replica) for replica in each.replica_nodes),
        tuple(node_of(nodes, replica) for replica in each.isr_nodes),
        None if elr is None else tuple(node_of(nodes, replica) for replica in elr),
        None if last_elr is None else tuple(node_of(nodes, replica) for replica in last_elr),
        each.leader_epoch,
        tuple(node_of(nodes, replica) for replica in each.offline_replicas),
    )


def _partition_of_metadata(
    each: MetadataResponse.MetadataResponsePartition, nodes: Mapping[int, Node]
) -> TopicPartitionInfo:
    return TopicPartitionInfo(
        each.partition_index,
        nodes.get(each.leader_id),
        tuple(node_of(nodes, replica) for replica in each.replica_nodes),
        tuple(node_of(nodes, replica) for replica in each.isr_nodes),
        None,
        None,
        each.leader_epoch,
        tuple(node_of(nodes, replica) for replica in each.offline_replicas),
    )
