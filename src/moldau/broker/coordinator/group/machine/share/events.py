"""The timer and the action of share groups."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.coordinator.group.machine.share.states import Topics
from moldau.broker.coordinator.machine.decision import Action, Timer


@dataclass(frozen=True, slots=True)
class ShareSessionTimer(Timer):
    """The member's session has expired."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class InitializeShareState(Action):
    """Action: have the share coordinator create the state of these partitions.

    The result is passed to `ShareGroups.settle_initialization`.
    """

    group_id: str
    state_epoch: int
    topics: Topics
