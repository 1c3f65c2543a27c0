"""The values a metadata image is made of.

Every value is immutable and replaced as a whole when a record changes it, so images, deltas and
copies of images may share them freely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from moldau.broker.raft.machine.errors import MetadataError
from moldau.wire.uuids import DIRECTORY_LOST as DIRECTORY_LOST
from moldau.wire.uuids import DIRECTORY_MIGRATING as DIRECTORY_MIGRATING
from moldau.wire.uuids import DIRECTORY_UNASSIGNED as DIRECTORY_UNASSIGNED

if TYPE_CHECKING:
    from moldau.wire.messages import (
        BrokerRegistrationChangeRecord,
        PartitionChangeRecord,
        PartitionRecord,
        RegisterBrokerRecord,
        RegisterControllerRecord,
    )

NO_LEADER = -1
NO_LEADER_CHANGE = -2

# Kafka keeps the hundred lowest values for itself.
_RESERVED_DIRECTORY_COUNT = 100


class LeaderRecoveryState(IntEnum):
    RECOVERED = 0
    RECOVERING = 1


class ResourceType(IntEnum):
    """What a config belongs to; the values are those of the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def is_reserved_directory(directory: UUID) -> bool:
    return directory.int < _RESERVED_DIRECTORY_COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True)
class VersionRange:
    min_version: int
    max_version: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.min_version <= level <= self.max_version


class _FeatureField(Protocol):
    name: str
    min_supported_version: int
    max_supported_version: int


class _EndpointField(Protocol):
    name: str
    host: str
    port: int
    security_protocol: int


def features_from(fields: Iterable[_FeatureField]) -> dict[str, VersionRange]:
    return {
        item.name: VersionRange(item.min_supported_version, item.max_supported_version)
        for item in fields
    }


def endpoints_from(fields: Iterable[_EndpointField]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            name=item.name,
            host=item.host,
            port=item.port,
            security_protocol=item.security_protocol,
        )
        for item in fields
    )


class Node(NamedTuple):
    """A broker as a client of one listener reaches it."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker's registration. `epoch` names one incarnation: the offset of its first record."""

    id: int
    epoch: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] = ()

    @property
    def active(self) -> bool:
        """Whether it may lead partitions and be in their ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory: UUID | None) -> bool:
        """Whether a replica in `directory` can be served."""
        if directory is None or directory == DIRECTORY_LOST:
            return False
        # A replica that was not put anywhere yet is put where there is room; registrations older
        # than directories (KIP-858) name none and vouch for all.
        return not self.log_dirs or is_reserved_directory(directory) or directory in self.log_dirs

    def endpoint(self, listener_name: str) -> Endpoint | None:
        return next((item for item in self.endpoints if item.name == listener_name), None)

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> Broker:
        return cls(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=endpoints_from(record.end_points),
            features=features_from(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            is_migrating_zk_broker=record.is_migrating_zk_broker,
            log_dirs=tuple(record.log_dirs),
            cordoned_log_dirs=tuple(record.cordoned_log_dirs or ()),
        )

    def changed_by(self, record: BrokerRegistrationChangeRecord) -> Broker:
        if record.fenced not in (-1, 0, 1):
            raise MetadataError(f"unknown value {record.fenced} for fenced in {record!r}")
        if record.in_controlled_shutdown not in (0, 1):
            raise MetadataError(
                f"unknown value {record.in_controlled_shutdown} for inControlledShutdown"
                f" in {record!r}"
            )
        return replace(
            self,
            fenced=self.fenced if record.fenced == 0 else record.fenced == 1,
            in_controlled_shutdown=self.in_controlled_shutdown
            or record.in_controlled_shutdown == 1,
            log_dirs=tuple(record.log_dirs) or self.log_dirs,
            cordoned_log_dirs=(
                self.cordoned_log_dirs
                if record.cordoned_log_dirs is None
                else tuple(record.cordoned_log_dirs)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNode:
    """A controller's registration (KIP-919)."""

    id: int
    incarnation_id: UUID
    zk_migration_ready: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> ControllerNode:
        return cls(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            endpoints=endpoints_from(record.end_points),
            features=features_from(record.features),
        )


