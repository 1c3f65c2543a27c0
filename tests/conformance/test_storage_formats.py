"""Every role and kind of quorum: `moldau storage` writes and says what Kafka's tool does."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.broker.log.disk import OsDisk
from moldau.broker.raft.snapshots import read_snapshot
from moldau.cli.main import main
from support.java import KafkaTools
from support.processes import kafka_missing, write_properties

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
VOTERS = (
    "1@first:9093:JEXY6aqzQY-32P5TStzaFg,2@second:9094:MvDxzVmcRsaTz33bUuRU6A,"
    "3@third:9095:07R5amHmR32VDA6jHkGbTA"
)
DYNAMIC = {"controller.quorum.bootstrap.servers": "localhost:9093"}
STATIC = {"controller.quorum.voters": "1@localhost:9093,2@localhost:9094"}
BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
}
BROKER = {"process.roles": "broker", "node.id": "4", "listeners": "PLAINTEXT://127.0.0.1:9092"}
CONTROLLER = {"process.roles": "controller", "node.id": "2", "listeners": "CONTROLLER://:9093"}
NODES = {
    "both": BOTH | DYNAMIC,
    "broker": BROKER | DYNAMIC,
    "controller": CONTROLLER | DYNAMIC,
    "both, static": BOTH | STATIC,
    "broker, static": BROKER | STATIC,
    "controller, static": CONTROLLER | STATIC,
}
ADVERTISED = {
    "listeners": "CONTROLLER://:9093,OTHER://:9094",
    "controller.listener.names": "OTHER,CONTROLLER",
    "advertised.listeners": "CONTROLLER://far:19093",
}
QUORUMS = [
    (),
    ("--standalone",),
    ("--initial-controllers", VOTERS),
    ("--initial-controllers", "7@far:1:JEXY6aqzQY-32P5TStzaFg"),
    ("--no-initial-controllers",),
    ("--feature", "kraft.version=0"),
    ("--feature", "kraft.version=1"),
    ("--no-initial-controllers", "--feature", "kraft.version=0"),
    ("--no-initial-controllers", "--feature", "kraft.version=1"),
]
CASES = [(NODES[node], quorum) for node in NODES for quorum in QUORUMS]
CASES += [
    (CONTROLLER | DYNAMIC | ADVERTISED, ("--standalone",)),
    (BOTH | DYNAMIC, ("--standalone", "--release-version", "3.9")),
    (BOTH | DYNAMIC, ("--standalone", "--release-version", "3.3-IV3")),
    (BOTH | DYNAMIC, ("--standalone", "--feature", "metadata.version=20")),
    (BROKER | STATIC, ("--feature", "group.version=0", "--feature", "streams.version=0")),
    (
        BOTH | STATIC,
        ("--add-scram", "SCRAM-SHA-256=[name=alice,password=s,iterations=8192,salt=N3E=]")
        + ("--add-scram", 'SCRAM-SHA-512=[name=bob,salt="N3E=",saltedpassword="YCE="]'),
    ),
    (BOTH | STATIC, ("--release-version", "3.5-IV1", "--add-scram", "SCRAM-SHA-256=[name=a]")),
]


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with KafkaTools("nobody:1") as running:
        yield running


def moldau_storage(*arguments: str) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = main(["storage", *arguments])
    return status, printed.getvalue()


def told(text: str, folder: Path) -> list[str]:
    """The lines of a tool; Kafka gives those of several folders in any order."""
    kept = [
        line.replace(str(folder), "")
        for line in text.splitlines()
        if not line.startswith(("Bootstrap metadata", "\tat "))
    ]
    return sorted(re.sub(r"^[\w.]+(?:Exception|Failure): ", "", line) for line in kept)


def known_ids_only(line: str) -> str:
    key, _, value = line.partition("=")
    drawn = key == "directory.id" and len(value) == 22 and value not in VOTERS
    return "directory.id=ID" if drawn else line


def written(folder: Path) -> dict[str, object]:
    """Files and what they say; ids that are drawn at random only count as there."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "meta.properties":
            lines = sorted(path.read_text().splitlines())
            found[name] = [known_ids_only(line) for line in lines if not line.startswith("#")]
        elif path.name.endswith(".checkpoint"):
            snapshot = read_snapshot(OsDisk(), str(path))
            voters = snapshot.voters.voters if snapshot.voters else {}
            found[name] = (
                snapshot.records,
                snapshot.kraft_version,
                [(voter.key.id, voter.endpoints) for voter in voters.values()],
                path.stat().st_size,
            )
        elif path.is_file():
            found[name] = path.stat().st_size
    return found


@pytest.mark.parametrize(
    ("settings", "arguments"),
    CASES,
    ids=[" ".join((node["process.roles"], *words))[:90] for node, words in CASES],
)
def test_format(
    tmp_path: Path, tools: KafkaTools, settings: dict[str, str], arguments: tuple[str, ...]
) -> None:
    results = []
    for name in ("ours", "kafkas"):
        folder = tmp_path / name
        data = {
            "log.dirs": f"{folder}/data/a,{folder}/data/b",
            "metadata.log.dir": f"{folder}/data/m",
        }
        file = write_properties(
            folder / "server.properties",
            {"controller.listener.names": "CONTROLLER"} | settings | data,
        )
        command = ("format", "-c", str(file), "-t", CLUSTER, *arguments)
        if name == "ours":
            status, text = moldau_storage(*command)
        else:
            outcome = tools.run_alone("kafka.tools.StorageTool", *command)
            status, text = outcome.status, outcome.output
        results.append((status, told(text, folder), written(folder / "data")))
    ours, kafkas = results
    assert ours == kafkas


def test_look_ups(tools: KafkaTools, tmp_path: Path) -> None:
    features = ("kraft", "transaction", "group", "eligible.leader.replicas", "share", "streams")
    commands: list[tuple[str, ...]] = [("version-mapping",)]
    commands += [("version-mapping", "-r", r) for r in ("3.3", "3.8-IV0", "3.9", "4.0.1", "4.2")]
    commands += [
        ("feature-dependencies", "-f", f"{name}.version={level}")
        for name in features
        for level in (-1, 0, 1, 2, 3)
    ]
    commands += [("feature-dependencies", "-f", f"metadata.version={n}") for n in (6, 7, 30, 32)]
    for command in commands:
        outcome = tools.run_alone("kafka.tools.StorageTool", *command)
        status, text = moldau_storage(*command)
        assert (status, told(text, tmp_path)) == (
            outcome.status,
            told(outcome.output, tmp_path),
        ), command
