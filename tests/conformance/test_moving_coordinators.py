"""An exactly-once job and a queue whose coordinators move to other nodes all the time.

The nodes that coordinate the job's group, its transactions and the state of the queue's records are
killed, stopped and put to sleep one after the other, while everything goes on. Each input is
processed once, and each job is delivered and taken as done once.
`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from moldau.wire.uuids import uuid_to_text
from support import asking
from support.cluster import (
    SHARE_COORDINATOR,
    TRANSACTION_COORDINATOR,
    ClusterUnderTest,
    cluster_for,
)
from support.raw import RawConnection
from support.scenarios.sharing import GROUP_CONFIG, ShareWorker
from support.scenarios.transforming import GROUP, INPUT, OUTPUT, TransformingWorker, transform
from support.waiting import eventually

PARTITIONS = 4
JOBS, WORKERS_GROUP = "jobs", "workers"
WORKERS = 2
PROGRESS = 20
# A worker whose call to a sleeping node takes too long makes room for its successor; the group
# must miss it soon.
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "5000",
}
QUICK = {
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "log_level": 0,
    "error_cb": lambda _: None,
}


class Feeder:
    """Writes 0, 1, 2, ... to the partitions of a topic in turn, until it is told to finish."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: list[bytes] = []
        self.failure: KafkaError | None = None
        self._topic = topic
        self._stop = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUICK}
        )
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        count = 0
        while not self._stop.is_set():
            self._producer.produce(
                self._topic,
                b"%d" % count,
                partition=count % PARTITIONS,
                on_delivery=self._delivered,
            )
            count += 1
            # A pace, not a wait: the workers shall have work to do, and an end to it.
            self._producer.poll(0.01)
        self._producer.flush(60)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failure = error
        else:
            self.acknowledged.append(bytes(message.value() or b""))

    def finish(self) -> set[bytes]:
        self._stop.set()
        self._thread.join(90)
        assert self.failure is None, f"a write failed: {self.failure}"
        return set(self.acknowledged)