class Partition(NamedTuple):
    """A partition's replicas, leader and ISR; made often enough for a tuple to be worth it.

    `directories` runs parallel to `replicas`. The leader epoch rises with every leader change, the
    partition epoch with every change; they come last, so that `[:-2]` is all but them.
    """

    replicas: tuple[int, ...]
    directories: tuple[UUID, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    leader_epoch: int = 0
    partition_epoch: int = 0

    @property
    def reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    def directory_of(self, replica_id: int) -> UUID | None:
        try:
            return self.directories[self.replicas.index(replica_id)]
        except ValueError:
            return None

    @classmethod
    def from_record(cls, record: PartitionRecord) -> Partition:
        replicas = tuple(record.replicas)
        return cls(
            replicas=replicas,
            directories=_checked_directories(record.directories, replicas, record),
            isr=tuple(record.isr),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader=record.leader,
            leader_recovery_state=LeaderRecoveryState(record.leader_recovery_state),
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def changed_by(self, record: PartitionChangeRecord) -> Partition:
        """This partition after `record`; what the record leaves out stays as it is."""
        leader_changes = record.leader != NO_LEADER_CHANGE
        if record.replicas is None and record.directories is None:
            replicas, directories = self.replicas, self.directories
            if (
                record.removing_replicas is None
                and record.adding_replicas is None
                and record.eligible_leader_replicas is None
                and record.last_known_elr is None
                and record.leader_recovery_state == -1
            ):
                # Nearly all: another leader, another ISR.
                isr = record.isr
                return Partition(
                    replicas,
                    directories,
                    self.isr if isr is None else tuple(isr),
                    self.removing_replicas,
                    self.adding_replicas,
                    self.elr,
                    self.last_known_elr,
                    record.leader if leader_changes else self.leader,
                    self.leader_recovery_state,
                    self.leader_epoch + leader_changes,
                    self.partition_epoch + 1,
                )
        else:
            replicas = self.replicas if record.replicas is None else tuple(record.replicas)
            directories = _checked_directories(
                self.directories if record.directories is None else record.directories,
                replicas,
                record,
            )
        return Partition(
            replicas=replicas,
            directories=directories,
            isr=_kept(record.isr, self.isr),
            removing_replicas=_kept(record.removing_replicas, self.removing_replicas),
            adding_replicas=_kept(record.adding_replicas, self.adding_replicas),
            elr=_kept(record.eligible_leader_replicas, self.elr),
            last_known_elr=_kept(record.last_known_elr, self.last_known_elr),
            leader=record.leader if leader_changes else self.leader,
            leader_recovery_state=(
                self.leader_recovery_state
                if record.leader_recovery_state == -1
                else LeaderRecoveryState(record.leader_recovery_state)
            ),
            leader_epoch=self.leader_epoch + leader_changes,
            partition_epoch=self.partition_epoch + 1,
        )


def _kept(changed: Sequence[int] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if changed is None else tuple(changed)


def _checked_directories(
    directories: Sequence[UUID], replicas: tuple[int, ...], record: object
) -> tuple[UUID, ...]:
    if not directories:
        # Written before directories were known (KIP-858).
        return (DIRECTORY_MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise MetadataError(
            f"{len(directories)} directories for {len(replicas)} replicas in {record!r}"
        )
    return tuple(directories)


@dataclass(slots=True)
class Topic:
    """A topic and its partitions. Only replay changes `partitions`."""

    name: str
    id: UUID
    partitions: dict[int, Partition] = field(default_factory=dict)

    def copy(self) -> Topic:
        return Topic(self.name, self.id, dict(self.partitions))
