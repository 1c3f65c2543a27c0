"""A group and its members at one moment, as tests see them."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["GroupDescription", "GroupMember"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member, and what it has been assigned."""

    member_id: str
    client_id: str
    instance_id: str | None = None
    assignment: dict[str, list[int]] = field(default_factory=dict)
    #: What it subscribes to, where the coordinator knows it.
    topics: tuple[str, ...] = ()
    #: Of the classic protocol: what it sent to the group's leader.
    metadata: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group at one moment. `type` is classic, consumer, share or streams, or empty if
    there is no such group."""

    type: str
    state: str
    members: tuple[GroupMember, ...] = ()
    #: Of the classic protocol: the assignor that the members agreed on.
    protocol: str = ""
