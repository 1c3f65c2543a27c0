"""All share groups of a shard: heartbeats, sessions, and the state of their share partitions.

A heartbeat takes the same steps each time: update the member from the request; start a new group
epoch if subscriptions, topics or initialized partitions changed; compute a new target assignment if
the group is ahead of it and the last one is old enough; move the member to the target. Invariants:
only partitions whose share state is initialized are assigned; a member's epoch is that of the
target assignment in its last response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar
from uuid import UUID

from moldau.broker.coordinator.group.machine.assignment_interval import may_assign
from moldau.broker.coordinator.group.machine.assignors import SHARE_ASSIGNORS, Assignor
from moldau.broker.coordinator.group.machine.assignors.interface import (
    GroupSpec,
    MemberSubscription,
)
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.metadata_hash import group_hash, topic_hash
from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.group.machine.share import records
from moldau.broker.coordinator.group.machine.share.events import (
    InitializeShareState,
    ShareSessionTimer,
)
from moldau.broker.coordinator.group.machine.share.group import NO_ASSIGNMENT_EPOCH, ShareGroup
from moldau.broker.coordinator.group.machine.share.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Assignment,
    ShareMember,
)
from moldau.broker.coordinator.group.machine.share.states import (
    PartitionStates,
    TopicPartitions,
    Topics,
    states_from,
)
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics, TopicFacts
from moldau.broker.coordinator.machine.wall_intervals import is_within
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    Message,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)


class ShareGroups:
    KEYS: ClassVar[tuple[type, ...]] = (
        ShareGroupMemberMetadataKey,
        ShareGroupMetadataKey,
        ShareGroupTargetAssignmentMetadataKey,
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupCurrentMemberAssignmentKey,
        ShareGroupStatePartitionMetadataKey,
    )
    TIMERS: ClassVar[tuple[type, ...]] = (ShareSessionTimer,)

    def __init__(self, config: GroupConfig, topics: ClusterTopics, settings: GroupSettings) -> None:
        self._config = config
        self._topics = topics
        self._settings = settings
        # Kafka's class name stands for its own name: org.apache...SimpleAssignor is simple.
        name = config.group_share_assignors[0].rpartition(".")[2]
        self._assignor: Assignor = SHARE_ASSIGNORS[name.removesuffix("Assignor").lower()]
        self.groups: dict[str, ShareGroup] = {}
        # Not from records: when the initializations that are in progress here began.
        self._initializing_since: dict[tuple[str, UUID], WallMs] = {}
        self._topic_hashes: dict[str, int] = {}
        self._topic_hashes_version = -1

    # Replay.

    def replay(self, key: Any, value: Message | None) -> None:
        group = self.groups.get(key.group_id)
        if group is None:
            if value is None:
                return
            group = self.groups[key.group_id] = ShareGroup(key.group_id)
        match key, value:
            case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
                group.put_member(_member(group, key.member_id).with_metadata(value))
            case ShareGroupMemberMetadataKey(), None:
                group.remove_member(key.member_id)
            case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
                group.put_member(_member(group, key.member_id).with_current(value))
            case ShareGroupCurrentMemberAssignmentKey(), None:
                if key.member_id in group.members:
                    group.put_member(group.members[key.member_id].with_current(None))
            case _:
                self._replay_group(group, key, value)

    def _replay_group(self, group: ShareGroup, key: Message, value: Message | None) -> None:
        match key, value:
            case ShareGroupMetadataKey(), ShareGroupMetadataValue():
                group.group_epoch = value.epoch
                group.metadata_hash = value.metadata_hash
            case ShareGroupMetadataKey(), None:
                del self.groups[group.group_id]
            case ShareGroupTargetAssignmentMetadataKey(), ShareGroupTargetAssignmentMetadataValue():
                group.assignment_epoch = value.assignment_epoch
                group.assignment_timestamp_ms = value.assignment_timestamp
            case ShareGroupTargetAssignmentMetadataKey(), None:
                group.assignment_epoch = NO_ASSIGNMENT_EPOCH
                group.assignment_timestamp_ms = 0
            case (
                ShareGroupTargetAssignmentMemberKey(),
                ShareGroupTargetAssignmentMemberValue() | None,
            ):
                group.put_target(key.member_id, _target_of(value))
            case (
                ShareGroupStatePartitionMetadataKey(),
                ShareGroupStatePartitionMetadataValue() | None,
            ):
                group.states = None if value is None else states_from(value)
            case _:
                invariant(False, f"{key!r} is no key of share groups")

    # Time.

    def on_loaded(self, out: Outbox) -> None:
        for group in self.groups.values():
            for member_id in group.members:
                self._restart_session(group.group_id, member_id, out)

    def on_timer(self, timer: ShareSessionTimer, out: Outbox) -> None:
        group = self.groups.get(timer.group_id)
        member = None if group is None else group.members.get(timer.member_id)
        if group is not None and member is not None:
            self._remove(group, member, out)

    def _restart_session(self, group_id: str, member_id: str, out: Outbox) -> None:
        timeout_ms = self._settings.get(group_id, "share.session.timeout.ms")
        out.schedule(ShareSessionTimer(group_id, member_id), timeout_ms)

    # Members.

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: ClientInfo, out: Outbox
    ) -> ShareGroupHeartbeatResponse:
        """The request is known to be well formed, and its group id not to name another kind."""
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request, out)
        joins = request.member_epoch == JOIN_EPOCH
        group = self.groups.get(request.group_id)
        if group is None and joins:
            group = ShareGroup(request.group_id)
        if group is None:
            raise _not_found(request.group_id)
        before = self._member_of(group, request.member_id, joins=joins)
        before.check_epoch(request.member_epoch)
        member = _updated(before, request, client)
        changed = before.subscribed != member.subscribed
        if member != before:
            out.write(records.member_record(group.group_id, member))

        subscriptions = group.subscriptions_with(member)
        epoch, changed = self._advance_epoch(group, subscriptions, changed, out)
        target_epoch, target = self._advance_target(group, epoch, member, subscriptions, out)
        member = self._reconcile(group, member, target_epoch, target, changed, out)
        self._restart_session(group.group_id, member.member_id, out)
        self._initialize_missing(group, epoch, subscriptions, out)

        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._settings.get(group.group_id, "share.heartbeat.interval.ms"),
        )
        complete = request.subscribed_topic_names is not None
        if joins or complete or member.assigned != before.assigned:
            response.assignment = member.heartbeat_assignment()
        return response

    def _member_of(self, group: ShareGroup, member_id: str, *, joins: bool) -> ShareMember:
        member = group.members.get(member_id)
        if member is not None:
            return member
        size_max = self._config.group_share_max_size
        if len(group.members) >= size_max:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {size_max} members.",
            )
        if not joins:
            raise _unknown_member(group, member_id)
        return ShareMember(member_id)

    def _leave(
        self, request: ShareGroupHeartbeatRequest, out: Outbox
    ) -> ShareGroupHeartbeatResponse:
        group = self.existing(request.group_id)
        member = group.members.get(request.member_id)
        if member is None:
            raise _unknown_member(group, request.member_id)
        self._remove(group, member, out)
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

    def _remove(self, group: ShareGroup, member: ShareMember, out: Outbox) -> None:
        """Others take over its partitions with the new epoch."""
        out.records += records.member_tombstones(group.group_id, member.member_id)
        metadata_hash = self._hash_of(group.subscriptions_without(member))
        out.write(records.epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
        out.cancel(ShareSessionTimer(group.group_id, member.member_id))

    # The steps of a heartbeat.

    def _advance_epoch(
        self, group: ShareGroup, subscriptions: Counter[str], changed: bool, out: Outbox
    ) -> tuple[int, bool]:
        """The group epoch from now on, and whether the members must look at their assignment."""
        epoch = group.group_epoch
        if group.assignment_epoch >= epoch:
            changed = changed or group.has_unassigned_partitions(
                lambda topic_id: self._topics.topic_by_id(topic_id) is not None
            )
        version = self._topics.version
        if not changed and group.hash_checked_at_version == version:
            return epoch, False
        metadata_hash = self._hash_of(subscriptions)
        if metadata_hash == group.metadata_hash:
            # Marked only now: should the new hash below not be written, it is found again.
            group.hash_checked_at_version = version
            if not changed:
                return epoch, False
        out.write(records.epoch_record(group.group_id, epoch + 1, metadata_hash))
        return epoch + 1, True

    def _hash_of(self, subscriptions: Mapping[str, int]) -> int:
        if self._topic_hashes_version != self._topics.version:
            self._topic_hashes.clear()
            self._topic_hashes_version = self._topics.version
        hashes = {}
        for name in subscriptions:
            if (facts := self._topics.topic(name)) is None:
                continue
            if name not in self._topic_hashes:
                self._topic_hashes[name] = topic_hash(facts)
            hashes[name] = self._topic_hashes[name]
        return group_hash(hashes)

    def _advance_target(
        self,
        group: ShareGroup,
        epoch: int,
        member: ShareMember,
        subscriptions: Counter[str],
        out: Outbox,
    ) -> tuple[int, Assignment]:
        """The target assignment's epoch, and what it gives to the member."""
        if group.assignment_epoch >= epoch or not self._may_assign(group, out.now_ms):
            return group.assignment_epoch, group.target.get(member.member_id, {})
        members = {**group.members, member.member_id: member}
        found = self._topics_of(subscriptions)
        spec = _assignment_spec(group, members, found, subscriptions)
        targets = self._assignor.assign(spec, {facts.id: facts for facts in found.values()})
        for member_id in members:
            target = targets.get(member_id, {})
            if target != group.target.get(member_id):
                out.write(records.target_record(group.group_id, member_id, target))
        out.write(records.target_epoch_record(group.group_id, epoch, out.now_ms))
        return epoch, targets.get(member.member_id, {})

    def _may_assign(self, group: ShareGroup, now_ms: WallMs) -> bool:
        return may_assign(
            made_ms=group.assignment_timestamp_ms,
            interval_ms=self._settings.get(group.group_id, "share.assignment.interval.ms"),
            now_ms=now_ms,
        )

    def _reconcile(
        self,
        group: ShareGroup,
        member: ShareMember,
        target_epoch: int,
        target: Assignment,
        changed: bool,
        out: Outbox,
    ) -> ShareMember:
        if not changed and member.member_epoch == target_epoch:
            return member
        # The target may be older than the subscription.
        wanted = {facts.id for facts in self._topics_of(member.subscribed).values()}
        assigned = {
            topic_id: partitions for topic_id, partitions in target.items() if topic_id in wanted
        }
        updated = replace(member, assigned=assigned)
        if member.member_epoch != target_epoch:
            updated = updated.at_epoch(target_epoch)
        if updated != member:
            out.write(records.current_record(group.group_id, updated))
        return updated

    def _topics_of(self, names: Collection[str]) -> dict[str, TopicFacts]:
        found = {name: self._topics.topic(name) for name in names}
        return {name: facts for name, facts in found.items() if facts is not None}

    # The state of share partitions.

    def _initialize_missing(
        self, group: ShareGroup, epoch: int, subscriptions: Counter[str], out: Outbox
    ) -> None:
        states = group.states or PartitionStates()
        missing: dict[UUID, TopicPartitions] = {}
        for name, facts in self._topics_of(subscriptions).items():
            done = self._settled_partitions(group, states, facts.id, out.now_ms)
            partitions = frozenset(range(facts.partition_count)) - done
            if partitions:
                missing[facts.id] = TopicPartitions(name, partitions)
        if missing:
            self.begin_initialization(group, missing, out)
            out.act(InitializeShareState(group.group_id, epoch, missing))

    def _settled_partitions(
        self, group: ShareGroup, states: PartitionStates, topic_id: UUID, now_ms: WallMs
    ) -> frozenset[int]:
        """Partitions that are initialized, or whose initialization began a short time ago."""
        initialized = states.initialized.get(topic_id)
        done = frozenset[int]() if initialized is None else initialized.partitions
        initializing = states.initializing.get(topic_id)
        since_ms = self._initializing_since.get((group.group_id, topic_id))
        # Began at another coordinator, which may not have received the response.
        if initializing is None or since_ms is None:
            return done
        retry_ms = self._config.group_share_initialize_retry_interval_ms
        if is_within(since_ms=since_ms, interval_ms=retry_ms, now_ms=now_ms):
            return done | initializing.partitions
        return done

    def begin_initialization(self, group: ShareGroup, topics: Topics, out: Outbox) -> None:
        for topic_id in topics:
            self._initializing_since[group.group_id, topic_id] = out.now_ms
        states = (group.states or PartitionStates()).began(topics)
        out.write(records.states_record(group.group_id, states))

    def settle_initialization(
        self, group_id: str, done: Topics, failed: Topics, out: Outbox
    ) -> None:
        """What came of an initialisation; what has failed is tried again with a heartbeat."""
        group = self.groups.get(group_id)
        for topic_id in {*done, *failed}:
            self._initializing_since.pop((group_id, topic_id), None)
        if group is None or group.states is None:
            # Deleted meanwhile.
            return
        states = group.states.succeeded(done).failed(failed)
        if states != group.states:
            out.write(records.states_record(group_id, states))

    def forget_topics(self, topic_ids: Collection[UUID], out: Outbox) -> None:
        """Topics were deleted; the share coordinator forgets their state by itself."""
        for group in self.groups.values():
            if group.states is not None:
                states = group.states.without_topics(topic_ids)
                if states != group.states:
                    out.write(records.states_record(group.group_id, states))

    # Views.

    def existing(self, group_id: str) -> ShareGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise _not_found(group_id)
        return group

    def describe(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        group = self.groups.get(group_id)
        if group is None:
            return ShareGroupDescribeResponse.DescribedGroup(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {group_id} not found.",
            )
        names = {
            topic_id: facts.name
            for topic_id in {each for member in group.members.values() for each in member.assigned}
            if (facts := self._topics.topic_by_id(topic_id)) is not None
        }
        return ShareGroupDescribeResponse.DescribedGroup(
            group_id=group_id,
            group_state=group.state_name,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=self._assignor.name,
            members=[member.described(names) for member in group.members.values()],
        )


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST for what no state of the group can make right."""
    problem = None
    if not request.member_id.strip() or len(request.member_id) > _MEMBER_ID_LENGTH_MAX:
        problem = "Invalid member id in the request."
    elif not request.group_id.strip():
        problem = "GroupId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        problem = "RackId can't be empty."
    elif request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        problem = "SubscribedTopicNames must be set in first request."
    elif request.member_epoch < LEAVE_EPOCH:
        problem = "MemberEpoch is invalid."
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)


# A uuid as Java prints it.
_MEMBER_ID_LENGTH_MAX = 36


def _updated(
    member: ShareMember, request: ShareGroupHeartbeatRequest, client: ClientInfo
) -> ShareMember:
    """The member as the request says; what it does not say stays."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.client_host,
        subscribed=member.subscribed if names is None else frozenset(names),
    )


def _member(group: ShareGroup, member_id: str) -> ShareMember:
    return group.members.get(member_id) or ShareMember(member_id)


def _target_of(value: ShareGroupTargetAssignmentMemberValue | None) -> Assignment | None:
    if value is None:
        return None
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _not_found(group_id: str) -> ApiError:
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")


def _unknown_member(group: ShareGroup, member_id: str) -> ApiError:
    return ApiError(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def _assignment_spec(
    group: ShareGroup,
    members: Mapping[str, ShareMember],
    topics: Mapping[str, TopicFacts],
    subscriptions: Counter[str],
) -> GroupSpec:
    """The input of the assignor: what `members` subscribe to, and what may be assigned."""
    return GroupSpec(
        {
            member.member_id: MemberSubscription(
                None,
                member.rack_id,
                frozenset(topics[name].id for name in member.subscribed if name in topics),
                group.target.get(member.member_id, {}),
            )
            for member in members.values()
        },
        homogeneous=all(count == len(members) for count in subscriptions.values()),
        assignable={} if group.states is None else group.states.initialized_partitions,
    )
