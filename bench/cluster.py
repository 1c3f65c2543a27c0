"""What a cluster of three costs and how soon it recovers, one function a figure.

Time without a leader runs from the SIGKILL until a surviving broker's Metadata shows another leader
for every partition that the dead one led; it includes the session timeout (bench/nodes.py). The
moment the controller knows of the death is the append time of the record that fences the broker,
read from the metadata log's own file, to the millisecond, on the machine's one clock.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from confluent_kafka import Consumer, KafkaError, Message, Producer

from bench.calls import Connection, Unreachable
from bench.nodes import Node, Nodes
from moldau.broker.raft.machine.batches import MetadataBatch, decode_metadata_batches
from moldau.broker.raft.machine.errors import MetadataError
from moldau.wire.messages import BrokerRegistrationChangeRecord

POLL_SECONDS = 0.003
WAIT_SECONDS_MAX = 120.0
CHUNK = 1000
SEND_SECONDS = 0.005
WATCH_SECONDS = 2.0
FENCED = 1
# Retries of the client at once: what is measured is the cluster's part of a pause.
QUICK_CLIENT = {
    "log_level": 0,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 10,
}


def _expired(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError(f"{what} took more than {WAIT_SECONDS_MAX:.0f} s")


# Throughput.


@dataclass(frozen=True, slots=True)
class Produced:
    mb_per_second: float
    cpu_seconds_per_gb: float


def produce(cluster: Nodes, topic: str, *, acks: int, total_bytes: int) -> Produced:
    """1 KB messages in batches of 128 KB, spread over the topic's partitions."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "log_level": 3,
            "acks": acks,
            "linger.ms": 5,
            "batch.size": 131_072,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 512 * 1024,
            "sticky.partitioning.linger.ms": 10,
        }
    )
    producer.list_topics(topic, timeout=30)
    chunk = [{"value": bytes(1000)} for _ in range(CHUNK)]
    chunks = math.ceil(total_bytes / (1000 * CHUNK))
    cpu, started = cluster.cpu_seconds(), time.perf_counter()
    for _ in range(chunks):
        queued = 0
        while queued < CHUNK:
            queued += producer.produce_batch(topic, chunk[queued:])
            producer.poll(0 if queued == CHUNK else 0.005)
    left = producer.flush(120)
    seconds = time.perf_counter() - started
    if left:
        raise RuntimeError(f"{left} messages were not delivered to {cluster.name}")
    size = chunks * CHUNK * 1000
    return Produced(size / seconds / 1e6, (cluster.cpu_seconds() - cpu) / (size / 1e9))


# Topics.


@dataclass(frozen=True, slots=True)
class Creation:
    answered_s: float
    led_everywhere_s: float


def create(cluster: Nodes, topic: str, *, partitions: int, replicas: int) -> Creation:
    """Until CreateTopics is answered, and until every broker knows leaders and full ISRs."""
    started = time.monotonic()
    deadline = started + WAIT_SECONDS_MAX
    with Connection(cluster.nodes[0].port) as to:
        code = to.create_topic(topic, partitions=partitions, replicas=replicas)
    if code:
        raise RuntimeError(f"{cluster.name} did not create {topic}: error {code}")
    answered = time.monotonic()
    for node in cluster.nodes:
        with Connection(node.port) as to:
            while not _is_whole(to, topic, partitions=partitions, replicas=replicas):
                _expired(deadline, f"{cluster.name}: creating {topic}")
                time.sleep(POLL_SECONDS)
    return Creation(answered - started, time.monotonic() - started)


def _is_whole(to: Connection, topic: str, *, partitions: int, replicas: int) -> bool:
    found = to.partitions(topic)
    return len(found) == partitions and all(
        partition.leader_id >= 0 and len(partition.isr_nodes) == replicas
        for partition in found.values()
    )


