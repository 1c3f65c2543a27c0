"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class RegisterBrokerRecord(Message):
    """metadata, versions 0-4."""

    KIND = "metadata"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 4
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "is_migrating_zk_broker", "incarnation_id", "broker_epoch", "end_points", "features", "rack", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('is_migrating_zk_broker', 'bool', 2, 32767, None, None, False, False),
        ('incarnation_id', 'uuid', 0, 32767, None, None, (), False),
        ('broker_epoch', 'int64', 0, 32767, None, None, 0, False),
        ('end_points', '[]BrokerEndpoint', 0, 32767, None, None, (), False),
        ('features', '[]BrokerFeature', 0, 32767, None, None, (), False),
        ('rack', 'string', 0, 32767, (0, 32767), None, '', False),
        ('fenced', 'bool', 0, 32767, None, None, True, False),
        ('in_controlled_shutdown', 'bool', 1, 32767, None, None, False, False),
        ('log_dirs', '[]uuid', 3, 32767, None, (0, 3, 32767), (), False),
        ('cordoned_log_dirs', '[]uuid', 4, 32767, (4, 32767), (1, 4, 32767), None, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: UUID = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[RegisterBrokerRecord.BrokerEndpoint] = UNSET,
        features: list[RegisterBrokerRecord.BrokerFeature] = UNSET,
        rack: str | None = '',
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[UUID] = UNSET,
        cordoned_log_dirs: list[UUID] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is UNSET else end_points
        self.features = [] if features is UNSET else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is UNSET else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tagged_fields = None

    class BrokerEndpoint(Message):
        __slots__ = ("name", "host", "port", "security_protocol",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'uint16', 0, 32767, None, None, 0, False),
            ('security_protocol', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            host: str = '',
            port: int = 0,
            security_protocol: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self.unknown_tagged_fields = None

    class BrokerFeature(Message):
        __slots__ = ("name", "min_supported_version", "max_supported_version",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('min_supported_version', 'int16', 0, 32767, None, None, 0, False),
            ('max_supported_version', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None


class UnregisterBrokerRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 1
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('broker_epoch', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tagged_fields = None


class TopicRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 2
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "topic_id",)
    FIELDS = (
        ('name', 'string', 0, 32767, None, None, '', False),
        ('topic_id', 'uuid', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        name: str = '',
        topic_id: UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.unknown_tagged_fields = None


class PartitionRecord(Message):
    """metadata, versions 0-2."""

    KIND = "metadata"
    TYPE = 3
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("partition_id", "topic_id", "replicas", "isr", "removing_replicas", "adding_replicas", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch", "directories", "eligible_leader_replicas", "last_known_elr",)
    FIELDS = (
        ('partition_id', 'int32', 0, 32767, None, None, -1, False),
        ('topic_id', 'uuid', 0, 32767, None, None, (), False),
        ('replicas', '[]int32', 0, 32767, None, None, (), False),
        ('isr', '[]int32', 0, 32767, None, None, (), False),
        ('removing_replicas', '[]int32', 0, 32767, None, None, (), False),
        ('adding_replicas', '[]int32', 0, 32767, None, None, (), False),
        ('leader', 'int32', 0, 32767, None, None, -1, False),
        ('leader_recovery_state', 'int8', 0, 32767, None, (0, 0, 32767), 0, False),
        ('leader_epoch', 'int32', 0, 32767, None, None, -1, False),
        ('partition_epoch', 'int32', 0, 32767, None, None, -1, False),
        ('directories', '[]uuid', 1, 32767, None, None, (), False),
        ('eligible_leader_replicas', '[]int32', 2, 32767, (2, 32767), (1, 2, 32767), None, False),
        ('last_known_elr', '[]int32', 2, 32767, (2, 32767), (2, 2, 32767), None, False),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: UUID = ZERO_UUID,
        replicas: list[int] = UNSET,
        isr: list[int] = UNSET,
        removing_replicas: list[int] = UNSET,
        adding_replicas: list[int] = UNSET,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[UUID] = UNSET,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is UNSET else replicas
        self.isr = [] if isr is UNSET else isr
        self.removing_replicas = [] if removing_replicas is UNSET else removing_replicas
        self.adding_replicas = [] if adding_replicas is UNSET else adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is UNSET else directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tagged_fields = None


class ConfigRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 4
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("resource_type", "resource_name", "name", "value",)
    FIELDS = (
        ('resource_type', 'int8', 0, 32767, None, None, 0, False),
        ('resource_name', 'string', 0, 32767, None, None, '', False),
        ('name', 'string', 0, 32767, None, None, '', False),
        ('value', 'string', 0, 32767, (0, 32767), None, '', False),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = '',
        name: str = '',
        value: str | None = '',
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value
        self.unknown_tagged_fields = None


class PartitionChangeRecord(Message):
    """metadata, versions 0-2."""

    KIND = "metadata"
    TYPE = 5
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("partition_id", "topic_id", "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "directories", "eligible_leader_replicas", "last_known_elr",)
    FIELDS = (
        ('partition_id', 'int32', 0, 32767, None, None, -1, False),
        ('topic_id', 'uuid', 0, 32767, None, None, (), False),
        ('isr', '[]int32', 0, 32767, (0, 32767), (0, 0, 32767), None, False),
        ('leader', 'int32', 0, 32767, None, (1, 0, 32767), -2, False),
        ('replicas', '[]int32', 0, 32767, (0, 32767), (2, 0, 32767), None, False),
        ('removing_replicas', '[]int32', 0, 32767, (0, 32767), (3, 0, 32767), None, False),
        ('adding_replicas', '[]int32', 0, 32767, (0, 32767), (4, 0, 32767), None, False),
        ('leader_recovery_state', 'int8', 0, 32767, None, (5, 0, 32767), -1, False),
        ('directories', '[]uuid', 1, 32767, (1, 32767), (8, 1, 32767), None, False),
        ('eligible_leader_replicas', '[]int32', 2, 32767, (2, 32767), (6, 2, 32767), None, False),
        ('last_known_elr', '[]int32', 2, 32767, (2, 32767), (7, 2, 32767), None, False),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: UUID = ZERO_UUID,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[UUID] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tagged_fields = None


class FenceBrokerRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 7
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("id", "epoch",)
    FIELDS = (
        ('id', 'int32', 0, 32767, None, None, 0, False),
        ('epoch', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.unknown_tagged_fields = None


class UnfenceBrokerRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 8
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("id", "epoch",)
    FIELDS = (
        ('id', 'int32', 0, 32767, None, None, 0, False),
        ('epoch', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.unknown_tagged_fields = None


class RemoveTopicRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 9
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_id",)
    FIELDS = (
        ('topic_id', 'uuid', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        topic_id: UUID = ZERO_UUID,
    ) -> None:
        self.topic_id = topic_id
        self.unknown_tagged_fields = None


class DelegationTokenRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 10
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp", "token_id",)
    FIELDS = (
        ('owner', 'string', 0, 32767, None, None, '', False),
        ('requester', 'string', 0, 32767, None, None, '', False),
        ('renewers', '[]string', 0, 32767, None, None, (), False),
        ('issue_timestamp', 'int64', 0, 32767, None, None, 0, False),
        ('max_timestamp', 'int64', 0, 32767, None, None, 0, False),
        ('expiration_timestamp', 'int64', 0, 32767, None, None, 0, False),
        ('token_id', 'string', 0, 32767, None, None, '', False),
    )

    def __init__(
        self,
        *,
        owner: str = '',
        requester: str = '',
        renewers: list[str] = UNSET,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = '',
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is UNSET else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id
        self.unknown_tagged_fields = None


class UserScramCredentialRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 11
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations",)
    FIELDS = (
        ('name', 'string', 0, 32767, None, None, '', False),
        ('mechanism', 'int8', 0, 32767, None, None, 0, False),
        ('salt', 'bytes', 0, 32767, None, None, b'', False),
        ('stored_key', 'bytes', 0, 32767, None, None, b'', False),
        ('server_key', 'bytes', 0, 32767, None, None, b'', False),
        ('iterations', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = '',
        mechanism: int = 0,
        salt: bytes = b'',
        stored_key: bytes = b'',
        server_key: bytes = b'',
        iterations: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
        self.unknown_tagged_fields = None


class FeatureLevelRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 12
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "feature_level",)
    FIELDS = (
        ('name', 'string', 0, 32767, None, None, '', False),
        ('feature_level', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = '',
        feature_level: int = 0,
    ) -> None:
        self.name = name
        self.feature_level = feature_level
        self.unknown_tagged_fields = None


class ClientQuotaRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 14
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("entity", "key", "value", "remove",)
    FIELDS = (
        ('entity', '[]EntityData', 0, 32767, None, None, (), False),
        ('key', 'string', 0, 32767, None, None, '', False),
        ('value', 'float64', 0, 32767, None, None, 0.0, False),
        ('remove', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        entity: list[ClientQuotaRecord.EntityData] = UNSET,
        key: str = '',
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.entity = [] if entity is UNSET else entity
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tagged_fields = None

    class EntityData(Message):
        __slots__ = ("entity_type", "entity_name",)
        FIELDS = (
            ('entity_type', 'string', 0, 32767, None, None, '', False),
            ('entity_name', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            entity_type: str = '',
            entity_name: str | None = '',
        ) -> None:
            self.entity_type = entity_type
            self.entity_name = entity_name
            self.unknown_tagged_fields = None


class ProducerIdsRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 15
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch", "next_producer_id",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('broker_epoch', 'int64', 0, 32767, None, None, -1, False),
        ('next_producer_id', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.next_producer_id = next_producer_id
        self.unknown_tagged_fields = None


class BrokerRegistrationChangeRecord(Message):
    """metadata, versions 0-3."""

    KIND = "metadata"
    TYPE = 17
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('broker_epoch', 'int64', 0, 32767, None, None, 0, False),
        ('fenced', 'int8', 0, 32767, None, (0, 0, 32767), 0, False),
        ('in_controlled_shutdown', 'int8', 1, 32767, None, (1, 1, 32767), 0, False),
        ('log_dirs', '[]uuid', 2, 32767, None, (2, 2, 32767), (), False),
        ('cordoned_log_dirs', '[]uuid', 3, 32767, (3, 32767), (3, 3, 32767), None, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[UUID] = UNSET,
        cordoned_log_dirs: list[UUID] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is UNSET else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tagged_fields = None


class AccessControlEntryRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 18
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type",)
    FIELDS = (
        ('id', 'uuid', 0, 32767, None, None, (), False),
        ('resource_type', 'int8', 0, 32767, None, None, 0, False),
        ('resource_name', 'string', 0, 32767, None, None, '', False),
        ('pattern_type', 'int8', 0, 32767, None, None, 0, False),
        ('principal', 'string', 0, 32767, None, None, '', False),
        ('host', 'string', 0, 32767, None, None, '', False),
        ('operation', 'int8', 0, 32767, None, None, 0, False),
        ('permission_type', 'int8', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        id: UUID = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = '',
        pattern_type: int = 0,
        principal: str = '',
        host: str = '',
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.id = id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tagged_fields = None


class RemoveAccessControlEntryRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 19
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("id",)
    FIELDS = (
        ('id', 'uuid', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        id: UUID = ZERO_UUID,
    ) -> None:
        self.id = id
        self.unknown_tagged_fields = None


class NoOpRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 20
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ()
    FIELDS = (
    )

    def __init__(self) -> None:
        self.unknown_tagged_fields = None


class ZkMigrationStateRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 21
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("zk_migration_state",)
    FIELDS = (
        ('zk_migration_state', 'int8', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
    ) -> None:
        self.zk_migration_state = zk_migration_state
        self.unknown_tagged_fields = None


class RemoveUserScramCredentialRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 22
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "mechanism",)
    FIELDS = (
        ('name', 'string', 0, 32767, None, None, '', False),
        ('mechanism', 'int8', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = '',
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.unknown_tagged_fields = None


class BeginTransactionRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 23
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("name",)
    FIELDS = (
        ('name', 'string', 0, 32767, (0, 32767), (0, 0, 32767), None, False),
    )

    def __init__(
        self,
        *,
        name: str | None = None,
    ) -> None:
        self.name = name
        self.unknown_tagged_fields = None


class EndTransactionRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 24
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ()
    FIELDS = (
    )

    def __init__(self) -> None:
        self.unknown_tagged_fields = None


class AbortTransactionRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 25
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("reason",)
    FIELDS = (
        ('reason', 'string', 0, 32767, (0, 32767), (0, 0, 32767), None, False),
    )

    def __init__(
        self,
        *,
        reason: str | None = None,
    ) -> None:
        self.reason = reason
        self.unknown_tagged_fields = None


class RemoveDelegationTokenRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 26
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("token_id",)
    FIELDS = (
        ('token_id', 'string', 0, 32767, None, None, '', False),
    )

    def __init__(
        self,
        *,
        token_id: str = '',
    ) -> None:
        self.token_id = token_id
        self.unknown_tagged_fields = None


class RegisterControllerRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 27
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features",)
    FIELDS = (
        ('controller_id', 'int32', 0, 32767, None, None, 0, False),
        ('incarnation_id', 'uuid', 0, 32767, None, None, (), False),
        ('zk_migration_ready', 'bool', 0, 32767, None, None, False, False),
        ('end_points', '[]ControllerEndpoint', 0, 32767, None, None, (), False),
        ('features', '[]ControllerFeature', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: UUID = ZERO_UUID,
        zk_migration_ready: bool = False,
        end_points: list[RegisterControllerRecord.ControllerEndpoint] = UNSET,
        features: list[RegisterControllerRecord.ControllerFeature] = UNSET,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = [] if end_points is UNSET else end_points
        self.features = [] if features is UNSET else features
        self.unknown_tagged_fields = None

    class ControllerEndpoint(Message):
        __slots__ = ("name", "host", "port", "security_protocol",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'uint16', 0, 32767, None, None, 0, False),
            ('security_protocol', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            host: str = '',
            port: int = 0,
            security_protocol: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self.unknown_tagged_fields = None

    class ControllerFeature(Message):
        __slots__ = ("name", "min_supported_version", "max_supported_version",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('min_supported_version', 'int16', 0, 32767, None, None, 0, False),
            ('max_supported_version', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None


class ClearElrRecord(Message):
    """metadata, versions 0."""

    KIND = "metadata"
    TYPE = 28
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("topic_name",)
    FIELDS = (
        ('topic_name', 'string', 0, 32767, None, None, '', False),
    )

    def __init__(
        self,
        *,
        topic_name: str = '',
    ) -> None:
        self.topic_name = topic_name
        self.unknown_tagged_fields = None
