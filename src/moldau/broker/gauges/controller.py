"""The controller, the quorum and the metadata as this node has them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import NO_LEADER
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.metrics import controller_tables as t
from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.metrics.quorum import QuorumTimes
from moldau.clock import Clock
from moldau.metrics import Spec
from moldau.metrics.registry import Reading
from moldau.wire.uuids import ZERO_UUID, uuid_to_text

Samples: TypeAlias = Iterator[tuple[Spec, tuple[str, ...], Reading]]

_FENCED, _SHUTTING_DOWN, _ACTIVE = 10, 20, 30


class ControllerGauges:
    """Those of the active controller are 0 on the others, as in Kafka."""

    def __init__(self, metadata: MetadataShell, clock: Clock, metrics: NodeMetrics) -> None:
        self._metadata = metadata
        self._clock = clock
        self._metrics = metrics
        self._leader = (-1, -1)
        self._leader_changes = 0
        self._fenced_count = 0
        metadata.on_leader_changed(self._on_leader)
        metadata.subscribe(self._on_metadata)
        metadata.on_decided = metrics.event_time.update

    # What is counted as it happens.

    def _on_leader(self) -> None:
        leader = self._metadata.leader_epoch, self._metadata.leader_id
        if leader != self._leader and leader[1] >= 0:
            self._leader_changes += 1
        self._leader = leader

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if not self._metadata.is_active or delta.from_snapshot:
            return
        for broker_id, before in delta.brokers.items():
            after = image.brokers.get(broker_id)
            if before is not None and after is not None and after.fenced and not before.fenced:
                self._fenced_count += 1
        for changed in delta.topics.values():
            for index, state in changed.before.items():
                now = changed.topic.partitions.get(index)
                if state is None or now is None or now.leader in (state.leader, NO_LEADER):
                    continue
                if now.leader in state.elr:
                    self._metrics.elr_elections.mark(1)
                elif now.leader not in state.isr:
                    self._metrics.unclean_elections.mark(1)

    # What is read.

    def collect(self) -> Samples:
        metadata = self._metadata
        active = metadata.is_active
        yield t.ACTIVE, (), int(active)
        yield t.NEW_ACTIVE, (), self._leader_changes
        yield t.TIMED_OUT_HEARTBEATS, (), self._fenced_count
        yield t.OPERATIONS, (), self._metrics.event_time.count
        yield from self._cluster(metadata.image, active)
        age_ms = max(0, self._clock.now_ms() - metadata.applied_time_ms)
        yield t.APPLIED_OFFSET, (), metadata.offset
        yield t.APPLIED_TIMESTAMP, (), metadata.applied_time_ms
        yield t.APPLIED_LAG, (), 0 if active else age_ms
        yield t.COMMITTED_OFFSET, (), metadata.high_watermark - 1
        yield t.METADATA_ERRORS, (), metadata.publication.failure_count

    def _cluster(self, image: MetadataImage, active: bool) -> Samples:
        brokers = image.brokers.values()
        fenced = sum(each.fenced for each in brokers)
        stopping = sum(each.in_controlled_shutdown for each in brokers)
        yield t.ACTIVE_BROKERS, (), len(brokers) - fenced if active else 0
        yield t.FENCED_BROKERS, (), fenced if active else 0
        yield t.SHUTTING_DOWN, (), stopping if active else 0
        if active:
            now_ms = self._clock.elapsed_ms()
            heartbeats = self._metadata.controller.heartbeats
            for broker in brokers:
                state = _ACTIVE if broker.active else _SHUTTING_DOWN
                place = (str(broker.id),)
                yield t.BROKER_REGISTRATION, place, _FENCED if broker.fenced else state
                seen_ms = None if heartbeats is None else heartbeats.seen_ms(broker.id)
                yield t.SINCE_HEARTBEAT, place, 0 if seen_ms is None else now_ms - seen_ms
        partitions = offline = imbalanced = 0
        for topic in image.topics_by_id.values() if active else ():
            partitions += len(topic.partitions)
            for each in topic.partitions.values():
                if each.leader == NO_LEADER:
                    offline += 1
                elif each.replicas and each.leader != each.replicas[0]:
                    imbalanced += 1
        yield t.TOPICS, (), len(image.topics_by_id) if active else 0
        yield t.PARTITIONS, (), partitions
        yield t.OFFLINE, (), offline
        yield t.IMBALANCE, (), imbalanced


class QuorumGauges:
    """What every node knows of the quorum and the metadata."""

    def __init__(
        self, metadata: MetadataShell, clock: Clock, idle_ratio: Callable[[], float]
    ) -> None:
        self._metadata = metadata
        self._clock = clock
        self._idle_ratio = idle_ratio
        self._times = metadata.raft.batch_log.times = QuorumTimes(time.monotonic)
        metadata.on_leader_changed(lambda: self._times.leader_known(metadata.leader_id >= 0))

    def _measured(self) -> Samples:
        times, now_s = self._times, time.monotonic()
        for specs, recent in (
            (t.RAFT_COMMIT, times.commit_latency),
            (t.RAFT_ELECTION, times.election_latency),
        ):
            yield specs["avg"], (), recent.average(now_s)
            yield specs["max"], (), recent.maximum(now_s)
        yield t.RAFT_APPENDS, (), times.append_rate()
        yield t.RAFT_FETCHES, (), times.fetch_rate()
        yield t.RAFT_IDLE, (), self._idle_ratio()

    def collect(self) -> Samples:
        yield from self._measured()
        metadata, raft = self._metadata, self._metadata.raft
        machine = raft.machine
        voted = machine.election.voted
        role = machine.role_name.value
        yield t.RAFT_STATE, (), role if machine.is_voter or role != "follower" else "observer"
        yield t.RAFT_LEADER, (), raft.leader_id
        yield t.RAFT_EPOCH, (), raft.epoch
        yield t.RAFT_VOTE, (), -1 if voted is None else voted.id
        directory = None if voted is None else voted.directory_id
        yield t.RAFT_VOTE_DIRECTORY, (), uuid_to_text(directory or ZERO_UUID)
        yield t.RAFT_HIGH_WATERMARK, (), raft.high_watermark
        yield t.RAFT_END, (), raft.log.end_offset
        yield t.RAFT_END_EPOCH, (), raft.log.last_epoch
        yield t.RAFT_VOTERS, (), len(machine.voters.voters)
        if raft.is_leader:
            yield t.RAFT_OBSERVERS, (), len(raft.describe_quorum().observers)
        image = metadata.image
        yield t.METADATA_OFFSET, (), metadata.offset
        yield t.METADATA_TIMESTAMP, (), metadata.applied_time_ms
        yield t.METADATA_LAG, (), max(0, self._clock.now_ms() - metadata.applied_time_ms)
        # A node that cannot load its metadata does not start.
        yield t.LOAD_ERRORS, (), 0
        yield t.APPLY_ERRORS, (), metadata.publication.failure_count
        yield t.CONTROLLER_ID, (), raft.leader_id
        yield t.METADATA_VERSION, (), image.metadata_version
        for name, level in metadata.finalized_features.items():
            yield t.FINALIZED, (name.replace(".", "-"),), level
