"""One StreamsGroupHeartbeat of a member that stays.

The steps of a heartbeat: find the member and check its epoch, update the member and the topology,
resolve the topology against the topics, bump the group epoch if anything changed, assign tasks if
that is due, and move the member one step towards its target. Replicated state is only read; all
changes are records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.broker.coordinator.group.machine.assignment_interval import may_assign
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.group.machine.streams import records, target
from moldau.broker.coordinator.group.machine.streams.creation_errors import CreationErrors, shown
from moldau.broker.coordinator.group.machine.streams.endpoints import partitions_by_endpoint
from moldau.broker.coordinator.group.machine.streams.events import (
    CreateInternalTopics,
    StreamsInitialRebalanceTimer,
    StreamsRebalanceTimer,
    StreamsSessionTimer,
)
from moldau.broker.coordinator.group.machine.streams.group import StreamsGroup
from moldau.broker.coordinator.group.machine.streams.internal_topics import (
    ConfiguredTopology,
    Status,
)
from moldau.broker.coordinator.group.machine.streams.members import MemberState, StreamsMember
from moldau.broker.coordinator.group.machine.streams.reconciliation import Target, reconcile
from moldau.broker.coordinator.group.machine.streams.requests import (
    JOIN_EPOCH,
    check_epoch,
    check_tasks_exist,
    owned_tasks,
)
from moldau.broker.coordinator.group.machine.streams.tasks import NO_TASKS, TaskMap
from moldau.broker.coordinator.group.machine.streams.topology import StreamsTopology
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

_Response = StreamsGroupHeartbeatResponse


@dataclass(slots=True)
class SoftState:
    """What a group remembers until its coordinator moves; nothing of it is replicated."""

    endpoint_epoch: int = 0
    shutdown_member_id: str | None = None
    """The member that requested a shutdown of all, until the group is empty."""
    assign_at_ms: int | None = None
    """The first members of an empty group wait for each other until then."""


class Resolved(NamedTuple):
    """A topology against the topics of one version of the cluster."""

    topology: StreamsTopology
    version: int
    metadata_hash: int
    configured: ConfiguredTopology


@dataclass(slots=True)
class Heartbeat:
    """Everything that one heartbeat is decided by."""

    request: StreamsGroupHeartbeatRequest
    client: ClientInfo
    group: StreamsGroup
    is_new: bool
    soft: SoftState
    settings: GroupSettings
    topics: ClusterTopics
    creation_errors: CreationErrors
    out: Outbox
    status: list[StreamsGroupHeartbeatResponse.Status] = field(default_factory=list)

    @property
    def _joining(self) -> bool:
        return self.request.member_epoch == JOIN_EPOCH

    @property
    def group_id(self) -> str:
        return self.group.group_id

    def setting(self, key: str) -> int:
        value: int = self.settings.get(self.group_id, key)
        return value

    # The member and its topology.

    def member(self) -> StreamsMember:
        member_id = self.request.member_id
        member = self.group.members.get(member_id)
        if member is None:
            member = (
                StreamsMember(member_id=member_id)
                if self._joining
                else self.group.member(member_id)
            )
        check_epoch(member, self.request)
        return member

    def topology(self) -> StreamsTopology:
        """The group's topology; the first member brings it, and it stays as it is."""
        current = self.group.topology
        if self.request.topology is None:
            if current is None:
                raise ApiError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"group {self.group_id} has no topology; its members must rejoin with one",
                )
            return current
        given = StreamsTopology.of(self.request.topology)
        if current is None:
            self.out.write(records.topology(self.group_id, given))
            return given
        if given.epoch >= current.epoch and given != current:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"group {self.group_id} has another topology, and cannot change it yet",
            )
        return current

    def updated(self, member: StreamsMember) -> StreamsMember:
        updated = member.updated(self.request, self.client)
        if updated != member:
            self.out.write(records.member_metadata(self.group_id, updated))
        return updated

    # The decision.

    def decide(
        self, resolved: Resolved, member: StreamsMember, updated: StreamsMember
    ) -> StreamsGroupHeartbeatResponse:
        current = self.group.topology
        if current is not None and updated.topology_epoch < current.epoch:
            self.status.append(
                Status.STALE_TOPOLOGY.saying(
                    f"the group's topology has epoch {current.epoch}, the member's only "
                    f"{updated.topology_epoch}"
                )
            )
        configured = resolved.configured
        configs = self.assignment_configs()
        group_epoch = self._bump_epoch(resolved, configs, changed=updated != member)
        self._wait_for_others()
        goal = self._goal(group_epoch, updated, configured, configs)
        updated = self._reconcile(updated, goal)
        self.out.schedule(
            StreamsSessionTimer(self.group_id, updated.member_id),
            self.setting("streams.session.timeout.ms"),
        )
        if self.request.shutdown_application and self.soft.shutdown_member_id is None:
            self.soft.shutdown_member_id = updated.member_id
        return self._response(member, updated, configured)

    def assignment_configs(self) -> dict[str, str]:
        replicas = self.setting(f"streams.{target.NUM_STANDBY_REPLICAS}")
        return {target.NUM_STANDBY_REPLICAS: str(replicas)}

    def _bump_epoch(self, resolved: Resolved, configs: Mapping[str, str], *, changed: bool) -> int:
        """The group epoch; a higher one if members, topics or configs are not what they were."""
        group, configured = self.group, resolved.configured
        validated = -1
        if configured.is_ready:
            validated = resolved.topology.epoch
            counts = {
                key: each.task_count for key, each in (configured.subtopologies or {}).items()
            }
            check_tasks_exist(self.request.active_tasks, counts)
            check_tasks_exist(self.request.standby_tasks, counts)
            check_tasks_exist(self.request.warmup_tasks, counts)
        if (
            not changed
            and resolved.metadata_hash == group.metadata_hash
            and validated == group.validated_topology_epoch
            and configs == group.assignment_configs
        ):
            return group.group_epoch
        self.out.write(
            records.group_metadata(
                self.group_id,
                epoch=group.group_epoch + 1,
                metadata_hash=resolved.metadata_hash,
                validated_topology_epoch=validated,
                assignment_configs=configs,
            )
        )
        return group.group_epoch + 1

    def _wait_for_others(self) -> None:
        if self.group.is_empty and not self._is_waiting:
            delay_ms = self.setting("streams.initial.rebalance.delay.ms")
            if delay_ms > 0:
                self.soft.assign_at_ms = self.out.now_ms + delay_ms
                self.out.schedule(StreamsInitialRebalanceTimer(self.group_id), delay_ms)

    @property
    def _is_waiting(self) -> bool:
        return self.soft.assign_at_ms is not None and self.out.now_ms < self.soft.assign_at_ms

    def _goal(
        self,
        group_epoch: int,
        updated: StreamsMember,
        configured: ConfiguredTopology,
        configs: Mapping[str, str],
    ) -> Target:
        group = self.group
        if self._is_waiting:
            self._delayed("streams.initial.rebalance.delay.ms is not over")
            return Target(group.assignment_epoch, NO_TASKS)
        last = Target(group.assignment_epoch, group.target(updated.member_id))
        if group.assignment_epoch >= group_epoch:
            return last
        interval_ms = self.setting("streams.assignment.interval.ms")
        made_ms = group.assignment_timestamp_ms
        if not may_assign(made_ms=made_ms, interval_ms=interval_ms, now_ms=self.out.now_ms):
            self._delayed("streams.assignment.interval.ms is not over")
            return last
        targets = target.assign_anew(group, group_epoch, updated, configured, configs, self.out)
        return Target(group_epoch, targets[updated.member_id])

    def _delayed(self, reason: str) -> None:
        self.status.append(Status.ASSIGNMENT_DELAYED.saying(f"no assignment yet: {reason}"))

    def _reconcile(self, member: StreamsMember, goal: Target) -> StreamsMember:
        if member.is_reconciled_to(goal.epoch):
            return member
        updated = reconcile(member, goal, owned_tasks(self.request), self.group.owners)
        if updated != member:
            self.out.write(records.current_assignment(self.group_id, updated))
            timer = StreamsRebalanceTimer(self.group_id, updated.member_id)
            if updated.state is MemberState.UNREVOKED_TASKS:
                self.out.schedule(timer, updated.rebalance_timeout_ms)
            else:
                self.out.cancel(timer)
        return updated

    # The response.

    def _response(
        self, before: StreamsMember, after: StreamsMember, configured: ConfiguredTopology
    ) -> StreamsGroupHeartbeatResponse:
        response = _Response(
            member_id=after.member_id,
            member_epoch=after.member_epoch,
            heartbeat_interval_ms=self.setting("streams.heartbeat.interval.ms"),
        )
        if self._joining or before.assigned != after.assigned:
            response.active_tasks = _task_ids(after.assigned.active_tasks)
            response.standby_tasks = _task_ids(after.assigned.standby)
            response.warmup_tasks = _task_ids(after.assigned.warmup)
            if after.user_endpoint is not None:
                self.soft.endpoint_epoch += 1
        if self.soft.endpoint_epoch != self.request.endpoint_information_epoch:
            others = (each for key, each in self.group.members.items() if key != after.member_id)
            response.partitions_by_user_endpoint = partitions_by_endpoint(
                (*others, after), configured, self.topics
            )
        if self.is_new:
            # As in Kafka, endpoint information is counted from the second heartbeat on.
            self.soft.endpoint_epoch = 0
        response.endpoint_information_epoch = self.soft.endpoint_epoch
        if configured.problem is not None:
            problem, detail = configured.problem
            self.status.append(problem.saying(self._create_topics(configured, detail)))
        if self.soft.shutdown_member_id is not None:
            self.status.append(
                Status.SHUTDOWN_APPLICATION.saying(
                    f"member {self.soft.shutdown_member_id} has asked the whole application to "
                    "shut down after a fatal error"
                )
            )
        response.status = self.status
        return response

    def _create_topics(self, configured: ConfiguredTopology, detail: str) -> str:
        """Ask for the topics that are missing; the detail with what went wrong before."""
        names = [topic.name for topic in configured.missing_topics]
        errors = self.creation_errors.of(names, self.out.now_ms)
        wanted = tuple(each for each in configured.missing_topics if each.name not in errors)
        denied_creations = self.client.denied_creations
        if (
            wanted
            and denied_creations is not None
            and (denied := denied_creations([topic.name for topic in wanted]))
        ):
            # As in Kafka, none is created then.
            return f"{detail}; Unauthorized to CREATE on topics {', '.join(denied)}."
        if wanted:
            self.out.act(CreateInternalTopics(self.group_id, wanted))
        return f"{detail}; creation failed: {shown(errors)}" if errors else detail


def _task_ids(tasks: TaskMap) -> list[StreamsGroupHeartbeatResponse.TaskIds]:
    return [
        _Response.TaskIds(subtopology_id=subtopology, partitions=sorted(partitions))
        for subtopology, partitions in sorted(tasks.items())
    ]


def assign_after_delay(
    group: StreamsGroup, configured: ConfiguredTopology, interval_ms: int, out: Outbox
) -> None:
    """The initial delay is over: compute the target of all members that have joined."""
    invariant(group.members, f"group {group.group_id} has members to assign tasks to")
    if group.assignment_epoch < group.group_epoch and may_assign(
        made_ms=group.assignment_timestamp_ms, interval_ms=interval_ms, now_ms=out.now_ms
    ):
        target.assign_anew(
            group, group.group_epoch, None, configured, group.assignment_configs, out
        )
