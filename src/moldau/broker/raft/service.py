"""RaftService: the quorum's RPCs, from Kafka's messages to Kafka's messages.

Requests of another cluster's nodes are refused first, then those that are not about the metadata
log; the machine decides the rest.
"""

from __future__ import annotations

from typing import TypeVar

from moldau.broker.raft.machine import answering_codec as codec
from moldau.broker.raft.machine.log_names import METADATA_PARTITION, METADATA_TOPIC
from moldau.broker.raft.machine.rpcs import FetchReply, Reply, Request, SnapshotReply, VoteReply
from moldau.broker.raft.node import RaftNode
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)

ReplyT = TypeVar("ReplyT", bound=Reply)


class RaftService:
    def __init__(self, node: RaftNode) -> None:
        self._node = node

    async def vote(self, message: VoteRequest, listener: str) -> VoteResponse:
        request = codec.vote_asked(message)
        error = self._refusal(message.cluster_id, request)
        if error is not ErrorCode.NONE or request is None:
            return VoteResponse(error_code=error)
        return codec.vote_response(await self._ask(request, VoteReply), listener)

    async def begin_quorum_epoch(
        self, message: BeginQuorumEpochRequest, listener: str
    ) -> BeginQuorumEpochResponse:
        request = codec.epoch_begun(message)
        error = self._refusal(message.cluster_id, request)
        if error is not ErrorCode.NONE or request is None:
            return BeginQuorumEpochResponse(error_code=error)
        return codec.begin_response(await self._ask(request, Reply), listener)

    async def end_quorum_epoch(
        self, message: EndQuorumEpochRequest, listener: str
    ) -> EndQuorumEpochResponse:
        request = codec.epoch_ended(message)
        error = self._refusal(message.cluster_id, request)
        if error is not ErrorCode.NONE or request is None:
            return EndQuorumEpochResponse(error_code=error)
        return codec.end_response(await self._ask(request, Reply), listener)

    async def fetch(self, message: FetchRequest, listener: str) -> FetchResponse:
        """A Fetch of the metadata log; it waits for new records as long as it allows."""
        request = codec.fetch_asked(message)
        error = self._refusal(message.cluster_id, request)
        if error is not ErrorCode.NONE or request is None:
            return FetchResponse(error_code=error)
        if codec.is_senseless(request):
            machine = self._node.machine
            reply = FetchReply(
                error=ErrorCode.INVALID_REQUEST,
                epoch=machine.epoch,
                leader_id=machine.election.leader_id,
                log_start_offset=self._node.log.start_offset,
            )
        else:
            reply = await self._ask(request, FetchReply)
        return codec.fetch_response(reply, listener)

    async def fetch_snapshot(
        self, message: FetchSnapshotRequest, listener: str
    ) -> FetchSnapshotResponse:
        request = codec.snapshot_asked(message)
        error = self._refusal(message.cluster_id, request)
        if error is not ErrorCode.NONE or request is None:
            return FetchSnapshotResponse(error_code=error)
        return codec.snapshot_response(await self._ask(request, SnapshotReply), listener)

    async def add_voter(self, message: AddRaftVoterRequest) -> AddRaftVoterResponse:
        self._check_cluster(message.cluster_id)
        request = codec.addition_asked(message)
        if request is None:
            self._check_leading()
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter"
            )
        reply = await self._ask(request, Reply)
        return AddRaftVoterResponse(error_code=reply.error, error_message=reply.message)

    async def remove_voter(self, message: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        self._check_cluster(message.cluster_id)
        request = codec.removal_asked(message)
        if request is None:
            self._check_leading()
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
            )
        reply = await self._ask(request, Reply)
        return RemoveRaftVoterResponse(error_code=reply.error, error_message=reply.message)

    async def update_voter(
        self, message: UpdateRaftVoterRequest, listener: str
    ) -> UpdateRaftVoterResponse:
        request = codec.update_asked(message)
        error = self._refusal(message.cluster_id, request)
        if error is not ErrorCode.NONE or request is None:
            return codec.update_response(self._node.machine.state.reply(error), listener)
        return codec.update_response(await self._ask(request, Reply), listener)

    def describe_quorum(self, message: DescribeQuorumRequest) -> DescribeQuorumResponse:
        topics = message.topics
        if (
            len(topics) != 1
            or topics[0].topic_name != METADATA_TOPIC
            or [each.partition_index for each in topics[0].partitions] != [METADATA_PARTITION]
        ):
            return DescribeQuorumResponse(
                topics=[
                    DescribeQuorumResponse.TopicData(
                        topic_name=topic.topic_name,
                        partitions=[
                            DescribeQuorumResponse.PartitionData(
                                partition_index=each.partition_index,
                                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in topics
                ]
            )
        machine = self._node.machine
        try:
            partition = self._node.describe_quorum()
        except ApiError as error:
            return DescribeQuorumResponse(error_code=error.code, error_message=str(error))
        nodes = [
            DescribeQuorumResponse.Node(
                node_id=voter.key.id,
                listeners=[
                    DescribeQuorumResponse.Listener(name=end.name, host=end.host, port=end.port)
                    for end in voter.endpoints
                ],
            )
            for voter in machine.voters.voters.values()
        ]
        topic = DescribeQuorumResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        return DescribeQuorumResponse(topics=[topic], nodes=nodes)

    def _refusal(self, cluster_id: str | None, request: Request | None) -> ErrorCode:
        if cluster_id is not None and cluster_id != self._node.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        return ErrorCode.INVALID_REQUEST if request is None else ErrorCode.NONE

    def _check_cluster(self, cluster_id: str | None) -> None:
        if cluster_id is not None and cluster_id != self._node.cluster_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f'The given id "{cluster_id}" doesn\'t match the cluster id'
                f' "{self._node.cluster_id}"',
            )

    def _check_leading(self) -> None:
        if not self._node.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum")

    async def _ask(self, request: Request, kind: type[ReplyT]) -> ReplyT:
        reply = await self._node.ask(request)
        if not isinstance(reply, kind):
            reply = kind(
                error=reply.error,
                message=reply.message,
                epoch=reply.epoch,
                leader_id=reply.leader_id,
                endpoints=reply.endpoints,
            )
        invariant(isinstance(reply, kind), "a response of the wrong type")
        return reply
