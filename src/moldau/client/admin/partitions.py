"""Partitions: their leaders and reassignments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from moldau.client.admin.base import AdminBase, by_topic
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.partition_values import (
    ElectionType,
    NewPartitionReassignment,
    PartitionReassignment,
)
from moldau.client.admin.routes import ControllerRoute
from moldau.client.errors import (
    InvalidTopicError,
    KafkaError,
    error_for,
)
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

__all__ = ["PartitionOperations"]



class PartitionOperations(AdminBase):
    """Partitions."""

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
