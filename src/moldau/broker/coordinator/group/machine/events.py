"""The events, timers and continuations of classic groups."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.coordinator.machine.decision import Continuation, Ticket, Timer
from moldau.wire.messages import JoinGroupRequest

UNKNOWN_MEMBER_ID = ""

# JoinGroup versions at which the protocol gained something the machine decides by.
KNOWN_MEMBER_ID_FROM = 4
SKIP_ASSIGNMENT_FROM = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """One JoinGroup request with the client of its connection."""

    request: JoinGroupRequest
    version: int
    ticket: Ticket
    client_id: str
    client_host: str
    fresh_id: str
    """A random uuid in text form, made by the shell: part of a new member's id."""


# Timers. Their value is their identity: scheduling an equal one moves the deadline.


@dataclass(frozen=True, slots=True)
class SessionTimer(Timer):
    """The member's session has expired."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimer(Timer):
    """The join phase of the group has lasted as long as it may."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncTimer(Timer):
    """Members that got their JoinGroup answer should have sent SyncGroup by now."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ExpiryTimer(Timer):
    """Time to look for expired offsets and empty groups."""


# Continuations: come back through `on_written`.


@dataclass(frozen=True, slots=True)
class AssignmentWritten(Continuation):
    """The leader's assignment of this generation is committed, or could not be."""

    group_id: str
    generation: int
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class StaticMemberWritten(Continuation):
    """A static member's new member id is committed, or could not be."""

    group_id: str
    member_id: str
    ticket: Ticket
    former_leader: str | None
    can_skip_assignment: bool


GroupContinuation = AssignmentWritten | StaticMemberWritten
