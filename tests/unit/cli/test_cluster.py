"""`moldau cluster`: what its nodes are given, what it refuses, how it watches and stops them."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.broker.config import BrokerConfig
from moldau.cli.main import main
from moldau.cli.nodes.cluster import prepare, ready_text
from moldau.cli.nodes.cluster_run import ClusterRun
from moldau.cli.nodes.machine.cluster_plan import Layout, NodePlan, plan_nodes, ports_of
from moldau.cli.nodes.machine.cluster_watch import Restarts, last_lines
from moldau.cli.support.failures import Failure
from moldau.config import load_properties

Capture = pytest.CaptureFixture[str]


def planned(brokers: int, *, replication: int = 0, **overrides: str) -> list[NodePlan]:
    controllers = min(brokers, 3)
    return plan_nodes(
        *ports_of(9092, brokers=brokers, controllers=controllers),
        replication=replication or min(3, brokers),
        data="/data",
        overrides={key.replace("_", "."): value for key, value in overrides.items()},
    )


@pytest.mark.parametrize("brokers", [1, 2, 3, 5])
def test_every_node_is_configured_as_kafka_allows(brokers: int) -> None:
    nodes = planned(brokers)
    configs = [BrokerConfig.from_properties(node.properties) for node in nodes]
    assert [node.port for node in nodes] == [9092 + number for number in range(brokers)]
    assert [config.is_controller for config in configs] == [n < 3 for n in range(brokers)]
    assert all(config.is_broker and config.unknown == () for config in configs)
    # Everybody knows the same voters, and finds each where it listens.
    (voters,) = {config.quorum.controller_quorum_voters for config in configs}
    listening = {
        (config.node_id, listener.host, listener.port)
        for config in configs
        for listener in config.controller_listeners
    }
    assert set(voters) == listening
    ports = [listener.port for config in configs for listener in config.listeners]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 1), (4, 3, 2)])
def test_topics_survive_the_loss_of_a_node(brokers: int, replicas: int, in_sync: int) -> None:
    config = BrokerConfig.from_properties(planned(brokers)[0].properties)
    for key in (
        "default.replication.factor",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "share.coordinator.state.topic.replication.factor",
    ):
        assert config[key] == replicas, key
    for key in (
        "min.insync.replicas",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.min.isr",
    ):
        assert config[key] == in_sync, key


def test_overrides_win() -> None:
    nodes = planned(3, num_partitions="6", min_insync_replicas="1")
    for node in nodes:
        config = BrokerConfig.from_properties(node.properties)
        assert (config["num.partitions"], config["min.insync.replicas"]) == (6, 1)


def arguments(data: Path, **changes: object) -> argparse.Namespace:
    given: dict[str, object] = {
        "brokers": None,
        "port": 0,
        "data": str(data),
        "replication": None,
        "override": [],
        "logs": False,
        "restart": False,
    }
    return argparse.Namespace(**given | changes)


def prepared(data: Path, **changes: object) -> tuple[Layout, list[NodePlan], Path]:
    with ExitStack() as held:
        return prepare(arguments(data, **changes), held)


def cluster_ids(data: Path) -> set[str]:
    files = data.glob("node-*/meta.properties")
    return {load_properties(file.read_text())["cluster.id"] for file in files}


def test_a_first_start_formats_and_later_ones_continue(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    layout, nodes, _ = prepared(data)
    assert len(nodes) == 3
    assert cluster_ids(data) == {layout.cluster_id}
    before = {file: file.read_text() for file in data.glob("node-*/meta.properties")}
    assert len(before) == 3
    again, others, _ = prepared(data)
    assert again.cluster_id == layout.cluster_id
    assert {file: file.read_text() for file in before} == before
    # Ports may differ from start to start: the files follow.
    for node in others:
        written = load_properties((data / f"{node.name}.properties").read_text())
        assert written == node.properties


def test_brokers_join_and_voters_stay(tmp_path: Path) -> None:
    first, _, _ = prepared(tmp_path, brokers=1)
    layout, nodes, _ = prepared(tmp_path, brokers=4)
    assert (layout.cluster_id, layout.brokers) == (first.cluster_id, 4)
    assert [node.roles for node in nodes] == ["broker,controller", *["broker"] * 3]
    assert len(cluster_ids(tmp_path)) == 1
    assert len(prepared(tmp_path)[1]) == 4


def test_a_first_start_that_was_cut_short_is_continued(tmp_path: Path) -> None:
    layout, _, _ = prepared(tmp_path)
    file = tmp_path / "cluster.properties"
    file.write_text(file.read_text().replace("formatted=3", "formatted=0"))
    (tmp_path / "node-3" / "meta.properties").unlink()
    again, _, _ = prepared(tmp_path)
    assert again.cluster_id == layout.cluster_id
    assert cluster_ids(tmp_path) == {layout.cluster_id}
    assert len(list(tmp_path.glob("node-*/meta.properties"))) == 3


def lose_node_2(data: Path) -> None:
    (data / "node-2" / "meta.properties").unlink()


def lose_layout(data: Path) -> None:
    (data / "cluster.properties").unlink()


def damage_layout(data: Path) -> None:
    (data / "cluster.properties").write_text("brokers=1\n")


def make_single(data: Path) -> None:
    (data / "meta.properties").write_text("version=1\n")


@pytest.mark.parametrize(
    ("harm", "changes", "part"),
    [
        (lose_node_2, {}, "the data of node-2 is missing"),
        (lose_layout, {}, "cluster.properties is missing"),
        (damage_layout, {}, "damaged"),
        (make_single, {}, "a single node"),
        (None, {"brokers": 2}, "a cluster of 3"),
        (None, {"brokers": 0}, "--brokers 0"),
        (None, {"replication": 4}, "--replication 4"),
        (None, {"port": 65533}, "--port 65533"),
        (None, {"override": ["node.id=7"]}, "--override node.id"),
        (None, {"override": ["listeners=PLAINTEXT://:1"]}, "--port"),
        (None, {"override": ["nonsense"]}, "key=value"),
        (None, {"override": ["num.partitions=none"]}, "num.partitions"),
    ],
)
def test_refused(
    tmp_path: Path, harm: Callable[[Path], None] | None, changes: dict[str, object], part: str
) -> None:
    prepared(tmp_path)
    if harm is not None:
        harm(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    for _ in range(2):
        with pytest.raises(Failure) as caught:
            prepared(tmp_path, **changes)
        assert part in str(caught.value)
        assert "\n" not in str(caught.value)
    # Neither did it change anything.
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_folder_serves_one_cluster_at_a_time(tmp_path: Path) -> None:
    with ExitStack() as held:
        prepare(arguments(tmp_path), held)
        with pytest.raises(Failure, match="in use by another"):
            prepared(tmp_path)
    prepared(tmp_path)


def test_a_port_in_use_is_named(tmp_path: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["cluster", "--port", str(port), "--data", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert f"port {port} is in use" in shown
    assert shown.startswith("moldau: ")
    assert not (tmp_path / "node-1").exists()


def test_the_help_says_what_is_set(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["cluster", "--help"])
    shown = capsys.readouterr().out
    for part in ("min.insync.replicas=2", "default.replication.factor", "examples:", "--logs"):
        assert part in shown


# Children that stand for nodes.

GOOD = (
    "import signal, sys\n"
    "def stop(*_):\n print('bye', flush=True); sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, stop)\n"
    "print('Loading', flush=True)\n"
    "print('Moldau is up.\\n\\nTry it:\\n  moldau\\n\\nCtrl-C stops it.', flush=True)\n"
    "signal.pause()\n"
)
STUBBORN = GOOD.replace("sys.exit(0)", "signal.pause()")
BROKEN = "print('moldau: the disk is on fire', flush=True); raise SystemExit(1)"
SILENT = "import signal; signal.pause()"


class Cluster:
    """A run of fake nodes; `on_ready` acts once all are up."""

    def __init__(
        self,
        data: Path,
        programs: dict[int, str],
        ports: dict[int, int] | None = None,
        **options: object,
    ) -> None:
        self.data = data
        nodes = [
            replace(node, port=(ports or {}).get(node.node_id, node.port))
            for node in planned(max(programs))
        ]
        self.run = ClusterRun(
            nodes,
            data,
            command_of=lambda node, _: [sys.executable, "-c", programs[node.node_id]],
            **options,  # type: ignore[arg-type]
        )

    def serve(self, on_ready: Callable[[], None]) -> int:
        return asyncio.run(self.run.serve(on_ready))

    def log(self, node_id: int) -> str:
        return (self.data / f"node-{node_id}.log").read_text()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_ctrl_c_stops_all(tmp_path: Path, capsys: Capture) -> None:
    cluster = Cluster(tmp_path, dict.fromkeys(range(1, 6), GOOD))
    assert cluster.serve(interrupt) == 0
    for node_id in range(1, 6):
        assert "bye" in cluster.log(node_id)
        assert gone(cluster.run.pids[node_id])
    assert "all data is on disk" in capsys.readouterr().out


def test_a_node_that_ends_is_reported_and_the_others_go_on(tmp_path: Path, capsys: Capture) -> None:
    cluster = Cluster(tmp_path, dict.fromkeys((1, 2, 3), GOOD))
    shown: list[str] = []

    async def scenario() -> int:
        async def kill_one() -> None:
            os.kill(cluster.run.pids[2], signal.SIGKILL)
            while "node-2" not in "".join(shown):
                await asyncio.sleep(0.01)
                shown.append(capsys.readouterr().err)
            assert not gone(cluster.run.pids[1])
            assert not gone(cluster.run.pids[3])
            interrupt()

        tasks: list[asyncio.Task[None]] = []
        code = await cluster.run.serve(lambda: tasks.append(asyncio.create_task(kill_one())))
        await tasks[0]
        return code

    assert asyncio.run(scenario()) == 1
    text = "".join(shown)
    assert "node-2 was killed by SIGKILL" in text
    assert "| Loading" in text
    # The banner of a node is not what its last lines are read for.
    assert "Try it" not in text
    assert "Ctrl-C stops it" not in text
    assert f"moldau start {tmp_path}/node-2.properties" in text
    assert "bye" in cluster.log(1)


def shown_until(capsys: Capture, part: str, shown: list[str]) -> Callable[[], bool]:
    def is_shown() -> bool:
        shown.append(capsys.readouterr().err)
        return part in "".join(shown)

    return is_shown


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def served_with(cluster: Cluster, acts: Callable[[], Awaitable[None]]) -> int:
    """Serve while `acts` runs, which begins when all nodes are up and ends with an interrupt."""

    async def scenario() -> int:
        async def act() -> None:
            try:
                await acts()
            finally:
                interrupt()

        tasks: list[asyncio.Task[None]] = []
        code = await cluster.run.serve(lambda: tasks.append(asyncio.create_task(act())))
        await tasks[0]
        return code

    return asyncio.run(scenario())


def test_a_node_that_dies_is_restarted_if_asked(tmp_path: Path, capsys: Capture) -> None:
    cluster = Cluster(tmp_path, dict.fromkeys((1, 2, 3), GOOD), restarts=Restarts())
    shown: list[str] = []

    async def kill_one() -> None:
        before = cluster.run.pids[2]
        os.kill(before, signal.SIGKILL)
        await until(shown_until(capsys, "node-2 is back on 127.0.0.1:9093", shown))
        assert "node-2 will be restarted in 1 s." in "".join(shown)
        assert cluster.run.pids[2] != before
        assert not gone(cluster.run.pids[2])

    # What was restarted and stopped in order ended well.
    assert served_with(cluster, kill_one) == 0
    assert all(gone(pid) for pid in cluster.run.pids.values())


def test_a_node_that_was_stopped_is_not_restarted(tmp_path: Path, capsys: Capture) -> None:
    cluster = Cluster(tmp_path, dict.fromkeys((1, 2, 3), GOOD), restarts=Restarts())
    shown: list[str] = []

    async def stop_one() -> None:
        os.kill(cluster.run.pids[2], signal.SIGTERM)
        await until(shown_until(capsys, "The other 2 nodes keep running. To start it again", shown))

    assert served_with(cluster, stop_one) == 0
    assert "node-2 has stopped." in "".join(shown)


def test_a_node_started_by_hand_is_announced_watched_and_stopped(
    tmp_path: Path, capsys: Capture
) -> None:
    running: dict[str, int] = {}
    shown: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        programs = dict.fromkeys((1, 2, 3), GOOD)
        cluster = Cluster(tmp_path, programs, {2: port}, running=lambda _: running)
        by_hand = subprocess.Popen([sys.executable, "-c", GOOD], stdout=subprocess.DEVNULL)
        try:

            async def start_by_hand() -> None:
                os.kill(cluster.run.pids[2], signal.SIGKILL)
                await until(shown_until(capsys, "To start it again", shown))
                running["node-2"] = by_hand.pid
                await until(shown_until(capsys, f"node-2 is back on 127.0.0.1:{port}", shown))
                assert cluster.run.pids[2] == by_hand.pid

            # It ended badly once, and nobody asked to forgive that.
            assert served_with(cluster, start_by_hand) == 1
            assert by_hand.wait(30) == 0
        finally:
            by_hand.kill()
            by_hand.wait()


def test_when_all_have_ended_so_does_the_command(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, dict.fromkeys((1, 2), GOOD))

    def stop_all() -> None:
        for pid in cluster.run.pids.values():
            os.kill(pid, signal.SIGTERM)

    assert cluster.serve(stop_all) == 0


def test_a_node_that_cannot_start_is_shown_and_the_others_are_ended(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, {1: GOOD, 2: BROKEN, 3: GOOD})
    with pytest.raises(Failure) as caught:
        cluster.serve(interrupt)
    assert "node-2 exited while starting" in str(caught.value)
    assert "| moldau: the disk is on fire" in str(caught.value)
    assert all(gone(pid) for pid in cluster.run.pids.values())


def test_a_start_takes_only_so_long(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, {1: GOOD, 2: SILENT}, start_seconds_max=1.0)
    with pytest.raises(Failure, match="node-2 did not start within 1 s"):
        cluster.serve(interrupt)
    assert all(gone(pid) for pid in cluster.run.pids.values())


def test_a_stop_takes_only_so_long(tmp_path: Path, capsys: Capture) -> None:
    cluster = Cluster(tmp_path, {1: GOOD, 2: STUBBORN}, stop_seconds_max=0.5)
    assert cluster.serve(interrupt) == 1
    assert "Killing node-2. It did not stop in time." in capsys.readouterr().err
    assert all(gone(pid) for pid in cluster.run.pids.values())


def test_the_last_controller_is_asked_twice(tmp_path: Path) -> None:
    """Once the others have gone there is nobody who could take over from it."""
    waits = GOOD.replace("sys.exit(0)", "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))")
    waits = waits.replace("signal.pause()", "\nwhile True: signal.pause()")
    cluster = Cluster(tmp_path, {1: waits, 2: GOOD, 3: GOOD})
    assert cluster.serve(interrupt) == 0
    assert "bye" in cluster.log(1)


def test_a_second_ctrl_c_kills(tmp_path: Path, capsys: Capture) -> None:
    cluster = Cluster(tmp_path, {1: STUBBORN, 2: STUBBORN})

    async def scenario() -> int:
        async def interrupt_twice() -> None:
            interrupt()
            async with asyncio.timeout(30):
                while "bye" not in cluster.log(1) + cluster.log(2):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            interrupt()

        tasks: list[asyncio.Task[None]] = []
        return await cluster.run.serve(lambda: tasks.append(asyncio.create_task(interrupt_twice())))

    assert asyncio.run(scenario()) == 1
    assert "Killing node-" in capsys.readouterr().err
    assert all(gone(pid) for pid in cluster.run.pids.values())


def test_logs_are_shown_by_name(tmp_path: Path, capsys: Capture) -> None:
    cluster = Cluster(tmp_path, {1: GOOD, 2: GOOD}, show_logs=True)
    assert cluster.serve(interrupt) == 0
    shown = capsys.readouterr().out
    for line in ("node-1 | Moldau is up.", "node-2 | bye"):
        assert line in shown


def test_what_is_told_when_it_is_up(tmp_path: Path) -> None:
    layout, nodes, data = prepared(tmp_path)
    shown = ready_text(layout, nodes, data)
    for part in (
        layout.cluster_id,
        f"--bootstrap-server {nodes[0].address} ",
        str(data),
        "at least 2",
        *(node.address for node in nodes),
    ):
        assert part in shown
    assert shown.endswith("Ctrl-C stops it.")


def test_restarts_wait_longer_each_time_and_end() -> None:
    restarts = Restarts()
    delays = [restarts.delay_s(1, ran_s=0.1) for _ in range(12)]
    assert delays == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, None, None]
    # One node's failures are not another's, and a node that was well begins again.
    assert restarts.delay_s(2, ran_s=0.1) == 1
    assert restarts.delay_s(1, ran_s=60) == 1


def test_last_lines_are_without_banners() -> None:
    banner = ["Moldau 0.1.0 is up.", "  cluster    x", "", "Try it:", "", "Ctrl-C stops it."]
    lines = ["[1] INFO loading", *banner, "[2] INFO working"]
    assert last_lines("\n".join(lines)) == ["[1] INFO loading", "[2] INFO working"]
    assert last_lines("\n".join(banner[:3])) == []
    assert len(last_lines("\n".join(["line"] * 50))) == 12
