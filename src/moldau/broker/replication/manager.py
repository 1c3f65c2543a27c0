"""The partitions hosted on this node, updated from the metadata image.

Decided here: which logs exist on this node and what it leads or follows.

Invariants: a partition is found here exactly if the image assigns it to this node and its log could
be opened; its error, epochs and config are those of the newest delta applied. Applying a delta
costs what changed; a delta with very many partitions is applied in turns, between which clients are
served. A partition whose turn has not come yet gets its change when it is asked for, unless files
have to be created for it. A partition whose change fails is taken offline, and the others get
theirs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from moldau.broker.config import LogConfig
from moldau.broker.faults import contained
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.manager import LogManager
from moldau.broker.machine.topics import INTERNAL_TOPICS
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Partition as PartitionState
from moldau.broker.metadata.machine.model import ResourceType, Topic
from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.replication.durability import replace_log
from moldau.broker.replication.hosted_logs import HostedLogs
from moldau.broker.replication.machine.cluster_view import ClusterView
from moldau.broker.replication.machine.events import ProposeIsr
from moldau.broker.replication.machine.leader import Brokers
from moldau.broker.replication.machine.names import CurrentLeader, NodeEndpoint, TopicKey
from moldau.broker.replication.machine.role import Role
from moldau.broker.replication.machine.turns import TURN_MS_MAX, Turns
from moldau.broker.replication.partition import Partition
from moldau.broker.replication.surroundings import Proposer
from moldau.times import ElapsedMs, WallMs
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

# A delta is applied immediately up to these counts, the rest in turns. If there are more logs to
# open, none is opened before the response about them is on its way.
OPENED_AT_ONCE_MAX = 100
CHANGED_AT_ONCE_MAX = 2_000


class FollowerFetchers(Protocol):
    """Copies partitions from leaders on other nodes."""

    def follow(self, partition: Partition, leader: NodeEndpoint) -> None:
        """Copy the partition from `leader`, in the partition's leader epoch."""
        ...

    def leave(self, partition: Partition) -> None:
        """Stop copying it; responses still in flight are void."""
        ...

    def relocate(self, leader: NodeEndpoint) -> None:
        """The node has a new address."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """What takes part in replication on this node."""

    fetchers: FollowerFetchers
    propose: Callable[[Proposer, ProposeIsr], None]
    elapsed_ms: Callable[[], ElapsedMs]
    lag_ms_max: Callable[[], int]
    inter_broker_listener: str
    metrics: NodeMetrics | None = None


class _NodeSurroundings:
    """What the partitions of a node need from it."""

    def __init__(self, replication: Replication, brokers: Brokers) -> None:
        self.brokers = brokers
        self.elapsed_ms = replication.elapsed_ms
        self.lag_ms_max = replication.lag_ms_max
        self.propose = replication.propose
        self._metrics = replication.metrics

    def isr_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        if self._metrics is not None:
            self._metrics.isr_changed(before, after)


class ReplicaManager:
    """Finds partitions for handlers, and applies metadata to them."""

    def __init__(
        self,
        *,
        node_id: int,
        logs: LogManager,
        log_config: Callable[[str], LogConfig],
        replication: Replication,
        report_directory: Callable[[UUID, int, UUID], None] = lambda *_: None,
        defer: Callable[[Callable[[], None]], object] = lambda work: work(),
    ) -> None:
        """`log_config` and `report_directory` are those of `HostedLogs`; `defer(work)` has work
        done in the loop's next turn."""
        self._node_id = node_id
        self._fetchers = replication.fetchers
        self._metrics = replication.metrics
        self._inter_broker_listener = replication.inter_broker_listener
        self._view = ClusterView(node_id)
        self._surroundings = _NodeSurroundings(replication, self._view)
        self._logs = HostedLogs(node_id, logs, log_config, report_directory)
        self._turns = Turns(defer=defer, elapsed_ms=replication.elapsed_ms, host=self._host_put_off)
        # The same inner dicts under the topic's name and its 16-byte id, so that a lookup is two
        # dict accesses whatever the request version.
        self._topics: dict[TopicKey, dict[int, Partition]] = {}

    # Lookup.

    def find(self, key: TopicKey, index: int) -> Partition | None:
        """The partition hosted here, leading or not, by topic name or 16-byte topic id."""
        if self._turns.ready_count and (waiting := self._view.topic(key)) is not None:
            self._turns.take_ahead((waiting.id, index))
        topic = self._topics.get(key)
        return None if topic is None else topic.get(index)

    def get(self, key: TopicKey, index: int) -> Partition:
        """Like `find`, but raises the error for the client when there is none."""
        partition = self.find(key, index)
        if partition is None:
            code = self.absence(key, index)
            name = key if isinstance(key, str) else str(UUID(bytes=key))
            raise ApiError(code, f"partition {name}-{index} is not served by this node")
        return partition

    def absence(self, key: TopicKey, index: int) -> ErrorCode:
        """The error when `find` has found nothing."""
        topic = self._view.topic(key)
        if topic is None:
            if isinstance(key, bytes):
                return ErrorCode.UNKNOWN_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        state = topic.partitions.get(index)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (topic.id, index) in self._turns:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self._node_id in state.replicas:
            # It should be here, so its log directory cannot be used.
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def current_leader(self, key: TopicKey, index: int, listener_name: str) -> CurrentLeader | None:
        """As `ClusterView.current_leader`."""
        return self._view.current_leader(key, index, listener_name)

    def preferred_read_replica(
        self, partition: Partition, fetch_offset: int, rack: str, listener_name: str
    ) -> int | None:
        """As `ClusterView.preferred_read_replica`."""
        return self._view.preferred_read_replica(
            partition.leadership, fetch_offset, rack, listener_name
        )

    def partitions(self) -> Iterator[Partition]:
        """All partitions hosted here."""
        for key, topic in self._topics.items():
            if isinstance(key, str):
                yield from topic.values()

    def put_off(self) -> Iterator[PartitionState]:
        """What the metadata say of partitions that belong here and whose turn to be hosted has not
        come yet."""
        for topic_id, index in self._turns:
            if index not in self._topics.get(topic_id.bytes, {}):
                state = self._view.partition(topic_id, index)
                if state is not None and self._node_id in state.replicas:
                    yield state

    # Metadata.

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply what changed; a listener of the metadata shell."""
        self._view.image = image
        if delta.from_snapshot:
            self.apply_image(image)
            return
        for topic in delta.deleted_topics.values():
            self._remove_topic(topic.name, topic.id)
        self._relocate_all(delta.brokers)
        self._host_all(
            (each.topic, [(index, state) for index, (_, state) in each.changed_partitions.items()])
            for each in delta.topics.values()
        )
        self._apply_configs(delta)

    def _host_all(
        self, partitions: Iterable[tuple[Topic, Iterable[tuple[int, PartitionState]]]]
    ) -> None:
        changed = 0
        elapsed_ms = self._surroundings.elapsed_ms
        over_ms = elapsed_ms() + TURN_MS_MAX
        work = [(topic, self._topics.get(topic.id.bytes, {}), list(x)) for topic, x in partitions]
        too_many_new = (
            sum(
                index not in hosted and self._node_id in state.replicas
                for _, hosted, states in work
                for index, state in states
            )
            > OPENED_AT_ONCE_MAX
        )
        for topic, hosted, states in work:
            # A coordinator looks for its partitions when it applies the same delta.
            at_once = topic.name in INTERNAL_TOPICS
            for index, state in states:
                if index in hosted:
                    changed += 1
                    wait = changed > CHANGED_AT_ONCE_MAX
                elif self._node_id not in state.replicas:
                    continue
                else:
                    wait = too_many_new or elapsed_ms() > over_ms
                if wait and not at_once:
                    self._put_off(topic, index)
                else:
                    self._host(topic, index, state)

    def _put_off(self, topic: Topic, index: int) -> None:
        """Host the partition in a later turn."""
        # After a start nearly all logs are loaded already.
        self._turns.add((topic.id, index), is_new=not self._logs.is_loaded(topic.name, index))

    def _host_put_off(self, topic_id: UUID, index: int) -> None:
        # The topic may have changed or been deleted in the meantime.
        topic = self._view.image.topics_by_id.get(topic_id)
        if topic is not None and (state := topic.partitions.get(index)) is not None:
            self._host(topic, index, state)

    @property
    def unopened_count(self) -> int:
        """How many partitions that the metadata assigns to this node wait for their files."""
        return self._turns.unopened_count

    def when_settled(self, on_settled: Callable[[], object]) -> None:
        """Call `on_settled` once every partition assigned to this node has been opened, or can be
        served as soon as it is asked for."""
        self._turns.when_settled(on_settled)

    def apply_image(self, image: MetadataImage) -> None:
        """Apply a whole image, at start or after a snapshot."""
        self._view.image = image
        self._relocate_all(image.brokers)
        for key in [key for key in self._topics if isinstance(key, str)]:
            hosted = next(iter(self._topics[key].values()), None)
            current = image.topics_by_name.get(key)
            if hosted is not None and (current is None or current.id != hosted.topic_id):
                self._remove_topic(key, hosted.topic_id)
        self._host_all((topic, topic.partitions.items()) for topic in image.topics_by_id.values())
        self._configure({partition.topic for partition in self.partitions()})

    def set_strays_aside(self) -> None:
        """Rename the logs that the metadata does not assign to this node.

        Only for a node whose metadata is complete: otherwise any log could look like a stray.
        """
        self._logs.set_strays_aside(self._view.image)

    def on_log_dir_failed(self, directory: LogDir) -> None:
        """A log directory went offline: its partitions return storage errors from now on."""
        for partition in list(self.partitions()):
            if partition.log.dir_state is directory:
                self._fetchers.leave(partition)
                partition.stop(ErrorCode.KAFKA_STORAGE_ERROR)

    def move_to_future_log(self, topic: str, index: int, now_ms: WallMs) -> None:
        """The copy in another directory has caught up: serve the partition from there."""
        partition = self.get(topic, index)
        replace_log(partition, lambda: self._logs.replace_by_future_log(topic, index), now_ms)
        self._report(partition)

    def _host(self, topic: Topic, index: int, state: PartitionState) -> None:
        """Apply the state of one partition; a failure is its own."""
        try:
            self._host_or_raise(topic, index, state)
        except Exception:
            logger.exception("applying metadata to partition %s-%d failed", topic.name, index)
            self._take_offline(topic, index)

    def _take_offline(self, topic: Topic, index: int) -> None:
        """Serve it no longer: after a bug its state cannot be trusted until the next start."""
        partition = self._topics.get(topic.id.bytes, {}).get(index)
        if partition is None:
            return
        logger.error(
            "%s-%d is offline because of the failure above; restart the broker to serve it again",
            topic.name,
            index,
        )
        contained("stopping its fetcher", self._fetchers.leave, partition)
        contained("taking it offline", partition.stop, ErrorCode.KAFKA_STORAGE_ERROR)

    def _host_or_raise(self, topic: Topic, index: int, state: PartitionState) -> None:
        if self._node_id not in state.replicas:
            self._remove_partition(topic.name, topic.id, index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        partition = self._topics.get(topic.name, {}).get(index)
        if partition is not None and partition.topic_id != topic.id:
            # The topic was deleted and created again between two images.
            self._remove_topic(topic.name, partition.topic_id)
            partition = None
        if partition is None:
            partition = self._open(topic, index, state)
        if partition is None or partition.role.role is Role.OFFLINE:
            return
        try:
            if state.leader == self._node_id:
                self._lead(partition, state)
            else:
                self._follow(partition, state)
        except ApiError as failure:
            # Its log directory has failed, which `on_log_dir_failed` has handled.
            logger.error("%s-%d cannot be served: %s", topic.name, index, failure.message)

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        self._fetchers.leave(partition)
        partition.lead(
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=frozenset(state.isr),
        )

    def _follow(self, partition: Partition, state: PartitionState) -> None:
        is_new = partition.follow(
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
        )
        if not is_new:
            return
        leader = self._view.endpoint(state.leader, self._inter_broker_listener)
        if leader is None:
            # There is no leader, or its broker is not registered: wait for the next election.
            self._fetchers.leave(partition)
        else:
            self._fetchers.follow(partition, leader)

    def _relocate_all(self, broker_ids: Iterable[int]) -> None:
        """Follow leaders that have registered with another address."""
        for broker_id in broker_ids:
            leader = self._view.endpoint(broker_id, self._inter_broker_listener)
            if leader is not None:
                contained(f"a new address of node {broker_id}", self._fetchers.relocate, leader)

    def check_isrs(self) -> None:
        """Check all partitions led by this node for followers that are behind for too long."""
        for partition in list(self.partitions()):
            contained(f"checking the ISR of {partition.topic}-{partition.index}", partition.tick)

    def _open(self, topic: Topic, index: int, state: PartitionState) -> Partition | None:
        log = self._logs.open(topic, index, state)
        if log is None:
            return None
        partition = Partition(
            node_id=self._node_id,
            topic=topic.name,
            index=index,
            topic_id=topic.id,
            log=log,
            surroundings=self._surroundings,
            meters=None if self._metrics is None else self._metrics.topics.open(topic.name, index),
        )
        hosted = self._topics.get(topic.name)
        if hosted is None:
            hosted = self._topics[topic.name] = self._topics[topic.id.bytes] = {}
        hosted[index] = partition
        self._logs.report(log, topic.id, index, state)
        return partition

    def _report(self, partition: Partition) -> None:
        state = self._view.partition(partition.topic_id, partition.index)
        if state is not None:
            self._logs.report(partition.log, partition.topic_id, partition.index, state)

    def _remove_topic(self, name: str, topic_id: UUID) -> None:
        hosted = self._topics.get(topic_id.bytes, {})
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for index in list(hosted):
            what = f"removing partition {name}-{index}"
            contained(what, self._remove_partition, name, topic_id, index, code)

    def _remove_partition(self, name: str, topic_id: UUID, index: int, error: ErrorCode) -> None:
        hosted = self._topics.get(topic_id.bytes, {})
        partition = hosted.pop(index, None)
        if partition is None:
            return
        if not hosted:
            self._topics.pop(topic_id.bytes, None)
            self._topics.pop(name, None)
        if partition.meters is not None and self._metrics is not None:
            self._metrics.topics.close(partition.meters)
        self._fetchers.leave(partition)
        # A waiter must not find the partition when it is called, so this comes after the removal.
        partition.stop(error)
        self._logs.delete(name, index)

    def _apply_configs(self, delta: MetadataDelta) -> None:
        own = {"", str(self._node_id)}
        for kind, name in delta.configs:
            if kind == ResourceType.BROKER and name in own:
                # A broker-wide default may have changed for every topic.
                self._configure({partition.topic for partition in self.partitions()})
                return
        self._configure({name for kind, name in delta.configs if kind == ResourceType.TOPIC})

    def _configure(self, topics: Iterable[str]) -> None:
        for topic in topics:
            hosted = list(self._topics.get(topic, {}).values())
            if hosted:
                contained(f"configuring topic {topic}", self._configure_topic, topic, hosted)

    def _configure_topic(self, topic: str, hosted: list[Partition]) -> None:
        if self._logs.update_config(topic, [partition.log for partition in hosted]):
            for partition in hosted:
                contained(f"configuring {topic}-{partition.index}", partition.configure)
