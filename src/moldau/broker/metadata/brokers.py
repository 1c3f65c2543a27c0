"""Broker registrations: who is in the cluster, who is alive, and what that does to partitions.

A broker that registers is fenced until it has caught up with the metadata. A new incarnation gets
a new epoch, the offset its record will have, and whatever the old one led is taken from it first.
A replica whose log folder is not online neither leads nor is in sync.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from moldau.broker.metadata.decision import Decision
from moldau.broker.metadata.elections import change_partition
from moldau.broker.metadata.features import (
    CORDONED_DIRECTORIES_METADATA_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from moldau.broker.metadata.model import (
    NO_LEADER,
    Broker,
    Partition,
    Topic,
    endpoints_from,
    features_from,
    is_reserved_directory,
)
from moldau.broker.metadata.writer import broker_record
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

    from moldau.broker.metadata.controller import Controller


def register_broker(
    controller: Controller, request: BrokerRegistrationRequest
) -> Decision[BrokerRegistrationResponse]:
    if request.cluster_id != controller.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {controller.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    _check_directories(controller, request)
    _check_features(controller, request)
    existing = controller.image.brokers.get(request.broker_id)
    same_incarnation = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and not same_incarnation and controller.has_session(existing):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently"
            " restarted this should self-resolve once the heartbeat manager expires the broker's"
            " session.",
        )
    epoch = existing.epoch if existing is not None and same_incarnation else controller.next_offset
    broker = Broker(
        id=request.broker_id,
        epoch=epoch,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_from(request.listeners),
        features=features_from(request.features),
        rack=request.rack,
        fenced=not (existing is not None and same_incarnation and not existing.fenced),
        log_dirs=tuple(sorted(request.log_dirs, key=lambda item: item.bytes)),
        cordoned_log_dirs=(
            existing.cordoned_log_dirs if existing is not None and same_incarnation else ()
        ),
    )
    # First in the batch: the epoch is the offset of this very record.
    records: list[Any] = [broker_record(broker, controller.image.metadata_version)]
    if existing is not None and not same_incarnation:
        clean = request.previous_broker_epoch == existing.epoch
        records += _records_for_restart(controller, existing, broker, clean=clean)
    return Decision(tuple(records), BrokerRegistrationResponse(broker_epoch=epoch), atomic=False)


def _check_directories(controller: Controller, request: BrokerRegistrationRequest) -> None:
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


def _check_features(controller: Controller, request: BrokerRegistrationRequest) -> None:
    supported = features_from(request.features)
    if METADATA_VERSION not in supported:
        raise ApiError(
            ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'"
        )
    finalized = {**controller.image.features, METADATA_VERSION: controller.image.metadata_version}
    for name, level in finalized.items():
        levels = supported.get(name)
        low, high = (0, 0) if levels is None else (levels.min_version, levels.max_version)
        if not low <= level <= high:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "Unable to register because the broker does not support finalized version"
                f" {level} of {name}. The broker wants a version between {low} and {high},"
                " inclusive.",
            )


def _records_for_restart(
    controller: Controller, old: Broker, new: Broker, *, clean: bool
) -> list[Any]:
    records: list[Any] = []
    for topic, index, partition in _partitions_of(controller, old.id):
        sole = partition.replicas == (old.id,)
        online = new.has_online(partition.directory_of(old.id))
        if not sole or not online:
            # A sole replica stays eligible: nobody else can ever have more than it has.
            record = _without_broker(
                controller, topic, index, partition, old.id, clean=clean or sole
            )
            if record is not None:
                records.append(record)
        elif not clean and partition.leader == old.id:
            # Nobody else has this partition, so its leader stays; but a crash may have cost it
            # unsynced records, and only a new leader epoch lets consumers notice.
            records.append(
                PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=old.id)
            )
    return records


def unfence_broker(controller: Controller, *, broker_id: int, broker_epoch: int) -> Decision[None]:
    broker = _checked(controller, broker_id, broker_epoch)
    if not broker.fenced:
        return Decision((), None)
    records: list[Any] = [
        BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=-1)
    ]
    for topic, index, partition in _partitions_of(controller, broker_id):
        if partition.leader == NO_LEADER:
            record = elect_leader(controller, topic, index, partition, unfenced=broker_id)
            if record is not None:
                records.append(record)
    return Decision(tuple(records), None, atomic=False)


def elect_leader(
    controller: Controller,
    topic: Topic,
    index: int,
    partition: Partition,
    *,
    unfenced: int | None = None,
) -> PartitionChangeRecord | None:
    """A leader for a partition that has none; broker `unfenced` may be chosen although the image
    still has it fenced."""
    brokers = controller.image.brokers

    def acceptable(replica: int) -> bool:
        if replica == unfenced:
            return brokers[replica].has_online(partition.directory_of(replica))
        return may_lead(controller, partition, replica)

    return change_partition(
        partition,
        topic_id=topic.id,
        index=index,
        isr=partition.isr,
        acceptable=acceptable,
        rules=controller.election_rules(topic),
    )


def fence_broker(controller: Controller, *, broker_id: int, broker_epoch: int) -> Decision[None]:
    broker = _checked(controller, broker_id, broker_epoch)
    if broker.fenced:
        return Decision((), None)
    record = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, fenced=1
    )
    return Decision((record, *_removals(controller, broker_id)), None, atomic=False)


def begin_controlled_shutdown(
    controller: Controller, *, broker_id: int, broker_epoch: int
) -> Decision[None]:
    broker = _checked(controller, broker_id, broker_epoch)
    if broker.in_controlled_shutdown:
        return Decision((), None)
    record = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, in_controlled_shutdown=1
    )
    return Decision((record, *_removals(controller, broker_id)), None, atomic=False)


def unregister_broker(controller: Controller, *, broker_id: int) -> Decision[None]:
    broker = controller.image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
        )
    record = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    return Decision((*_removals(controller, broker_id), record), None, atomic=False)


def take_log_dirs_offline(
    controller: Controller, *, broker_id: int, broker_epoch: int, directories: Collection[UUID]
) -> Decision[None]:
    """Log folders of a live broker have failed: others take over what it led there.

    Until the broker registers anew a failed folder stays out, as the broker does not use it again.
    """
    broker = _checked(controller, broker_id, broker_epoch)
    lost = set(directories) & set(broker.log_dirs)
    if not lost:
        return Decision((), None)
    records: list[Any] = []
    for topic, index, partition in _partitions_of(controller, broker_id):
        if partition.directory_of(broker_id) in lost:
            record = _without_broker(controller, topic, index, partition, broker_id, clean=True)
            if record is not None:
                records.append(record)
    remaining = [directory for directory in broker.log_dirs if directory not in lost]
    records.append(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker_epoch, log_dirs=remaining
        )
    )
    return Decision(tuple(records), None, atomic=False)


def cordon_log_dirs(
    controller: Controller, *, broker_id: int, broker_epoch: int, directories: Collection[UUID]
) -> Decision[None]:
    """A broker's folders that take no new replicas are now just `directories` (KIP-1066)."""
    broker = _checked(controller, broker_id, broker_epoch)
    cordoned = tuple(sorted(directories, key=lambda item: item.bytes))
    if (
        cordoned == broker.cordoned_log_dirs
        or controller.image.metadata_version < CORDONED_DIRECTORIES_METADATA_VERSION
    ):
        return Decision((), None)
    record = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, cordoned_log_dirs=list(cordoned)
    )
    return Decision((record,), None)