def restore(cluster: Nodes, topic: str) -> None:
    """Wait until every replica is in sync, then give every partition its first replica to lead."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    port = cluster.active_controller().port
    with Connection(port) as to:
        found = to.partitions(topic)
        replicas = len(found[0].replica_nodes)
        while not _is_whole(to, topic, partitions=len(found), replicas=replicas):
            _expired(deadline, f"{cluster.name}: the replicas of {topic} coming in sync")
            time.sleep(0.05)
        while True:
            found = to.partitions(topic)
            wrong = [i for i, each in found.items() if each.leader_id != each.replica_nodes[0]]
            if not wrong:
                return
            to.elect_preferred(topic, wrong)
            _expired(deadline, f"{cluster.name}: preferred leaders of {topic}")


# Death of a leader.


@dataclass(frozen=True, slots=True)
class Failover:
    affected: int
    leaderless_ms: float
    after_known_ms: float
    acknowledged_ms: float


def leader_failovers(cluster: Nodes, topic: str, *, rounds: int) -> list[Failover]:
    """Kill a broker that leads but is not the active controller, again and again."""
    results = []
    for number in range(rounds):
        restore(cluster, topic)
        controller = cluster.active_controller()
        others = [node for node in cluster.nodes if node is not controller]
        victim, witness = others if number % 2 else others[::-1]
        results.append(_leader_failover(cluster, topic, victim, witness, controller))
        cluster.restart(victim)
    return results


def _leader_failover(
    cluster: Nodes, topic: str, victim: Node, witness: Node, controller: Node
) -> Failover:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    with ExitStack() as stack:
        to = {
            node.node_id: stack.enter_context(Connection(node.port))
            for node in cluster.nodes
            if node is not victim
        }
        watch = to[witness.node_id]
        found = watch.partitions(topic)
        affected = {i for i, each in found.items() if each.leader_id == victim.node_id}
        killed = victim.kill()
        leaders: dict[int, int] = {}
        while True:
            asked = time.time()
            found = watch.partitions(topic)
            led = time.time()
            leaders = {index: found[index].leader_id for index in affected}
            if not set(leaders.values()) & {-1, victim.node_id}:
                break
            _expired(deadline, f"{cluster.name}: new leaders")
            # An answer about many partitions costs the broker more than a look: let it work.
            time.sleep(max(POLL_SECONDS, led - asked))
        left = affected
        while left:
            for leader in sorted({leaders[index] for index in left}):
                mine = {index for index in left if leaders[index] == leader}
                left = left - mine | to[leader].produce(topic, mine)
            _expired(deadline, f"{cluster.name}: acknowledgements of new leaders")
        acknowledged = time.time()
    known = fencing_time(controller, victim.node_id, since=killed)
    return Failover(
        len(affected), 1e3 * (led - killed), 1e3 * (led - known), 1e3 * (acknowledged - killed)
    )


def fencing_time(controller: Node, broker_id: int, *, since: float) -> float:
    """When the active controller wrote that it fences the broker."""
    for segment in sorted(controller.metadata_log.glob("*.log"), reverse=True):
        times = [
            batch.append_time_ms / 1e3
            for batch in _readable_batches(segment.read_bytes())
            if batch.append_time_ms / 1e3 >= since - 0.001
            for record in batch.records
            if isinstance(record, BrokerRegistrationChangeRecord)
            and record.broker_id == broker_id
            and record.fenced == FENCED
        ]
        if times:
            return min(times)
    raise RuntimeError(f"no record fences broker {broker_id} in {controller.metadata_log}")


def _readable_batches(data: bytes) -> Iterator[MetadataBatch]:
    """Up to the first that is only half written by now; segments are allocated ahead."""
    try:
        yield from decode_metadata_batches(data, "the metadata log")
    except MetadataError:
        return


# Death of the controller.


@dataclass(frozen=True, slots=True)
class ControllerFailover:
    elected_ms: float
    created_ms: float


def controller_failovers(cluster: Nodes, *, rounds: int) -> list[ControllerFailover]:
    """Kill the active controller: until another leads, and until a topic sent then is created."""
    results = []
    for number in range(rounds):
        victim = cluster.active_controller()
        results.append(_controller_failover(cluster, victim, f"failover-{number}"))
        cluster.restart(victim)
    return results


def _controller_failover(cluster: Nodes, victim: Node, topic: str) -> ControllerFailover:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    others = [node for node in cluster.nodes if node is not victim]
    created: list[float] = []

    def create_topic() -> None:
        while not created and time.monotonic() < deadline:
            try:
                with Connection(others[0].port) as to:
                    # 36: an earlier try has made it, though its answer said otherwise.
                    if to.create_topic(topic, partitions=1, replicas=1) in (0, 36):
                        created.append(time.time())
            except Unreachable:
                continue

    with ExitStack() as stack:
        controllers = [stack.enter_context(Connection(n.controller_port)) for n in others]
        killed = victim.kill()
        creator = threading.Thread(target=create_topic)
        creator.start()
        while not any(to.is_quorum_leader() for to in controllers):
            _expired(deadline, f"{cluster.name}: a new controller")
            time.sleep(POLL_SECONDS)
        elected = time.time()
        creator.join()
    if not created:
        raise RuntimeError(f"{cluster.name}: no topic was created after the controller's death")
    return ControllerFailover(1e3 * (elected - killed), 1e3 * (created[0] - killed))


# Clients that go on.


@dataclass(slots=True)
class Traffic:
    """An idempotent producer with acks=all that sends to every partition every few milliseconds,
    and a consumer group's member that reads along."""

    cluster: Nodes
    topic: str
    partitions: int
    acknowledged: dict[int, list[float]] = field(default_factory=dict)
    sent: int = 0
    delivered: int = 0
    errors: list[str] = field(default_factory=list)
    read: dict[bytes, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _produced: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, *, consume: bool) -> Iterator[None]:
        threads = [threading.Thread(target=self._produce)]
        if consume:
            threads.append(threading.Thread(target=self._consume))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def longest_gap_ms(self, since: float, until: float) -> float:
        """The longest time that any partition went without an acknowledgement."""
        gaps = [0.0]
        for times in self.acknowledged.values():
            within = [since, *(each for each in times if since <= each <= until), until]
            gaps += [later - earlier for earlier, later in pairwise(within)]
        return 1e3 * max(gaps)

    @property
    def lost(self) -> int:
        return max(0, self.delivered - len(self.read))

    @property
    def duplicates(self) -> int:
        return sum(count - 1 for count in self.read.values())

    def _on_error(self, error: KafkaError) -> None:
        # What the client mends by itself (a connection that ended) is no error of its user's.
        if error.fatal():
            self.errors.append(str(error))

    def _produce(self) -> None:
        settings = {"bootstrap.servers": self.cluster.bootstrap, "enable.idempotence": True}
        producer = Producer(
            {**QUICK_CLIENT, **settings, "linger.ms": 0, "error_cb": self._on_error}
        )
        self.acknowledged = {index: [] for index in range(self.partitions)}

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(f"a record was not delivered: {error}")
                return
            self.delivered += 1
            self.acknowledged[message.partition() or 0].append(time.time())

        producer.list_topics(self.topic, timeout=30)
        while not self._stop.is_set():
            for index in range(self.partitions):
                value = b"%d" % self.sent
                producer.produce(self.topic, value, partition=index, on_delivery=delivered)
                self.sent += 1
            until = time.monotonic() + SEND_SECONDS
            while (left := until - time.monotonic()) > 0:
                producer.poll(left)
        if left_over := producer.flush(60):
            self.errors.append(f"{left_over} records were never acknowledged")
        self._produced.set()

    def _consume(self) -> None:
        settings = {"bootstrap.servers": self.cluster.bootstrap, "group.id": f"{self.topic}-group"}
        consumer = Consumer(
            {
                **QUICK_CLIENT,
                **settings,
                "auto.offset.reset": "earliest",
                "error_cb": self._on_error,
            }
        )
        consumer.subscribe([self.topic])
        quiet_since = time.monotonic()
        # Until everything is read, or nothing has come for a while.
        while not (
            self._produced.is_set()
            and (len(self.read) >= self.delivered or time.monotonic() - quiet_since > 20)
        ):
            for message in consumer.consume(1000, timeout=0.1):
                quiet_since = time.monotonic()
                if message.error() is not None:
                    self.errors.append(f"the consumer got an error: {message.error()}")
                    continue
                value = bytes(message.value() or b"")
                self.read[value] = self.read.get(value, 0) + 1
        consumer.close()


