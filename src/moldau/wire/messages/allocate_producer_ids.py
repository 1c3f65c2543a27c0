"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class AllocateProducerIdsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 67
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('broker_epoch', 'int64', 0, 32767, None, None, -1, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tagged_fields = None


class AllocateProducerIdsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 67
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('producer_id_start', 'int64', 0, 32767, None, None, 0, False),
        ('producer_id_len', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
        self.unknown_tagged_fields = None
