"""A consumer group becomes a classic group when its last consumer-protocol member is gone.

Decided here: whether that may happen, and what the classic group is: in the generation of
the group's epoch, stable, its members with what the target assignment gives them. The records
make the stored half; its machine wakes once they are committed, learns again which protocols
each member knows, and starts a rebalance if the assignment is not up to date. If that rebalance
is lost with the coordinator, the next one must not take the stored assignment for complete: so
a group that needs one is stored without a leader, and whoever wakes it starts the rebalance.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from moldau.broker.coordinator.group.machine.classic import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    Phase,
)
from moldau.broker.coordinator.group.machine.classic_groups import ClassicGroups
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.member import ConsumerMember
from moldau.broker.coordinator.group.machine.consumer.timers import (
    ClassicJoinTimer,
    ClassicSyncTimer,
)
from moldau.broker.coordinator.group.machine.group import Group
from moldau.broker.coordinator.group.machine.members import ClassicMember, Protocols
from moldau.broker.coordinator.group.machine.migration import embedded
from moldau.broker.coordinator.machine.decision import Continuation, Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.invariant import invariant
from moldau.wire.errors import ErrorCode, WireError

_POLICIES = ("bidirectional", "downgrade")


@dataclass(frozen=True, slots=True)
class Downgraded(Continuation):
    """The records that make a group classic are committed, or could not be."""

    group_id: str
    generation: int
    protocols: tuple[tuple[str, Protocols], ...]
    """By member id: the stored half knows only the protocol that was chosen."""


def downgrade_without(
    group: ConsumerGroup,
    leaving: Collection[ConsumerMember],
    topics: ClusterTopics,
    config: GroupConfig,
    out: Outbox,
) -> bool:
    """Members go: make the group classic without them, if none but classic members stay.

    False if it stays a consumer group; then nothing is written, and the caller removes them.
    """
    gone = {member.member_id for member in leaving}
    staying = [each for each in group.members.values() if each.member_id not in gone]
    if not gone or not may_downgrade(staying, config):
        return False
    # The members that stay have to share what the others had.
    downgrade(group, staying, topics, out, with_rebalance=True)
    return True


def may_downgrade(staying: Collection[ConsumerMember], config: GroupConfig) -> bool:
    return (
        0 < len(staying) <= config.group_max_size
        and all(member.uses_classic_protocol for member in staying)
        and config.group_consumer_migration_policy.lower() in _POLICIES
        and _share_a_protocol(staying)
    )


def downgrade(
    group: ConsumerGroup,
    staying: Collection[ConsumerMember],
    topics: ClusterTopics,
    out: Outbox,
    *,
    with_rebalance: bool,
) -> None:
    """`staying` are the members of the classic group; a static member may have a new id."""
    classic = ClassicGroup(
        group.group_id,
        phase=Phase.STABLE,
        generation=group.group_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        state_timestamp_ms=out.now_ms,
    )
    for member in staying:
        classic.add(_classic_member(member), CONSUMER_PROTOCOL_TYPE)
    classic.protocol = classic.select_protocol()
    assignments = {
        member.member_id: _assignment(group, member, classic.protocol, topics) for member in staying
    }
    for member_id in group.members:
        # Sessions are left to end: without the group that does nothing, and if the write
        # fails they still guard it.
        out.cancel(ClassicJoinTimer(group.group_id, member_id))
        out.cancel(ClassicSyncTimer(group.group_id, member_id))
    out.records.extend(group.tombstones())
    protocols = tuple((each.member_id, each.protocols) for each in classic.members.values())
    if with_rebalance:
        classic.leader = None
    out.write(
        classic.to_stored(assignments).to_record(group.group_id),
        Downgraded(group.group_id, classic.generation, protocols),
    )


def on_downgraded(
    classic_groups: ClassicGroups, written: Downgraded, error: ErrorCode, out: Outbox
) -> None:
    if error is not ErrorCode.NONE:
        return
    group = classic_groups.get(written.group_id)
    if group is None or group.generation != written.generation:
        return
    for member_id, protocols in written.protocols:
        member = group.members.get(member_id)
        # One that has joined again meanwhile has sent its protocols again.
        if member is not None and member.awaiting_join is None:
            group.update(
                member,
                protocols,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
            )
    classic_groups.wake(written.group_id, out)


def release_empty(group: Group, out: Outbox) -> None:
    """Remove a group without members of another kind, so that its id can be a classic group's."""
    invariant(group.is_empty, "only groups without members give up their id")
    out.records.extend(group.tombstones())


def _classic_member(member: ConsumerMember) -> ClassicMember:
    classic = member.classic
    if classic is None:
        raise AssertionError(f"member {member.member_id} does not use the classic protocol")
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocols=classic.supported_protocols,
    )


def _assignment(
    group: ConsumerGroup, member: ConsumerMember, protocol: str, topics: ClusterTopics
) -> bytes:
    target = group.target_of(member.member_id, member.instance_id)
    metadata = dict(member.classic.supported_protocols if member.classic is not None else ())
    try:
        version = embedded.version_of(metadata.get(protocol, b""))
    except WireError:
        # No member could join with it; a log may still contain it.
        version = 0
    return embedded.write_assignment(target, version, topics)


def _share_a_protocol(members: Collection[ConsumerMember]) -> bool:
    names = [
        {name for name, _ in member.classic.supported_protocols}
        for member in members
        if member.classic is not None
    ]
    return bool(set.intersection(*names)) if names else False
