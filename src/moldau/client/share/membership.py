"""A member of a share group: heartbeats, and the partitions that they assign.

On the machine of the consumer protocol (`EpochMember`), with less to do: nobody owns a partition
alone, so there is nothing to give up before it is acknowledged, and no listener to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.membership.heartbeats import Heartbeats
from moldau.client.consumer.membership.machine.epoch_member import (
    LEAVE_EPOCH,
    EpochMember,
    EpochState,
)
from moldau.client.consumer.membership.topic_names import TopicNames
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.metrics import ShareConsumerMetrics
from moldau.client.share.machine.acknowledgements import TopicIdPartition
from moldau.client.share.settings import ShareSettings
from moldau.client.topics import TopicPartition
from moldau.wire.message import Message
from moldau.wire.messages import ShareGroupHeartbeatRequest

__all__ = ["ShareMembership"]

_NOTHING: Final[frozenset[TopicIdPartition]] = frozenset()


class ShareMembership:
    """See the module. Lives on the loop."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ShareSettings,
        member_id: str,
        metrics: ShareConsumerMetrics,
        *,
        idle_ms: Callable[[], int],
        on_assigned: Callable[[], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._idle_ms = idle_ms
        self._on_assigned = on_assigned
        self._on_error = on_error
        self._member = EpochMember(member_id)
        self._metrics = metrics
        self._beats = Heartbeats(
            cluster, settings.group_id, self._member, self, metrics, settings.max_poll_interval_ms
        )
        self._names = TopicNames(cluster, self.on_membership_changed)
        self._topics: frozenset[str] = frozenset()
        self._reported_topics: frozenset[str] | None = None
        self._fatal: BaseException | None = None
        #: What is fetched.
        self.assigned: frozenset[TopicIdPartition] = _NOTHING
        cluster.on_metadata.append(self._on_metadata)

    @property
    def member_id(self) -> str:
        return self._member.member_id

    def subscribe(self, topics: frozenset[str]) -> None:
        if topics == self._topics:
            return
        self._topics = topics
        if not self._member.is_silent:
            self._beats.send_news()

    def poll(self) -> None:
        """The application polls: join if it is subscribed, again if it had been away too long.
        Raises what keeps it from ever joining."""
        if self._fatal is not None:
            raise self._fatal
        if self._topics:
            if self._member.must_release:
                self._member.on_released()
            self._member.join()
            self._beats.start()
            self._beats.ring()

    async def leave(self, limit_ms: int) -> None:
        await self._beats.stop()
        self._fatal = None
        self._topics = frozenset()
        has_to_leave = self._member.prepare_leaving()
        self._set_assigned(_NOTHING)
        if has_to_leave:
            self._member.leave(LEAVE_EPOCH)
            await self._beats.say_leaving(limit_ms)
        self._reported_topics = None

    async def close(self, limit_ms: int) -> None:
        if self._on_metadata in self._cluster.on_metadata:
            self._cluster.on_metadata.remove(self._on_metadata)
        await self.leave(limit_ms)
        await self._names.close()

    # What the heartbeats ask.

    def heartbeat(self) -> Message:
        member = self._member
        request = ShareGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=member.member_id,
            member_epoch=member.epoch,
        )
        if member.state is EpochState.LEAVING:
            return request
        if member.state is EpochState.JOINING or self._topics != self._reported_topics:
            request.subscribed_topic_names = sorted(self._topics)
            self._reported_topics = self._topics
        if member.state is EpochState.JOINING:
            request.rack_id = self._settings.client_rack or None
        return request

    def on_heartbeat_failed(self) -> None:
        self._reported_topics = None

    def on_membership_changed(self) -> None:
        member = self._member
        if member.state is EpochState.FENCED:
            self._set_assigned(_NOTHING)
            member.on_released()
            self._beats.ring()
        elif member.is_silent:
            self._set_assigned(_NOTHING)
        elif member.state is EpochState.RECONCILING:
            self._reconcile()

    def _reconcile(self) -> None:
        known = self._known()
        missing = self._member.unresolved(known)
        if missing:
            self._names.look_up(missing)
        owned = frozenset(each.topic_partition for each in self.assigned)
        steps = self._member.reconciliation(known, owned)
        if steps is not None:
            self._set_assigned(
                frozenset(
                    TopicIdPartition(topic_id, known[topic_id], index)
                    for topic_id, indexes in steps.assignment.partitions.items()
                    if topic_id in known
                    for index in indexes
                )
            )
            self._member.take(steps)
            self._member.on_reconciled(steps)
            self._metrics.rebalanced()
        self._beats.ring()

    def _known(self) -> Mapping[UUID, str]:
        names = self._cluster.metadata.names_by_id
        return {**self._names.found, **names} if self._names.found else names

    def _set_assigned(self, assigned: frozenset[TopicIdPartition]) -> None:
        if assigned != self.assigned:
            self.assigned = assigned
            self._on_assigned()

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        if self._member.state is EpochState.RECONCILING:
            self._reconcile()

    def on_error(self, error: BaseException) -> None:
        if self._member.state is EpochState.FATAL:
            self._fatal = error
        self._on_error(error)

    def poll_idle_ms(self) -> int:
        return self._idle_ms()

    def leave_epoch(self) -> int:
        return LEAVE_EPOCH

    def leaders(self) -> dict[int, list[TopicIdPartition]]:
        """What is assigned, by the node that leads it; what has no leader is left out."""
        found: dict[int, list[TopicIdPartition]] = {}
        picture = self._cluster.metadata
        for each in self.assigned:
            view = picture.partition(TopicPartition(each.topic, each.partition))
            if view is not None and view.leader_id in picture.nodes:
                found.setdefault(view.leader_id, []).append(each)
        return found
