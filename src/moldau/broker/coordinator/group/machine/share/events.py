"""What share groups ask their shell to do, and to be woken for."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.coordinator.group.machine.share.states import Topics
from moldau.broker.coordinator.machine.decision import Action, Timer


@dataclass(frozen=True, slots=True)
class ShareSessionTimer(Timer):
    """The member has not been heard of for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class InitializeShareState(Action):
    """Action: have the share coordinator make state for these partitions.

    How it went is told to `ShareGroups.settle_initialization`.
    """

    group_id: str
    state_epoch: int
    topics: Topics
