"""Elections on request (ElectLeaders), and periodic ones.

Periodically leadership returns to preferred replicas, and partitions without a leader get an
unclean one where their topic allows it. One round makes a bounded number of elections.
"""

from __future__ import annotations

from enum import IntEnum

from moldau.broker.metadata.machine.changes import PartitionChanges
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.elections import Election
from moldau.broker.metadata.machine.model import NO_LEADER
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionChangeRecord,
)

ELECTIONS_PER_ROUND_MAX = 1_000


class ElectionType(IntEnum):
    """The values of the wire."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    controller: ControllerView, request: ElectLeadersRequest
) -> Decision[ElectLeadersResponse]:
    """Without a list of partitions all of them take part, and those that need no election are not
    in the answer."""
    try:
        kind = ElectionType(request.election_type)
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        ) from None
    changes = PartitionChanges(controller)
    everything = request.topic_partitions is None
    if request.topic_partitions is None:
        wanted = [
            (name, list(topic.partitions))
            for name, topic in controller.image.topics_by_name.items()
        ]
    else:
        wanted = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    response = ElectLeadersResponse(replica_election_results=[])
    for name, indexes in wanted:
        results = []
        for index in indexes:
            result = ElectLeadersResponse.PartitionResult(partition_id=index, error_message=None)
            try:
                _elect(controller, changes, name, index, kind)
            except ApiError as error:
                if everything and error.code == ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                result.error_code = error.code
                result.error_message = error.message or None
            results.append(result)
        response.replica_election_results.append(
            ElectLeadersResponse.ReplicaElectionResult(topic=name, partition_result=results)
        )
    return Decision(tuple(changes.records), response, atomic=False)


def _elect(
    controller: ControllerView, changes: PartitionChanges, name: str, index: int, kind: ElectionType
) -> None:
    topic = controller.image.topics_by_name.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = changes.partition(topic, index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if kind == ElectionType.PREFERRED:
        needed = partition.leader != partition.replicas[0]
        election, code = Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        needed = partition.leader == NO_LEADER
        election, code = Election.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if not needed:
        raise ApiError(
            ErrorCode.ELECTION_NOT_NEEDED,
            "Leader election not needed for topic partition.",
        )
    if changes.change(topic, index, partition, election=election) is None:
        raise ApiError(code, _UNAVAILABLE[code])


_UNAVAILABLE = {
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: (
        "Eligible topic partition leaders are not available."
    ),
}


def preferred_elections(controller: ControllerView) -> list[PartitionChangeRecord]:
    """Partitions whose preferred replica can lead again go back to it."""
    changes = PartitionChanges(controller)
    for topic_id, index in controller.index.imbalanced():
        if len(changes.records) >= ELECTIONS_PER_ROUND_MAX:
            break
        topic = controller.image.topics_by_id[topic_id]
        changes.change(topic, index, topic.partitions[index], election=Election.PREFERRED)
    return changes.records


def unclean_elections(controller: ControllerView) -> list[PartitionChangeRecord]:
    """Where the topic would rather have any leader than none, it gets one."""
    changes = PartitionChanges(controller)
    for topic_id, index in controller.index.leaderless():
        if len(changes.records) >= ELECTIONS_PER_ROUND_MAX:
            break
        topic = controller.image.topics_by_id[topic_id]
        if controller.election_rules(topic).unclean_enabled:
            changes.change(topic, index, topic.partitions[index], election=Election.UNCLEAN)
    return changes.records
