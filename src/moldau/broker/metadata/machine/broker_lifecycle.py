"""BrokerHeartbeat: a broker reports how far it has read the metadata and which state it wants, and
gets the state that it may have.

A heartbeat is the only request that also changes something immediately: the broker's session. That
is not in the log, so nothing has to be undone if the records fail.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.metadata.machine.brokers import (
    check_broker_epoch,
    cordoning_records,
    fence_broker,
    fencing_records,
    offline_records,
    shutdown_records,
    unfencing_records,
)
from moldau.broker.metadata.machine.changes import PartitionChanges
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.heartbeats import BrokerHeartbeats, BrokerState
from moldau.broker.metadata.machine.model import Broker
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.raft.machine.record_versions import DIRECTORY_METADATA_VERSION
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def process_heartbeat(
    controller: ControllerView, request: BrokerHeartbeatRequest, *, now_ms: ElapsedMs
) -> Decision[BrokerHeartbeatResponse]:
    heartbeats = controller.heartbeats
    if heartbeats is None:
        raise ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")
    broker = check_broker_epoch(controller, request.broker_id, request.broker_epoch)
    caught_up = request.current_metadata_offset >= controller.registration_offset(broker.id)
    before = heartbeats.state(broker.id)
    after = heartbeats.next_state(
        broker.id,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        caught_up=caught_up,
        has_leaderships=controller.index.has_leaderships(broker.id),
    )
    changes = PartitionChanges(controller, removed=broker.id)
    records = [] if before == after else _transition(controller, broker, request, after, changes)
    heartbeats.touch(
        broker.id,
        broker.epoch,
        now_ms=now_ms,
        fenced=after.fenced,
        metadata_offset=request.current_metadata_offset,
    )
    if after == BrokerState.SHUTDOWN_NOW:
        # It stops on its own word, so the next process with its id need not wait.
        heartbeats.end_session(broker.id, broker.epoch)
    records += _log_dir_records(controller, broker, request, changes)
    if after == BrokerState.CONTROLLED_SHUTDOWN:
        _begin_shutdown(controller, heartbeats, broker, len(records))
    response = BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=after.fenced,
        should_shut_down=after == BrokerState.SHUTDOWN_NOW,
    )
    return Decision(tuple(records), response, atomic=False)


def fence_dead(controller: ControllerView, *, broker_id: int, broker_epoch: int) -> Decision[None]:
    """Fence an incarnation whose process is gone, without waiting for the end of its session."""
    broker = controller.image.brokers.get(broker_id)
    if controller.heartbeats is None or broker is None or broker.epoch != broker_epoch:
        return Decision((), None)
    controller.heartbeats.end_session(broker_id, broker_epoch)
    return fence_broker(controller, broker_id=broker_id, broker_epoch=broker_epoch)


def _transition(
    controller: ControllerView,
    broker: Broker,
    request: BrokerHeartbeatRequest,
    after: BrokerState,
    changes: PartitionChanges,
) -> list[Any]:
    match after:
        case BrokerState.UNFENCED:
            # A replica in a log directory that has failed meanwhile does not lead.
            return unfencing_records(controller, broker, lost=request.offline_log_dirs)
        case BrokerState.CONTROLLED_SHUTDOWN:
            records: list[Any] = [*shutdown_records(controller, broker, changes)]
            return records + changes.records
        case _:
            fencing = fencing_records(controller, broker, changes)
            return [*changes.records, *fencing]


def _log_dir_records(
    controller: ControllerView,
    broker: Broker,
    request: BrokerHeartbeatRequest,
    changes: PartitionChanges,
) -> list[Any]:
    records: list[Any] = []
    if controller.image.metadata_version >= DIRECTORY_METADATA_VERSION:
        made = len(changes.records)
        registration = offline_records(controller, broker, request.offline_log_dirs, changes)
        records += [*changes.records[made:], *registration]
    if request.cordoned_log_dirs is not None:
        records += cordoning_records(controller, broker, request.cordoned_log_dirs)
    return records


def _begin_shutdown(
    controller: ControllerView, heartbeats: BrokerHeartbeats, broker: Broker, record_count: int
) -> None:
    # The broker may stop when every live broker has read the records of the new leaders.
    heartbeats.begin_shutdown(broker.id, controller.next_offset + record_count - 1)
