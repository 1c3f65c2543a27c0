"""Deadlines of members; a member that misses one is removed from the group.

Each timer is named by the group and the member alone, so that scheduling it again moves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from moldau.broker.coordinator.machine.decision import Timer


@dataclass(frozen=True, slots=True)
class MemberSessionTimer(Timer):
    """The member has to send something."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberRebalanceTimer(Timer):
    """The member has to give up the partitions it was asked for."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicJoinTimer(Timer):
    """A member of the classic protocol has to join again."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicSyncTimer(Timer):
    """A member of the classic protocol has joined and has to fetch its assignment."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexTimer(Timer):
    """The regular expressions of the group are to be resolved, right after what is under way."""

    group_id: str


ConsumerTimer: TypeAlias = (
    MemberSessionTimer | MemberRebalanceTimer | ClassicJoinTimer | ClassicSyncTimer | RegexTimer
)
MEMBER_TIMERS = (MemberSessionTimer, MemberRebalanceTimer, ClassicJoinTimer, ClassicSyncTimer)
