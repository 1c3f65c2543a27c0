"""`moldau balance` on a real cluster: nothing is lost, throttles go, and it can be stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.balance.reading import read_load
from moldau.client import Producer
from moldau.client.admin import Admin, ConfigResource, NewTopic
from moldau.client.topics import TopicPartition
from moldau.testing import Cluster
from support.cli import Ended, moldau_cli
from support.ports import free_port
from support.processes import moldau
from support.waiting import eventually

PAGE = Path(__file__).resolve().parents[2] / "docs" / "balance.md"
CONFIG = {
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "1",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(4, config=CONFIG) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture(autouse=True)
def no_topics_left(admin: Admin) -> Iterator[None]:
    yield
    names = list(admin.list_topics())
    admin.delete_topics(names)
    eventually(lambda: not set(names) & set(admin.list_topics()), what="topics are gone")


def balance(cluster: Cluster, *words: str) -> Ended:
    return moldau_cli("balance", *words, "--bootstrap-server", cluster.bootstrap_servers)


def lopsided(cluster: Cluster, admin: Admin, name: str, *, values: int, size: int = 1000) -> None:
    """Eight partitions with all replicas on brokers 1 and 2, led by 1."""
    admin.create_topics([NewTopic(name, replicas_assignments=dict.fromkeys(range(8), (1, 2)))])
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for number in range(values):
            producer.send(name, b"%d" % number + b" " * size, partition=number % 8)
        producer.flush()


def placed(admin: Admin, name: str) -> dict[int, tuple[int, ...]]:
    described = admin.describe_topics([name])[name]
    return {each.partition: tuple(n.id for n in each.replicas) for each in described.partitions}


def throttles(admin: Admin, name: str) -> list[str | None]:
    topic = ConfigResource.topic(name)
    brokers = [ConfigResource.broker(each) for each in (1, 2, 3, 4)]
    described = admin.describe_configs([topic, *brokers])
    found = [
        described[topic][f"{side}.replication.throttled.replicas"].value
        for side in ("leader", "follower")
    ]
    for broker in brokers:
        entry = described[broker].get("leader.replication.throttled.rate")
        # Without a throttle Kafka answers with the largest rate there is, or not at all.
        found.append(
            entry.value if entry is not None and entry.source.name != "DEFAULT_CONFIG" else ""
        )
    return [each for each in found if each]


def test_plan_is_explained_and_carried_out(cluster: Cluster, admin: Admin) -> None:
    lopsided(cluster, admin, "orders", values=800)
    shown = balance(cluster, "plan", "--throttle", "1000000")
    assert shown.status == 0, shown
    assert "orders-0" in shown.out
    assert "replicas are copied" in shown.out
    assert "Traffic was not measured" in shown.out
    assert "█" in shown.out
    document = json.loads(balance(cluster, "plan", "--json").out)
    assert document["bytesMoved"] > 0
    assert all(len(each["replicas"]) == 2 for each in document["partitions"])
    assert set(placed(admin, "orders").values()) == {(1, 2)}, "a plan moves nothing"

    executed = balance(cluster, "execute", "--throttle", "100000000", "--batch", "3")
    assert executed.status == 0, executed
    assert "Preferred leaders are elected." in executed.out
    after = placed(admin, "orders")
    counts = [sum(broker in replicas for replicas in after.values()) for broker in (1, 2, 3, 4)]
    assert counts == [4, 4, 4, 4]
    eventually(lambda: throttles(admin, "orders") == [], what="throttles are removed")
    described = admin.describe_topics(["orders"])["orders"]
    led = [each.leader.id for each in described.partitions if each.leader is not None]
    assert sorted(led) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert len(cluster.values("orders", count=800)) == 800
    again = balance(cluster, "plan")
    assert "Nothing to move." in again.out, again


@pytest.mark.long("drains and fills a broker under load; a plan is carried out above")
def test_broker_is_drained_under_load_and_filled_again(cluster: Cluster, admin: Admin) -> None:
    admin.create_topics([NewTopic("load", num_partitions=12, replication_factor=3)])
    end = threading.Event()
    sent: list[bytes] = []

    def produce() -> None:
        with Producer(
            bootstrap_servers=cluster.bootstrap_servers, acks="all", linger_ms=5
        ) as producer:
            futures = []
            while not end.is_set():
                for _ in range(50):
                    value = b"%d" % len(sent)
                    futures.append(producer.send("load", value, partition=len(sent) % 12))
                    sent.append(value)
                end.wait(0.02)
            producer.flush()
            for future in futures:
                future.result()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        eventually(lambda: len(sent) > 1000, what="load is produced")
        drained = balance(cluster, "drain-broker", "4", "--execute", "--throttle", "50000000")
        assert drained.status == 0, drained
        assert "broker 4 is drained" in drained.out
        assert all(4 not in replicas for replicas in placed(admin, "load").values())
        assert all(len(set(each)) == 3 for each in placed(admin, "load").values())
        added = balance(cluster, "add-broker", "4", "--execute")
        assert added.status == 0, added
        assert sum(4 in replicas for replicas in placed(admin, "load").values()) >= 8
    finally:
        end.set()
        thread.join(60)
    read = cluster.values("load", count=len(sent), timeout=60)
    assert sorted(map(bytes, filter(None, read))) == sorted(sent), "nothing is lost or doubled"


def test_interrupted_run_leaves_nothing_behind(cluster: Cluster, admin: Admin) -> None:
    lopsided(cluster, admin, "slow", values=800, size=20_000)
    words = [
        sys.executable, "-m", "moldau.cli", "balance", "execute", "--throttle", "10000",
        "--bootstrap-server", cluster.bootstrap_servers,
    ]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        eventually(admin.list_partition_reassignments, what="replicas move")
        status = balance(cluster, "status")
        assert "slow-" in status.out
        assert " MB" in status.out
        refused = balance(cluster, "execute")
        assert refused.status == 1
        assert "being reassigned already" in refused.err
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "were cancelled" in output
    assert admin.list_partition_reassignments() == {}
    eventually(lambda: throttles(admin, "slow") == [], what="throttles are removed")
    assert len(cluster.values("slow", count=800)) == 800


def test_stop_cancels_what_others_started(cluster: Cluster, admin: Admin, tmp_path: Path) -> None:
    lopsided(cluster, admin, "stuck", values=400, size=20_000)
    plan = tmp_path / "plan.json"
    plan.write_text(balance(cluster, "plan", "--json").out)
    started = moldau_cli(
        "reassign-partitions", "--bootstrap-server", cluster.bootstrap_servers, "--execute",
        "--reassignment-json-file", str(plan), "--throttle", "10000",
    )  # fmt: skip
    assert started.status == 0, started
    stopped = balance(cluster, "stop")
    assert re.search(r"\d+ reassignments were cancelled", stopped.out), stopped
    assert admin.list_partition_reassignments([TopicPartition("stuck", 0)]) == {}
    eventually(lambda: throttles(admin, "stuck") == [], what="throttles are removed")
    assert "No partition is being reassigned." in balance(cluster, "status").out


def test_rounds_move_a_little_at_a_time(cluster: Cluster, admin: Admin) -> None:
    lopsided(cluster, admin, "rounds", values=400)
    words = ("--interval", "0.2", "--rounds", "12", "--max-moves", "2", "--cool-down", "0")
    # A broker that was drained may have left the cluster.
    ended = balance(cluster, "run", *words, "--throttle", "100000000", "--drain", "9")
    assert ended.status == 0, ended
    assert ended.out.count("Broker 9 is not in the cluster and holds nothing.") == 1
    moved = [int(each) for each in re.findall(r"(\d+) partitions move", ended.out)]
    assert len(moved) >= 3
    assert max(moved) <= 2
    assert "Nothing to move now." in ended.out
    after = placed(admin, "rounds").values()
    assert [sum(broker in each for each in after) for broker in (1, 2, 3, 4)] == [4, 4, 4, 4]
    eventually(lambda: throttles(admin, "rounds") == [], what="throttles are removed")
    assert len(cluster.values("rounds", count=400)) == 400


@pytest.mark.slow("partitions move two at a time, and a broker dies")
def test_a_broker_is_kept_empty_while_the_others_are_balanced(
    cluster: Cluster, admin: Admin
) -> None:
    """In bounded rounds, also of topics that come later, and while the broker is down."""
    lopsided(cluster, admin, "drained", values=400)
    admin.create_topics([NewTopic("full", replicas_assignments=dict.fromkeys(range(6), (4, 3)))])
    words = [
        sys.executable, "-m", "moldau.cli", "balance", "run", "--drain", "4", "--interval", "0.2",
        "--max-moves", "2", "--cool-down", "0", "--bootstrap-server", cluster.bootstrap_servers,
    ]  # fmt: skip

    def held(*names: str) -> int:
        return sum(4 in each for name in names for each in placed(admin, name).values())

    def spread() -> int:
        replicas = [
            each
            for name in ("drained", "full", "late", "down")
            for each in placed(admin, name).values()
        ]
        counts = [sum(broker in each for each in replicas) for broker in (1, 2, 3)]
        return max(counts) - min(counts)

    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            eventually(lambda: held("drained", "full") == 0, what="broker 4 is empty")
            admin.create_topics([NewTopic("late", replicas_assignments={0: (4, 1)})])
            eventually(lambda: held("late") == 0, what="nothing stays on broker 4")
            admin.create_topics([NewTopic("down", replicas_assignments={0: (1, 4), 1: (2, 4)})])
            cluster.nodes[4].kill()
            eventually(lambda: held("down") == 0, what="replicas of a broker that is down")
            eventually(lambda: spread() <= 3, what="the others are even")
        finally:
            os.kill(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=60)
            if not cluster.nodes[4].running:
                cluster.nodes[4].start()
    cluster.wait_until_whole()
    assert process.returncode == 130, output
    assert "Broker 4 is being drained." in output
    moved = [int(each) for each in re.findall(r"(\d+) partitions move", output)]
    assert max(moved) <= 2
    assert len(cluster.values("drained", count=400)) == 400


@pytest.mark.parametrize("how", ["signal", "stop"])
def test_a_run_ends_when_it_is_stopped(cluster: Cluster, admin: Admin, how: str) -> None:
    name = f"ends-{how}"
    lopsided(cluster, admin, name, values=400, size=20_000)
    words = [
        sys.executable, "-m", "moldau.cli", "balance", "run", "--throttle", "10000",
        "--bootstrap-server", cluster.bootstrap_servers,
    ]  # fmt: skip
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        eventually(admin.list_partition_reassignments, what="replicas move")
        if how == "signal":
            os.kill(process.pid, signal.SIGINT)
        else:
            assert balance(cluster, "stop").status == 0
        output, _ = process.communicate(timeout=60)
    assert process.returncode == (130 if how == "signal" else 1), output
    assert how == "signal" or "somebody cancelled the reassignments" in output
    assert admin.list_partition_reassignments() == {}
    eventually(lambda: throttles(admin, name) == [], what="throttles are removed")


def test_cpu_is_read_from_the_metrics_page(tmp_path: Path) -> None:
    port = free_port()
    with (
        moldau(tmp_path, [f"moldau.metrics.port={port}"]) as broker,
        Producer(bootstrap_servers=broker.bootstrap) as producer,
    ):
        done = threading.Event()

        def work() -> None:
            while not done.wait(0.01):
                producer.send("t", b"x" * 500)

        producer.send("t", b"x").result(30)
        # Until both readings have been taken, whenever a busy machine gets to them.
        busy = threading.Thread(target=work)
        busy.start()
        try:
            found = read_load([f"1=127.0.0.1:{port}"], 1.0, threading.Event())
        finally:
            done.set()
            busy.join()
    assert set(found.cpu) == {1}
    assert 0 < found.cpu[1] < 16
    assert found.topics["t"].bytes_in > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("drain-broker", "9"), "no broker 9 is in the cluster"),
        (("add-broker", "9"), "no broker 9 is in the cluster"),
        (("plan", "--throttle", "0"), "--throttle must be greater than 0"),
        (("plan", "--tolerance", "2"), "the tolerance must be between 0 and 1"),
        (("plan", "--metrics", "127.0.0.1:1"), "http://127.0.0.1:1/metrics"),
        (("plan", "--metrics", "one=127.0.0.1:1"), "'one' is not the id of a broker"),
        (("run", "--max-moves", "0"), "--max-moves must be greater than 0"),
        (("drain-broker", "1", "2", "3", "4"), "no broker is left"),
    ],
)
def test_what_cannot_be_done_is_explained(
    cluster: Cluster, words: tuple[str, ...], message: str
) -> None:
    ended = balance(cluster, *words)
    assert ended.status == 1
    assert message in ended.err + ended.out


@pytest.mark.long("types a whole page; its commands are in other tests of this file")
def test_examples_of_the_page_run(cluster: Cluster, admin: Admin) -> None:
    lopsided(cluster, admin, "orders", values=80)
    lines = re.findall(r"^moldau balance (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        more = ("--rounds", "1") if line.startswith("run") else ()
        ended = balance(cluster, *line.split(), *more)
        assert ended.status == 0, (line, ended)
