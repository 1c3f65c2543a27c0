"""ShareAcknowledge (key 79), v1-2: the outcome of records that a member of a share group acquired.

v2 renews locks and returns their duration.
"""

from __future__ import annotations

from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.network.context import RequestContext
from moldau.broker.share.machine.acknowledgements import check_ids, sort_out
from moldau.broker.share.machine.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SessionRequest,
    TopicIdPartition,
)
from moldau.broker.share.manager import SharePartitionManager
from moldau.wire.errors import LEADER_CHANGED, ApiError, ErrorCode
from moldau.wire.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse

_LOCK_TIMEOUT_SINCE = 2

_Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
_Partition = ShareAcknowledgeResponse.PartitionData
_Leader = ShareAcknowledgeResponse.LeaderIdAndEpoch
_Node = ShareAcknowledgeResponse.NodeEndpoint


class ShareAcknowledgeHandler:
    def __init__(self, manager: SharePartitionManager, topics: Topics) -> None:
        self._manager = manager
        self._topics = topics

    async def handle(
        self, context: RequestContext, request: ShareAcknowledgeRequest
    ) -> ShareAcknowledgeResponse:
        manager = self._manager
        manager.check_enabled()
        key = SessionKey(*check_ids(request.group_id, request.member_id))
        epoch = request.share_session_epoch
        if epoch == INITIAL_EPOCH:
            raise ApiError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                "a share session is opened by ShareFetch, not by ShareAcknowledge",
            )
        if epoch == FINAL_EPOCH:
            manager.sessions.check_move(key, SessionRequest.CLOSES)
        else:
            manager.sessions.proceed(key, epoch)
        wanted, outcome = sort_out(
            (
                (
                    TopicIdPartition(topic.topic_id, each.partition_index),
                    each.acknowledgement_batches,
                )
                for topic in request.topics
                for each in topic.partitions
            ),
            self._topics,
            version=context.api_version,
            is_renew_ack=request.is_renew_ack,
        )
        if wanted:
            outcome.update(await manager.acknowledge(key, wanted).outcome())
        if epoch == FINAL_EPOCH and manager.sessions.get(key) is not None:
            manager.run_task(manager.release_session(key))
        response = self._respond(context, outcome)
        if context.api_version >= _LOCK_TIMEOUT_SINCE:
            response.acquisition_lock_timeout_ms = manager.lock_duration_ms_of(key.group_id)
        return response

    def _respond(
        self, context: RequestContext, outcome: dict[TopicIdPartition, ApiError | None]
    ) -> ShareAcknowledgeResponse:
        response = ShareAcknowledgeResponse()
        by_id: dict[object, _Topic] = {}
        nodes: dict[int, _Node] = {}
        for (topic_id, index), error in outcome.items():
            topic = by_id.get(topic_id)
            if topic is None:
                topic = by_id[topic_id] = _Topic(topic_id=topic_id)
                response.responses.append(topic)
            data = _Partition(partition_index=index)
            topic.partitions.append(data)
            if error is None:
                continue
            data.error_code = error.code
            data.error_message = error.message or None
            if error.code in LEADER_CHANGED:
                leader = self._manager.replicas.current_leader(
                    topic_id.bytes, index, context.listener_name
                )
                if leader is not None:
                    data.current_leader = _Leader(leader_id=leader[0], leader_epoch=leader[1])
                    if (node := leader[2]) is not None:
                        nodes[node.node_id] = _Node(**node._asdict())
        response.node_endpoints = list(nodes.values())
        return response
