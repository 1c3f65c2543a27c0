"""The volatile half of a classic group: its members and the phase of its rebalance.

    Empty ──join──▶ PreparingRebalance ──all joined / timeout──▶ CompletingRebalance
      ▲                  ▲   │ no member left                          │ leader's
      └──────────────────┼───┘                                         ▼ SyncGroup committed
                         └──join, leave, session end, sync timeout── Stable

This file has the data and the operations that keep them consistent; `join.py`, `sync.py` and
`rebalance.py` decide which of them happen. A group that does not exist is Dead; the machine has no
object for it.

Invariants, checked with every change of phase: phases follow `TRANSITIONS`; only an Empty group,
and one that prepares a rebalance, may have no members; the counters equal a count over the members;
the leader is a member; each static instance id names exactly one member.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from moldau.broker.coordinator.group.machine.group import (
    CommitCaller,
    PartitionCheck,
    any_partition,
)
from moldau.broker.coordinator.group.machine.members import ClassicMember, Protocols
from moldau.broker.coordinator.group.machine.offsets import CommittedOffset
from moldau.broker.coordinator.group.machine.stored import StoredGroup, tombstone
from moldau.broker.coordinator.group.machine.subscription import subscribed_topics
from moldau.broker.coordinator.machine.decision import CoordinatorRecord, Ticket
from moldau.broker.machine.transitions import Transitions
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.constants import NO_TIMESTAMP
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeGroupsResponse, JoinGroupResponse

CONSUMER_PROTOCOL_TYPE = "consumer"
DEAD = "Dead"


class Phase(Enum):
    """Kafka's state names, as ListGroups and DescribeGroups show them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


TRANSITIONS = Transitions(
    {
        Phase.EMPTY: {Phase.PREPARING_REBALANCE},
        Phase.PREPARING_REBALANCE: {Phase.EMPTY, Phase.COMPLETING_REBALANCE},
        Phase.COMPLETING_REBALANCE: {Phase.PREPARING_REBALANCE, Phase.STABLE},
        Phase.STABLE: {Phase.PREPARING_REBALANCE},
    },
    lambda phase: phase.value,
)


@dataclass(slots=True)
class InitialDelay:
    """How the first rebalance of an empty group waits for more members."""

    delay_ms: int
    remaining_ms: int
    extended: bool = False
    """A member came since the delay was last started."""


