"""What the consumer's core and its membership in a group promise each other.

The core owns subscription, assignment, positions and commits; a membership owns the protocol of the
group: who the member is, which partitions it is given. Both live on the client's event loop.

Invariants: a membership talks to the coordinator in tasks of its own, at any time, but it
calls `on_revoked`, `on_assigned` and `on_lost` only from within `poll`, `unsubscribe` and `close`,
since they run the application's listener in the application's thread. Only through these three does
the assignment of a subscribed consumer change.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from moldau.client.cluster import ClusterClient
from moldau.client.deadline import Deadline
from moldau.client.metrics import ConsumerMetrics
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

__all__ = [
    "ConsumerGroupMetadata",
    "GroupHost",
    "GroupMembershipOperation",
    "GroupSubscription",
    "Membership",
]

NO_GENERATION = -1
NO_MEMBER = ""


class ConsumerGroupMetadata(NamedTuple):
    """Who commits: goes with offsets, also with those of a transaction.

    `generation_id` is the member epoch in the consumer protocol (KIP-848).
    """

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None


class GroupMembershipOperation(Enum):
    """What closing means for the group (KIP-1092)."""

    #: Dynamic members leave, static members remain.
    DEFAULT = "default"
    LEAVE_GROUP = "leave_group"
    REMAIN_IN_GROUP = "remain_in_group"


class GroupSubscription(NamedTuple):
    """What the application subscribed to. One of the three kinds is set.

    `topics` are the names asked for or, with `pattern`, those that match it in the present
    metadata. `server_pattern` is an RE2 expression for the coordinator, without `topics`.
    """

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    server_pattern: str | None = None


class GroupHost(Protocol):
    """The core, as a membership sees it."""

    @property
    def cluster(self) -> ClusterClient: ...

    @property
    def metrics(self) -> ConsumerMetrics: ...

    @property
    def values(self) -> Mapping[str, Any]:
        """The settings, checked, by Kafka's names. Beside those, `group.id` is set for sure."""
        ...

    @property
    def subscription(self) -> GroupSubscription: ...

    @property
    def owned_partitions(self) -> frozenset[TopicPartition]:
        """The present assignment."""
        ...

    @property
    def assignors(self) -> list[Any]:
        """`partition.assignment.strategy` as the application gave it: names or objects."""
        ...

    def poll_idle_ms(self) -> int:
        """How long the application has been away from `poll`; 0 while it is inside."""
        ...

    def wake(self) -> None:
        """Ends the wait of a running `poll`, which then calls `Membership.poll` again."""
        ...

    def want_topics(self, topics: Collection[str]) -> None:
        """Keep these topics in the metadata beside those subscribed to (of the whole group, for
        its leader). Replaces what was wanted before."""
        ...

    async def settle(self, partitions: Collection[TopicPartition]) -> bool:
        """Before `on_revoked`, in `poll`: stop fetching them, and them only, and commit what is
        consumed if auto commit is on. Waits for nothing: while it is false the poll goes on, or
        ends, without them, and the next asks again. With none, what was begun is given up."""
        ...

    async def settle_until(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> None:
        """As `settle`, at the end: until it is done, but not longer than that."""
        ...

    async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Stop fetching them, call the listener, take them out of the assignment. Raises the
        listener's error after all that."""
        ...

    async def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Add them to the assignment and call the listener, even if there are none."""
        ...

    async def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Take them out of the assignment, without a commit, and call the listener."""
        ...


class Membership(Protocol):
    """A member of a group; made by `membership.make_membership(host)`."""

    def on_subscription_changed(self) -> None:
        """`host.subscription` has changed: join, or send it to the group. Also called for
        the first subscription. Sends nothing by itself before the next `poll`."""
        ...

    @property
    def needs_poll(self) -> bool:
        """Whether `poll` has something to do. Read from the application's thread on every poll,
        so it must be a plain attribute or as cheap; after it became true, `host.wake()`."""
        ...

    async def poll(self, deadline: Deadline) -> None:
        """Find the coordinator, join, revoke and assign as far as that goes without waiting for
        other members; what takes long goes on in a task. Raises what the application must see
        (GroupAuthorizationFailedError, FencedInstanceIdError, ...) and errors of the listener."""
        ...

    def group_metadata(self) -> ConsumerGroupMetadata:
        """With NO_GENERATION and NO_MEMBER while it is no member."""
        ...

    def last_group_metadata(self) -> ConsumerGroupMetadata:
        """As of the last assignment, also when the membership is lost since: who commits offsets
        in a transaction with it is fenced then, which somebody unknown would not be."""
        ...

    @property
    def rebalancing(self) -> bool:
        """Whether the member has no valid generation now since the group is being rebalanced: a
        commit fails with RebalanceInProgressError then, else with CommitFailedError."""
        ...

    def on_commit_failed(self, code: ErrorCode, sent_by: ConsumerGroupMetadata) -> None:
        """A commit was refused because of who sent it (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
        REBALANCE_IN_PROGRESS, STALE_MEMBER_EPOCH, FENCED_INSTANCE_ID): rejoin as needed. If
        `sent_by` is no longer current, nothing."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """At the next `poll` (enforce_rebalance)."""
        ...

    async def unsubscribe(self, deadline: Deadline) -> None:
        """Give all partitions up (on_revoked, or on_lost if the membership is lost already) and
        leave the group. `on_subscription_changed` may join again."""
        ...

    async def close(self, deadline: Deadline, operation: GroupMembershipOperation) -> None:
        """As `unsubscribe`, leaving or remaining as `operation` says; ends all tasks, also after
        an error of the listener, which is raised at the end."""
        ...
