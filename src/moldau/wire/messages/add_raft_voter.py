"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class AddRaftVoterRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 80
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "ack_when_committed",)
    FIELDS = (
        ('cluster_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('timeout_ms', 'int32', 0, 32767, None, None, 0, False),
        ('voter_id', 'int32', 0, 32767, None, None, 0, False),
        ('voter_directory_id', 'uuid', 0, 32767, None, None, (), False),
        ('listeners', '[]Listener', 0, 32767, None, None, (), False),
        ('ack_when_committed', 'bool', 1, 32767, None, None, True, False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = '',
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: UUID = ZERO_UUID,
        listeners: list[AddRaftVoterRequest.Listener] = UNSET,
        ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is UNSET else listeners
        self.ack_when_committed = ack_when_committed
        self.unknown_tagged_fields = None

    class Listener(Message):
        __slots__ = ("name", "host", "port",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'uint16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            host: str = '',
            port: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None


class AddRaftVoterResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 80
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
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
