"""Periodic tasks of the active controller.

The shell wakes up at `due_at_ms` and then runs `on_time` until nothing is due. Brokers are fenced
one by one, so that each decision sees the changes of the one before; a round of elections that has
reached its bound continues shortly after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.broker.metadata.machine.brokers import fence_broker
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.heartbeats import BrokerHeartbeats
from moldau.broker.metadata.machine.leadership import (
    ELECTIONS_PER_ROUND_MAX,
    preferred_elections,
    unclean_elections,
)
from moldau.broker.metadata.machine.view import ControllerConfig, ControllerView
from moldau.times import ElapsedMs
from moldau.wire.messages import NoOpRecord

GO_ON_AFTER_MS = 10

_Task = Callable[[ControllerView], list[Any]]


class PeriodicTasks:
    """Intervals in milliseconds; a task whose interval is 0 never runs."""

    def __init__(self, config: ControllerConfig, *, now_ms: ElapsedMs) -> None:
        self._tasks: Mapping[str, tuple[int, _Task]] = {
            "electPreferred": (
                config.leader_imbalance_check_interval_seconds * 1000
                if config.auto_leader_rebalance_enable
                else 0,
                preferred_elections,
            ),
            "electUnclean": (config.unclean_leader_election_interval_ms, unclean_elections),
            "writeNoOpRecord": (config.metadata_max_idle_interval_ms, _no_op),
        }
        self._due_ms = {
            name: ElapsedMs(now_ms + interval_ms)
            for name, (interval_ms, _) in self._tasks.items()
            if interval_ms > 0
        }

    def due_at_ms(self) -> ElapsedMs | None:
        return min(self._due_ms.values(), default=None)

    def on_time(self, controller: ControllerView, now_ms: ElapsedMs) -> Decision[str] | None:
        """One task that is due, None if none is."""
        for name, due_ms in self._due_ms.items():
            if due_ms <= now_ms:
                interval_ms, task = self._tasks[name]
                records = task(controller)
                more = len(records) >= ELECTIONS_PER_ROUND_MAX
                delay_ms = GO_ON_AFTER_MS if more else interval_ms
                self._due_ms[name] = ElapsedMs(now_ms + delay_ms)
                return Decision(tuple(records), "", atomic=False)
        return None


def _no_op(controller: ControllerView) -> list[Any]:
    return [NoOpRecord()]


def fence_expired(
    controller: ControllerView, heartbeats: BrokerHeartbeats, now_ms: ElapsedMs
) -> Decision[str] | None:
    """Fence one broker that was silent for too long, None if there is none; the response is for
    the log."""
    expired = heartbeats.pop_expired(now_ms)
    if expired is None:
        return None
    broker_id, broker_epoch = expired
    broker = controller.image.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        return Decision((), "")
    fencing = fence_broker(controller, broker_id=broker_id, broker_epoch=broker_epoch)
    if not fencing.records:
        return Decision((), "")
    why = (
        f"fencing broker {broker_id} at epoch {broker_epoch}: no heartbeat for"
        f" {controller.config.broker_session_timeout_ms} ms"
    )
    return Decision(fencing.records, why, atomic=False)
