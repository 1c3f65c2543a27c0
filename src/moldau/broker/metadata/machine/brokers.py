"""Broker registrations: which brokers are registered and fenced, and what follows for partitions.

Invariants: one id belongs to one process, so another incarnation is rejected while the registered
one has a session, unless that one has certainly ended; a broker that registers is fenced until it
has caught up with the metadata; a new incarnation gets a new epoch, the offset of the first record
of its registration, after the leaderships of the old one are taken away; a replica whose log
directory is not online neither leads nor is in the ISR.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from moldau.broker.metadata.machine.changes import PartitionChanges
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
)
from moldau.broker.metadata.machine.model import (
    Broker,
    Partition,
    Topic,
    endpoints_from,
    features_from,
    is_reserved_directory,
)
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.metadata.machine.writer import broker_record
from moldau.broker.raft.machine.record_versions import (
    CORDONED_DIRECTORIES_METADATA_VERSION,
    DIRECTORY_METADATA_VERSION,
)
from moldau.times import ELAPSED_ZERO, ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    BrokerRegistrationChangeRecord,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)

if TYPE_CHECKING:
    from uuid import UUID


# Before it a broker could not say how it had stopped.
CLEAN_SHUTDOWN_API_VERSION = 3


def register_broker(
    controller: ControllerView,
    request: BrokerRegistrationRequest,
    *,
    now_ms: ElapsedMs = ELAPSED_ZERO,
    api_version: int = CLEAN_SHUTDOWN_API_VERSION,
) -> Decision[BrokerRegistrationResponse]:
    if request.cluster_id != controller.config.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {controller.config.cluster_id}, "
            f"but got cluster ID {request.cluster_id}",
        )
    existing = controller.image.brokers.get(request.broker_id)
    clean = (
        existing is not None
        and api_version >= CLEAN_SHUTDOWN_API_VERSION
        and request.previous_broker_epoch == existing.epoch
    )
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        same_incarnation: Broker | None = existing
    else:
        same_incarnation = None
        if (
            existing is not None
            and controller.has_session(existing, now_ms)
            and not clean
            and not _took_over(controller, existing, request, now_ms)
        ):
            raise ApiError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently"
                " restarted this should self-resolve once the heartbeat manager expires the"
                " broker's session.",
            )
    if request.is_migrating_zk_broker:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        )
    if controller.image.metadata_version >= DIRECTORY_METADATA_VERSION:
        _check_directories(controller, request)
    _check_features(controller, request)
    broker = _new_registration(controller, request, same_incarnation)
    records: list[Any] = []
    if same_incarnation is None:
        records += _records_for_restart(controller, broker, clean=clean)
    # Last: if the controller fails half-way, the next one still takes the broker for a new
    # incarnation when it registers again, and takes from the old one what it still has.
    records.append(broker_record(broker, controller.image.metadata_version))
    response = BrokerRegistrationResponse(broker_epoch=broker.epoch)
    return Decision(tuple(records), response, atomic=False)


def _took_over(
    controller: ControllerView,
    existing: Broker,
    request: BrokerRegistrationRequest,
    now_ms: ElapsedMs,
) -> bool:
    """Whether the new incarnation listens where the silent old one did.

    Two processes cannot listen at one address, so the old one has ended. It has to be silent too:
    a process that was started elsewhere with a copy of its configuration must not displace it.
    """
    endpoints = set(endpoints_from(request.listeners))
    return (
        bool(endpoints)
        and endpoints == set(existing.endpoints)
        and controller.is_silent(existing, now_ms)
    )


def _new_registration(
    controller: ControllerView, request: BrokerRegistrationRequest, existing: Broker | None
) -> Broker:
    """`existing` is the same incarnation's; it changes what it says of itself, not its state."""
    return Broker(
        id=request.broker_id,
        epoch=controller.next_offset if existing is None else existing.epoch,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_from(request.listeners),
        features=features_from(request.features),
        rack=request.rack,
        fenced=existing is None or existing.fenced,
        in_controlled_shutdown=existing is not None and existing.in_controlled_shutdown,
        log_dirs=tuple(sorted(request.log_dirs, key=lambda item: item.bytes)),
        cordoned_log_dirs=() if existing is None else existing.cordoned_log_dirs,
    )


def _check_directories(controller: ControllerView, request: BrokerRegistrationRequest) -> None:
    problem = None
    if not request.log_dirs:
        problem = "No directories specified in request"
    elif any(is_reserved_directory(directory) for directory in request.log_dirs):
        problem = "Reserved directory ID in request"
    elif len(set(request.log_dirs)) < len(request.log_dirs):
        problem = "Duplicate directory ID in request"
    else:
        for broker in controller.image.brokers.values():
            if broker.id == request.broker_id:
                continue
            shared = set(broker.log_dirs) & set(request.log_dirs)
            if shared:
                problem = f"Broker {broker.id} is already registered with directory {shared.pop()}"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, problem)


def _check_features(controller: ControllerView, request: BrokerRegistrationRequest) -> None:
    supported = features_from(request.features)
    if METADATA_VERSION not in supported:
        raise ApiError(
            ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'"
        )
    finalized = {
        **controller.image.features,
        METADATA_VERSION: controller.image.metadata_version,
        KRAFT_VERSION: controller.kraft_version,
    }
    for name in {**supported, **finalized}:
        level = finalized.get(name, 0)
        levels = supported.get(name)
        if levels is None and level == 0:
            continue
        low, high = (0, 0) if levels is None else (levels.min_version, levels.max_version)
        if not low <= level <= high:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "Unable to register because the broker does not support finalized version"
                f" {level} of {name}. The broker wants a version between {low} and {high},"
                " inclusive.",
            )


