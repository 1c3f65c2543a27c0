"""Each trouble of docs/runbook.md, made with `moldau.testing`, and named by the shipped rules.

A real Prometheus scrapes the nodes; the windows of the rules are shorter than in production, the
rules are the same. `make runbook` runs all of it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.admin import ElectionType
from moldau.client.topics import TopicPartition
from moldau.monitoring.machine.config import read_config
from moldau.monitoring.machine.troubles import TROUBLES
from moldau.monitoring.monitor import Monitor
from moldau.monitoring.pipelines import pipeline_states
from moldau.pipelines.machine.records import State, StatusRecord
from moldau.pipelines.registry import Registry
from moldau.testing import Cluster
from moldau.wire.apis import ApiKey
from support.ports import free_port
from support.prometheus import Prometheus, prometheus_missing
from support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(prometheus_missing() is not None, reason=str(prometheus_missing())),
    pytest.mark.slow("clusters, a real Prometheus, and windows that have to pass"),
]

MORE = pytest.mark.long("another trouble, named in the same way; `make runbook` runs all")

CONFIG = {
    "moldau.metrics.port": "0",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "1000",
    "auto.create.topics.enable": "false",
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with Prometheus(tmp_path_factory.mktemp("prometheus")) as server:
        assert server.rule_names() == {trouble.name for trouble in TROUBLES}
        yield server


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(3, config=CONFIG, log_dirs=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster, prometheus: Prometheus) -> Iterator[Cluster]:
    watch(prometheus, shared)
    yield shared
    shared.heal()
    for topic in list(shared.topics):
        if not topic.startswith("__"):
            shared.delete_topic(topic)


def watch(prometheus: Prometheus, *clusters: Cluster, also: int | None = None) -> None:
    prometheus.watch(
        *(node.metrics_port for each in clusters for node in each.nodes.values()), also
    )


def create(cluster: Cluster, name: str, placed: list[list[int]], **configs: str) -> None:
    """A topic whose partitions are on these nodes, the first of each leads."""
    with Admin(cluster.client_config) as admin:
        admin.create_topics(
            [NewTopic(name, replicas_assignments=dict(enumerate(placed)), configs=configs)]
        )
    cluster.wait_until_whole()


@contextmanager
def running(work: Callable[[], object]) -> Iterator[None]:
    """Does it again and again meanwhile."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def monitoring(cluster: Cluster, prometheus: Prometheus, **settings: object) -> Iterator[Monitor]:
    """A monitor of the cluster, which Prometheus scrapes as well."""
    config = read_config(
        {"cluster": dict(cluster.client_config), "interval_seconds": 0.5, **settings}
    )
    monitor = Monitor(config, pipelines=pipeline_states(cluster.client_config))
    port = free_port()
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()

    def run() -> None:
        loop.run_until_complete(monitor.run(stopping, host="127.0.0.1", port=port))

    thread = threading.Thread(target=run)
    thread.start()
    watch(prometheus, cluster, also=port)
    try:
        yield monitor
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(30)
        loop.close()


def test_a_broker_that_is_down(cluster: Cluster, prometheus: Prometheus) -> None:
    """Under-replicated steadily, under the minimum, offline: what one lost broker does."""
    create(cluster, "copied", [[1, 2, 3]] * 4)
    create(cluster, "careful", [[1, 3]], **{"min.insync.replicas": "2"})
    create(cluster, "single", [[3]])
    cluster.nodes[3].kill()
    prometheus.await_alert("BrokerDown")
    prometheus.await_alert("UnderReplicatedPartitionsSteady")
    prometheus.await_alert("UnderMinIsrPartitions")
    prometheus.await_alert("OfflinePartitions")


@MORE
def test_followers_that_fall_behind_and_come_back(cluster: Cluster, prometheus: Prometheus) -> None:
    create(cluster, "copied", [[1, 2, 3]] * 8)
    with Producer(cluster.client_config, acks=1) as producer:

        def disturb() -> None:
            for index in range(8):
                producer.send("copied", b"value", partition=index)
            producer.flush()
            cluster.nodes[2].pause()
            time.sleep(1.7)
            cluster.nodes[2].resume()
            time.sleep(0.5)

        with running(disturb):
            prometheus.await_alert("UnderReplicatedPartitionsChanging")


