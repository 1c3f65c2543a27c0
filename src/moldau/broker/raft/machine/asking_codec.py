"""Requests to other nodes of the quorum as Kafka's messages, and their responses back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.broker.raft.machine.election_file import NO_NODE
from moldau.broker.raft.machine.log_names import METADATA_PARTITION, METADATA_TOPIC
from moldau.broker.raft.machine.rpcs import (
    EndOfEpoch,
    EpochBegun,
    EpochEnded,
    FetchAsked,
    FetchReply,
    Reply,
    Request,
    SnapshotAsked,
    SnapshotReply,
    VersionsAsked,
    VersionsReply,
    VoteAsked,
    VoterAdditionAsked,
    VoteReply,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import VoterEndpoint
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from moldau.wire.uuids import METADATA_TOPIC_ID, ZERO_UUID

KRAFT_VERSION = "kraft.version"


def encode_request(request: Request, cluster_id: str) -> tuple[ApiKey, Message]:
    match request:
        case VoteAsked():
            return ApiKey.VOTE, _vote(request, cluster_id)
        case EpochBegun():
            return ApiKey.BEGIN_QUORUM_EPOCH, _epoch_begun(request, cluster_id)
        case EpochEnded():
            return ApiKey.END_QUORUM_EPOCH, _epoch_ended(request, cluster_id)
        case FetchAsked():
            return ApiKey.FETCH, _fetch(request, cluster_id)
        case SnapshotAsked():
            return ApiKey.FETCH_SNAPSHOT, _snapshot(request, cluster_id)
        case VoterAdditionAsked():
            voter = request.voter
            return ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=request.timeout_ms,
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_listeners(AddRaftVoterRequest.Listener, voter.endpoints),
                ack_when_committed=request.ack_when_committed,
            )
        case VoterRemovalAsked():
            return ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(
                cluster_id=cluster_id,
                voter_id=request.voter.id,
                voter_directory_id=request.voter.directory_id,
            )
        case VoterUpdateAsked():
            return ApiKey.UPDATE_RAFT_VOTER, _update(request, cluster_id)
        case VersionsAsked():
            return ApiKey.API_VERSIONS, ApiVersionsRequest(
                client_software_name="moldau", client_software_version="0"
            )


def _vote(request: VoteAsked, cluster_id: str) -> VoteRequest:
    voter = request.voter
    partition = VoteRequest.PartitionData(
        partition_index=METADATA_PARTITION,
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=ZERO_UUID if voter is None else voter.directory_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.end_offset,
        pre_vote=request.pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    voter_id = NO_NODE if voter is None else voter.id
    return VoteRequest(cluster_id=cluster_id, voter_id=voter_id, topics=[topic])


def _epoch_begun(request: EpochBegun, cluster_id: str) -> BeginQuorumEpochRequest:
    voter = request.voter
    partition = BeginQuorumEpochRequest.PartitionData(
        partition_index=METADATA_PARTITION,
        voter_directory_id=ZERO_UUID if voter is None else voter.directory_id,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    topic = BeginQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=NO_NODE if voter is None else voter.id,
        topics=[topic],
        leader_endpoints=_listeners(BeginQuorumEpochRequest.LeaderEndpoint, request.endpoints),
    )


def _epoch_ended(request: EpochEnded, cluster_id: str) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequest.PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_successors=[key.id for key in request.successors],
        preferred_candidates=[
            EndQuorumEpochRequest.ReplicaInfo(
                candidate_id=key.id, candidate_directory_id=key.directory_id
            )
            for key in request.successors
        ],
    )
    topic = EndQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[topic],
        leader_endpoints=_listeners(EndQuorumEpochRequest.LeaderEndpoint, request.endpoints),
    )


def _fetch(request: FetchAsked, cluster_id: str) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        partition=METADATA_PARTITION,
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_epoch,
        partition_max_bytes=0,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    topic = FetchRequest.FetchTopic(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=request.replica.id),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[topic],
    )


def _snapshot(request: SnapshotAsked, cluster_id: str) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        partition=METADATA_PARTITION,
        current_leader_epoch=request.epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(
            end_offset=request.snapshot_id.end_offset, epoch=request.snapshot_id.epoch
        ),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    topic = FetchSnapshotRequest.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=[topic],
    )


def _update(request: VoterUpdateAsked, cluster_id: str) -> UpdateRaftVoterRequest:
    voter = request.voter
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=request.epoch,
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory_id,
        listeners=_listeners(UpdateRaftVoterRequest.Listener, voter.endpoints),
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=voter.min_kraft_version,
            max_supported_version=voter.max_kraft_version,
        ),
    )


def _listeners(cls: type[Any], endpoints: Iterable[VoterEndpoint]) -> list[Any]:
    return [cls(name=end.name, host=end.host, port=end.port) for end in endpoints]


def decode_reply(request: Request, response: Any, listener_name: str) -> Reply:
    """The content of `response`; a top-level error comes without an epoch."""
    error = ErrorCode(response.error_code)
    match request:
        case VersionsAsked():
            levels = {f.name: (f.min_version, f.max_version) for f in response.supported_features}
            return VersionsReply(error=error, levels=levels.get(KRAFT_VERSION))
        case VoterAdditionAsked() | VoterRemovalAsked():
            return Reply(error=error, message=response.error_message)
        case VoterUpdateAsked():
            leader = response.current_leader
            end = VoterEndpoint(name=listener_name, host=leader.host, port=leader.port)
            return Reply(
                error=error,
                epoch=leader.leader_epoch,
                leader_id=leader.leader_id,
                endpoints=(end,) if leader.host else (),
            )
        case _:
            pass
    partition = _only_partition(request, response)
    if error is not ErrorCode.NONE or partition is None:
        return Reply(error=error if error is not ErrorCode.NONE else ErrorCode.INVALID_REQUEST)
    error = ErrorCode(partition.error_code)
    if isinstance(request, FetchAsked | SnapshotAsked):
        leader = partition.current_leader
        leader_id, epoch = leader.leader_id, leader.leader_epoch
    else:
        leader_id, epoch = partition.leader_id, partition.leader_epoch
    endpoints = tuple(
        VoterEndpoint(name=listener_name, host=end.host, port=end.port)
        for end in response.node_endpoints
        if end.node_id == leader_id
    )
    if isinstance(request, VoteAsked):
        return VoteReply(
            error=error,
            epoch=epoch,
            leader_id=leader_id,
            endpoints=endpoints,
            granted=partition.vote_granted,
        )
    if isinstance(request, FetchAsked):
        return _fetch_reply(partition, error, endpoints)
    if isinstance(request, SnapshotAsked):
        return _snapshot_reply(partition, error, endpoints)
    return Reply(error=error, epoch=epoch, leader_id=leader_id, endpoints=endpoints)


def _only_partition(request: Request, response: Any) -> Any:
    """The metadata partition's part, None if the response is about anything else."""
    topics = response.responses if isinstance(request, FetchAsked) else response.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    index = partition.index if isinstance(request, SnapshotAsked) else partition.partition_index
    return partition if index == METADATA_PARTITION else None


def _fetch_reply(
    partition: Any, error: ErrorCode, endpoints: tuple[VoterEndpoint, ...]
) -> FetchReply:
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return FetchReply(
        error=error,
        epoch=partition.current_leader.leader_epoch,
        leader_id=partition.current_leader.leader_id,
        endpoints=endpoints,
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=EndOfEpoch(epoch=diverging.epoch, end_offset=diverging.end_offset)
        if diverging.epoch >= 0
        else None,
        snapshot_id=SnapshotId(snapshot.end_offset, snapshot.epoch)
        if snapshot.epoch >= 0 and snapshot.end_offset >= 0
        else None,
        records=partition.records or b"",
    )


def _snapshot_reply(
    partition: Any, error: ErrorCode, endpoints: tuple[VoterEndpoint, ...]
) -> SnapshotReply:
    found = partition.snapshot_id
    return SnapshotReply(
        error=error,
        epoch=partition.current_leader.leader_epoch,
        leader_id=partition.current_leader.leader_id,
        endpoints=endpoints,
        snapshot_id=SnapshotId(found.end_offset, found.epoch) if error == ErrorCode.NONE else None,
        size=partition.size,
        position=partition.position,
        chunk=partition.unaligned_records,
    )
