"""ShareFetch (key 78), v1-2: records for a member of a share group, and its acknowledgements.

v1 limits by records and a batch size; v2 an exact record limit (KIP-1206) and renewed locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from uuid import UUID

from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.network.context import RequestContext
from moldau.broker.share.delayed_fetch import Fetched, FetchedPartition, ShareFetchLimits
from moldau.broker.share.machine.acknowledgements import (
    Refusals,
    check_ids,
    sort_out,
    unknown_partition,
)
from moldau.broker.share.machine.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SessionRequest,
    ShareSession,
    TopicIdPartition,
    next_epoch,
    rotated,
)
from moldau.broker.share.manager import Acknowledging, SharePartitionManager
from moldau.wire.errors import LEADER_CHANGED, ApiError, ErrorCode
from moldau.wire.messages import ShareFetchRequest, ShareFetchResponse

_RENEW_SINCE = 2
_RECORD_LIMIT = 1

_Topic = ShareFetchResponse.ShareFetchableTopicResponse
_Partition = ShareFetchResponse.PartitionData
_Acquired = ShareFetchResponse.AcquiredRecords
_Leader = ShareFetchResponse.LeaderIdAndEpoch
_Node = ShareFetchResponse.NodeEndpoint


class ShareFetchHandler:
    def __init__(
        self,
        manager: SharePartitionManager,
        topics: Topics,
        *,
        fetch_max_bytes: int = 57_671_680,
    ) -> None:
        """`fetch_max_bytes` is fetch.max.bytes."""
        self._manager = manager
        self._topics = topics
        self._fetch_max_bytes = fetch_max_bytes

    async def handle(
        self, context: RequestContext, request: ShareFetchRequest
    ) -> ShareFetchResponse:
        manager = self._manager
        manager.check_enabled()
        key = SessionKey(*check_ids(request.group_id, request.member_id))
        renews = context.api_version >= _RENEW_SINCE and request.is_renew_ack
        if renews:
            _check_renewal(request)
        if request.share_acquire_mode not in (0, _RECORD_LIMIT):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"unknown share acquire mode {request.share_acquire_mode}",
            )
        epoch = request.share_session_epoch
        named = [
            TopicIdPartition(topic.topic_id, each.partition_index)
            for topic in request.topics
            for each in topic.partitions
        ]
        session = await self._session(context, request, key, named)
        # Acknowledgements come first, but the records do not wait until they are stored.
        acknowledging, acknowledged = self._acknowledge(context, request, key)
        fetched: Fetched = {}
        if session is not None and not renews:
            wanted = named if epoch == INITIAL_EPOCH else list(session.partitions)
            fetched = await self._fetch(request, key, wanted)
        if acknowledging is not None:
            acknowledged.update(await acknowledging.outcome())
        if session is not None and epoch != INITIAL_EPOCH:
            if session.epoch != next_epoch(epoch):
                raise ApiError(
                    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                    "the session has been continued by another request",
                )
            fetched = _of_interest(session, fetched)
        if epoch == FINAL_EPOCH and manager.sessions.get(key) is not None:
            manager.run_task(manager.release_session(key))
        response = self._respond(context, fetched, acknowledged)
        response.acquisition_lock_timeout_ms = manager.lock_duration_ms_of(key.group_id)
        return response

    async def _session(
        self,
        context: RequestContext,
        request: ShareFetchRequest,
        key: SessionKey,
        named: list[TopicIdPartition],
    ) -> ShareSession | None:
        """The member's session, None if this request closes it."""
        manager = self._manager
        epoch = request.share_session_epoch
        if epoch == FINAL_EPOCH:
            manager.sessions.check_move(key, SessionRequest.CLOSES)
            return None
        if epoch == INITIAL_EPOCH:
            if any(
                each.acknowledgement_batches
                for topic in request.topics
                for each in topic.partitions
            ):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "a request that opens a share session cannot acknowledge records",
                )
            try:
                return manager.open_session(key, named, context.connection)
            except ApiError:
                # Without this pause the client would fetch again and again.
                await asyncio.sleep(max(0, request.max_wait_ms) / 1000)
                raise
        session = manager.sessions.proceed(key, epoch)
        session.update(
            named,
            [
                TopicIdPartition(topic.topic_id, index)
                for topic in request.forgotten_topics_data
                for index in topic.partitions
            ],
        )
        return session

    def _acknowledge(
        self, context: RequestContext, request: ShareFetchRequest, key: SessionKey
    ) -> tuple[Acknowledging | None, Refusals]:
        wanted, outcome = sort_out(
            (
                (
                    TopicIdPartition(topic.topic_id, each.partition_index),
                    each.acknowledgement_batches,
                )
                for topic in request.topics
                for each in topic.partitions
                if each.acknowledgement_batches
            ),
            self._topics,
            version=context.api_version,
            is_renew_ack=request.is_renew_ack,
        )
        return (self._manager.acknowledge(key, wanted) if wanted else None), outcome

    async def _fetch(
        self, request: ShareFetchRequest, key: SessionKey, wanted: Iterable[TopicIdPartition]
    ) -> Fetched:
        fetched: Fetched = {}
        known: list[TopicIdPartition] = []
        for partition in wanted:
            error = unknown_partition(self._topics, *partition)
            if error is None:
                known.append(partition)
            else:
                fetched[partition] = FetchedPartition(error)
        max_bytes = min(request.max_bytes, self._fetch_max_bytes)
        limits = ShareFetchLimits(
            request.max_wait_ms,
            min(request.min_bytes, max_bytes),
            max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == _RECORD_LIMIT,
            self._manager.is_read_committed(key.group_id),
        )
        order = rotated(known, request.share_session_epoch)
        fetched.update(await self._manager.fetch(key, order, limits))
        return fetched

    # The response.

    def _respond(
        self, context: RequestContext, fetched: Fetched, acknowledged: Refusals
    ) -> ShareFetchResponse:
        response = ShareFetchResponse()
        by_id: dict[UUID, _Topic] = {}
        nodes: dict[int, _Node] = {}
        for partition in {**fetched, **acknowledged}:
            topic = by_id.get(partition.topic_id)
            if topic is None:
                topic = by_id[partition.topic_id] = _Topic(topic_id=partition.topic_id)
                response.responses.append(topic)
            data = _data_of(partition.partition, fetched.get(partition))
            acknowledge_error = acknowledged.get(partition)
            if acknowledge_error is not None:
                data.acknowledge_error_code = acknowledge_error.code
                data.acknowledge_error_message = acknowledge_error.message or None
            if data.error_code in LEADER_CHANGED:
                self._name_leader(context, partition, data, nodes)
            topic.partitions.append(data)
        response.node_endpoints = list(nodes.values())
        return response

    def _name_leader(
        self,
        context: RequestContext,
        partition: TopicIdPartition,
        data: _Partition,
        nodes: dict[int, _Node],
    ) -> None:
        """Add the leader of a partition that this node does not lead (KIP-951)."""
        leader = self._manager.replicas.current_leader(
            partition.topic_id.bytes, partition.partition, context.listener_name
        )
        if leader is not None:
            data.current_leader = _Leader(leader_id=leader[0], leader_epoch=leader[1])
            if (node := leader[2]) is not None:
                nodes[node.node_id] = _Node(**node._asdict())


