"""A member of a classic group: sends what `classic.ClassicMember` decides.

Two tasks run beside the application: one joins, round after round (`classic_rounds.py`), and ends
with an assignment or the need to be polled; the other sends heartbeats (`classic_heartbeats.py`)
and notices when the application stays away for longer than `max.poll.interval.ms`. Partitions
change hands in `poll`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from moldau.client.consumer.assignors.embedded import read_assignment
from moldau.client.consumer.assignors.interface import RebalanceProtocol
from moldau.client.consumer.membership.classic_heartbeats import ClassicHeartbeats
from moldau.client.consumer.membership.classic_rounds import ClassicRounds, RoundFailed
from moldau.client.consumer.membership.machine.classic import (
    After,
    ClassicMember,
    ClassicSettings,
    MemberState,
)
from moldau.client.consumer.membership.waiting import Doorbell
from moldau.client.consumer.membership_interface import (
    ConsumerGroupMetadata,
    GroupHost,
    GroupMembershipOperation,
)
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    ConfigError,
    KafkaError,
    SerializationError,
)
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.topics import TopicPartition
from moldau.clock import pause
from moldau.wire.errors import ErrorCode, WireError

__all__ = ["ClassicMembership"]

_log = logging.getLogger(__name__)

# So many failed rounds may follow each other at once.
_ROUNDS_AT_ONCE: Final = 3


class ClassicMembership:
    """See the module."""

    def __init__(self, host: GroupHost) -> None:
        values = host.values
        self._host = host
        self._cluster = host.cluster
        self._clock = host.cluster.clock
        self._group_id: str = values["group.id"]
        self._instance_id: str | None = values["group.instance.id"]
        self._max_poll_interval_ms: int = values["max.poll.interval.ms"]
        self._member = ClassicMember(
            ClassicSettings(
                values["session.timeout.ms"],
                values["heartbeat.interval.ms"],
                self._max_poll_interval_ms,
            )
        )
        doorbell = Doorbell(self._clock)
        self._rounds = ClassicRounds(host, self._member, doorbell.ring)
        self._beats = ClassicHeartbeats(
            host,
            self._member,
            self._rounds,
            doorbell,
            on_changed=self._update,
            on_error=self._fail,
        )
        self._last_metadata = ConsumerGroupMetadata(
            self._group_id, group_instance_id=self._instance_id
        )
        self.needs_poll = False
        self._subscribed = False
        self._joining: asyncio.Task[bytes | None] | None = None
        self._error: BaseException | None = None
        self._cluster.on_metadata.append(self._on_metadata)

    # What the consumer asks.

    def on_subscription_changed(self) -> None:
        if self._rounds.protocol is None:
            raise ConfigError.invalid(
                "partition.assignment.strategy", "", "at least one assignor is needed to subscribe"
            )
        self._subscribed = True
        self._notice_changes()
        self._update()

    def group_metadata(self) -> ConsumerGroupMetadata:
        if self._member.state is not MemberState.STABLE:
            return ConsumerGroupMetadata(self._group_id, group_instance_id=self._instance_id)
        generation = self._member.generation
        return ConsumerGroupMetadata(
            self._group_id, generation.generation_id, generation.member_id, self._instance_id
        )

    def last_group_metadata(self) -> ConsumerGroupMetadata:
        return self._last_metadata

    @property
    def rebalancing(self) -> bool:
        return self._member.rebalancing

    def on_commit_failed(self, code: ErrorCode, sent_by: ConsumerGroupMetadata) -> None:
        self._member.on_commit_failed(code, sent_by.generation_id, sent_by.member_id)
        self._update()

    def request_rejoin(self, reason: str) -> None:
        self._member.request_rejoin(reason)
        self._update()

    async def poll(self, deadline: Deadline) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            self._update()
            raise error
        try:
            while self._subscribed:
                self._notice_changes()
                if self._joining is not None:
                    if not self._joining.done():
                        return
                    if not await self._finish_join():
                        return
                elif not self._member.rejoin_needed or not await self._begin_join():
                    return
        finally:
            self._update()

    async def unsubscribe(self, deadline: Deadline) -> None:
        await self._leave(
            deadline, GroupMembershipOperation.DEFAULT, "the consumer unsubscribed from all topics"
        )

    async def close(self, deadline: Deadline, operation: GroupMembershipOperation) -> None:
        if self._on_metadata in self._cluster.on_metadata:
            self._cluster.on_metadata.remove(self._on_metadata)
        try:
            await self._leave(deadline, operation, "the consumer is being closed")
        finally:
            await self._beats.stop()

    # Changes.

    def _notice_changes(self) -> None:
        if not self._member.rejoin_needed:
            reason = self._rounds.change()
            if reason is not None:
                self._member.request_rejoin(reason)

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        if self._subscribed and self._joining is None:
            self._notice_changes()
            self._update()

    def _update(self) -> None:
        """Say whether `poll` has something to do."""
        if self._joining is not None:
            to_do = self._joining.done()
        else:
            to_do = self._subscribed and self._member.rejoin_needed
        self.needs_poll = to_do or self._error is not None
        if self.needs_poll:
            self._host.wake()

    # Joining.

    async def _begin_join(self) -> bool:
        """False if the next poll has to go on with it."""
        if self._member.needs_prepare:
            if not await self._host.settle(self._to_give_up()):
                return False
            # Once only, whatever the listener does.
            self._member.needs_prepare = False
            self._rounds.forget()
            try:
                await self._give_up_for_join()
            except asyncio.CancelledError:
                # But not if the application broke the poll off in the middle of it.
                self._member.needs_prepare = True
                raise
        if self._joining is None and self._subscribed:
            loop = asyncio.get_running_loop()
            self._joining = loop.create_task(self._join())
            self._joining.add_done_callback(lambda done: self._update())
            self._beats.start()
        return True

    def _to_give_up(self) -> list[TopicPartition]:
        """What has to be given up before joining, if the member has not lost it."""
        if self._member.lost:
            return []
        eager = self._rounds.protocol is RebalanceProtocol.EAGER
        owned = sorted(self._host.owned_partitions)
        return [key for key in owned if eager or not self._wants(key.topic)]

    async def _give_up_for_join(self) -> None:
        owned = self._host.owned_partitions
        if self._member.lost:
            if owned:
                await self._host.on_lost(sorted(owned))
            return
        given_up = self._to_give_up()
        # An eager member calls the listener at every join, even if it owns nothing.
        if given_up or self._rounds.protocol is RebalanceProtocol.EAGER:
            await self._host.on_revoked(given_up)

    def _wants(self, topic: str) -> bool:
        subscription = self._host.subscription
        if topic in subscription.topics:
            return True
        # The leader may know of a topic before this member's metadata does.
        pattern = subscription.pattern
        return pattern is not None and pattern.fullmatch(topic) is not None

    async def _join(self) -> bytes | None:
        """The assignment, or None if `poll` has to do something first."""
        failures = 0
        while self._host.poll_idle_ms() < self._max_poll_interval_ms:
            if self._host.subscription.pattern is not None:
                # So that members see a new topic at the same time, and rejoin once for it.
                with suppress(KafkaError):
                    await self._cluster.refresh()
            try:
                return await self._rounds.run()
            except RoundFailed as failed:
                error, after = failed.error, failed.after
            except KafkaError as caught:
                self._member.on_call_failed(type(caught).__name__)
                error, after = caught, After.BACK_OFF if caught.retriable else After.FAIL
            failures += 1
            self._host.metrics.rebalance_failed()
            if after is After.FAIL:
                raise error
            _log.info("group %s: joining failed and is retried: %s", self._group_id, error)
            if self._member.needs_prepare:
                return None
            if after is After.FIND_COORDINATOR:
                self._rounds.forget_coordinator()
            if after is not After.RETRY or failures > _ROUNDS_AT_ONCE:
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                await pause(self._clock, delay_ms)
        return None

    async def _finish_join(self) -> bool:
        """False if the next poll has to go on with it."""
        task = self._joining
        self._joining = None
        if task is None:
            return True
        assignment = task.result()
        if assignment is None:
            return True
        if self._member.state is not MemberState.STABLE:
            self._member.on_rebalance_failed(
                "the generation was lost before the assignment could be taken"
            )
            return True
        self._member.needs_prepare = True
        try:
            taken = await self._take(assignment)
        except asyncio.CancelledError:
            # Broken off by the application: the next poll begins with it again.
            self._joining = task
            raise
        if not taken:
            self._joining = task
        return taken

    async def _take(self, data: bytes) -> bool:
        """Give up what is no longer ours, then take what is new; errors come last. False while
        what is to be given up is not committed."""
        assignor = self._rounds.assignor(self._member.generation.protocol_name)
        self._last_metadata = self.group_metadata()
        try:
            assignment = read_assignment(data)
        except WireError as error:
            raise SerializationError(
                f"the leader of group {self._group_id} sent no assignment: {error}"
            ) from error
        assigned = frozenset(assignment.partitions)
        if not all(self._wants(key.topic) for key in assigned):
            self._member.request_rejoin(
                "received assignment does not match the current subscription"
            )
            return True
        owned = self._host.owned_partitions
        revoked = owned - assigned
        problems: list[Exception] = []
        if self._rounds.protocol is RebalanceProtocol.COOPERATIVE and revoked:
            # Others wait for these: whatever becomes of this poll, another round follows.
            self._member.request_rejoin("need to revoke partitions and re-join")
            if not await self._host.settle(sorted(revoked)):
                return False
            try:
                await self._host.on_revoked(sorted(revoked))
            except Exception as error:
                problems.append(error)
        try:
            assignor.on_assignment(assignment, self.group_metadata())
        except Exception as error:
            problems.append(error)
        try:
            await self._host.on_assigned(sorted(assigned - owned))
        except Exception as error:
            problems.append(error)
        if problems:
            raise problems[0]
        return True

    def _fail(self, error: BaseException | None) -> None:
        """What the next poll raises."""
        self._error = error
        self._update()

    # Leaving.

    async def _leave(
        self, deadline: Deadline, operation: GroupMembershipOperation, reason: str
    ) -> None:
        if self._joining is not None:
            if not self._joining.done():
                self._rounds.abandon()
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
            self._joining = None
        try:
            owned = sorted(self._host.owned_partitions)
            if self._subscribed and owned:
                if self._member.lost or self._member.rebalancing:
                    await self._host.on_lost(owned)
                else:
                    await self._host.settle_until(owned, deadline)
                    await self._host.on_revoked(owned)
        finally:
            self._subscribed = False
            self._error = None
            self._rounds.forget()
            self._rounds.joined_topics = None
            remain = operation is GroupMembershipOperation.REMAIN_IN_GROUP or (
                operation is GroupMembershipOperation.DEFAULT and self._instance_id is not None
            )
            member_id = self._member.leave(remain=remain)
            self._update()
            await self._beats.send_leave(member_id, reason, deadline.left_ms())
