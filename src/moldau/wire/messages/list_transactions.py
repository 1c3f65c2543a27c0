"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class ListTransactionsRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 66
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern",)
    FIELDS = (
        ('state_filters', '[]string', 0, 32767, None, None, (), False),
        ('producer_id_filters', '[]int64', 0, 32767, None, None, (), False),
        ('duration_filter', 'int64', 1, 32767, None, None, -1, False),
        ('transactional_id_pattern', 'string', 2, 32767, (2, 32767), None, None, False),
    )

    def __init__(
        self,
        *,
        state_filters: list[str] = UNSET,
        producer_id_filters: list[int] = UNSET,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is UNSET else state_filters
        self.producer_id_filters = [] if producer_id_filters is UNSET else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern
        self.unknown_tagged_fields = None


class ListTransactionsResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 66
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('unknown_state_filters', '[]string', 0, 32767, None, None, (), False),
        ('transaction_states', '[]TransactionState', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = UNSET,
        transaction_states: list[ListTransactionsResponse.TransactionState] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is UNSET else unknown_state_filters
        self.transaction_states = [] if transaction_states is UNSET else transaction_states
        self.unknown_tagged_fields = None

    class TransactionState(Message):
        __slots__ = ("transactional_id", "producer_id", "transaction_state",)
        FIELDS = (
            ('transactional_id', 'string', 0, 32767, None, None, '', False),
            ('producer_id', 'int64', 0, 32767, None, None, 0, False),
            ('transaction_state', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            transactional_id: str = '',
            producer_id: int = 0,
            transaction_state: str = '',
        ) -> None:
            self.transactional_id = transactional_id
            self.producer_id = producer_id
            self.transaction_state = transaction_state
            self.unknown_tagged_fields = None
