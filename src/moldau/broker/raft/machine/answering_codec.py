"""Kafka's messages of other nodes of the quorum as requests, and the responses as messages.

A message that is not about the metadata log, or contradicts itself, is refused here, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.broker.raft.machine.election_file import NO_NODE
from moldau.broker.raft.machine.log_names import METADATA_PARTITION, METADATA_TOPIC
from moldau.broker.raft.machine.rpcs import (
    EpochBegun,
    EpochEnded,
    FetchAsked,
    FetchReply,
    Reply,
    SnapshotAsked,
    SnapshotReply,
    VoteAsked,
    VoterAdditionAsked,
    VoteReply,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from moldau.wire.uuids import METADATA_TOPIC_ID, ZERO_UUID


def vote_asked(message: VoteRequest) -> VoteAsked | None:
    """None if the message is not about the metadata log; likewise below."""
    partition = _only_partition(message.topics)
    if partition is None:
        return None
    return VoteAsked(
        epoch=partition.replica_epoch,
        candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        voter=_voter(message.voter_id, partition),
        last_epoch=partition.last_offset_epoch,
        end_offset=partition.last_offset,
        pre_vote=partition.pre_vote,
    )


def epoch_begun(message: BeginQuorumEpochRequest) -> EpochBegun | None:
    partition = _only_partition(message.topics)
    if partition is None:
        return None
    return EpochBegun(
        epoch=partition.leader_epoch,
        leader_id=partition.leader_id,
        voter=_voter(message.voter_id, partition),
        endpoints=endpoints_of(message.leader_endpoints),
    )


def epoch_ended(message: EndQuorumEpochRequest) -> EpochEnded | None:
    partition = _only_partition(message.topics)
    if partition is None:
        return None
    successors = [
        ReplicaKey(each.candidate_id, each.candidate_directory_id)
        for each in partition.preferred_candidates
    ] or [ReplicaKey(node_id) for node_id in partition.preferred_successors]
    return EpochEnded(
        epoch=partition.leader_epoch,
        leader_id=partition.leader_id,
        successors=tuple(successors),
        endpoints=endpoints_of(message.leader_endpoints),
    )


def fetch_asked(message: FetchRequest) -> FetchAsked | None:
    if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
        return None
    topic = message.topics[0]
    partition = topic.partitions[0]
    if topic.topic != METADATA_TOPIC and topic.topic_id != METADATA_TOPIC_ID:
        return None
    if partition.partition != METADATA_PARTITION:
        return None
    replica_id = message.replica_state.replica_id
    if replica_id < 0:
        replica_id = message.replica_id
    return FetchAsked(
        epoch=partition.current_leader_epoch,
        replica=ReplicaKey(replica_id, partition.replica_directory_id),
        offset=partition.fetch_offset,
        last_epoch=partition.last_fetched_epoch,
        high_watermark=partition.high_watermark,
        max_wait_ms=message.max_wait_ms,
        max_bytes=message.max_bytes,
    )


def is_senseless(request: FetchAsked) -> bool:
    """Whether the request contradicts itself."""
    return (
        request.max_wait_ms < 0
        or request.offset < 0
        or request.last_epoch < 0
        or request.last_epoch > request.epoch
    )


def snapshot_asked(message: FetchSnapshotRequest) -> SnapshotAsked | None:
    if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
        return None
    partition = message.topics[0].partitions[0]
    if message.topics[0].name != METADATA_TOPIC or partition.partition != METADATA_PARTITION:
        return None
    return SnapshotAsked(
        epoch=partition.current_leader_epoch,
        replica=ReplicaKey(message.replica_id, partition.replica_directory_id),
        snapshot_id=SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        position=partition.position,
        max_bytes=message.max_bytes,
    )


def addition_asked(message: AddRaftVoterRequest) -> VoterAdditionAsked | None:
    if message.voter_id < 0 or message.voter_directory_id == ZERO_UUID:
        return None
    key = ReplicaKey(message.voter_id, message.voter_directory_id)
    return VoterAdditionAsked(
        voter=Voter(key=key, endpoints=endpoints_of(message.listeners)),
        ack_when_committed=message.ack_when_committed,
        timeout_ms=message.timeout_ms,
    )


def removal_asked(message: RemoveRaftVoterRequest) -> VoterRemovalAsked | None:
    if message.voter_id < 0 or message.voter_directory_id == ZERO_UUID:
        return None
    return VoterRemovalAsked(voter=ReplicaKey(message.voter_id, message.voter_directory_id))


def update_asked(message: UpdateRaftVoterRequest) -> VoterUpdateAsked | None:
    levels = message.kraft_version_feature
    if message.voter_id < 0 or message.voter_directory_id == ZERO_UUID:
        return None
    if not 0 <= levels.min_supported_version <= levels.max_supported_version:
        return None
    voter = Voter(
        key=ReplicaKey(message.voter_id, message.voter_directory_id),
        endpoints=endpoints_of(message.listeners),
        min_kraft_version=levels.min_supported_version,
        max_kraft_version=levels.max_supported_version,
    )
    return VoterUpdateAsked(epoch=message.current_leader_epoch, voter=voter)


def endpoints_of(listeners: Iterable[Any]) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(name=end.name, host=end.host, port=end.port) for end in listeners)


def _only_partition(topics: list[Any]) -> Any:
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    if topics[0].topic_name != METADATA_TOPIC or partition.partition_index != METADATA_PARTITION:
        return None
    return partition


def _voter(voter_id: int, partition: Any) -> ReplicaKey | None:
    return None if voter_id < 0 else ReplicaKey(voter_id, partition.voter_directory_id)


# Responses ----------------------------------------------------------------------------------


def vote_response(reply: VoteReply, listener_name: str) -> VoteResponse:
    partition = VoteResponse.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=reply.error,
        leader_id=reply.leader_id,
        leader_epoch=reply.epoch,
        vote_granted=reply.granted,
    )
    return VoteResponse(
        topics=[VoteResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=_node_endpoints(VoteResponse.NodeEndpoint, reply, listener_name),
    )


def begin_response(reply: Reply, listener_name: str) -> BeginQuorumEpochResponse:
    partition = BeginQuorumEpochResponse.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=reply.error,
        leader_id=reply.leader_id,
        leader_epoch=reply.epoch,
    )
    return BeginQuorumEpochResponse(
        topics=[
            BeginQuorumEpochResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        ],
        node_endpoints=_node_endpoints(BeginQuorumEpochResponse.NodeEndpoint, reply, listener_name),
    )


def end_response(reply: Reply, listener_name: str) -> EndQuorumEpochResponse:
    partition = EndQuorumEpochResponse.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=reply.error,
        leader_id=reply.leader_id,
        leader_epoch=reply.epoch,
    )
    return EndQuorumEpochResponse(
        topics=[
            EndQuorumEpochResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        ],
        node_endpoints=_node_endpoints(EndQuorumEpochResponse.NodeEndpoint, reply, listener_name),
    )


def fetch_response(reply: FetchReply, listener_name: str) -> FetchResponse:
    partition = FetchResponse.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=reply.error,
        high_watermark=reply.high_watermark,
        log_start_offset=reply.log_start_offset,
        current_leader=FetchResponse.LeaderIdAndEpoch(
            leader_id=reply.leader_id, leader_epoch=reply.epoch
        ),
        records=bytes(reply.records),
    )
    if reply.diverging is not None:
        partition.diverging_epoch = FetchResponse.EpochEndOffset(
            epoch=reply.diverging.epoch, end_offset=reply.diverging.end_offset
        )
    if reply.snapshot_id is not None:
        partition.snapshot_id = FetchResponse.SnapshotId(
            end_offset=reply.snapshot_id.end_offset, epoch=reply.snapshot_id.epoch
        )
    topic = FetchResponse.FetchableTopicResponse(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchResponse(
        responses=[topic],
        node_endpoints=_node_endpoints(FetchResponse.NodeEndpoint, reply, listener_name),
    )


def snapshot_response(reply: SnapshotReply, listener_name: str) -> FetchSnapshotResponse:
    partition = FetchSnapshotResponse.PartitionSnapshot(
        index=METADATA_PARTITION,
        error_code=reply.error,
        current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(
            leader_id=reply.leader_id, leader_epoch=reply.epoch
        ),
        size=reply.size,
        position=reply.position,
        unaligned_records=bytes(reply.chunk),
    )
    if reply.snapshot_id is not None:
        partition.snapshot_id = FetchSnapshotResponse.SnapshotId(
            end_offset=reply.snapshot_id.end_offset, epoch=reply.snapshot_id.epoch
        )
    return FetchSnapshotResponse(
        topics=[FetchSnapshotResponse.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=_node_endpoints(FetchSnapshotResponse.NodeEndpoint, reply, listener_name),
    )


def update_response(reply: Reply, listener_name: str) -> UpdateRaftVoterResponse:
    leader = UpdateRaftVoterResponse.CurrentLeader(
        leader_id=reply.leader_id, leader_epoch=reply.epoch
    )
    for end in reply.endpoints:
        if end.name == listener_name and reply.leader_id != NO_NODE:
            leader.host, leader.port = end.host, end.port
    return UpdateRaftVoterResponse(error_code=reply.error, current_leader=leader)


def _node_endpoints(cls: type[Any], reply: Reply, listener_name: str) -> list[Any]:
    if reply.leader_id == NO_NODE or reply.error is ErrorCode.INVALID_REQUEST:
        return []
    return [
        cls(node_id=reply.leader_id, host=end.host, port=end.port)
        for end in reply.endpoints
        if end.name == listener_name
    ]
