"""Transactional ids as DescribeTransactions and ListTransactions show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from moldau.broker.coordinator.group.machine.regular_expressions import (
    check_pattern,
    matching_topics,
)
from moldau.broker.coordinator.transaction.machine.metadata import (
    STATES_BY_NAME,
    TransactionMetadata,
)
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)


def describe(
    transactions: Mapping[str, TransactionMetadata], transactional_id: str
) -> DescribeTransactionsResponse.TransactionState:
    """Raises ApiError TRANSACTIONAL_ID_NOT_FOUND."""
    metadata = transactions.get(transactional_id)
    if metadata is None:
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"there is no transactional id {transactional_id!r}",
        )
    return _described(metadata)


def _described(metadata: TransactionMetadata) -> DescribeTransactionsResponse.TransactionState:
    partitions: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.partitions):
        partitions.setdefault(topic, []).append(partition)
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=metadata.transactional_id,
        transaction_state=metadata.state_name,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_timestamp_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in partitions.items()
        ],
    )


def listed(
    transactions: Iterable[TransactionMetadata], wanted: Callable[[TransactionMetadata], bool]
) -> list[ListTransactionsResponse.TransactionState]:
    return [
        ListTransactionsResponse.TransactionState(
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            transaction_state=metadata.state_name,
        )
        for metadata in transactions
        if wanted(metadata)
    ]


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """The names in the request's filter that are no states."""
    return [name for name in dict.fromkeys(request.state_filters) if name not in STATES_BY_NAME]


def list_filter(
    request: ListTransactionsRequest, now_ms: WallMs
) -> Callable[[TransactionMetadata], bool]:
    """The filter of the request; raises ApiError INVALID_REGULAR_EXPRESSION."""
    names = set(request.state_filters)
    states = {state for name, state in STATES_BY_NAME.items() if name in names}
    producer_ids = set(request.producer_id_filters)
    pattern = request.transactional_id_pattern
    if pattern:
        check_pattern(pattern)

    def wanted(metadata: TransactionMetadata) -> bool:
        if producer_ids and metadata.producer_id not in producer_ids:
            return False
        if names and metadata.state not in states:
            return False
        age_ms = now_ms - metadata.start_timestamp_ms
        if request.duration_filter >= 0 and age_ms <= request.duration_filter:
            return False
        return not pattern or bool(matching_topics(pattern, (metadata.transactional_id,)))

    return wanted
