"""The offsets that consumer and streams groups have committed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from moldau.client.admin.base import AdminBase, by_topic
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.group_values import (
    ListConsumerGroupOffsetsSpec,
    ListStreamsGroupOffsetsSpec,
)
from moldau.client.admin.routes import CoordinatorRoute
from moldau.client.errors import UnsupportedVersionError
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.results import Results
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

__all__ = ["GroupOffsetOperations"]

Offsets = dict[TopicPartition, OffsetAndMetadata | None]
# The last versions that speak of topics by name; later ones need ids, which a topic that was
# deleted no longer has, though its offsets are still there.
_FETCH_BY_NAME = 9
_COMMIT_BY_NAME = 9
_FETCH_OF_ONE_GROUP = 7
_REBALANCING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})
_UNSTABLE = frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT})


class GroupOffsetOperations(AdminBase):
    """Committed offsets."""

    async def list_consumer_group_offsets(
        self,
        groups: str | Mapping[str, ListConsumerGroupOffsetsSpec | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """The committed offsets of groups, None where a partition that was named has none.

        With `require_stable` offsets that an open transaction may still change are waited for.

        >>> print((await admin.list_consumer_group_offsets("kitchen"))["kitchen"])
        """
        specs = {groups: None} if isinstance(groups, str) else groups
        wanted = {group: None if spec is None else spec[0] for group, spec in specs.items()}
        return await self._list_offsets(
            "ListConsumerGroupOffsets", wanted, require_stable, timeout, check
        )

    async def list_streams_group_offsets(
        self,
        groups: str | Mapping[str, ListStreamsGroupOffsetsSpec | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """The committed offsets of streams groups, as for consumer groups.

        >>> print((await admin.list_streams_group_offsets("totals"))["totals"])
        """
        specs = {groups: None} if isinstance(groups, str) else groups
        wanted = {group: None if spec is None else spec[0] for group, spec in specs.items()}
        return await self._list_offsets(
            "ListStreamsGroupOffsets", wanted, require_stable, timeout, check
        )

    async def _list_offsets(
        self,
        what: str,
        wanted: Mapping[str, Collection[TopicPartition] | None],
        require_stable: bool,
        timeout: float | None,
        check: bool,
    ) -> Results[str, Offsets]:
        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, Offsets]:
            answer: Answer[str, Offsets] = Answer()
            try:
                response = await call(
                    _fetch_request(keys, wanted, require_stable), max_version=_FETCH_BY_NAME
                )
            except UnsupportedVersionError:
                for key in keys:
                    await _fetch_one(call, key, wanted[key], require_stable, answer)
                return answer
            for found in response.groups:
                if found.error_code != ErrorCode.NONE:
                    answer.fail(found.group_id, found.error_code, found.group_id)
                else:
                    _put_offsets(answer, found.group_id, found.topics)
            return answer

        return await self._run(
            what,
            wanted,
            CoordinatorRoute(CoordinatorType.GROUP),
            ask,
            timeout=timeout,
            check=check,
            retried=_UNSTABLE,
        )

    async def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Set the committed offsets of a group that has no members.

        >>> offsets = {TopicPartition("orders", 0): OffsetAndMetadata(0)}
        >>> await admin.alter_consumer_group_offsets("kitchen", offsets)
        """
        return await self._alter_offsets(
            "AlterConsumerGroupOffsets", group_id, offsets, timeout, check
        )

    async def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Set the committed offsets of a streams group that has no members.

        >>> offsets = {TopicPartition("orders", 0): OffsetAndMetadata(0)}
        >>> await admin.alter_streams_group_offsets("totals", offsets)
        """
        return await self._alter_offsets(
            "AlterStreamsGroupOffsets", group_id, offsets, timeout, check
        )

    async def _alter_offsets(
        self,
        what: str,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        timeout: float | None,
        check: bool,
    ) -> Results[TopicPartition, None]:
        async def ask(call: Call, keys: Sequence[TopicPartition]) -> Answer[TopicPartition, None]:
            response: OffsetCommitResponse = await call(
                _commit_request(group_id, {key: offsets[key] for key in keys}),
                max_version=_COMMIT_BY_NAME,
            )
            answer: Answer[TopicPartition, None] = Answer()
            for topic in response.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    answer.settle(key, each.error_code, f"{group_id}, {key}", None)
            return answer

        return await self._run(
            what,
            offsets,
            CoordinatorRoute(CoordinatorType.GROUP, lambda _: group_id),
            ask,
            timeout=timeout,
            check=check,
            retried=_REBALANCING,
        )

    async def delete_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Delete committed offsets of partitions that the group is not subscribed to.

        >>> await admin.delete_consumer_group_offsets("kitchen", [TopicPartition("orders", 0)])
        """
        return await self._delete_offsets(
            "DeleteConsumerGroupOffsets", group_id, partitions, timeout, check
        )

    async def delete_streams_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Delete committed offsets of a streams group.

        >>> await admin.delete_streams_group_offsets("totals", [TopicPartition("orders", 0)])
        """
        return await self._delete_offsets(
            "DeleteStreamsGroupOffsets", group_id, partitions, timeout, check
        )

    async def _delete_offsets(
        self,
        what: str,
        group_id: str,
        partitions: Collection[TopicPartition],
        timeout: float | None,
        check: bool,
    ) -> Results[TopicPartition, None]:
        async def ask(call: Call, keys: Sequence[TopicPartition]) -> Answer[TopicPartition, None]:
            request = OffsetDeleteRequest
            topics = [
                request.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        request.OffsetDeleteRequestPartition(partition_index=index)
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(keys).items()
            ]
            response: OffsetDeleteResponse = await call(request(group_id=group_id, topics=topics))
            answer: Answer[TopicPartition, None] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(keys, response.error_code, group_id)
                return answer
            for found in response.topics:
                for each in found.partitions:
                    key = TopicPartition(found.name, each.partition_index)
                    answer.settle(key, each.error_code, f"{group_id}, {key}", None)
            return answer

        return await self._run(
            what,
            partitions,
            CoordinatorRoute(CoordinatorType.GROUP, lambda _: group_id),
            ask,
            timeout=timeout,
            check=check,
        )


def _fetch_request(
    groups: Iterable[str],
    wanted: Mapping[str, Collection[TopicPartition] | None],
    require_stable: bool,
) -> OffsetFetchRequest:
    request = OffsetFetchRequest
    asked = []
    for group in groups:
        partitions = wanted[group]
        topics = None
        if partitions is not None:
            topics = [
                request.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(partitions).items()
            ]
        asked.append(request.OffsetFetchRequestGroup(group_id=group, topics=topics))
    return request(groups=asked, require_stable=require_stable)


async def _fetch_one(
    call: Call,
    group: str,
    partitions: Collection[TopicPartition] | None,
    require_stable: bool,
    answer: Answer[str, Offsets],
) -> None:
    """As brokers before Kafka 3.0 are asked, one group at a time."""
    request = OffsetFetchRequest
    topics = None
    if partitions is not None:
        topics = [
            request.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    response: OffsetFetchResponse = await call(
        request(group_id=group, topics=topics, require_stable=require_stable),
        max_version=_FETCH_OF_ONE_GROUP,
    )
    if response.error_code != ErrorCode.NONE:
        answer.fail(group, response.error_code, group)
    else:
        _put_offsets(answer, group, response.topics)


def _put_offsets(
    answer: Answer[str, Offsets],
    group: str,
    topics: Iterable[
        OffsetFetchResponse.OffsetFetchResponseTopics | OffsetFetchResponse.OffsetFetchResponseTopic
    ],
) -> None:
    offsets: Offsets = {}
    for topic in topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            if each.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                answer.fail(group, each.error_code, f"{group}, {key}")
                return
            if each.error_code != ErrorCode.NONE:
                # As Kafka does: the offsets that can be had are worth more than an error.
                continue
            epoch = each.committed_leader_epoch
            offsets[key] = (
                None
                if each.committed_offset < 0
                else OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", None if epoch < 0 else epoch
                )
            )
    answer.put(group, dict(sorted(offsets.items())))


def _commit_request(
    group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> OffsetCommitRequest:
    request = OffsetCommitRequest
    topics: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
    for (topic, partition), wanted in offsets.items():
        topics.setdefault(topic, []).append(
            request.OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=wanted.offset,
                committed_leader_epoch=-1 if wanted.leader_epoch is None else wanted.leader_epoch,
                committed_metadata=wanted.metadata,
            )
        )
    return request(
        group_id=group_id,
        topics=[
            request.OffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
