"""All streams groups of one `__consumer_offsets` partition: requests in, records out.

Only replay changes `groups`. Soft states (requested shutdowns, current endpoint information) and
topologies resolved against the present topics are not replicated; both start again after a move.
Invariants: every member of a group has a session timer, and every member that must revoke tasks a
rebalance timer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, assert_never

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.group import ClientInfo, Group
from moldau.broker.coordinator.group.machine.metadata_hash import group_hash, topic_hash
from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.group.machine.streams import records
from moldau.broker.coordinator.group.machine.streams.creation_errors import CreationErrors
from moldau.broker.coordinator.group.machine.streams.events import (
    StreamsInitialRebalanceTimer,
    StreamsRebalanceTimer,
    StreamsSessionTimer,
    StreamsTimer,
)
from moldau.broker.coordinator.group.machine.streams.group import StreamsGroup
from moldau.broker.coordinator.group.machine.streams.heartbeat import (
    Heartbeat,
    Resolved,
    SoftState,
    assign_after_delay,
)
from moldau.broker.coordinator.group.machine.streams.internal_topics import configure
from moldau.broker.coordinator.group.machine.streams.members import (
    LEFT_EPOCH,
    Endpoint,
    MemberState,
    StreamsMember,
)
from moldau.broker.coordinator.group.machine.streams.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    check_request,
)
from moldau.broker.coordinator.group.machine.streams.tasks import NOTHING_ASSIGNED, Tasks, task_map
from moldau.broker.coordinator.group.machine.streams.topology import StreamsTopology
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    Message,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)


class StreamsGroups:
    TIMERS: ClassVar[tuple[type, ...]] = (
        StreamsSessionTimer,
        StreamsRebalanceTimer,
        StreamsInitialRebalanceTimer,
    )
    KEYS: ClassVar[tuple[type, ...]] = records.KEYS

    def __init__(self, config: GroupConfig, topics: ClusterTopics, settings: GroupSettings) -> None:
        self._config = config
        self._topics = topics
        self._settings = settings
        self.groups: dict[str, StreamsGroup] = {}
        self._soft: dict[str, SoftState] = {}
        self._resolved: dict[str, Resolved] = {}
        self._creation_errors = CreationErrors()

    # Requests.

    def heartbeat(
        self,
        request: StreamsGroupHeartbeatRequest,
        client: ClientInfo,
        out: Outbox,
        other: Group | None = None,
    ) -> StreamsGroupHeartbeatResponse:
        """`other` is a group of another kind that has the group id."""
        check_request(request)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self._leave(request, out, other)
        joining = request.member_epoch == JOIN_EPOCH
        group = self._group(request.group_id, other, out if joining else None)
        if joining and len(group.members) >= self._config.group_streams_max_size:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {group.group_id} is full: group.streams.max.size = "
                f"{self._config.group_streams_max_size}",
            )
        heartbeat = Heartbeat(
            request=request,
            client=client,
            group=group,
            is_new=group.group_id not in self.groups,
            soft=self._soft_state(group),
            settings=self._settings,
            topics=self._topics,
            creation_errors=self._creation_errors,
            out=out,
        )
        member = heartbeat.member()
        updated = heartbeat.updated(member)
        resolved = self._resolve(group.group_id, heartbeat.topology())
        response = heartbeat.decide(resolved, member, updated)
        self._soft[group.group_id] = heartbeat.soft
        return response

    def _group(self, group_id: str, other: Group | None, out: Outbox | None) -> StreamsGroup:
        """The group; with an outbox a member joins, and a group may come to be."""
        group = self.groups.get(group_id)
        if group is not None:
            return group
        if other is not None:
            if out is None or other.group_type != "classic" or not other.is_empty:
                raise ApiError(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group."
                )
            # An empty classic group leaves its offsets to the new group.
            out.records.extend(other.tombstones())
        elif out is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return StreamsGroup(group_id)

    def _soft_state(self, group: StreamsGroup) -> SoftState:
        soft = self._soft.get(group.group_id) or SoftState()
        if group.is_empty:
            # A shutdown ends with the last member.
            soft.shutdown_member_id = None
        return soft

    def _leave(
        self, request: StreamsGroupHeartbeatRequest, out: Outbox, other: Group | None
    ) -> StreamsGroupHeartbeatResponse:
        group = self._group(request.group_id, other, None)
        if request.shutdown_application:
            soft = self._soft.setdefault(group.group_id, SoftState())
            soft.shutdown_member_id = soft.shutdown_member_id or request.member_id
        self._fence(group, group.member(request.member_id), out)
        return StreamsGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

    def _fence(self, group: StreamsGroup, member: StreamsMember, out: Outbox) -> None:
        out.records.extend(records.member_tombstones(group.group_id, member.member_id))
        out.write(
            records.group_metadata(
                group.group_id,
                epoch=group.group_epoch + 1,
                metadata_hash=group.metadata_hash,
                validated_topology_epoch=group.validated_topology_epoch,
                assignment_configs=group.assignment_configs,
            )
        )
        out.cancel(StreamsSessionTimer(group.group_id, member.member_id))
        out.cancel(StreamsRebalanceTimer(group.group_id, member.member_id))

    def _resolve(self, group_id: str, topology: StreamsTopology) -> Resolved:
        """The topology against the present topics; computed again only when some have changed."""
        last = self._resolved.get(group_id)
        if last is not None and last.topology == topology and last.version == self._topics.version:
            return last
        facts = [self._topics.topic(name) for name in topology.required_topics]
        metadata_hash = group_hash({each.name: topic_hash(each) for each in facts if each})
        if last is not None and last.topology == topology and last.metadata_hash == metadata_hash:
            resolved = last._replace(version=self._topics.version)
        else:
            resolved = Resolved(
                topology,
                self._topics.version,
                metadata_hash,
                configure(topology, self._topics),
            )
        if group_id in self.groups:
            self._resolved[group_id] = resolved
        return resolved

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if group.topology is None:
            return group.described(None)
        return group.described(self._resolve(group_id, group.topology).configured)

    def on_internal_topics(self, group_id: str, errors: Mapping[str, str], now_ms: WallMs) -> None:
        """What `CreateInternalTopics` could not create, by topic, for members to read."""
        keep_ms = 2 * self._settings.get(group_id, "streams.heartbeat.interval.ms")
        for topic, message in errors.items():
            self._creation_errors.note(topic, message, now_ms, keep_ms=keep_ms)

    # Life of the shard.

    def on_loaded(self, out: Outbox) -> None:
        for group in self.groups.values():
            session_ms = self._settings.get(group.group_id, "streams.session.timeout.ms")
            for member in group.members.values():
                out.schedule(StreamsSessionTimer(group.group_id, member.member_id), session_ms)
                if member.state is MemberState.UNREVOKED_TASKS:
                    out.schedule(
                        StreamsRebalanceTimer(group.group_id, member.member_id),
                        member.rebalance_timeout_ms,
                    )

    def on_timer(self, timer: StreamsTimer, out: Outbox) -> None:
        group = self.groups.get(timer.group_id)
        match timer:
            case StreamsSessionTimer():
                member = group.members.get(timer.member_id) if group is not None else None
                if group is not None and member is not None:
                    self._fence(group, member, out)
            case StreamsRebalanceTimer():
                member = group.members.get(timer.member_id) if group is not None else None
                if (
                    group is not None
                    and member is not None
                    and member.state is MemberState.UNREVOKED_TASKS
                ):
                    self._fence(group, member, out)
            case StreamsInitialRebalanceTimer():
                self._end_initial_delay(timer.group_id, group, out)
            case _:
                assert_never(timer)

    def _end_initial_delay(self, group_id: str, group: StreamsGroup | None, out: Outbox) -> None:
        soft = self._soft.get(group_id)
        if soft is not None:
            soft.assign_at_ms = None
        if group is None:
            # The first member's records were never written.
            self._soft.pop(group_id, None)
        elif group.members and group.topology is not None:
            configured = self._resolve(group_id, group.topology).configured
            interval_ms = self._settings.get(group_id, "streams.assignment.interval.ms")
            assign_after_delay(group, configured, interval_ms, out)

    # Replay: the only mutator of replicated state.

    def replay(self, key: Message, value: Message | None) -> None:
        match key, value:
            case StreamsGroupMetadataKey(), None:
                self.groups.pop(key.group_id, None)
                self._soft.pop(key.group_id, None)
                self._resolved.pop(key.group_id, None)
            case StreamsGroupMetadataKey(), StreamsGroupMetadataValue():
                _put_metadata(self._replayed(key.group_id), value)
            case StreamsGroupTopologyKey(), StreamsGroupTopologyValue():
                self._replayed(key.group_id).topology = StreamsTopology.of(value)
            case (
                StreamsGroupTargetAssignmentMetadataKey(),
                StreamsGroupTargetAssignmentMetadataValue(),
            ):
                group = self._replayed(key.group_id)
                group.assignment_epoch = value.assignment_epoch
                group.assignment_timestamp_ms = value.assignment_timestamp
            case (
                StreamsGroupTargetAssignmentMemberKey(),
                StreamsGroupTargetAssignmentMemberValue(),
            ):
                self._replayed(key.group_id).targets[key.member_id] = Tasks(
                    task_map(value.active_tasks),
                    task_map(value.standby_tasks),
                    task_map(value.warmup_tasks),
                )
            case StreamsGroupMemberMetadataKey(), StreamsGroupMemberMetadataValue():
                group = self._replayed(key.group_id)
                group.put_member(_with_metadata(_member_of(group, key.member_id), value))
            case (
                StreamsGroupCurrentMemberAssignmentKey(),
                StreamsGroupCurrentMemberAssignmentValue(),
            ):
                group = self._replayed(key.group_id)
                group.put_member(_with_assignment(_member_of(group, key.member_id), value))
            case _:
                self._replay_tombstone(key)

    def _replay_tombstone(self, key: Message) -> None:
        """Each tombstone stands alone: compaction may have taken what it refers to."""
        match key:
            case StreamsGroupTopologyKey():
                if (group := self.groups.get(key.group_id)) is not None:
                    group.topology = None
            case StreamsGroupTargetAssignmentMetadataKey():
                if (group := self.groups.get(key.group_id)) is not None:
                    group.remove_assignment_metadata()
            case StreamsGroupTargetAssignmentMemberKey():
                if (group := self.groups.get(key.group_id)) is not None:
                    group.targets.pop(key.member_id, None)
            case StreamsGroupMemberMetadataKey():
                if (group := self.groups.get(key.group_id)) is not None:
                    group.remove_member(key.member_id)
            case StreamsGroupCurrentMemberAssignmentKey():
                group = self.groups.get(key.group_id)
                member = None if group is None else group.members.get(key.member_id)
                if group is not None and member is not None:
                    group.put_member(
                        replace(
                            member,
                            member_epoch=LEFT_EPOCH,
                            previous_member_epoch=LEFT_EPOCH,
                            assigned=NOTHING_ASSIGNED,
                            pending_revocation=NOTHING_ASSIGNED,
                        )
                    )

    def _replayed(self, group_id: str) -> StreamsGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = StreamsGroup(group_id)
        return group


def _member_of(group: StreamsGroup, member_id: str) -> StreamsMember:
    return group.members.get(member_id) or StreamsMember(member_id=member_id)


def _put_metadata(group: StreamsGroup, value: StreamsGroupMetadataValue) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = {
        config.key: config.value for config in value.last_assignment_configs or ()
    }


def _with_metadata(member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=Endpoint.of(value.user_endpoint),
        client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
    )


def _with_assignment(
    member: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue
) -> StreamsMember:
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState.of(value.state),
        assigned=records.assigned_tasks(
            value.active_tasks, value.standby_tasks, value.warmup_tasks, value.member_epoch
        ),
        pending_revocation=records.assigned_tasks(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
            value.member_epoch,
        ),
    )
