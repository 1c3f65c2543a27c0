"""What an application asks and wants of its cluster beside reading and writing.

The parts of the admin client that it needs, over one connection: an application starts with every
request and every module that is here, so there are few of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from moldau import __version__
from moldau.client.admin.base import AdminBase
from moldau.client.admin.connection import AdminConnection
from moldau.client.admin.driver import Call
from moldau.client.admin.offset_values import DeletedRecords, OffsetSpec, RecordsToDelete
from moldau.client.admin.offsets import OffsetOperations
from moldau.client.admin.routes import AnyRoute, CoordinatorRoute, Route
from moldau.client.admin.topic_values import CreatedTopic, NewTopic
from moldau.client.admin.topics import TopicOperations
from moldau.client.environment import ENVIRONMENT
from moldau.client.errors import error_for
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    MetadataRequest,
    MetadataResponse,
)

T = TypeVar("T")

_UNKNOWN_TOPICS = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)


class KnownTopic(NamedTuple):
    """A topic that exists."""

    partitions: int
    has_leaders: bool


class Bounds(NamedTuple):
    """Where a partition begins and ends."""

    start: int
    end: int
    #: Before the first transaction that is open.
    stable_end: int


class _Questions(AdminBase):
    """Each with one request, where an operation of the admin client says more with several."""

    async def topics(self, names: Collection[str] | None) -> dict[str, KnownTopic]:
        request = MetadataRequest(
            topics=None
            if names is None
            else [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(names)],
            allow_auto_topic_creation=False,
        )

        async def ask(call: Call) -> dict[str, KnownTopic]:
            response: MetadataResponse = await call(request)
            found = {}
            for topic in response.topics:
                if topic.name is None or topic.error_code in _UNKNOWN_TOPICS:
                    continue
                if topic.error_code != ErrorCode.NONE:
                    raise error_for(topic.error_code, topic.name)
                leaders = [each.leader_id for each in topic.partitions]
                found[topic.name] = KnownTopic(len(leaders), min(leaders, default=-1) >= 0)
            return found

        return await self._run_one("DescribeTopics", AnyRoute(), ask, timeout=None)

    async def feature_level(self, name: str) -> int:
        request = ApiVersionsRequest(
            client_software_name="moldau", client_software_version=__version__
        )

        async def ask(call: Call) -> int:
            response: ApiVersionsResponse = await call(request)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "ApiVersions")
            levels = {each.name: each.max_version_level for each in response.finalized_features}
            return levels.get(name, 0)

        return await self._run_one("DescribeFeatures", AnyRoute(), ask, timeout=None)

    async def has_classic_members(self, group_id: str) -> bool:
        async def ask(call: Call) -> bool:
            response: DescribeGroupsResponse = await call(DescribeGroupsRequest(groups=[group_id]))
            for group in response.groups:
                if group.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                    raise error_for(group.error_code, group.error_message)
            return any(group.members for group in response.groups)

        route: Route[None] = CoordinatorRoute(CoordinatorType.GROUP, lambda _: group_id)
        return await self._run_one("DescribeClassicGroups", route, ask, timeout=None)


class Administration:
    """Of one instance, for all its threads; they wait for what they ask."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._connection = AdminConnection(config, {})
        driver = self._connection.driver
        self._questions = _Questions(driver)
        self._topics = TopicOperations(driver)
        self._offset_operations = OffsetOperations(driver)
        self._thread = ENVIRONMENT.get().thread("moldau-admin")
        try:
            self._call(self._connection.cluster.bootstrap.resolve())
        except BaseException:
            self._thread.stop()
            raise

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.call(work)

    def close(self) -> None:
        try:
            self._call(self._connection.close(None))
        finally:
            self._thread.stop()

    def client_instance_id(self, timeout: float | None) -> UUID:
        """The id under which the cluster knows the metrics of this client."""
        return self._call(self._connection.client_instance_id(timeout))

    def topics(self, names: Collection[str] | None) -> dict[str, KnownTopic]:
        """Those of these topics that exist, or all."""
        return self._call(self._questions.topics(names))

    def create_topics(self, topics: Iterable[NewTopic]) -> Results[str, CreatedTopic]:
        """Create them; the errors are in the results."""
        return self._call(self._topics.create_topics(topics, check=False))

    def feature_level(self, name: str) -> int:
        """The level of a feature that the cluster uses, 0 for none."""
        return self._call(self._questions.feature_level(name))

    def has_classic_members(self, group_id: str) -> bool:
        """Whether a group of the classic protocol has this id, and members."""
        return self._call(self._questions.has_classic_members(group_id))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offsets of partitions."""
        return self._call(self._offsets(partitions, OffsetSpec.latest()))

    def bounds(
        self, partitions: Collection[TopicPartition], *, transactional: bool
    ) -> dict[TopicPartition, Bounds]:
        """Where partitions begin and end; `transactional` ones may have open transactions."""
        return self._call(self._bounds(partitions, transactional))

    async def _offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, int]:
        found = await self._offset_operations.list_offsets(
            dict.fromkeys(partitions, spec), isolation_level=isolation_level
        )
        return {key: each.offset for key, each in found.items()}

    async def _bounds(
        self, partitions: Collection[TopicPartition], transactional: bool
    ) -> dict[TopicPartition, Bounds]:
        asked = [
            self._offsets(partitions, OffsetSpec.earliest()),
            self._offsets(partitions, OffsetSpec.latest()),
        ]
        if transactional:
            asked.append(self._offsets(partitions, OffsetSpec.latest(), "read_committed"))
        starts, ends, *stable = await asyncio.gather(*asked)
        stable_ends = stable[0] if stable else ends
        return {key: Bounds(starts[key], ends[key], stable_ends[key]) for key in partitions}

    def delete_records(
        self, before: Mapping[TopicPartition, RecordsToDelete]
    ) -> Results[TopicPartition, DeletedRecords]:
        """Delete the beginnings of partitions; the errors are in the results."""
        return self._call(self._offset_operations.delete_records(before, check=False))
