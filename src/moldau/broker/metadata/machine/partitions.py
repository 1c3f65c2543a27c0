"""Changes of existing partitions that brokers propose: ISRs, and log directories of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.broker.metadata.machine.brokers import check_broker_epoch
from moldau.broker.metadata.machine.changes import PartitionChanges
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.elections import Target
from moldau.broker.metadata.machine.model import (
    NO_LEADER_CHANGE,
    Broker,
    LeaderRecoveryState,
    Partition,
    Topic,
)
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.raft.machine.record_versions import DIRECTORY_METADATA_VERSION
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

if TYPE_CHECKING:
    from uuid import UUID


NEVER_BROKER_EPOCH = -1


def alter_partition(
    controller: ControllerView, request: AlterPartitionRequest
) -> Decision[AlterPartitionResponse]:
    check_broker_epoch(controller, request.broker_id, request.broker_epoch)
    changes = PartitionChanges(controller)
    response = AlterPartitionResponse(topics=[])
    for topic_data in request.topics:
        topic = controller.image.topics_by_id.get(topic_data.topic_id)
        answers = []
        for data in topic_data.partitions:
            answer = AlterPartitionResponse.PartitionData(partition_index=data.partition_index)
            try:
                if topic is None:
                    raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
                partition = _alter(controller, changes, request.broker_id, topic, data)
            except ApiError as error:
                answer.error_code = error.code
            else:
                answer.leader_id = partition.leader
                answer.leader_epoch = partition.leader_epoch
                answer.isr = list(partition.isr)
                answer.leader_recovery_state = int(partition.leader_recovery_state)
                answer.partition_epoch = partition.partition_epoch
            answers.append(answer)
        response.topics.append(
            AlterPartitionResponse.TopicData(topic_id=topic_data.topic_id, partitions=answers)
        )
    return Decision(tuple(changes.records), response, atomic=False)


def _alter(
    controller: ControllerView,
    changes: PartitionChanges,
    broker_id: int,
    topic: Topic,
    data: AlterPartitionRequest.PartitionData,
) -> Partition:
    partition = changes.partition(topic, data.partition_index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    _check_epochs(partition, broker_id, data)
    # Version 2 named the replicas without epochs, which means "any incarnation".
    wanted = [(state.broker_id, state.broker_epoch) for state in data.new_isr_with_epochs]
    wanted = wanted or [(replica, NEVER_BROKER_EPOCH) for replica in data.new_isr]
    state = _checked_isr(controller, partition, broker_id, wanted, data)
    target = Target(isr=[replica for replica, _ in wanted], recovery_state=state)
    record = changes.change(topic, data.partition_index, partition, target=target)
    if record is None:
        return partition
    if record.leader not in (broker_id, NO_LEADER_CHANGE):
        # The new ISR completed a reassignment that the leader is not part of. The change is made
        # all the same; the error sends the old leader to the metadata.
        raise ApiError(ErrorCode.NEW_LEADER_ELECTED)
    return partition.changed_by(record)


def _check_epochs(
    partition: Partition, broker_id: int, data: AlterPartitionRequest.PartitionData
) -> None:
    if (
        data.leader_epoch > partition.leader_epoch
        or data.partition_epoch > partition.partition_epoch
    ):
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    if data.leader_epoch < partition.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
    if partition.leader != broker_id:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if data.partition_epoch < partition.partition_epoch:
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION)


def _checked_isr(
    controller: ControllerView,
    partition: Partition,
    broker_id: int,
    wanted: list[tuple[int, int]],
    data: AlterPartitionRequest.PartitionData,
) -> LeaderRecoveryState:
    replicas = {replica for replica, _ in wanted}
    if (
        len(replicas) < len(wanted)
        or not replicas <= set(partition.replicas)
        or broker_id not in replicas
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    try:
        state = LeaderRecoveryState(data.leader_recovery_state)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST) from None
    if state == LeaderRecoveryState.RECOVERING and (
        len(wanted) > 1 or partition.leader_recovery_state == LeaderRecoveryState.RECOVERED
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    for replica, epoch in wanted:
        broker = controller.image.brokers.get(replica)
        if (
            broker is None
            or not broker.active
            or (epoch != NEVER_BROKER_EPOCH and epoch != broker.epoch)
        ):
            raise ApiError(ErrorCode.INELIGIBLE_REPLICA)
    return state


def assign_replicas_to_dirs(
    controller: ControllerView, request: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    if controller.image.metadata_version < DIRECTORY_METADATA_VERSION:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = check_broker_epoch(controller, request.broker_id, request.broker_epoch)
    changes = PartitionChanges(controller)
    response = AssignReplicasToDirsResponse(directories=[])
    for directory in request.directories:
        topics = []
        for asked in directory.topics:
            answers = []
            for item in asked.partitions:
                answer = AssignReplicasToDirsResponse.PartitionData(
                    partition_index=item.partition_index
                )
                try:
                    _assign(controller, changes, broker, asked.topic_id, item, directory.id)
                except ApiError as error:
                    answer.error_code = error.code
                answers.append(answer)
            topics.append(
                AssignReplicasToDirsResponse.TopicData(topic_id=asked.topic_id, partitions=answers)
            )
        response.directories.append(
            AssignReplicasToDirsResponse.DirectoryData(id=directory.id, topics=topics)
        )
    return Decision(tuple(changes.records), response, atomic=False)


def _assign(
    controller: ControllerView,
    changes: PartitionChanges,
    broker: Broker,
    topic_id: UUID,
    item: AssignReplicasToDirsRequest.PartitionData,
    directory: UUID,
) -> None:
    topic = controller.image.topics_by_id.get(topic_id)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    index = item.partition_index
    partition = changes.partition(topic, index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker.id not in partition.replicas:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if partition.directory_of(broker.id) != directory or not broker.has_online(directory):
        # A replica whose log directory failed may lead again from its new one; one in a log
        # directory that is not online is not in sync.
        isr = partition.isr
        if not broker.has_online(directory):
            isr = tuple(replica for replica in isr if replica != broker.id)
        target = Target(isr=isr, directories={broker.id: directory})
        changes.change(topic, index, partition, target=target)
