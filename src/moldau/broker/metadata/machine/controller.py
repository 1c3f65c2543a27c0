"""The state of the active controller, which decisions read and `replay` changes.

The modules beside this one decide: each function takes a `ControllerView` and a request, and
returns the records that carry it out. They read the controller's own image, which is ahead of the
committed one by what is appended but not yet committed; so each decision sees the ones before it
although none of them is committed.

Invariants: only `replay` changes replicated state; `next_offset` never decreases; what is known
from heartbeats alone is in `heartbeats`, and exists only while the controller is active.

The shell calls `lead(now_ms)` when this controller becomes the active one and `resign()` when
another one does. In between it sleeps until `due_at_ms()` and then appends what `on_time(now_ms)`
decides until that returns None; every heartbeat and registration may move `due_at_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from moldau.broker.metadata.machine.config_rules import ConfigRules
from moldau.broker.metadata.machine.configs import MIN_INSYNC_REPLICAS
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.elections import ElectionRules
from moldau.broker.metadata.machine.features import (
    ELR_VERSION,
    SHRINK_WITHOUT_EPOCH_METADATA_VERSION,
)
from moldau.broker.metadata.machine.heartbeats import BrokerHeartbeats
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Broker, ResourceType, Topic
from moldau.broker.metadata.machine.partition_index import PartitionIndex
from moldau.broker.metadata.machine.periodic import PeriodicTasks, fence_expired
from moldau.broker.metadata.machine.placement import RandomSource
from moldau.broker.metadata.machine.topics import has_collision_chars, unify_collision_chars
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.broker.raft.machine.record_versions import DIRECTORY_METADATA_VERSION
from moldau.invariant import invariant
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import RegisterBrokerRecord


class Controller:
    """Implements `ControllerView`."""

    def __init__(
        self,
        config: ControllerConfig,
        rules: ConfigRules,
        random: RandomSource,
        image: MetadataImage | None = None,
        *,
        next_offset: int = 0,
    ) -> None:
        self.config = config
        self.rules = rules
        self.random = random
        self.image = MetadataImage() if image is None else image
        self.next_offset = next_offset
        # The quorum's own feature level, which is in control records, not in the image.
        self.kraft_version = 0
        self.check_kraft_upgrade: Callable[[int], None] = _no_quorum_to_upgrade
        """Raises ApiError if the quorum cannot go to that level; set by the shell."""
        self.index = PartitionIndex(self.image.topics_by_id.values())
        self.heartbeats: BrokerHeartbeats | None = None
        self._periodic: PeriodicTasks | None = None
        # The offset of a loaded registration is unknown, except that it is at most this one.
        self._loaded_offset = next_offset - 1
        self._registration_offsets: dict[int, int] = {}
        self._colliding: dict[str, set[str]] = {}
        for name in self.image.topics_by_name:
            self._add_name(name)

    @property
    def elr_enabled(self) -> bool:
        return self.image.features.get(ELR_VERSION, 0) >= 1

    def election_rules(self, topic: Topic) -> ElectionRules:
        minimum = self._topic_config(topic.name, MIN_INSYNC_REPLICAS)
        unclean = self._topic_config(topic.name, "unclean.leader.election.enable")
        min_isr = self.config.min_insync_replicas if minimum is None else int(minimum)
        first = topic.partitions.get(0)
        version = self.image.metadata_version
        return ElectionRules(
            min_isr=min_isr if first is None else min(min_isr, len(first.replicas)),
            elr_enabled=self.elr_enabled,
            new_epoch_on_shrink=version < SHRINK_WITHOUT_EPOCH_METADATA_VERSION,
            directories_known=version >= DIRECTORY_METADATA_VERSION,
            unclean_enabled=(
                self.config.unclean_leader_election_enable
                if unclean is None
                else unclean.strip().lower() == "true"
            ),
        )

    def _topic_config(self, name: str, key: str) -> str | None:
        """The dynamic value in force, None when only static configuration decides."""
        image = self.image
        for resource in (
            (ResourceType.TOPIC, name),
            (ResourceType.BROKER, str(self.config.node_id)),
            (ResourceType.BROKER, ""),
        ):
            value = image.configs.get(resource, {}).get(key)
            if value is not None:
                return value
        return None

    def colliding_topic(self, name: str) -> str | None:
        """An existing topic that differs from `name` only in '.' and '_'."""
        if not has_collision_chars(name):
            return None
        return next(iter(self._colliding.get(unify_collision_chars(name), ())), None)

    def replay(self, records: Iterable[Any], *, base_offset: int) -> None:
        """Apply a batch's records; `base_offset` is the offset of the first."""
        invariant(base_offset >= self.next_offset, "metadata records are replayed in order")
        delta = MetadataDelta()
        offset = base_offset
        for record in records:
            self.image.replay(record, delta)
            if isinstance(record, RegisterBrokerRecord):
                self._registration_offsets[record.broker_id] = offset
            offset += 1
        self.next_offset = offset
        for changed in delta.topics.values():
            if changed.created:
                self._add_name(changed.topic.name)
            for index in changed.before:
                self.index.update(changed.topic.id, index, changed.topic.partitions[index])
        for topic in delta.deleted_topics.values():
            self._remove_name(topic.name)
            self.index.remove_topic(topic.id)
        for broker_id, before in delta.brokers.items():
            self._follow_registration(broker_id, before)

    def _follow_registration(self, broker_id: int, before: Broker | None) -> None:
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            self._registration_offsets.pop(broker_id, None)
        if self.heartbeats is None:
            return
        if broker is None or (before is not None and before.epoch != broker.epoch):
            self.heartbeats.remove(broker_id)
        if broker is not None:
            self.heartbeats.register(broker_id, fenced=broker.fenced)

    def skip_to(self, next_offset: int) -> None:
        """Skip offsets that control records have taken."""
        invariant(next_offset >= self.next_offset, "metadata offsets never go back")
        self.next_offset = next_offset

    # While it is the active one ---------------------------------------------------------

    def lead(self, now_ms: ElapsedMs, *, departed: Collection[int] = ()) -> None:
        """Track heartbeats from now on.

        Every unfenced broker has a session at first, except those in `departed`, which are known to
        be gone: the previous incarnation of the broker in this process.
        """
        heartbeats = BrokerHeartbeats(session_timeout_ms=self.config.broker_session_timeout_ms)
        for broker in self.image.brokers.values():
            heartbeats.register(broker.id, fenced=broker.fenced)
            if not broker.fenced and broker.id not in departed:
                heartbeats.contact(broker.id, broker.epoch, now_ms=now_ms)
        self.heartbeats = heartbeats
        self._periodic = PeriodicTasks(self.config, now_ms=now_ms)

    def resign(self) -> None:
        """Another controller is the active one."""
        self.heartbeats = self._periodic = None

    def due_at_ms(self) -> ElapsedMs | None:
        """When `on_time` has something to do next, None while this controller does not lead."""
        if self.heartbeats is None or self._periodic is None:
            return None
        due = (self.heartbeats.expires_at_ms(), self._periodic.due_at_ms())
        return min((each for each in due if each is not None), default=None)

    def on_time(self, now_ms: ElapsedMs) -> Decision[str] | None:
        """The next thing that time has made due, None if there is none now; the response is for
        the log."""
        if self.heartbeats is None or self._periodic is None:
            return None
        fencing = fence_expired(self, self.heartbeats, now_ms)
        return self._periodic.on_time(self, now_ms) if fencing is None else fencing

    def was_away(self, now_ms: ElapsedMs) -> None:
        """Renew all sessions: this process did nothing for a while, and heartbeats that arrived
        meanwhile have not been processed yet."""
        if self.heartbeats is not None:
            self.heartbeats.renew_all(now_ms=now_ms)

    def on_broker_disconnected(self, broker_id: int, broker_epoch: int) -> bool:
        """Record that the connection with this incarnation's heartbeats has closed; return whether
        it still has a session."""
        return self.heartbeats is not None and self.heartbeats.disconnected(broker_id, broker_epoch)

    def is_silent(self, broker: Broker, now_ms: ElapsedMs) -> bool:
        """Whether a registered broker has no connection to this controller."""
        return self.heartbeats is None or self.heartbeats.is_silent(broker.id, now_ms=now_ms)

    def has_session(self, broker: Broker, now_ms: ElapsedMs) -> bool:
        """Whether a registered broker still sends heartbeats."""
        return self.heartbeats is not None and self.heartbeats.has_session(
            broker.id, broker.epoch, now_ms=now_ms
        )

    def registration_offset(self, broker_id: int) -> int:
        """A broker that has read the metadata up to this offset has seen its registration."""
        return self._registration_offsets.get(broker_id, self._loaded_offset)

    def _add_name(self, name: str) -> None:
        if has_collision_chars(name):
            self._colliding.setdefault(unify_collision_chars(name), set()).add(name)

    def _remove_name(self, name: str) -> None:
        if has_collision_chars(name):
            unified = unify_collision_chars(name)
            names = self._colliding[unified]
            names.discard(name)
            if not names:
                del self._colliding[unified]


def _no_quorum_to_upgrade(level: int) -> None:
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid upgrade of kraft.version to {level}: this controller leads no quorum",
    )
