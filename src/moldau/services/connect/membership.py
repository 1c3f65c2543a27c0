"""Membership: what a herder asks of its group. A standalone worker is alone in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from moldau.connect.machine.ids import TaskId

__all__ = ["Alone", "Membership"]


class Membership(Protocol):
    @property
    def is_leader(self) -> bool: ...

    @property
    def leader_url(self) -> str | None: ...

    @property
    def worker_id(self) -> str: ...

    @property
    def generation(self) -> int: ...

    def owner_url(self, id: str | TaskId) -> str | None:
        """Where a connector or task runs, as far as the leader knows."""

    def request_rejoin(self, reason: str) -> None:
        """Have the work distributed again."""


def _nothing() -> None: ...


class Alone:
    """A worker without a group: it leads, and runs everything."""

    is_leader = True
    leader_url = None
    generation = 0

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.on_rejoin: Callable[[], None] = _nothing

    def owner_url(self, id: str | TaskId) -> str | None:
        return None

    def request_rejoin(self, reason: str) -> None:
        self.on_rejoin()