@dataclass(slots=True, eq=False)
class ClassicGroup:
    group_type: ClassVar[str] = "classic"

    group_id: str
    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = NO_TIMESTAMP
    members: dict[str, ClassicMember] = field(default_factory=dict)
    """By member id, in order of joining: the first is the natural leader."""
    pending_joins: set[str] = field(default_factory=set)
    """Ids assigned with MEMBER_ID_REQUIRED whose members have not joined yet."""
    pending_syncs: set[str] = field(default_factory=set)
    initial_delay: InitialDelay | None = None
    """Set while the join phase is that of a group which was empty before."""
    topics: frozenset[str] | None = None
    """Topics the members subscribe to, if they use the consumer protocol and it can be read."""
    _instances: dict[str, str] = field(default_factory=dict)
    _protocol_counts: Counter[str] = field(default_factory=Counter)
    _awaiting_join_count: int = 0

    # From and to the replicated half.

    @classmethod
    def from_stored(cls, group_id: str, stored: StoredGroup) -> ClassicGroup:
        group = cls(
            group_id,
            phase=Phase.STABLE if stored.members else Phase.EMPTY,
            generation=stored.generation,
            protocol_type=stored.protocol_type,
            protocol=stored.protocol,
            state_timestamp_ms=stored.state_timestamp_ms,
        )
        for member in stored.members:
            group._insert(ClassicMember.from_stored(member, stored.protocol))
        known = stored.leader in group.members
        group.leader = stored.leader if known else next(iter(group.members), None)
        group.refresh_topics()
        return group

    def to_stored(self, assignments: dict[str, bytes]) -> StoredGroup:
        return StoredGroup(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            state_timestamp_ms=self.state_timestamp_ms,
            members=tuple(
                member.to_stored(self.protocol, assignments.get(member.member_id, b""))
                for member in self.members.values()
            ),
        )

    # Membership.

    @property
    def all_joined(self) -> bool:
        return len(self.members) == self._awaiting_join_count and not self.pending_joins

    @property
    def awaiting_join_count(self) -> int:
        return self._awaiting_join_count

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def static_member_id(self, instance_id: str) -> str | None:
        return self._instances.get(instance_id)

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        invariant(self.protocol_type == protocol_type, "members share one protocol type")
        self._insert(member)
        if self.leader is None:
            self.leader = member.member_id
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Remove a member or a pending id; the caller answers its waiting requests."""
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._protocol_counts.subtract(name for name, _ in member.protocols)
        if member.awaiting_join is not None:
            self._awaiting_join_count -= 1
        if member.instance_id is not None:
            del self._instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, old_member_id: str, new_member_id: str) -> ClassicMember:
        """Give a static member a new id; the caller has answered its waiting requests."""
        old = self.members[old_member_id]
        invariant(
            old.instance_id is not None and old.awaiting_join is None and old.awaiting_sync is None,
            "only a static member that waits for nothing can be replaced",
        )
        was_leader = self.leader == old_member_id
        self.remove(old_member_id)
        new = ClassicMember(
            member_id=new_member_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self._insert(new)
        if was_leader:
            self.leader = new_member_id
        return new

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self._protocol_counts.subtract(name for name, _ in member.protocols)
        self._protocol_counts.update(name for name, _ in protocols)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def await_join(self, member: ClassicMember, ticket: Ticket) -> None:
        invariant(member.awaiting_join is None, "a member waits in one JoinGroup at a time")
        member.awaiting_join = ticket
        self._awaiting_join_count += 1

    def take_join(self, member: ClassicMember) -> Ticket | None:
        ticket = member.awaiting_join
        if ticket is not None:
            member.awaiting_join = None
            self._awaiting_join_count -= 1
        return ticket

    def _insert(self, member: ClassicMember) -> None:
        invariant(member.member_id not in self.members, "member ids are unique")
        if member.instance_id is not None:
            invariant(member.instance_id not in self._instances, "instance ids are unique")
            self._instances[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self._protocol_counts.update(name for name, _ in member.protocols)
        if member.awaiting_join is not None:
            self._awaiting_join_count += 1

    # Protocols.

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Could a member with these protocols be in the group?"""
        if self.phase is Phase.EMPTY:
            return protocol_type != "" and len(protocols) > 0
        size = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._protocol_counts[name] == size for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support; most votes win."""
        size = len(self.members)
        candidates = {name for name, count in self._protocol_counts.items() if count == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        # Among equals the one that an earlier member voted for, so that the choice is stable.
        return max(votes, key=votes.__getitem__)

    def refresh_topics(self) -> None:
        if not self.uses_consumer_protocol:
            self.topics = None
        elif not self.members:
            self.topics = frozenset()
        elif self.protocol is None:
            self.topics = None
        else:
            self.topics = subscribed_topics(
                member.metadata(self.protocol) for member in self.members.values()
            )

    def is_subscribed_to(self, topic: str) -> bool:
        # Subscriptions that cannot be read may be to any topic.
        return self.uses_consumer_protocol if self.topics is None else topic in self.topics

    # As an owner of offsets.

    @property
    def state_name(self) -> str:
        return self.phase.value

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.phase is Phase.EMPTY

    def check_commit(self, caller: CommitCaller) -> PartitionCheck:
        if caller.epoch < 0 and self.phase is Phase.EMPTY:
            # A tool, or a consumer that assigns partitions by hand.
            return any_partition
        if caller.epoch >= 0 or caller.member_id or caller.instance_id is not None:
            self.check_member(caller.member_id, caller.instance_id)
            self.check_generation(caller.epoch)
        elif not caller.transactional:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"group {self.group_id} has members; only they can commit",
            )
        # A transaction may end whatever the group does meanwhile.
        if self.phase is Phase.COMPLETING_REBALANCE and not caller.transactional:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {self.group_id} is rebalancing")
        return any_partition

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Any client may read the offsets of a classic group."""

    def check_delete_offsets(self) -> None:
        # Which topics the members of other protocol types use cannot be known.
        if self.phase is not Phase.EMPTY and not self.uses_consumer_protocol:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} still has members")

    def check_delete(self) -> None:
        if self.phase is not Phase.EMPTY:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} still has members")

    def offsets_expire_from(self, offset: CommittedOffset) -> int | None:
        if self.protocol_type is None:
            return offset.commit_timestamp_ms
        if self.phase is Phase.EMPTY:
            # The clock of a group that had members starts when the last one is gone, however
            # old its commits are; groups stored by old brokers do not know when that was.
            known = self.state_timestamp_ms != NO_TIMESTAMP
            return self.state_timestamp_ms if known else offset.commit_timestamp_ms
        readable = self.uses_consumer_protocol and self.topics is not None
        return offset.commit_timestamp_ms if self.phase is Phase.STABLE and readable else None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [tombstone(self.group_id)]

    # Phases.

    def move_to(self, phase: Phase, now_ms: WallMs) -> None:
        TRANSITIONS.check(f"group {self.group_id}", self.phase, phase)
        _check_consistent(self, phase)
        self.phase = phase
        self.state_timestamp_ms = now_ms
        if phase is not Phase.PREPARING_REBALANCE:
            self.initial_delay = None

    def start_generation(self, now_ms: WallMs) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol = self.select_protocol()
            self.move_to(Phase.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol = None
            self.move_to(Phase.EMPTY, now_ms)
        self.refresh_topics()

    def elect_joined_leader(self) -> bool:
        """Ensure that the leader has rejoined; False if no member has."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    # Checks and views.

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        if instance_id is not None:
            current = self._instances.get(instance_id)
            if current is None:
                raise ApiError(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"group {self.group_id} has no static member {instance_id}",
                )
            if current != member_id:
                raise ApiError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"static member {instance_id} of group {self.group_id} now is {current}",
                )
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id} has no member {member_id}"
            )
        return member

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id} is in generation {self.generation}, not {generation}",
            )

    def join_response(
        self, member_id: str, *, leader: str | None = None, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """The current generation for a member; the leader also gets all members."""
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=(self.leader if leader is None else leader) or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=[member.joined(self.protocol) for member in self.members.values()]
            if self.leader == member_id and leader is None
            else [],
        )

    def described(self) -> DescribeGroupsResponse.DescribedGroup:
        settled = self.protocol if self.phase is Phase.STABLE else None
        return DescribeGroupsResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.phase.value,
            protocol_type=self.protocol_type or "",
            protocol_data=settled or "",
            members=[member.described(settled) for member in self.members.values()],
        )


def _check_consistent(group: ClassicGroup, phase: Phase) -> None:
    """Raise InvariantError if the group cannot enter `phase` as it is."""
    members = group.members.values()
    invariant(
        phase is Phase.PREPARING_REBALANCE or bool(members) == (phase is not Phase.EMPTY),
        f"group {group.group_id} would be {phase.value} with {len(members)} members",
    )
    invariant(
        group.leader is None or group.leader in group.members,
        f"the leader {group.leader} of group {group.group_id} is no member",
    )
    waiting = sum(member.awaiting_join is not None for member in members)
    invariant(
        waiting == group._awaiting_join_count,
        f"group {group.group_id} counts {group._awaiting_join_count} members in JoinGroup"
        f" where there are {waiting}",
    )
    static = {each.instance_id: each.member_id for each in members if each.is_static}
    invariant(
        static == group._instances,
        f"group {group.group_id} has static members {static}, not {group._instances}",
    )
