"""A member of a streams group (KIP-1071): the coordinator assigns tasks, not partitions.

The member is decided by `EpochMember`, as that of a consumer group; a sub-topology takes the place
of a topic there, under an id made of its number. What the application sees are the partitions of
its tasks. Standby tasks are accepted at once: they own no partitions that others wait for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from moldau.client.consumer.membership.heartbeats import Heartbeats
from moldau.client.consumer.membership.machine.epoch_member import (
    LEAVE_EPOCH,
    EpochMember,
    EpochState,
    LocalAssignment,
    Reconciliation,
)
from moldau.client.consumer.membership.machine.streams_interface import (
    ASSIGNMENT_DELAYED,
    MISSING_INTERNAL_TOPICS,
    GroupStatus,
    InternalTopic,
    StreamsApplication,
    SubtopologyInfo,
    Task,
)
from moldau.client.consumer.membership_interface import (
    ConsumerGroupMetadata,
    GroupHost,
    GroupMembershipOperation,
)
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.topics import TopicPartition
from moldau.clock import pause
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Beat

__all__ = ["StreamsMembership"]

_log = logging.getLogger(__name__)

Tasks = frozenset[Task]

# What the coordinator is about to do, within a second or so. Its interval is several seconds, and
# until the next heartbeat the member would have nothing to do.
_PASSING = frozenset({ASSIGNMENT_DELAYED, MISSING_INTERNAL_TOPICS})
_PASSING_BEAT_MS = 250


class _Reported(NamedTuple):
    """What heartbeats have reported; it is sent again only when it changes."""

    assignment: LocalAssignment | None = None
    standby: Tasks | None = None
    all: bool = False


def _id_of(subtopology: str) -> UUID:
    return UUID(int=int(subtopology))


class StreamsMembership:
    """See the module."""

    def __init__(self, host: GroupHost, application: StreamsApplication) -> None:
        values = host.values
        self._host = host
        self._application = application
        self._cluster = host.cluster
        self._group_id: str = values["group.id"]
        self._rack: str | None = values["client.rack"] or None
        self._max_poll_interval_ms: int = values["max.poll.interval.ms"]
        self._member = EpochMember(application.member_id)
        self._beats = Heartbeats(
            self._cluster,
            self._group_id,
            self._member,
            self,
            host.metrics,
            self._max_poll_interval_ms,
            read_assignment=self._read_response,
        )
        self._operation = GroupMembershipOperation.DEFAULT
        self._reported = _Reported()
        self._endpoint_epoch = -1
        self._owned: dict[TopicPartition, frozenset[TopicPartition]] = {}
        self._standby: Tasks = frozenset()
        self._last_metadata = self.group_metadata()
        self._subscribed = False
        self._error: BaseException | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self.needs_poll = False
        self.rebalancing = False
        self._cluster.on_metadata.append(self._on_metadata)

    # What the consumer asks.

    def on_subscription_changed(self) -> None:
        self._subscribed = True
        self.on_membership_changed()

    def group_metadata(self) -> ConsumerGroupMetadata:
        if not self._member.in_group:
            return ConsumerGroupMetadata(self._group_id)
        return ConsumerGroupMetadata(self._group_id, self._member.epoch, self._member.member_id)

    def last_group_metadata(self) -> ConsumerGroupMetadata:
        return self._last_metadata

    def on_commit_failed(self, code: ErrorCode, sent_by: ConsumerGroupMetadata) -> None:
        if not self._member.is_silent:
            self._beats.send_news()

    def request_rejoin(self, reason: str) -> None:
        """The coordinator decides when to rebalance; a heartbeat has what there is to say."""
        self._beats.send_news()

    async def poll(self, deadline: Deadline) -> None:
        try:
            await self._release()
            if self._error is not None:
                error = self._error
                if self._member.state is not EpochState.FATAL:
                    self._error = None
                raise error
            if self._subscribed:
                self._member.join()
                self._beats.start()
                self._beats.ring()
                await self._reconcile()
        finally:
            self.on_membership_changed()

    async def unsubscribe(self, deadline: Deadline) -> None:
        await self._leave(deadline)

    async def close(self, deadline: Deadline, operation: GroupMembershipOperation) -> None:
        self._operation = operation
        if self._on_metadata in self._cluster.on_metadata:
            self._cluster.on_metadata.remove(self._on_metadata)
        try:
            await self._leave(deadline)
        finally:
            await self._beats.stop()
            if self._refreshing is not None:
                self._refreshing.cancel()

    # Tasks.

    def _partitions(self, tasks: Iterable[TopicPartition]) -> list[TopicPartition]:
        return sorted({key for task in tasks for key in self._owned.get(task, ())})

    async def _release(self) -> None:
        """All is lost: the application has to know."""
        if not (self._member.must_release or self._member.state is EpochState.FATAL):
            return
        lost, self._owned = self._partitions(self._owned), {}
        try:
            if lost and self._subscribed:
                await self._host.on_lost(lost)
        finally:
            self._member.on_released()
            self._beats.ring()

    async def _reconcile(self) -> None:
        while True:
            steps = self._member.reconciliation(self._known(), self._owned)
            if steps is None:
                return
            if steps.revoked:
                going = self._partitions(steps.revoked)
                try:
                    await self._host.on_revoked(going)
                finally:
                    for task in steps.revoked:
                        self._owned.pop(task, None)
            if not self._member.still_wanted(steps):
                return
            await self._assign(steps)
            self._beats.ring()

    async def _assign(self, steps: Reconciliation) -> None:
        taken = self._member.take(steps)
        counts = self._counts()
        for task in taken:
            found = self._application.partitions_of((task.topic, task.partition), counts)
            self._owned[task] = found or frozenset()
        try:
            await self._host.on_assigned(self._partitions(taken))
        finally:
            self._member.on_reconciled(steps)

    def _counts(self) -> dict[str, int]:
        topics = self._cluster.metadata.topics
        return {name: len(view.partitions) for name, view in topics.items()}

    def _known(self) -> Mapping[UUID, str]:
        """The sub-topologies whose topics are all known."""
        counts = self._counts()
        known: dict[UUID, str] = {}
        for each in self._application.subtopologies:
            if self._application.partitions_of((each.id, 0), counts) is None:
                self._look_up()
            else:
                known[_id_of(each.id)] = each.id
        return known

    def _look_up(self) -> None:
        """Have a newer picture of the cluster, once at a time."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def _refresh(self) -> None:
        with suppress(KafkaError):
            await self._cluster.refresh()
        await pause(self._cluster.clock, self._cluster.settings.retry_backoff_ms)

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        self.on_membership_changed()

    # Leaving.

    async def _leave(self, deadline: Deadline) -> None:
        is_member = self._member.in_group
        self._member.prepare_leaving()
        try:
            owned, self._owned = self._partitions(self._owned), {}
            if self._subscribed and owned:
                if is_member:
                    await self._host.on_revoked(owned)
                else:
                    await self._host.on_lost(owned)
        finally:
            self._subscribed = False
            self._error = None
            await self._beats.stop()
            if self._member.state is EpochState.PREPARE_LEAVING:
                self._member.leave(self.leave_epoch())
                if self._operation is GroupMembershipOperation.REMAIN_IN_GROUP:
                    # It may come back under its id until its session ends.
                    self._member.on_left_unsaid()
                else:
                    await self._beats.say_leaving(deadline.left_ms())
            self._reported = _Reported()
            self._last_metadata = self.group_metadata()
            self.on_membership_changed()

    # What the heartbeats ask.

    def heartbeat(self) -> Message:
        member, application = self._member, self._application
        request = Beat(
            group_id=self._group_id,
            member_id=member.member_id,
            member_epoch=member.epoch,
            endpoint_information_epoch=self._endpoint_epoch,
        )
        if member.state is EpochState.LEAVING:
            return request
        request.shutdown_application = application.shutdown_requested
        everything = member.state is EpochState.JOINING or not self._reported.all
        if everything:
            request.rebalance_timeout_ms = self._max_poll_interval_ms
            request.rack_id = self._rack
            request.process_id = application.process_id
            request.client_tags = []
            if application.endpoint:
                name, _, port = application.endpoint.rpartition(":")
                request.user_endpoint = Beat.Endpoint(host=name, port=int(port))
        joining = member.state is EpochState.JOINING
        if joining:
            # A member sends it once: with an epoch, also after a lost heartbeat, it is refused.
            request.topology = Beat.Topology(
                epoch=0, subtopologies=[_subtopology(each) for each in application.subtopologies]
            )
        standby: Tasks = frozenset() if joining else self._standby
        if (
            everything
            or member.current != self._reported.assignment
            or standby != self._reported.standby
        ):
            request.active_tasks = _current(member.current)
            request.standby_tasks = _task_ids(standby)
            request.warmup_tasks = []
        self._reported = _Reported(member.current, standby, all=True)
        return request

    def _read_response(self, response: Any) -> dict[UUID, frozenset[int]] | None:
        """The active tasks of a response; whatever else it has goes to the application."""
        application = self._application
        if response.partitions_by_user_endpoint is not None:
            self._endpoint_epoch = response.endpoint_information_epoch
            application.on_endpoints(
                {
                    f"{each.user_endpoint.host}:{each.user_endpoint.port}": (
                        _topic_partitions(each.active_partitions),
                        _topic_partitions(each.standby_partitions),
                    )
                    for each in response.partitions_by_user_endpoint
                }
            )
        if response.status:
            application.on_status(
                [GroupStatus(each.status_code, each.status_detail) for each in response.status]
            )
            if any(each.status_code in _PASSING for each in response.status):
                self._beats.send_within(_PASSING_BEAT_MS)
        if response.active_tasks is None:
            return None
        standby = _tasks(response.standby_tasks or ()) | _tasks(response.warmup_tasks or ())
        if standby != self._standby:
            self._standby = standby
            self._beats.send_news()
        application.on_tasks(_tasks(response.active_tasks), standby)
        return {
            _id_of(each.subtopology_id): frozenset(each.partitions)
            for each in response.active_tasks
        }

    def on_heartbeat_failed(self) -> None:
        self._reported = _Reported()

    def on_membership_changed(self) -> None:
        """Say whether `poll` has something to do."""
        member = self._member
        if member.in_group:
            self._last_metadata = self.group_metadata()
        if self._error is not None or member.must_release:
            to_do = True
        elif member.state is EpochState.UNSUBSCRIBED:
            to_do = self._subscribed
        elif member.state is EpochState.FATAL:
            to_do = bool(self._owned) and self._subscribed
        else:
            to_do = self._has_steps()
        self.needs_poll = to_do
        if to_do:
            self._host.wake()

    def _has_steps(self) -> bool:
        if self._member.state is not EpochState.RECONCILING:
            return False
        steps = self._member.reconciliation(self._known(), self._owned)
        if self._member.beats_at_once:
            self._beats.ring()
        return steps is not None

    def on_error(self, error: BaseException) -> None:
        self._error = error
        self.on_membership_changed()

    def poll_idle_ms(self) -> int:
        return self._host.poll_idle_ms()

    def leave_epoch(self) -> int:
        return LEAVE_EPOCH


