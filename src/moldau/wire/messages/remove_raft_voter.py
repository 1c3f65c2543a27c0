"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import Message
from moldau.wire.uuids import ZERO_UUID


class RemoveRaftVoterRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 81
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id",)
    FIELDS = (
        ('cluster_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('voter_id', 'int32', 0, 32767, None, None, 0, False),
        ('voter_directory_id', 'uuid', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = '',
        voter_id: int = 0,
        voter_directory_id: UUID = ZERO_UUID,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.unknown_tagged_fields = None


class RemoveRaftVoterResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 81
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tagged_fields = None