@dataclass(frozen=True, slots=True)
class Shutdowns:
    undisturbed_ms: float
    gaps_ms: list[float]
    errors: list[str]


def controlled_shutdowns(cluster: Nodes, topic: str, *, partitions: int, rounds: int) -> Shutdowns:
    """SIGTERM to a broker that leads but is not the active controller, under a producer."""
    traffic = Traffic(cluster, topic, partitions)
    gaps: list[float] = []
    with traffic.running(consume=False):
        time.sleep(WATCH_SECONDS)
        since = time.time()
        time.sleep(WATCH_SECONDS)
        undisturbed = traffic.longest_gap_ms(since, time.time())
        for number in range(rounds):
            restore(cluster, topic)
            controller = cluster.active_controller()
            others = [node for node in cluster.nodes if node is not controller]
            since = time.time()
            others[number % 2].stop()
            time.sleep(WATCH_SECONDS)
            gaps.append(traffic.longest_gap_ms(since, time.time()))
            cluster.restart(others[number % 2])
    return Shutdowns(undisturbed, gaps, traffic.errors)


@dataclass(frozen=True, slots=True)
class Rolling:
    errors: list[str]
    lost: int
    duplicates: int
    longest_gap_ms: float
    records: int


def rolling_restart(cluster: Nodes, topic: str, *, partitions: int) -> Rolling:
    """Every node stopped and started once, the active controller last, under clients."""
    traffic = Traffic(cluster, topic, partitions)
    with traffic.running(consume=True):
        time.sleep(WATCH_SECONDS)
        since = time.time()
        controller = cluster.active_controller()
        for node in [*(n for n in cluster.nodes if n is not controller), controller]:
            node.stop()
            cluster.restart(node)
            restore(cluster, topic)
        time.sleep(WATCH_SECONDS)
        gap = traffic.longest_gap_ms(since, time.time())
    return Rolling(traffic.errors, traffic.lost, traffic.duplicates, gap, traffic.delivered)


def median_and_worst(figures: Iterable[float]) -> tuple[float, float]:
    values: Sequence[float] = list(figures)
    return statistics.median(values), max(values)
