"""docs/cluster.md: its files are valid, and what it tells to do makes a cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from moldau.broker.config import BrokerConfig
from moldau.cli.main import main
from moldau.config import load_properties
from support.cluster_node import lasting_port
from support.processes import ROOT, BrokerProcess

TEXT = (ROOT / "docs" / "cluster.md").read_text()
NODES = (1, 2, 3)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_files_are_valid() -> None:
    configs = [BrokerConfig.from_properties(load_properties(text)) for text in blocks("properties")]
    assert [sorted(config.process_roles) for config in configs] == [
        ["broker", "controller"],
        ["controller"],
        ["broker"],
    ]
    assert all(config.unknown == () for config in configs)


def test_the_options_exist() -> None:
    for line in blocks("sh")[0].splitlines():
        words = line.partition("#")[0].split()
        assert words[:2] == ["moldau", "cluster"]
        for option in (word for word in words if word.startswith("--")):
            assert f"{option} " in _help_of("cluster")


def _help_of(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "moldau.cli", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def here(text: str, ports: Mapping[tuple[int, int], int]) -> str:
    """The hosts of the document as ports of this machine."""
    for (host, port), actual in ports.items():
        text = text.replace(f"host{host}:{port}", f"127.0.0.1:{actual}")
    return text


def test_three_nodes_as_told(tmp_path: Path) -> None:
    ports = {(host, port): lasting_port() for host in NODES for port in (9092, 9093)}
    files = {}
    for node_id in NODES:
        text = blocks("properties")[0].replace("node.id=1", f"node.id={node_id}")
        text = text.replace("//host1:", f"//host{node_id}:")
        for port in (9092, 9093):
            text = text.replace(f"//:{port}", f"//127.0.0.1:{ports[node_id, port]}")
        text = text.replace("/var/lib/moldau", str(tmp_path / f"data-{node_id}"))
        files[node_id] = tmp_path / f"{node_id}.properties"
        files[node_id].write_text(here(text, ports))

    *preparation, formatting = here(blocks("sh")[1], ports).splitlines()
    assert "server.properties" in formatting
    script = [
        *preparation,
        *(formatting.replace("server.properties", str(files[n])) for n in NODES),
    ]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        ["sh", "-e", "-c", "\n".join(script)],
        env={**os.environ, "PATH": path},
        check=True,
        timeout=120,
    )

    with ExitStack() as running, ThreadPoolExecutor(len(NODES)) as pool:
        brokers = [
            BrokerProcess(
                [sys.executable, "-m", "moldau.cli", "server-start", str(files[node_id])],
                ports[node_id, 9092],
                tmp_path / f"{node_id}.log",
            )
            for node_id in NODES
        ]
        for broker in brokers:
            running.callback(broker.kill)
        list(pool.map(lambda broker: broker.start(), brokers))
        bootstrap = ",".join(broker.bootstrap for broker in brokers)
        errors: list[object] = []
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        producer.produce("t", b"x", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(60) == 0
        assert errors == [None]
        found = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics("t")
        assert sorted(found.topics["t"].partitions[0].replicas) == [1, 2, 3]


def test_an_empty_folder_is_not_formatted_by_a_start(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    text = blocks("properties")[0].replace("/var/lib/moldau", str(tmp_path / "data"))
    file.write_text(text)
    assert main(["start", str(file)]) == 1
    assert not (tmp_path / "data" / "meta.properties").exists()