def may_lead(controller: Controller, partition: Partition, replica: int) -> bool:
    """Whether the replica's broker is alive and the folder it lies in is online."""
    broker = controller.image.brokers.get(replica)
    return (
        broker is not None and broker.active and broker.has_online(partition.directory_of(replica))
    )


def _checked(controller: Controller, broker_id: int, broker_epoch: int) -> Broker:
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


check_broker_epoch: Callable[[Controller, int, int], Broker] = _checked


def _removals(controller: Controller, broker_id: int) -> Iterator[PartitionChangeRecord]:
    for topic, index, partition in _partitions_of(controller, broker_id):
        record = _without_broker(controller, topic, index, partition, broker_id, clean=True)
        if record is not None:
            yield record


def _without_broker(
    controller: Controller,
    topic: Topic,
    index: int,
    partition: Partition,
    broker_id: int,
    *,
    clean: bool,
) -> PartitionChangeRecord | None:
    return change_partition(
        partition,
        topic_id=topic.id,
        index=index,
        isr=tuple(replica for replica in partition.isr if replica != broker_id),
        acceptable=lambda replica: (
            replica != broker_id and may_lead(controller, partition, replica)
        ),
        rules=controller.election_rules(topic),
        unclean_shutdown=() if clean else (broker_id,),
    )


def _partitions_of(
    controller: Controller, broker_id: int
) -> Iterator[tuple[Topic, int, Partition]]:
    for topic in controller.image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            if broker_id in partition.replicas:
                yield topic, index, partition


def supported_broker_features() -> dict[str, tuple[int, int]]:
    """What a broker of this version tells the controller when it registers."""
    return {
        name: (levels.min_version, levels.max_version)
        for name, levels in SUPPORTED_FEATURES.items()
    }
