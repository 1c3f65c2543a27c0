"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class AddOffsetsToTxnRequest(Message):
    """request, versions 0-4."""

    KIND = "request"
    TYPE = 25
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 3
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id",)
    FIELDS = (
        ('transactional_id', 'string', 0, 32767, None, None, '', False),
        ('producer_id', 'int64', 0, 32767, None, None, 0, False),
        ('producer_epoch', 'int16', 0, 32767, None, None, 0, False),
        ('group_id', 'string', 0, 32767, None, None, '', False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = '',
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = '',
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
        self.unknown_tagged_fields = None


class AddOffsetsToTxnResponse(Message):
    """response, versions 0-4."""

    KIND = "response"
    TYPE = 25
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tagged_fields = None
