"""APIs of transactions and idempotent producers."""

from __future__ import annotations

from moldau.broker.security.authorization.permissions import (
    Answer,
    Handle,
    Permissions,
    split,
    then,
)
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

#: From here on only brokers send AddPartitionsToTxn, for many transactions at once.
_BATCHED_SINCE = 4


def init_producer_id(
    permissions: Permissions, request: InitProducerIdRequest, handle: Handle
) -> Answer:
    """With a transactional id WRITE on it (TWO_PHASE_COMMIT if asked for); else IDEMPOTENT_WRITE on
    the cluster, or WRITE on any topic (KIP-679)."""
    transactional_id = request.transactional_id
    if transactional_id is not None:
        operations = [AclOperation.WRITE]
        if request.enable2_pc:
            operations.append(AclOperation.TWO_PHASE_COMMIT)
        for operation in operations:
            if not permissions.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
                return _no_producer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not permissions.may_cluster(
        AclOperation.IDEMPOTENT_WRITE, logged=False
    ) and not permissions.may_any(AclOperation.WRITE, ResourceType.TOPIC):
        return _no_producer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return handle(request)


def _no_producer(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


def end_txn(permissions: Permissions, request: EndTxnRequest, handle: Handle) -> Answer:
    """WRITE on the transactional id."""
    permissions.require_transactional_id(AclOperation.WRITE, request.transactional_id)
    return handle(request)


def add_offsets_to_txn(
    permissions: Permissions, request: AddOffsetsToTxnRequest, handle: Handle
) -> Answer:
    """WRITE on the transactional id and READ on the group."""
    permissions.require_transactional_id(AclOperation.WRITE, request.transactional_id)
    permissions.require_group(AclOperation.READ, request.group_id)
    return handle(request)


def add_partitions_to_txn(
    permissions: Permissions, request: AddPartitionsToTxnRequest, handle: Handle
) -> Answer:
    """WRITE on the transactional id and on all topics; brokers (v4 and later) CLUSTER_ACTION."""
    if permissions.version >= _BATCHED_SINCE:
        permissions.require_cluster(AclOperation.CLUSTER_ACTION)
        return handle(request)
    topics = request.v3_and_below_topics
    if not permissions.may(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id
    ):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _not_added({topic.name: code for topic in topics}, request)
    allowed, denied = split(
        topics, lambda topic: permissions.may_topic(AclOperation.WRITE, topic.name)
    )
    if not denied:
        return handle(request)
    # All or none: the others are not added either.
    codes = {topic.name: ErrorCode.TOPIC_AUTHORIZATION_FAILED for topic in denied}
    for topic in allowed:
        exists = topic.name in permissions.topics
        codes[topic.name] = (
            ErrorCode.OPERATION_NOT_ATTEMPTED if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    return _not_added(codes, request)


def _not_added(
    codes: dict[str, ErrorCode], request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    response = AddPartitionsToTxnResponse
    return response(
        results_by_topic_v3_and_below=[
            response.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    response.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=codes[topic.name]
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )


def txn_offset_commit(
    permissions: Permissions, request: TxnOffsetCommitRequest, handle: Handle
) -> Answer:
    """WRITE on the transactional id, READ on the group and on each topic."""
    try:
        permissions.require_transactional_id(AclOperation.WRITE, request.transactional_id)
        permissions.require_group(AclOperation.READ, request.group_id)
    except ApiError as error:
        return TxnOffsetCommitResponse(topics=_not_committed(request.topics, error.code))
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.READ, topic.name)
    )
    if not denied:
        return handle(request)

    def add(response: TxnOffsetCommitResponse) -> Message:
        response.topics[:0] = _not_committed(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return response

    return then(handle(request), add)


def _not_committed(
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic], code: ErrorCode
) -> list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic]:
    result = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    return [
        TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                result(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]


def describe_transactions(
    permissions: Permissions, request: DescribeTransactionsRequest, handle: Handle
) -> Answer:
    """DESCRIBE on each transactional id; topics that may not be described are left out."""
    asked = request.transactional_ids
    request.transactional_ids, denied = split(
        asked,
        lambda each: permissions.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each),
    )

    def merge(response: DescribeTransactionsResponse) -> Message:
        for state in response.transaction_states:
            state.topics = [
                topic
                for topic in state.topics
                if permissions.may_topic(AclOperation.DESCRIBE, topic.topic)
            ]
        if denied:
            allowed = iter(response.transaction_states)
            response.transaction_states = [
                DescribeTransactionsResponse.TransactionState(
                    transactional_id=each,
                    error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                )
                if each in denied
                else next(allowed)
                for each in asked
            ]
        return response

    return then(handle(request), merge)


def list_transactions(
    permissions: Permissions, request: ListTransactionsRequest, handle: Handle
) -> Answer:
    """Transactional ids that may not be described are left out."""

    def keep(response: ListTransactionsResponse) -> Message:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if permissions.may(
                AclOperation.DESCRIBE,
                ResourceType.TRANSACTIONAL_ID,
                state.transactional_id,
                logged=False,
            )
        ]
        return response

    return then(handle(request), keep)