def _records_for_restart(
    controller: ControllerView, new: Broker, *, clean: bool
) -> list[PartitionChangeRecord]:
    changes = PartitionChanges(controller, removed=new.id)
    for topic, index, partition in _partitions_of(controller, new.id):
        sole = partition.replicas == (new.id,)
        if not sole or not new.has_online(partition.directory_of(new.id)):
            # A sole replica stays eligible: no other replica can ever have more than it has.
            changes.remove(topic, index, partition, clean=clean or sole)
        elif not clean and partition.leader == new.id:
            # No other broker has this partition, so its leader stays; but a crash may have cost it
            # unsynced records, and only a new leader epoch lets consumers notice.
            record = PartitionChangeRecord(
                partition_id=index, topic_id=topic.id, leader=partition.leader
            )
            changes.add(topic, partition, record)
    return changes.records


def unfencing_records(
    controller: ControllerView, broker: Broker, *, lost: Collection[UUID] = ()
) -> list[Any]:
    """Unfence the broker, which then leads what has no other leader, but nothing in its `lost` log
    directories.

    Every partition without a leader is checked, also those of other brokers, so that an election
    that was missed for any reason is made when the next broker is unfenced.
    """
    changes = PartitionChanges(controller, added=broker.id)
    for topic_id, index in controller.index.leaderless():
        topic = controller.image.topics_by_id[topic_id]
        partition = topic.partitions[index]
        if partition.directory_of(broker.id) not in lost:
            changes.change(topic, index, partition)
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=-1
    )
    return [record, *changes.records]


def fence_broker(
    controller: ControllerView, *, broker_id: int, broker_epoch: int
) -> Decision[None]:
    broker = check_broker_epoch(controller, broker_id, broker_epoch)
    if broker.fenced:
        return Decision((), None)
    changes = PartitionChanges(controller, removed=broker_id)
    records = fencing_records(controller, broker, changes)
    return Decision((*changes.records, *records), None, atomic=False)


def fencing_records(
    controller: ControllerView, broker: Broker, changes: PartitionChanges
) -> list[BrokerRegistrationChangeRecord]:
    """Take everything from the broker in `changes`; the records that follow those.

    The broker is fenced last: should the controller fail half-way, its session ends once more.
    """
    take_partitions(controller, broker.id, changes)
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=1
    )
    return [] if broker.fenced else [record]


def take_partitions(controller: ControllerView, broker_id: int, changes: PartitionChanges) -> None:
    """Others lead what the broker led, and it is in no ISR any more."""
    for topic, index, partition in _partitions_of(controller, broker_id):
        if broker_id in partition.isr or broker_id == partition.leader:
            changes.remove(topic, index, partition)


def shutdown_records(
    controller: ControllerView, broker: Broker, changes: PartitionChanges
) -> list[BrokerRegistrationChangeRecord]:
    """Move everything away from the broker in `changes`; the records that go before those."""
    take_partitions(controller, broker.id, changes)
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
    )
    return [] if broker.in_controlled_shutdown else [record]


def unregister_broker(controller: ControllerView, *, broker_id: int) -> Decision[None]:
    broker = controller.image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
        )
    changes = PartitionChanges(controller, removed=broker_id)
    take_partitions(controller, broker_id, changes)
    record = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    return Decision((*changes.records, record), None, atomic=False)


def offline_records(
    controller: ControllerView,
    broker: Broker,
    directories: Collection[UUID],
    changes: PartitionChanges,
) -> list[BrokerRegistrationChangeRecord]:
    """Log directories of a live broker have failed: other replicas lead what it led there.

    A failed log directory is out until the broker registers again, as it does not use it before.
    """
    lost = set(directories) & set(broker.log_dirs)
    if not lost:
        return []
    for topic, index, before in _partitions_of(controller, broker.id):
        partition = changes.partition(topic, index) or before
        if partition.directory_of(broker.id) in lost:
            changes.remove(topic, index, partition)
    remaining = [directory for directory in broker.log_dirs if directory not in lost]
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
    )
    return [record]


def cordoning_records(
    controller: ControllerView, broker: Broker, directories: Collection[UUID]
) -> list[BrokerRegistrationChangeRecord]:
    """The broker's log directories that get no new replicas are now `directories` (KIP-1066)."""
    cordoned = tuple(sorted(directories, key=lambda item: item.bytes))
    if (
        cordoned == broker.cordoned_log_dirs
        or controller.image.metadata_version < CORDONED_DIRECTORIES_METADATA_VERSION
    ):
        return []
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
    )
    return [record]


def check_broker_epoch(controller: ControllerView, broker_id: int, broker_epoch: int) -> Broker:
    broker = controller.image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
        )
    if broker.epoch != broker_epoch:
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}",
        )
    return broker


def _partitions_of(
    controller: ControllerView, broker_id: int
) -> Iterator[tuple[Topic, int, Partition]]:
    topics = controller.image.topics_by_id
    for topic_id, index in controller.index.of_broker(broker_id):
        topic = topics[topic_id]
        yield topic, index, topic.partitions[index]
