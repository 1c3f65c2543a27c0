"""Deadlines of members; a member that misses one is removed from the group.

Each timer is named by the group and the member alone, so that scheduling it again moves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from moldau.broker.coordinator.machine.decision import Timer


@dataclass(frozen=True, slots=True)
class MemberSessionTimer(Timer):
    """The member has to send a request."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberRebalanceTimer(Timer):
    """The member has to revoke its pending partitions."""

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
    """The regular expressions of the group are to be resolved, right after this decision."""

    group_id: str
    may_describe: Callable[[str], bool] | None = field(default=None, compare=False)
    """What the member may see whose request has this done: as in Kafka, it decides for all."""


ConsumerTimer: TypeAlias = (
    MemberSessionTimer | MemberRebalanceTimer | ClassicJoinTimer | ClassicSyncTimer | RegexTimer
)
MEMBER_TIMERS = (MemberSessionTimer, MemberRebalanceTimer, ClassicJoinTimer, ClassicSyncTimer)
