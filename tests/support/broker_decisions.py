"""Steps in a broker's life that only heartbeats cause, as decisions of their own."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from moldau.broker.metadata.machine.brokers import (
    check_broker_epoch,
    cordoning_records,
    offline_records,
    shutdown_records,
    unfencing_records,
)
from moldau.broker.metadata.machine.changes import PartitionChanges
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.view import ControllerView


def unfence_broker(
    controller: ControllerView, *, broker_id: int, broker_epoch: int
) -> Decision[None]:
    broker = check_broker_epoch(controller, broker_id, broker_epoch)
    if not broker.fenced:
        return Decision((), None)
    return Decision(tuple(unfencing_records(controller, broker)), None, atomic=False)


def begin_controlled_shutdown(
    controller: ControllerView, *, broker_id: int, broker_epoch: int
) -> Decision[None]:
    broker = check_broker_epoch(controller, broker_id, broker_epoch)
    if broker.in_controlled_shutdown:
        return Decision((), None)
    changes = PartitionChanges(controller, removed=broker_id)
    records = shutdown_records(controller, broker, changes)
    return Decision((*records, *changes.records), None, atomic=False)


def take_log_dirs_offline(
    controller: ControllerView, *, broker_id: int, broker_epoch: int, directories: Collection[UUID]
) -> Decision[None]:
    broker = check_broker_epoch(controller, broker_id, broker_epoch)
    changes = PartitionChanges(controller, removed=broker_id)
    records = offline_records(controller, broker, directories, changes)
    return Decision((*changes.records, *records), None, atomic=False)


def cordon_log_dirs(
    controller: ControllerView, *, broker_id: int, broker_epoch: int, directories: Collection[UUID]
) -> Decision[None]:
    broker = check_broker_epoch(controller, broker_id, broker_epoch)
    return Decision(tuple(cordoning_records(controller, broker, directories)), None)