def _check_renewal(request: ShareFetchRequest) -> None:
    """A request that renews locks must not fetch records."""
    wrong = [
        name
        for name, value in (
            ("maxBytes", request.max_bytes),
            ("minBytes", request.min_bytes),
            ("maxRecords", request.max_records),
            ("maxWaitMs", request.max_wait_ms),
        )
        if value
    ]
    if wrong:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{', '.join(wrong)} must be set to 0 if isRenewAck is true."
        )


def _of_interest(
    session: ShareSession, fetched: Mapping[TopicIdPartition, FetchedPartition]
) -> Fetched:
    return {
        partition: each
        for partition, each in fetched.items()
        if session.must_mention(
            partition, has_records=bool(each.acquired), failed=each.error is not None
        )
    }


def _data_of(index: int, fetched: FetchedPartition | None) -> _Partition:
    if fetched is None:
        return _Partition(partition_index=index, records=b"")
    if fetched.error is not None:
        return _Partition(
            partition_index=index,
            error_code=fetched.error.code,
            error_message=fetched.error.message or None,
            records=b"",
        )
    return _Partition(
        partition_index=index,
        # The codec copies views of the log into the response as they are.
        records=fetched.records,  # type: ignore[arg-type]
        acquired_records=[_Acquired(**each._asdict()) for each in fetched.acquired],
    )