@pytest.mark.long("another trouble; `make runbook` makes them all")
def test_a_quorum_without_a_majority(cluster: Cluster, prometheus: Prometheus) -> None:
    for node in list(cluster.nodes.values())[1:]:
        node.kill()
    prometheus.await_alert("NoActiveController")


@MORE
def test_nodes_of_two_clusters(cluster: Cluster, prometheus: Prometheus) -> None:
    with Cluster(1, config=CONFIG) as other:
        watch(prometheus, cluster, other)
        prometheus.await_alert("SeveralActiveControllers")


@MORE
def test_a_leader_that_was_not_in_sync(cluster: Cluster, prometheus: Prometheus) -> None:
    create(cluster, "lost", [[2, 3]])
    place = TopicPartition("lost", 0)
    cluster.nodes[3].kill()
    with Producer(cluster.client_config, acks=1) as producer:
        producer.send("lost", b"value").result(30)
    cluster.nodes[2].kill()
    cluster.nodes[3].start()
    watch(prometheus, cluster)
    # The counter starts with the controller that is active now.
    eventually(
        lambda: prometheus.query("kafka_controller_kafkacontroller_activecontrollercount == 1"),
        what="Prometheus knows the active controller",
    )
    with Admin(cluster.client_config) as admin:
        admin.elect_leaders(ElectionType.UNCLEAN, [place])
    prometheus.await_alert("UncleanLeaderElections")


@MORE
def test_a_hot_partition(cluster: Cluster, prometheus: Prometheus) -> None:
    create(cluster, "keyed", [[1], [2], [3], [1]])
    with Producer(cluster.client_config) as producer:

        def write() -> None:
            for index in (0, 1, 2, 3, *[2] * 20):
                producer.send("keyed", bytes(1_000), partition=index)
            producer.flush()

        with running(write):
            prometheus.await_alert("HotPartition", topic="keyed", partition="2")


@MORE
def test_leaders_in_the_wrong_places(cluster: Cluster, prometheus: Prometheus) -> None:
    create(cluster, "placed", [[1, 2]] * 30)
    cluster.nodes[1].restart()
    watch(prometheus, cluster)
    prometheus.await_alert("LeadersImbalanced")


@MORE
def test_a_disk_that_fills(cluster: Cluster, prometheus: Prometheus) -> None:
    cluster.nodes[1].fill_disk(free_bytes=50_000_000)
    prometheus.await_alert("DiskFilling", instance=f"127.0.0.1:{cluster.nodes[1].metrics_port}")


@MORE
def test_a_log_directory_that_fails(cluster: Cluster, prometheus: Prometheus) -> None:
    create(cluster, "spread", [[2]] * 4)
    cluster.nodes[2].fill_disk(log_dir=1)
    with Producer(cluster.client_config, acks=1, delivery_timeout_ms=2_000,
                  request_timeout_ms=1_000, linger_ms=0) as producer:  # fmt: skip

        def write() -> None:
            for index in range(4):
                producer.send("spread", b"value", partition=index)
            time.sleep(0.2)

        with running(write):
            prometheus.await_alert("LogDirectoryOffline")


@MORE
def test_a_loop_without_time(cluster: Cluster, prometheus: Prometheus) -> None:
    node = cluster.nodes[1]
    clients = [threading.Thread(target=hammer, args=(node.port, ended := threading.Event()))]
    clients += [threading.Thread(target=hammer, args=(node.port, ended)) for _ in range(3)]
    for each in clients:
        each.start()
    try:
        prometheus.await_alert("HandlersExhausted")
    finally:
        ended.set()
        for each in clients:
            each.join()


