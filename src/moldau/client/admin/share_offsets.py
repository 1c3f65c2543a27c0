"""Where share groups start in the partitions they share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from moldau.client.admin.base import AdminBase, by_topic
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.group_values import ListShareGroupOffsetsSpec, SharePartitionOffsetInfo
from moldau.client.admin.routes import CoordinatorRoute
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

__all__ = ["ShareOffsetOperations"]

Offsets = dict[TopicPartition, SharePartitionOffsetInfo | None]
_REBALANCING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})


class ShareOffsetOperations(AdminBase):
    """Start offsets of share groups."""

    async def list_share_group_offsets(
        self,
        groups: str | Mapping[str, ListShareGroupOffsetsSpec | None],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, dict[TopicPartition, SharePartitionOffsetInfo | None]]:
        """Where share groups start, None where that is not decided yet.

        >>> print((await admin.list_share_group_offsets("workers"))["workers"])
        """
        specs = {groups: None} if isinstance(groups, str) else groups

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, Offsets]:
            request = DescribeShareGroupOffsetsRequest
            asked = []
            for key in keys:
                spec = specs[key]
                partitions = None if spec is None else spec.topic_partitions
                topics = None
                if partitions is not None:
                    topics = [
                        request.DescribeShareGroupOffsetsRequestTopic(
                            topic_name=name, partitions=indexes
                        )
                        for name, indexes in by_topic(partitions).items()
                    ]
                asked.append(
                    request.DescribeShareGroupOffsetsRequestGroup(group_id=key, topics=topics)
                )
            response: DescribeShareGroupOffsetsResponse = await call(request(groups=asked))
            answer: Answer[str, Offsets] = Answer()
            for found in response.groups:
                if found.error_code != ErrorCode.NONE:
                    answer.fail(found.group_id, found.error_code, found.error_message)
                else:
                    answer.put(found.group_id, _offsets(found))
            return answer

        return await self._run(
            "ListShareGroupOffsets",
            specs,
            CoordinatorRoute(CoordinatorType.GROUP),
            ask,
            timeout=timeout,
            check=check,
        )

    async def alter_share_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Set where a share group without members starts; deliveries so far are forgotten.

        >>> await admin.alter_share_group_offsets("workers", {TopicPartition("orders", 0): 0})
        """

        async def ask(call: Call, keys: Sequence[TopicPartition]) -> Answer[TopicPartition, None]:
            request = AlterShareGroupOffsetsRequest
            topics = [
                request.AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[
                        request.AlterShareGroupOffsetsRequestPartition(
                            partition_index=index,
                            start_offset=offsets[TopicPartition(name, index)],
                        )
                        for index in indexes
                    ],
                )
                for name, indexes in by_topic(keys).items()
            ]
            response: AlterShareGroupOffsetsResponse = await call(
                request(group_id=group_id, topics=topics)
            )
            answer: Answer[TopicPartition, None] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(keys, response.error_code, response.error_message)
                return answer
            for found in response.responses:
                for each in found.partitions:
                    key = TopicPartition(found.topic_name, each.partition_index)
                    answer.settle(key, each.error_code, each.error_message, None)
            return answer

        return await self._run(
            "AlterShareGroupOffsets",
            offsets,
            CoordinatorRoute(CoordinatorType.GROUP, lambda _: group_id),
            ask,
            timeout=timeout,
            check=check,
            retried=_REBALANCING,
        )

    async def delete_share_group_offsets(
        self,
        group_id: str,
        topics: Collection[str],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Forget the state of a share group without members for whole topics.

        >>> await admin.delete_share_group_offsets("workers", ["jobs"])
        """

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, None]:
            request = DeleteShareGroupOffsetsRequest
            response: DeleteShareGroupOffsetsResponse = await call(
                request(
                    group_id=group_id,
                    topics=[
                        request.DeleteShareGroupOffsetsRequestTopic(topic_name=key) for key in keys
                    ],
                )
            )
            answer: Answer[str, None] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(keys, response.error_code, response.error_message)
                return answer
            for found in response.responses:
                answer.settle(found.topic_name, found.error_code, found.error_message, None)
            return answer

        return await self._run(
            "DeleteShareGroupOffsets",
            topics,
            CoordinatorRoute(CoordinatorType.GROUP, lambda _: group_id),
            ask,
            timeout=timeout,
            check=check,
            retried=_REBALANCING,
        )


def _offsets(
    group: DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup,
) -> Offsets:
    offsets: Offsets = {}
    for topic in group.topics:
        for each in topic.partitions:
            if each.error_code != ErrorCode.NONE:
                # As Kafka does: the offsets that can be had are worth more than an error.
                continue
            offsets[TopicPartition(topic.topic_name, each.partition_index)] = (
                None
                if each.start_offset < 0
                else SharePartitionOffsetInfo(
                    each.start_offset,
                    None if each.leader_epoch < 0 else each.leader_epoch,
                    None if each.lag < 0 else each.lag,
                )
            )
    return dict(sorted(offsets.items()))
