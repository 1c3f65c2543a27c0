"""Partitions: their offsets, leaders, records to delete, and reassignments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from moldau.client.admin.base import AdminBase, by_topic
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.partition_values import (
    ElectionType,
    ListOffsetsResultInfo,
    NewPartitionReassignment,
    OffsetSpec,
    PartitionReassignment,
)
from moldau.client.admin.routes import ControllerRoute, LeaderRoute
from moldau.client.admin.topic_values import DeletedRecords, RecordsToDelete
from moldau.client.errors import (
    InvalidRequestError,
    InvalidTopicError,
    KafkaError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

__all__ = ["PartitionOperations"]

_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
# From which version on a broker knows each of the words for an offset.
_SPEC_VERSIONS = {-3: 7, -4: 8, -5: 9, -6: 11}
_CONSUMER = -1
_TIMED_OUT = frozenset({ErrorCode.REQUEST_TIMED_OUT})


class PartitionOperations(AdminBase):
    """Partitions."""

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

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Let preferred replicas lead, or any replica where none in sync is left.

        Without partitions, of all of them; the results then have those that needed it.

        >>> await admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("orders", 0)])
        """

        async def ask(call: Call) -> Results[TopicPartition, None]:
            request = ElectLeadersRequest
            topics = None
            if partitions is not None:
                topics = [
                    request.TopicPartitions(topic=topic, partitions=indexes)
                    for topic, indexes in by_topic(partitions).items()
                ]
            response: ElectLeadersResponse = await call(
                request(
                    election_type=election_type,
                    topic_partitions=topics,
                    timeout_ms=call.timeout_ms,
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "ElectLeaders")
            answer: Answer[TopicPartition, None] = Answer()
            for found in response.replica_election_results:
                for each in found.partition_result:
                    key = TopicPartition(found.topic, each.partition_id)
                    answer.settle(key, each.error_code, each.error_message, None)
            return Results(answer.values, answer.errors)

        route: ControllerRoute[None] = ControllerRoute()
        results = await self._run_one("ElectLeaders", route, ask, timeout=timeout)
        return results.check() if check else results

    async def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, NewPartitionReassignment | Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Move replicas to other brokers; None cancels what is under way for a partition.

        >>> await admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 3, 1]})
        """
        wanted = {
            key: each.target_replicas if isinstance(each, NewPartitionReassignment) else each
            for key, each in reassignments.items()
        }

        async def ask(call: Call, keys: Sequence[TopicPartition]) -> Answer[TopicPartition, None]:
            request = AlterPartitionReassignmentsRequest
            topics: dict[str, list[AlterPartitionReassignmentsRequest.ReassignablePartition]] = {}
            for key in keys:
                replicas = wanted[key]
                topic, partition = key
                topics.setdefault(topic, []).append(
                    request.ReassignablePartition(
                        partition_index=partition,
                        replicas=None if replicas is None else list(replicas),
                    )
                )
            response: AlterPartitionReassignmentsResponse = await call(
                request(
                    timeout_ms=call.timeout_ms,
                    allow_replication_factor_change=allow_replication_factor_change,
                    topics=[
                        request.ReassignableTopic(name=name, partitions=each)
                        for name, each in topics.items()
                    ],
                )
            )
            answer: Answer[TopicPartition, None] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(keys, response.error_code, response.error_message)
                return answer
            for found in response.responses:
                for each in found.partitions:
                    key = TopicPartition(found.name, each.partition_index)
                    answer.settle(key, each.error_code, each.error_message, None)
            return answer

        return await self._run(
            "AlterPartitionReassignments",
            wanted,
            ControllerRoute(of_controllers=True),
            ask,
            timeout=timeout,
            check=check,
            refused=_bad_partitions(wanted),
        )

    async def list_partition_reassignments(
        self,
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """What is being reassigned now, of some partitions or of all.

        >>> print(await admin.list_partition_reassignments())
        """
        for error in _bad_partitions(partitions or ()).values():
            raise error

        async def ask(call: Call) -> dict[TopicPartition, PartitionReassignment]:
            request = ListPartitionReassignmentsRequest
            topics = None
            if partitions is not None:
                topics = [
                    request.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
                    for name, indexes in by_topic(partitions).items()
                ]
            response: ListPartitionReassignmentsResponse = await call(
                request(timeout_ms=call.timeout_ms, topics=topics)
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)
            return {
                TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                    tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
                )
                for topic in response.topics
                for each in topic.partitions
            }

        route: ControllerRoute[None] = ControllerRoute(of_controllers=True)
        return await self._run_one("ListPartitionReassignments", route, ask, timeout=timeout)


def _bad_partitions(keys: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError]:
    """What no request can name."""
    return {
        key: InvalidTopicError(f"{key} is not a valid partition")
        for key in keys
        if not key[0] or key[1] < 0
    }


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