def hammer(port: int, ended: threading.Event) -> None:
    """Many requests in flight at once, so that the client takes little of the CPU."""
    request = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 0, -1)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request)
        response_size = 4 + struct.unpack(">i", client.recv(4))[0]
        _receive(client, response_size - 4)
        while not ended.is_set():
            client.sendall(request * 200)
            _receive(client, response_size * 200)


def _receive(client: socket.socket, count: int) -> None:
    while count:
        count -= len(client.recv(min(count, 1 << 20)))


@pytest.mark.long("another trouble; `make runbook` makes them all")
def test_a_consumer_that_is_too_slow_and_one_that_is_stuck(
    cluster: Cluster, prometheus: Prometheus
) -> None:
    create(cluster, "work", [[1]])
    place = TopicPartition("work", 0)
    with (
        Consumer(cluster.client_config, group_id="slow", enable_auto_commit=False) as slow,
        Consumer(cluster.client_config, group_id="stuck", enable_auto_commit=False) as stuck,
        Producer(cluster.client_config) as producer,
    ):
        for each in (slow, stuck):
            each.assign([place])
            each.commit_sync({place: 0})
        position = 0

        def work() -> None:
            nonlocal position
            for _ in range(50):
                producer.send("work", b"value")
            producer.flush()
            position += 1
            slow.commit_sync({place: position})
            time.sleep(0.1)

        with monitoring(cluster, prometheus, lag={"stuck_after_seconds": 2}), running(work):
            prometheus.await_alert("ConsumerTooSlow", consumergroup="slow", topic="work")
            prometheus.await_alert("ConsumerStuck", consumergroup="stuck", partition="0")
            assert not any(
                each["consumergroup"] == "slow"
                for each in prometheus.firing().get("ConsumerStuck", [])
            )


@MORE
def test_a_group_that_flaps(cluster: Cluster, prometheus: Prometheus) -> None:
    create(cluster, "flapped", [[1]] * 2)

    def join_and_leave() -> None:
        with Consumer(cluster.client_config, group_id="flapping") as consumer:
            consumer.subscribe(["flapped"])
            deadline = time.monotonic() + 5
            while not consumer.assignment() and time.monotonic() < deadline:
                consumer.poll(0.1)
            time.sleep(0.3)

    with monitoring(cluster, prometheus), running(join_and_leave):
        prometheus.await_alert("GroupFlapping", consumergroup="flapping")


@pytest.mark.long("another trouble; `make runbook` makes them all")
def test_a_failed_pipeline(cluster: Cluster, prometheus: Prometheus) -> None:
    with Registry(cluster.bootstrap_servers) as registry:
        # As the control loop writes it.
        registry.write_status(StatusRecord(name="orders-to-lake", state=State.FAILED))
    with monitoring(cluster, prometheus):
        prometheus.await_alert("PipelineFailed", pipeline="orders-to-lake")


@pytest.mark.long("another trouble; `make runbook` makes them all")
def test_clients_that_are_not_served(cluster: Cluster, prometheus: Prometheus) -> None:
    objective = {
        "name": "writes", "kind": "availability", "target": 99.0,
        "long_window_seconds": 5, "short_window_seconds": 2,
    }  # fmt: skip
    canary = {"interval_seconds": 0.2, "timeout_ms": 500}
    with monitoring(cluster, prometheus, canary=canary, objectives=[objective]) as monitor:
        cluster.wait_until(lambda: monitor.status()["canary"]["probes"] > 10)
        assert monitor.status()["objectives"][0]["good"] > 0
        with cluster.drop("Produce"):
            prometheus.await_alert("CanaryFailing")
            prometheus.await_alert("ErrorBudgetBurning", objective="writes")


def test_every_trouble_is_in_the_runbook_and_played_through() -> None:
    runbook = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text()
    played = Path(__file__).read_text()
    for trouble in TROUBLES:
        assert f'<a id="{trouble.anchor}"></a>' in runbook, trouble.anchor
        assert f"`{trouble.name}`" in runbook, trouble.name
        assert f'"{trouble.name}"' in played, trouble.name
