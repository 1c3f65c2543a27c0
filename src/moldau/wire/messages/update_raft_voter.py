"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class UpdateRaftVoterRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 82
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "current_leader_epoch", "voter_id", "voter_directory_id", "listeners", "kraft_version_feature",)
    FIELDS = (
        ('cluster_id', 'string', 0, 32767, (0, 32767), None, '', False),
        ('current_leader_epoch', 'int32', 0, 32767, None, None, 0, False),
        ('voter_id', 'int32', 0, 32767, None, None, 0, False),
        ('voter_directory_id', 'uuid', 0, 32767, None, None, (), False),
        ('listeners', '[]Listener', 0, 32767, None, None, (), False),
        ('kraft_version_feature', 'KRaftVersionFeature', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = '',
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: UUID = ZERO_UUID,
        listeners: list[UpdateRaftVoterRequest.Listener] = UNSET,
        kraft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is UNSET else listeners
        self.kraft_version_feature = UpdateRaftVoterRequest.KRaftVersionFeature() if kraft_version_feature is UNSET else kraft_version_feature
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

    class KRaftVersionFeature(Message):
        __slots__ = ("min_supported_version", "max_supported_version",)
        FIELDS = (
            ('min_supported_version', 'int16', 0, 32767, None, None, 0, False),
            ('max_supported_version', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None


class UpdateRaftVoterResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 82
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "current_leader",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('current_leader', 'CurrentLeader', 0, 32767, None, (0, 0, 32767), (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: UpdateRaftVoterResponse.CurrentLeader = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.current_leader = UpdateRaftVoterResponse.CurrentLeader() if current_leader is UNSET else current_leader
        self.unknown_tagged_fields = None

    class CurrentLeader(Message):
        __slots__ = ("leader_id", "leader_epoch", "host", "port",)
        FIELDS = (
            ('leader_id', 'int32', 0, 32767, None, None, -1, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, -1, False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            host: str = '',
            port: int = 0,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None
