"""The partitions hosted on this node, kept in step with the metadata image.

Decided here: which logs exist on this node and who leads what. What always holds: a partition is
found here exactly if the image assigns it to this node and its log could be opened; its error,
epochs and config are those of the newest delta applied. Applying a delta costs what changed, and
one that brings very many partitions is worked off in turns, between which clients are served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol
from uuid import UUID

from moldau.broker.config import LogConfig
from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.manager import LogManager
from moldau.broker.machine.topics import INTERNAL_TOPICS
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Partition as PartitionState
from moldau.broker.metadata.machine.model import ResourceType, Topic, is_reserved_directory
from moldau.broker.replication.machine.events import ProposeIsr
from moldau.broker.replication.machine.leader import Brokers
from moldau.broker.replication.machine.names import CurrentLeader, NodeEndpoint, TopicKey
from moldau.broker.replication.partition import Partition
from moldau.broker.replication.surroundings import ALONE
from moldau.times import ElapsedMs, WallMs
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

# What a delta brings is done at once up to here, then in turns of the loop. To make a log's files
# takes so much longer than another leader does that they are counted apart.
OPENED_AT_ONCE_MAX = 100
OPENED_PER_TURN = 10
CHANGED_AT_ONCE_MAX = 2_000
CHANGED_PER_TURN = 200
# And on a slow disk no more than takes so long: a broker that is silent is taken for dead.
TURN_MS_MAX = 20


class FollowerFetchers(Protocol):
    """Who copies from leaders on other nodes."""

    def follow(self, partition: Partition, leader: NodeEndpoint) -> None:
        """Copy the partition from `leader`, in the partition's leader epoch."""
        ...

    def leave(self, partition: Partition) -> None:
        """Copy it no longer; what is still under way for it is void."""
        ...

    def relocate(self, leader: NodeEndpoint) -> None:
        """The node listens there now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """What takes part in replication on this node."""

    fetchers: FollowerFetchers
    propose: Callable[[Partition, ProposeIsr], None]
    elapsed_ms: Callable[[], ElapsedMs]
    lag_ms_max: Callable[[], int]
    inter_broker_listener: str


class ImageBrokers:
    """What the newest metadata says of brokers."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.image = MetadataImage()

    def alive_epoch(self, broker_id: int) -> int | None:
        broker = self.image.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_shutting_down(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def own_epoch(self) -> int:
        broker = self.image.brokers.get(self._node_id)
        return -1 if broker is None else broker.epoch


class _ClusterSurroundings:
    """What the partitions of a node in a cluster need of it."""

    def __init__(self, replication: Replication, brokers: Brokers) -> None:
        self.brokers = brokers
        self.elapsed_ms = replication.elapsed_ms
        self.lag_ms_max = replication.lag_ms_max
        self.propose = replication.propose


class ReplicaManager:
    """Finds partitions for handlers, and applies metadata to them."""

    def __init__(
        self,
        *,
        node_id: int,
        logs: LogManager,
        log_config: Callable[[str], LogConfig],
        report_directory: Callable[[UUID, int, UUID], None] = lambda *_: None,
        defer: Callable[[Callable[[], None]], object] = lambda work: work(),
        replication: Replication | None = None,
    ) -> None:
        """`log_config(topic)` gives a topic's config as the image has it now;
        `report_directory(topic id, partition, directory id)` is told where a replica was put;
        `defer(work)` has work done in the loop's next turn; without `replication` this node is
        alone and copies nothing."""
        self._node_id = node_id
        self._replication = replication
        self._brokers = ImageBrokers(node_id)
        self._surroundings = (
            ALONE if replication is None else _ClusterSurroundings(replication, self._brokers)
        )
        self._logs = logs
        self._log_config = log_config
        self._report_directory = report_directory
        self._defer = defer
        self._backlog: dict[tuple[UUID, int], None] = {}
        self._settled: list[Callable[[], object]] = []
        self._image = MetadataImage()
        # The same inner dicts under the topic's name and its 16-byte id, so that a lookup is two
        # dict accesses whatever the request version.
        self._topics: dict[TopicKey, dict[int, Partition]] = {}

    # Lookup.

    def find(self, key: TopicKey, index: int) -> Partition | None:
        """The partition hosted here, leading or not, by topic name or 16-byte topic id."""
        topic = self._topics.get(key)
        return None if topic is None else topic.get(index)

    def get(self, key: TopicKey, index: int) -> Partition:
        """Like `find`, but raises what a client is to be told when there is none."""
        partition = self.find(key, index)
        if partition is None:
            code = self.absence(key, index)
            name = key if isinstance(key, str) else str(UUID(bytes=key))
            raise ApiError(code, f"partition {name}-{index} is not served by this node")
        return partition

    def absence(self, key: TopicKey, index: int) -> ErrorCode:
        """Why `find` found nothing."""
        topic = self._topic(key)
        if topic is None:
            if isinstance(key, bytes):
                return ErrorCode.UNKNOWN_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        state = topic.partitions.get(index)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (topic.id, index) in self._backlog:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self._node_id in state.replicas:
            # It should be here, so its log directory cannot be used.
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def current_leader(self, key: TopicKey, index: int, listener_name: str) -> CurrentLeader | None:
        """Who leads, in which epoch, and where it listens; None for an unknown partition."""
        topic = self._topic(key)
        state = None if topic is None else topic.partitions.get(index)
        if state is None:
            return None
        node = self._endpoint(state.leader, listener_name)
        if node is not None and self._image.brokers[state.leader].fenced:
            node = None
        return state.leader, state.leader_epoch, node

    def preferred_read_replica(
        self, partition: Partition, fetch_offset: int, rack: str, listener_name: str
    ) -> int | None:
        """A follower in the consumer's rack that it had better read from (KIP-392).

        None if the leader is in that rack itself, or nobody there has what is asked for. Of
        several it is the one with the most records, as RackAwareReplicaSelector chooses.
        """
        leader = partition.leadership
        own = self._image.brokers.get(self._node_id)
        if leader is None or not rack or (own is not None and own.rack == rack):
            return None
        closest: tuple[int, int] | None = None
        for replica_id in leader.readable_replicas(fetch_offset):
            broker = self._image.brokers.get(replica_id)
            follower = leader.follower(replica_id)
            if (
                broker is not None
                and follower is not None
                and broker.rack == rack
                and not broker.fenced
                and broker.endpoint(listener_name) is not None
                and (closest is None or follower.end_offset > closest[0])
            ):
                closest = follower.end_offset, replica_id
        return None if closest is None else closest[1]

    def partitions(self) -> Iterator[Partition]:
        """All partitions hosted here."""
        for key, topic in self._topics.items():
            if isinstance(key, str):
                yield from topic.values()

    def _topic(self, key: TopicKey) -> Topic | None:
        if isinstance(key, bytes):
            return self._image.topics_by_id.get(UUID(bytes=key))
        return self._image.topics_by_name.get(key)

    # Metadata.

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over what changed; the listener of the metadata shell."""
        self._image = self._brokers.image = image
        if delta.from_snapshot:
            self.apply_image(image)
            return
        for topic in delta.deleted_topics.values():
            self._remove_topic(topic.name, topic.id)
        for broker_id in delta.brokers:
            self._relocate(broker_id)
        self._host_all(
            (each.topic, [(index, state) for index, (_, state) in each.changed_partitions.items()])
            for each in delta.topics.values()
        )
        self._apply_configs(delta)

    def _host_all(
        self, partitions: Iterable[tuple[Topic, Iterable[tuple[int, PartitionState]]]]
    ) -> None:
        opened = changed = 0
        elapsed_ms = self._surroundings.elapsed_ms
        over_ms = elapsed_ms() + TURN_MS_MAX
        for topic, states in partitions:
            hosted = self._topics.get(topic.id.bytes, {})
            # A coordinator looks for its partitions when it hears of the same delta.
            at_once = topic.name in INTERNAL_TOPICS
            for index, state in states:
                if index in hosted:
                    changed += 1
                    wait = changed > CHANGED_AT_ONCE_MAX
                else:
                    opened += self._node_id in state.replicas
                    wait = opened > OPENED_AT_ONCE_MAX or elapsed_ms() > over_ms
                if wait and not at_once:
                    self._put_off(topic.id, index)
                else:
                    self._host(topic, index, state)

    def _put_off(self, topic_id: UUID, index: int) -> None:
        """Clients get their turn in between."""
        idle = not self._backlog
        self._backlog[topic_id, index] = None
        if idle:
            self._defer(self._host_some)

    def _host_some(self) -> None:
        opened = 0
        elapsed_ms = self._surroundings.elapsed_ms
        over_ms = elapsed_ms() + TURN_MS_MAX
        for topic_id, index in list(islice(self._backlog, CHANGED_PER_TURN)):
            if opened == OPENED_PER_TURN or elapsed_ms() > over_ms:
                break
            del self._backlog[topic_id, index]
            # The topic may have changed or gone meanwhile.
            topic = self._image.topics_by_id.get(topic_id)
            if topic is not None and (state := topic.partitions.get(index)) is not None:
                opened += index not in self._topics.get(topic_id.bytes, {})
                self._host(topic, index, state)
        if self._backlog:
            self._defer(self._host_some)
            return
        waiting, self._settled = self._settled, []
        for tell in waiting:
            tell()

    @property
    def unopened_count(self) -> int:
        """How many partitions that the metadata puts here wait for their turn."""
        return len(self._backlog)

    def when_settled(self, tell: Callable[[], object]) -> None:
        """Call `tell` once every partition that the metadata puts here has been opened."""
        if self._backlog:
            self._settled.append(tell)
        else:
            tell()

    def apply_image(self, image: MetadataImage) -> None:
        """Take over a whole image, at start or after a snapshot."""
        self._image = self._brokers.image = image
        for broker_id in image.brokers:
            self._relocate(broker_id)
        for key in [key for key in self._topics if isinstance(key, str)]:
            hosted = next(iter(self._topics[key].values()), None)
            current = image.topics_by_name.get(key)
            if hosted is not None and (current is None or current.id != hosted.topic_id):
                self._remove_topic(key, hosted.topic_id)
        self._host_all((topic, topic.partitions.items()) for topic in image.topics_by_id.values())
        self._configure({partition.topic for partition in self.partitions()})

    def set_strays_aside(self) -> None:
        """Put aside the logs that the metadata does not assign to this node.

        Only for a node whose metadata is complete: anything else would look like a stray.
        """
        for log in list(self._logs.logs()):
            topic = self._image.topics_by_name.get(log.topic)
            state = None if topic is None else topic.partitions.get(log.partition)
            if (
                topic is None
                or state is None
                or self._node_id not in state.replicas
                or log.topic_id not in (None, topic.id)
            ):
                logger.warning("%s is assigned to nobody here: putting it aside", log.dir)
                self._logs.set_stray(log)

    def on_log_dir_failed(self, directory: LogDir) -> None:
        """A log directory went offline: its partitions answer storage errors from now on."""
        for partition in list(self.partitions()):
            if partition.log.dir_state is directory:
                if self._replication is not None:
                    self._replication.fetchers.leave(partition)
                partition.stop(ErrorCode.KAFKA_STORAGE_ERROR)

    def move_to_future_log(self, topic: str, index: int, now_ms: WallMs) -> None:
        """The copy in another directory has caught up: serve the partition from there."""
        partition = self.get(topic, index)
        partition.replace_log(lambda: self._logs.replace_by_future_log(topic, index), now_ms)
        self._report(partition)

    def _host(self, topic: Topic, index: int, state: PartitionState) -> None:
        if self._node_id not in state.replicas:
            self._remove_partition(topic.name, topic.id, index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        partition = self.find(topic.name, index)
        if partition is not None and partition.topic_id != topic.id:
            # The topic was deleted and made anew while this node did not look.
            self._remove_topic(topic.name, partition.topic_id)
            partition = None
        if partition is None:
            partition = self._open(topic, index, state)
        if partition is None or partition.error is ErrorCode.KAFKA_STORAGE_ERROR:
            return
        try:
            if state.leader == self._node_id:
                self._lead(partition, state)
            else:
                self._follow(partition, state)
        except ApiError as failure:
            # Its directory has failed, and whoever must know has been told.
            logger.error("%s-%d cannot be served: %s", topic.name, index, failure.message)

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        if self._replication is not None:
            self._replication.fetchers.leave(partition)
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
        if self._replication is None or not is_new:
            return
        leader = self._endpoint(state.leader, self._replication.inter_broker_listener)
        if leader is None:
            # Nobody leads, or its broker is not there: the next election tells of another.
            self._replication.fetchers.leave(partition)
        else:
            self._replication.fetchers.follow(partition, leader)

    def _endpoint(self, broker_id: int, listener_name: str) -> NodeEndpoint | None:
        broker = self._image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(listener_name)
        if broker is None or endpoint is None:
            return None
        return NodeEndpoint(broker.id, endpoint.host, endpoint.port, broker.rack)

    def _relocate(self, broker_id: int) -> None:
        """Follow a leader that has registered under another address."""
        if self._replication is not None:
            leader = self._endpoint(broker_id, self._replication.inter_broker_listener)
            if leader is not None:
                self._replication.fetchers.relocate(leader)

    def check_isrs(self) -> None:
        """See of all partitions led here whether a follower has fallen behind for too long."""
        for partition in list(self.partitions()):
            partition.tick()

    def _open(self, topic: Topic, index: int, state: PartitionState) -> Partition | None:
        try:
            log = self._open_log(topic, index, state)
        except ApiError as failure:
            logger.error("%s-%d cannot be served: %s", topic.name, index, failure.message)
            return None
        partition = Partition(
            node_id=self._node_id,
            topic=topic.name,
            index=index,
            topic_id=topic.id,
            log=log,
            surroundings=self._surroundings,
        )
        hosted = self._topics.get(topic.name)
        if hosted is None:
            hosted = self._topics[topic.name] = self._topics[topic.id.bytes] = {}
        hosted[index] = partition
        self._report(partition)
        return partition

    def _report(self, partition: Partition) -> None:
        """Tell the controller where the replica is, unless it knows."""
        directory = partition.log.dir_state
        directory_id = directory.directory_id if isinstance(directory, LogDir) else None
        state = self._image.topics_by_id[partition.topic_id].partitions[partition.index]
        if directory_id is not None and state.directory_of(self._node_id) != directory_id:
            self._report_directory(partition.topic_id, partition.index, directory_id)

    def _open_log(self, topic: Topic, index: int, state: PartitionState) -> Log:
        config = self._log_config(topic.name)
        log = self._logs.get_log(topic.name, index)
        if log is not None and log.topic_id not in (None, topic.id):
            # Left behind by a deleted topic of the same name.
            self._logs.set_stray(log)
            log = None
        if log is None:
            directory = self._assigned_dir(state)
            return self._logs.create_log(
                topic.name, index, config, topic_id=topic.id, directory=directory
            )
        if log.dir_state.failure is not None:
            raise log.dir_state.failure.again()
        log.set_topic_id(topic.id)
        if log.config != config:
            self._logs.update_config(topic.name, config)
        return log

    def _assigned_dir(self, state: PartitionState) -> LogDir | None:
        """The directory the metadata asks for, None if it leaves the choice to this node."""
        directory_id = state.directory_of(self._node_id)
        if directory_id is None or is_reserved_directory(directory_id):
            return None
        directory = self._logs.dir_by_id(directory_id)
        if directory is None and self._logs.offline_dirs:
            # It may be in the directory that could not even be opened. A new, empty log in another
            # one would look like a replica that has lost everything.
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {directory_id} is not online"
            )
        return directory

    def _remove_topic(self, name: str, topic_id: UUID) -> None:
        hosted = self._topics.get(topic_id.bytes, {})
        for index in list(hosted):
            self._remove_partition(name, topic_id, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _remove_partition(self, name: str, topic_id: UUID, index: int, error: ErrorCode) -> None:
        hosted = self._topics.get(topic_id.bytes, {})
        partition = hosted.pop(index, None)
        if partition is None:
            return
        if not hosted:
            self._topics.pop(topic_id.bytes, None)
            self._topics.pop(name, None)
        if self._replication is not None:
            self._replication.fetchers.leave(partition)
        # Whoever waits must find nothing when told, so this comes after the removal.
        partition.stop(error)
        try:
            self._logs.delete_log(name, index)
        except ApiError as failure:
            logger.error("%s-%d cannot be deleted: %s", name, index, failure.message)

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
            if not hosted:
                continue
            config = self._log_config(topic)
            if any(partition.log.config != config for partition in hosted):
                self._logs.update_config(topic, config)
                for partition in hosted:
                    partition.configure()
