"""Moving partitions to other brokers.

A reassignment first adds the new replicas beside the old ones. It is complete, and the old ones
leave, with the first change that finds all new ones in sync (`elections.py`). Until then it can be
replaced by another one or cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moldau.broker.metadata.machine.changes import PartitionChanges
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.elections import Election, Target
from moldau.broker.metadata.machine.model import Partition, Topic
from moldau.broker.metadata.machine.topics import check_manual_assignment
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def alter_partition_reassignments(
    controller: ControllerView, request: AlterPartitionReassignmentsRequest
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Each partition succeeds or fails for itself; all that succeed change together."""
    changes = PartitionChanges(controller)
    responses = []
    for topic_data in request.topics:
        results = []
        for data in topic_data.partitions:
            result = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                partition_index=data.partition_index, error_message=None
            )
            try:
                _alter(
                    controller,
                    changes,
                    topic_data.name,
                    data,
                    may_change_factor=request.allow_replication_factor_change,
                )
            except ApiError as error:
                result.error_code = error.code
                result.error_message = error.message or None
            results.append(result)
        responses.append(
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic_data.name, partitions=results
            )
        )
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )
    return Decision(tuple(changes.records), response)


def _alter(
    controller: ControllerView,
    changes: PartitionChanges,
    name: str,
    data: AlterPartitionReassignmentsRequest.ReassignablePartition,
    *,
    may_change_factor: bool,
) -> None:
    topic = controller.image.topics_by_name.get(name)
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
        )
    index = data.partition_index
    partition = changes.partition(topic, index)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    if data.replicas is None:
        _cancel(controller, changes, topic, index, partition)
        return
    check_manual_assignment(controller, data.replicas, None)
    if not may_change_factor:
        _check_factor(partition, data.replicas)
    removing = sorted(set(partition.replicas) - set(data.replicas))
    adding = sorted(set(data.replicas) - set(partition.replicas))
    target = Target(
        replicas=[*data.replicas, *removing],
        # What an earlier reassignment was to add or remove stays so unless this one says otherwise.
        removing=removing or None,
        adding=adding or None,
    )
    changes.change(topic, index, partition, target=target, election=Election.ONLINE)


def _check_factor(partition: Partition, replicas: Sequence[int]) -> None:
    staying = set(partition.replicas) | set(partition.adding_replicas)
    factor = len(staying - set(partition.removing_replicas))
    if factor != len(replicas):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(replicas)}",
        )


def _cancel(
    controller: ControllerView,
    changes: PartitionChanges,
    topic: Topic,
    index: int,
    partition: Partition,
) -> None:
    if not partition.reassigning:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = [each for each in partition.replicas if each not in partition.adding_replicas]
    isr = [each for each in partition.isr if each not in partition.adding_replicas]
    if not replicas:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    if not isr:
        # Only new replicas are in sync: to go back is to lose what only they have.
        if not controller.election_rules(topic).unclean_enabled:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{index} because it would"
                " require an unclean leader election.",
            )
        isr = [replicas[0]]
    target = Target(isr=isr, replicas=replicas, removing=(), adding=())
    changes.change(topic, index, partition, target=target)


def list_partition_reassignments(
    controller: ControllerView, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """All reassignments in progress, or those of the requested partitions."""
    image = controller.image
    wanted: dict[str, list[int]] = {}
    if request.topics is None:
        for topic_id, index in controller.index.reassigning():
            wanted.setdefault(image.topics_by_id[topic_id].name, []).append(index)
    else:
        for asked in request.topics:
            wanted.setdefault(asked.name, []).extend(asked.partition_indexes)
    response = ListPartitionReassignmentsResponse(error_message=None, topics=[])
    for name, indexes in wanted.items():
        topic = image.topics_by_name.get(name)
        ongoing = [] if topic is None else _ongoing(topic, indexes)
        if ongoing:
            response.topics.append(
                ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                    name=name, partitions=ongoing
                )
            )
    return response


def _ongoing(
    topic: Topic, indexes: Iterable[int]
) -> list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]:
    found = []
    for index in indexes:
        partition = topic.partitions.get(index)
        if partition is not None and partition.reassigning:
            found.append(
                ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding_replicas),
                    removing_replicas=list(partition.removing_replicas),
                )
            )
    return found
