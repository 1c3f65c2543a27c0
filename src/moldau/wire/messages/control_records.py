"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class ControlRecordTypeSchema(Message):
    """data, versions 0."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("type",)
    FIELDS = (
        ('type', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None:
        self.type = type
        self.unknown_tagged_fields = None


class EndTxnMarker(Message):
    """data, versions 0."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("coordinator_epoch",)
    FIELDS = (
        ('coordinator_epoch', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.unknown_tagged_fields = None


class KRaftVersionRecord(Message):
    """data, versions 0."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "kraft_version",)
    FIELDS = (
        ('version', 'int16', 0, 32767, None, None, 0, False),
        ('kraft_version', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        kraft_version: int = 0,
    ) -> None:
        self.version = version
        self.kraft_version = kraft_version
        self.unknown_tagged_fields = None


class LeaderChangeMessage(Message):
    """data, versions 0-1."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "leader_id", "voters", "granting_voters",)
    FIELDS = (
        ('version', 'int16', 0, 32767, None, None, 0, False),
        ('leader_id', 'int32', 0, 32767, None, None, 0, False),
        ('voters', '[]Voter', 0, 32767, None, None, (), False),
        ('granting_voters', '[]Voter', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[LeaderChangeMessage.Voter] = UNSET,
        granting_voters: list[LeaderChangeMessage.Voter] = UNSET,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is UNSET else voters
        self.granting_voters = [] if granting_voters is UNSET else granting_voters
        self.unknown_tagged_fields = None

    class Voter(Message):
        __slots__ = ("voter_id", "voter_directory_id",)
        FIELDS = (
            ('voter_id', 'int32', 0, 32767, None, None, 0, False),
            ('voter_directory_id', 'uuid', 1, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: UUID = ZERO_UUID,
        ) -> None:
            self.voter_id = voter_id
            self.voter_directory_id = voter_directory_id
            self.unknown_tagged_fields = None


class SnapshotFooterRecord(Message):
    """data, versions 0."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("version",)
    FIELDS = (
        ('version', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
    ) -> None:
        self.version = version
        self.unknown_tagged_fields = None


class SnapshotHeaderRecord(Message):
    """data, versions 0."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "last_contained_log_timestamp",)
    FIELDS = (
        ('version', 'int16', 0, 32767, None, None, 0, False),
        ('last_contained_log_timestamp', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
        self.unknown_tagged_fields = None


class VotersRecord(Message):
    """data, versions 0."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("version", "voters",)
    FIELDS = (
        ('version', 'int16', 0, 32767, None, None, 0, False),
        ('voters', '[]Voter', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[VotersRecord.Voter] = UNSET,
    ) -> None:
        self.version = version
        self.voters = [] if voters is UNSET else voters
        self.unknown_tagged_fields = None

    class Voter(Message):
        __slots__ = ("voter_id", "voter_directory_id", "endpoints", "kraft_version_feature",)
        FIELDS = (
            ('voter_id', 'int32', 0, 32767, None, None, 0, False),
            ('voter_directory_id', 'uuid', 0, 32767, None, None, (), False),
            ('endpoints', '[]Endpoint', 0, 32767, None, None, (), False),
            ('kraft_version_feature', 'KRaftVersionFeature', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: UUID = ZERO_UUID,
            endpoints: list[VotersRecord.Endpoint] = UNSET,
            kraft_version_feature: VotersRecord.KRaftVersionFeature = UNSET,
        ) -> None:
            self.voter_id = voter_id
            self.voter_directory_id = voter_directory_id
            self.endpoints = [] if endpoints is UNSET else endpoints
            self.kraft_version_feature = VotersRecord.KRaftVersionFeature() if kraft_version_feature is UNSET else kraft_version_feature
            self.unknown_tagged_fields = None

    class Endpoint(Message):
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