class Scene:
    """The job and the queue at work in a cluster."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self.cluster = cluster
        for topic in (INPUT, OUTPUT, JOBS):
            cluster.create_topic(topic, PARTITIONS)
        with RawConnection(cluster.nodes[cluster.serving[0]].port) as to:
            reset = {"share.auto.offset.reset": "earliest"}
            assert asking.alter_config(to, GROUP_CONFIG, WORKERS_GROUP, reset)[0] == 0
        self._begin_at_the_beginning()
        self.inputs = Feeder(cluster.bootstrap, INPUT)
        self.jobs = Feeder(cluster.bootstrap, JOBS)
        self.transforming = [
            TransformingWorker(cluster.bootstrap, "consumer", number, PARTITIONS)
            for number in range(WORKERS)
        ]
        self.sharing = [ShareWorker(cluster.bootstrap, WORKERS_GROUP, JOBS) for _ in range(WORKERS)]

    def _begin_at_the_beginning(self) -> None:
        """Give the job a committed offset for each input partition."""
        consumer = Consumer(
            {"bootstrap.servers": self.cluster.bootstrap, "group.id": GROUP, **QUICK}
        )
        offsets = [TopicPartition(INPUT, index, 0) for index in range(PARTITIONS)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    # Who coordinates what.

    def group_coordinator(self) -> int:
        return self.cluster.coordinator(GROUP)

    def transaction_coordinator(self) -> int:
        return self.cluster.coordinator(f"{GROUP}-0", TRANSACTION_COORDINATOR)

    def share_coordinator(self) -> int:
        (topic_id,) = [key for key, name in self.cluster.topic_names().items() if name == JOBS]
        key = f"{WORKERS_GROUP}:{uuid_to_text(topic_id)}:0"
        return self.cluster.coordinator(key, SHARE_COORDINATOR)

    # How far everything has come.

    @property
    def delivered(self) -> Counter[bytes]:
        return sum((Counter(worker.delivered) for worker in self.sharing), Counter())

    def wait_for_progress(self) -> None:
        """Something comes out at every end of what begins after this."""
        steps = [worker.step for worker in self.transforming]
        accepted = [len(worker.accepted) for worker in self.sharing]

        def further() -> bool:
            self.tend()
            moved = [
                not step <= worker.step < step + PROGRESS
                for worker, step in zip(self.transforming, steps, strict=True)
            ]
            stored = sum(len(worker.accepted) for worker in self.sharing) - sum(accepted)
            return any(moved) and stored >= PROGRESS

        self.cluster.eventually(further, what="the job and the queue go on")

    def tend(self) -> None:
        """See to the workers: looking at one of the job replaces it if it stands still."""
        assert [worker.failure for worker in self.sharing] == [None] * WORKERS
        assert all(worker.step >= 0 for worker in self.transforming)

    def finish(self) -> None:
        inputs, jobs = self.inputs.finish(), self.jobs.finish()
        output: Counter[bytes] = Counter()

        def processed() -> bool:
            nonlocal output
            self.tend()
            output = self._read_output()
            return len(output) >= len(inputs) and jobs <= self.delivered.keys()

        eventually(processed, what="everything is processed", seconds_max=300)
        assert output == Counter(transform(value) for value in inputs)
        assert self.delivered.keys() == jobs
        accepted = sum((worker.accepted for worker in self.sharing), Counter())
        assert max(accepted.values()) == 1, "a job was taken as done twice"

    def _read_output(self) -> Counter[bytes]:
        consumer = Consumer({
            "bootstrap.servers": self.cluster.bootstrap, "group.id": "unused",
            "isolation.level": "read_committed", "enable.partition.eof": True,
            "enable.auto.commit": False, **QUICK,
        })  # fmt: skip
        consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])
        values: Counter[bytes] = Counter()
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(60)
            assert message is not None, "the output does not come to an end"
            if message.error() is None:
                values[bytes(message.value() or b"")] += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(int(message.partition() or 0))
        consumer.close()
        return values

    def close(self) -> None:
        for worker in self.transforming:
            worker.kill()
        for worker in self.sharing:
            worker.stop()


def kill(cluster: ClusterUnderTest, node_id: int) -> None:
    cluster.kill(node_id)
    cluster.wait_until_fenced(node_id)


def stop(cluster: ClusterUnderTest, node_id: int) -> None:
    cluster.stop(node_id)


def put_to_sleep(cluster: ClusterUnderTest, node_id: int) -> None:
    """For longer than its session. Clients that wait for its answers wait until it wakes up."""
    cluster.nodes[node_id].pause()
    cluster.wait_until_fenced(node_id)
    cluster.nodes[node_id].resume()


def bring_back(cluster: ClusterUnderTest, node_id: int) -> None:
    if not cluster.nodes[node_id].is_running:
        cluster.start_node(node_id)
    cluster.wait_until_whole()


Disturbance = tuple[Callable[[Scene], int], Callable[[ClusterUnderTest, int], None]]
DISTURBANCES: list[Disturbance] = [
    (Scene.transaction_coordinator, kill),
    (Scene.share_coordinator, kill),
    (Scene.group_coordinator, stop),
    (Scene.transaction_coordinator, put_to_sleep),
]


@pytest.mark.long("four nodes fail in turn; scenarios on three nodes are in `make conformance`")
@pytest.mark.timeout(900)
@pytest.mark.slow("four nodes fail in turn under clients of every kind")
def test_everything_is_done_once_wherever_it_is_coordinated(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with cluster_for(request, tmp_path, SETTINGS) as cluster:
        scene = Scene(cluster)
        try:
            scene.wait_for_progress()
            for whose, how in DISTURBANCES:
                node_id = whose(scene)
                how(cluster, node_id)
                scene.wait_for_progress()
                bring_back(cluster, node_id)
            scene.wait_for_progress()
            scene.finish()
        finally:
            scene.close()