def _tasks(listed: Iterable[Any]) -> Tasks:
    return frozenset((each.subtopology_id, index) for each in listed for index in each.partitions)


def _task_ids(tasks: Collection[Task]) -> list[Any]:
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(partition)
    return [Beat.TaskIds(subtopology_id=key, partitions=each) for key, each in found.items()]


def _current(assignment: LocalAssignment) -> list[Any]:
    return [
        Beat.TaskIds(subtopology_id=str(key.int), partitions=sorted(indexes))
        for key, indexes in assignment.partitions.items()
    ]


def _topic_partitions(listed: Iterable[Any]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(each.topic, index) for each in listed for index in each.partitions
    )


def _topic(topic: InternalTopic) -> Any:
    return Beat.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=max(0, topic.replication_factor),
        topic_configs=[
            Beat.KeyValue(key=key, value=value) for key, value in sorted(topic.configs.items())
        ],
    )


def _subtopology(info: SubtopologyInfo) -> Any:
    sources = sorted(info.source_topics)
    repartition = sorted(info.repartition_sources, key=lambda each: each.name)
    names = [each.name for each in repartition]
    return Beat.Subtopology(
        subtopology_id=info.id,
        source_topics=sources,
        source_topic_regex=sorted(info.source_patterns),
        state_changelog_topics=[
            _topic(each) for each in sorted(info.changelogs, key=lambda each: each.name)
        ],
        repartition_sink_topics=sorted(info.repartition_sinks),
        repartition_source_topics=[_topic(each) for each in repartition],
        copartition_groups=[
            Beat.CopartitionGroup(
                source_topics=[index for index, name in enumerate(sources) if name in group],
                repartition_source_topics=[
                    index for index, name in enumerate(names) if name in group
                ],
            )
            for group in info.copartitioned
        ],
    )
