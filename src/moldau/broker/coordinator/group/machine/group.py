"""What every kind of group is to the rest of its shard: an owner of committed offsets.

Classic, consumer, share and streams groups differ in how members come and go.
Commits, expiry, deletion and listings see them through `Group` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol
from uuid import UUID

from moldau.broker.coordinator.group.machine.offsets import CommittedOffset
from moldau.broker.coordinator.machine.decision import CoordinatorRecord, Outbox
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import Message


class ClientInfo(NamedTuple):
    """The client of a connection."""

    client_id: str
    client_host: str
    """Spelled as Kafka shows it: with a slash in front."""
    may_describe: Callable[[str], bool] | None = None
    """Whether it may see a topic of this name; None if it may see all."""
    denied_creations: Callable[[Sequence[str]], Sequence[str]] | None = None
    """Which of these topics it may not have created; None if it may have all."""


class CommitCaller(NamedTuple):
    """The member that commits offsets, as in the request."""

    member_id: str
    instance_id: str | None
    epoch: int
    """The generation of a classic member, the member epoch of any other."""
    transactional: bool
    version: int
    """Of the API: old clients may not act for members of newer protocols."""


PartitionCheck = Callable[[str, UUID, int], ErrorCode]
"""Topic name, topic id and partition: NONE, or why its offset may not be committed."""


def any_partition(topic: str, topic_id: UUID, partition: int) -> ErrorCode:
    """The check of a caller that may commit for every partition."""
    return ErrorCode.NONE


class Group(Protocol):
    group_type: ClassVar[str]
    """As ListGroups spells it: classic, consumer, share, streams."""

    @property
    def group_id(self) -> str: ...

    @property
    def state_name(self) -> str:
        """As ListGroups shows it."""
        ...

    @property
    def listed_protocol_type(self) -> str: ...

    @property
    def is_empty(self) -> bool: ...

    def check_commit(self, caller: CommitCaller) -> PartitionCheck:
        """Raises ApiError where the caller may commit nothing at all."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises ApiError if the member in the request may not read offsets."""
        ...

    def check_delete_offsets(self) -> None:
        """Raises ApiError if no offset of the group may be deleted now."""
        ...

    def check_delete(self) -> None:
        """Raises ApiError if the group may not be deleted now."""
        ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_expire_from(self, offset: CommittedOffset) -> int | None:
        """When the retention of the offset begins; None while it does not expire."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """Records that remove the group itself; its offsets have their own."""
        ...


class Section(Protocol):
    """All groups of one of the newer kinds in a shard."""

    KEYS: ClassVar[tuple[type, ...]]
    TIMERS: ClassVar[tuple[type, ...]]

    @property
    def groups(self) -> Mapping[str, Group]:
        """By id; changed by replay alone."""
        ...

    def replay(self, key: Any, value: Message | None) -> None: ...

    def on_loaded(self, out: Outbox) -> None: ...

    def on_timer(self, timer: Any, out: Outbox) -> None: ...
