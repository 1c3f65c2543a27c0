"""The offsets of partitions: list them, and delete records before one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.client.admin.base import AdminBase, by_topic
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.offset_values import (
    DeletedRecords,
    ListOffsetsResultInfo,
    OffsetSpec,
    RecordsToDelete,
)
from moldau.client.admin.routes import LeaderRoute
from moldau.client.errors import InvalidRequestError, UnsupportedVersionError
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

__all__ = ["OffsetOperations"]

_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
# From which version on a broker knows each of the words for an offset.
_SPEC_VERSIONS = {-3: 7, -4: 8, -5: 9, -6: 11}
_CONSUMER = -1
_TIMED_OUT = frozenset({ErrorCode.REQUEST_TIMED_OUT})


class OffsetOperations(AdminBase):
    """Offsets."""

    async def list_offsets(
        self,
        topic_partition_offsets: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation_level: str = "read_uncommitted",
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, ListOffsetsResultInfo]:
        """Offsets by time or by words as `OffsetSpec.latest()`, asked at the leaders.

        >>> found = await admin.list_offsets({TopicPartition("orders", 0): OffsetSpec.latest()})
        >>> print(found[TopicPartition("orders", 0)].offset)
        """
        if isolation_level not in _ISOLATION:
            raise InvalidRequestError(
                f"isolation_level is read_uncommitted or read_committed, not {isolation_level!r}"
            )
        specs = topic_partition_offsets

        async def ask(
            call: Call, keys: Sequence[TopicPartition]
        ) -> Answer[TopicPartition, ListOffsetsResultInfo]:
            answer: Answer[TopicPartition, ListOffsetsResultInfo] = Answer()
            keys = await _served_specs(call, specs, keys, answer)
            if not keys:
                return answer
            response: ListOffsetsResponse = await call(
                _offsets_request(specs, keys, _ISOLATION[isolation_level], call.timeout_ms)
            )
            for topic in response.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    if each.error_code != ErrorCode.NONE:
                        answer.fail(key, each.error_code, str(key))
                        continue
                    epoch = None if each.leader_epoch < 0 else each.leader_epoch
                    answer.put(key, ListOffsetsResultInfo(each.offset, each.timestamp, epoch))
            return answer

        return await self._run(
            "ListOffsets", specs, LeaderRoute(), ask, timeout=timeout, check=check
        )

    async def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, RecordsToDelete],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, DeletedRecords]:
        """Delete what is before an offset in each partition.

        >>> await admin.delete_records({TopicPartition("orders", 0): RecordsToDelete.before(100)})
        """

        async def ask(
            call: Call, keys: Sequence[TopicPartition]
        ) -> Answer[TopicPartition, DeletedRecords]:
            request = DeleteRecordsRequest
            topics = [
                request.DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        request.DeleteRecordsPartition(
                            partition_index=index,
                            offset=records_to_delete[TopicPartition(topic, index)].before_offset,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(keys).items()
            ]
            response: DeleteRecordsResponse = await call(
                request(topics=topics, timeout_ms=call.timeout_ms)
            )
            answer: Answer[TopicPartition, DeletedRecords] = Answer()
            for found in response.topics:
                for each in found.partitions:
                    key = TopicPartition(found.name, each.partition_index)
                    answer.settle(
                        key, each.error_code, str(key), DeletedRecords(each.low_watermark)
                    )
            return answer

        return await self._run(
            "DeleteRecords",
            records_to_delete,
            LeaderRoute(),
            ask,
            timeout=timeout,
            check=check,
            retried=_TIMED_OUT,
        )


async def _served_specs(
    call: Call,
    specs: Mapping[TopicPartition, OffsetSpec],
    keys: Sequence[TopicPartition],
    answer: Answer[TopicPartition, ListOffsetsResultInfo],
) -> list[TopicPartition]:
    """Fail the partitions whose kind of offset the broker does not know yet."""
    served = []
    for key in keys:
        version = _SPEC_VERSIONS.get(specs[key].timestamp)
        if version is None or await call.serves(ListOffsetsRequest(), version):
            served.append(key)
        else:
            answer.errors[key] = UnsupportedVersionError(
                f"{key}: the broker does not serve ListOffsets in version {version}, which "
                f"knows {specs[key]}"
            )
    return served


def _offsets_request(
    specs: Mapping[TopicPartition, OffsetSpec],
    keys: Sequence[TopicPartition],
    isolation_level: int,
    timeout_ms: int,
) -> ListOffsetsRequest:
    request = ListOffsetsRequest
    return request(
        replica_id=_CONSUMER,
        isolation_level=isolation_level,
        topics=[
            request.ListOffsetsTopic(
                name=topic,
                partitions=[
                    request.ListOffsetsPartition(
                        partition_index=index,
                        timestamp=specs[TopicPartition(topic, index)].timestamp,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(keys).items()
        ],
        timeout_ms=timeout_ms,
    )
