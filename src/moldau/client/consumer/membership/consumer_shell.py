"""A member of a group of the consumer protocol (KIP-848): sends what `EpochMember` decides.

Heartbeats go on in a task of their own. What they bring is carried out in `poll`: first the
partitions to give up, with the application's callback, then the new ones, then the heartbeat that
says so. Topics come as ids; names are the metadata's, and asked for by id where it has none, as
for those that only the coordinator's regular expression matched.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from moldau.client.consumer.membership.heartbeats import Heartbeats
from moldau.client.consumer.membership.machine.epoch_member import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    EpochMember,
    EpochState,
    LocalAssignment,
    Reconciliation,
)
from moldau.client.consumer.membership.topic_names import TopicNames
from moldau.client.consumer.membership_interface import (
    ConsumerGroupMetadata,
    GroupHost,
    GroupMembershipOperation,
)
from moldau.client.deadline import Deadline
from moldau.client.machine.metadata import ClusterMetadata
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import ConsumerGroupHeartbeatRequest

__all__ = ["ConsumerMembership"]

_log = logging.getLogger(__name__)


class _Reported(NamedTuple):
    """What heartbeats have reported; a field is sent again only when it changes."""

    topics: frozenset[str] | None = None
    regex: str | None = None
    assignment: LocalAssignment | None = None
    all: bool = False


class ConsumerMembership:
    """See the module."""

    def __init__(self, host: GroupHost, member_id: str) -> None:
        values = host.values
        self._host = host
        self._cluster = host.cluster
        self._group_id: str = values["group.id"]
        self._instance_id: str | None = values["group.instance.id"]
        self._rack: str | None = values["client.rack"] or None
        self._server_assignor: str | None = values["group.remote.assignor"]
        self._max_poll_interval_ms: int = values["max.poll.interval.ms"]
        self._member = EpochMember(member_id)
        self._beats = Heartbeats(
            self._cluster,
            self._group_id,
            self._member,
            self,
            host.metrics,
            self._max_poll_interval_ms,
        )
        self._names = TopicNames(self._cluster, self.on_membership_changed)
        self._operation = GroupMembershipOperation.DEFAULT
        self._reported = _Reported()
        self._last_metadata = self.group_metadata()
        self._subscribed = False
        self._error: BaseException | None = None
        # Begun by a poll that had no time left to commit what goes.
        self._steps: Reconciliation | None = None
        self.needs_poll = False
        self.rebalancing = False
        self._cluster.on_metadata.append(self._on_metadata)

    # What the consumer asks.

    def on_subscription_changed(self) -> None:
        self._subscribed = True
        if not self._member.is_silent:
            self._beats.send_news()
        self.on_membership_changed()

    def group_metadata(self) -> ConsumerGroupMetadata:
        if not self._member.in_group:
            return ConsumerGroupMetadata(self._group_id, group_instance_id=self._instance_id)
        return ConsumerGroupMetadata(
            self._group_id, self._member.epoch, self._member.member_id, self._instance_id
        )

    def last_group_metadata(self) -> ConsumerGroupMetadata:
        return self._last_metadata

    def on_commit_failed(self, code: ErrorCode, sent_by: ConsumerGroupMetadata) -> None:
        """The next heartbeat finds out who this member is now: let it be soon."""
        if not self._member.is_silent:
            self._beats.send_news()

    def request_rejoin(self, reason: str) -> None:
        """The coordinator decides when to rebalance, not its members."""
        _log.warning("group %s: a rebalance cannot be enforced by a member", self._group_id)

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
            await self._names.close()

    # Partitions.

    async def _release(self) -> None:
        """Tell the application what is lost."""
        lost = self._member.must_release or self._member.state is EpochState.FATAL
        if not lost:
            return
        owned = sorted(self._host.owned_partitions)
        try:
            if owned and self._subscribed:
                await self._host.on_lost(owned)
        finally:
            self._member.on_released()
            self._beats.ring()

    async def _reconcile(self) -> None:
        while True:
            steps = self._steps_to_take()
            if steps is None:
                # What was begun before may be wanted no longer.
                await self._host.settle(())
                return
            started_ms = self._cluster.clock.elapsed_ms()
            if steps.revoked:
                self._steps = steps
                if not await self._host.settle(steps.revoked):
                    return
                self._steps = None
                await self._host.on_revoked(steps.revoked)
            if not self._member.still_wanted(steps):
                return
            try:
                await self._host.on_assigned(self._member.take(steps))
            finally:
                # They are the member's own, whatever the listener makes of it.
                self._member.on_reconciled(steps)
            self._host.metrics.rebalanced(self._cluster.clock.elapsed_ms() - started_ms)
            self._beats.ring()

    def _steps_to_take(self) -> Reconciliation | None:
        """Those that an earlier poll has begun, as long as they make sense."""
        begun, self._steps = self._steps, None
        if begun is not None and self._member.still_wanted(begun):
            return begun
        return self._member.reconciliation(self._known(), self._host.owned_partitions)

    def _known(self) -> Mapping[UUID, str]:
        names = self._cluster.metadata.names_by_id
        return {**self._names.found, **names} if self._names.found else names

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        self.on_membership_changed()

    # Leaving.

    async def _leave(self, deadline: Deadline) -> None:
        is_member = self._member.in_group
        # Heartbeats go on while the application gives its partitions up.
        self._member.prepare_leaving()
        try:
            owned = sorted(self._host.owned_partitions)
            if self._subscribed and owned:
                if is_member:
                    await self._host.settle_until(owned, deadline)
                    await self._host.on_revoked(owned)
                else:
                    await self._host.on_lost(owned)
        finally:
            self._subscribed = False
            self._error = None
            self._steps = None
            await self._beats.stop()
            await self._say_leaving(deadline)
            self._reported = _Reported()
            self._last_metadata = self.group_metadata()
            self.on_membership_changed()

    async def _say_leaving(self, deadline: Deadline) -> None:
        if self._member.state is not EpochState.PREPARE_LEAVING:
            # It was no member, or is none any more.
            return
        self._member.leave(self.leave_epoch())
        remains = self._operation is GroupMembershipOperation.REMAIN_IN_GROUP
        if remains and self._instance_id is None:
            # Nothing says that a dynamic member will be back: its session goes on until it ends.
            self._member.on_left_unsaid()
        else:
            await self._beats.say_leaving(deadline.left_ms())

    # What the heartbeats ask.

    def heartbeat(self) -> Message:
        member = self._member
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=member.member_id,
            member_epoch=member.epoch,
            instance_id=self._instance_id,
        )
        if member.state is EpochState.LEAVING:
            return request
        everything = member.state is EpochState.JOINING or not self._reported.all
        subscription = self._host.subscription
        if everything:
            request.rebalance_timeout_ms = self._max_poll_interval_ms
            request.server_assignor = self._server_assignor
            request.rack_id = self._rack
        if everything or subscription.topics != self._reported.topics:
            request.subscribed_topic_names = sorted(subscription.topics)
        regex = subscription.server_pattern
        if (everything and regex is not None) or regex != self._reported.regex:
            # An empty one takes the expression back.
            request.subscribed_topic_regex = regex or ""
        if everything or member.current != self._reported.assignment:
            request.topic_partitions = _topic_partitions(member.current)
        self._reported = _Reported(subscription.topics, regex, member.current, all=True)
        return request

    def on_heartbeat_failed(self) -> None:
        # The expression is not forgotten: it has to be taken back if it arrived.
        self._reported = _Reported(regex=self._reported.regex)

    def on_membership_changed(self) -> None:
        """Say whether `poll` has something to do."""
        member = self._member
        if member.in_group:
            self._last_metadata = self.group_metadata()
        if member.state is EpochState.RECONCILING:
            missing = member.unresolved(self._known())
            if missing:
                self._names.look_up(missing)
            self._want_assigned_topics()
        if self._error is not None or member.must_release:
            to_do = True
        elif member.state is EpochState.UNSUBSCRIBED:
            to_do = self._subscribed
        elif member.state is EpochState.FATAL:
            to_do = bool(self._host.owned_partitions) and self._subscribed
        else:
            to_do = self._steps is not None or self._has_steps()
        self.needs_poll = to_do
        if to_do:
            self._host.wake()

    def _has_steps(self) -> bool:
        if self._member.state is not EpochState.RECONCILING:
            return False
        steps = self._member.reconciliation(self._known(), self._host.owned_partitions)
        if self._member.beats_at_once:
            self._beats.ring()
        return steps is not None

    def _want_assigned_topics(self) -> None:
        if self._host.subscription.server_pattern is not None:
            known = self._known()
            names = {known[each] for each in self._member.target.partitions if each in known}
            self._host.want_topics(names)

    def on_error(self, error: BaseException) -> None:
        self._error = error
        self.on_membership_changed()

    def poll_idle_ms(self) -> int:
        return self._host.poll_idle_ms()

    def leave_epoch(self) -> int:
        if self._instance_id is None or self._operation is GroupMembershipOperation.LEAVE_GROUP:
            return LEAVE_EPOCH
        return LEAVE_STATIC_EPOCH


def _topic_partitions(assignment: LocalAssignment) -> list[Any]:
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
        for topic_id, indexes in assignment.partitions.items()
    ]
