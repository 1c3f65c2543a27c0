"""The programs of examples/clients do what they say. They run in the process of the test, which
saves half a minute of imports; one also runs as a user starts it."""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, TopicPartition
from moldau.services.registry.app import SchemaRegistry
from moldau.services.registry.config import RegistryConfig
from support.http_service import running
from support.processes import ROOT, BrokerProcess

FOLDER = ROOT / "examples" / "clients"
# What each prints, line by line.
PRINTED = {
    "fire_and_forget": ["sent 10 records, outcome unknown"],
    "synchronous_send": [
        "Prague: partition 0, offset 0",
        "Budweis: partition 0, offset 1",
        "Krumau: partition 0, offset 2",
    ],
    "asynchronous_send": ["1000 written to 3 partitions, 0 failed"],
    "specific_partition": [
        "partitions of the topic: 4",
        "read from partition 3: 8, first: urgent 0, last: urgent 7",
    ],
    "custom_serializer": ["Customer(id=7, name='Ada')", "None"],
    "composite_key_partitioner": [
        f"{name} is in 1 partition" for name in ("ada", "bob", "cyd", "dee")
    ],
    "interceptors": [
        "acknowledged: 6",
        "order 0 shop",
        "order 2 shop",
        "order 4 shop",
        "partitions committed: 1",
    ],
    "avro_generic": ["{'id': 1, 'name': 'Ada', 'email': None}"],
    "avro_generated": ["Ada ada@example.org", "Bob None"],
    "at_most_once": ["processed: 0 1 4 5 6 7"],
    "at_least_once": ["processed: 0 1 0 1 2 3 4 5 6 7"],
    "exactly_once": [
        "read_committed: 0 2 4 6 8 in 5 records",
        "read_uncommitted: 0 2 4 6 8 in 10 records",
    ],
    "commit_by_offset": ["committed: 20 (after record 20)", "position: 25"],
    "async_commit": ["committed offset: 100", "10 of 10 asynchronous commits ended"],
    "rebalance_seek": [
        "first read: 16 17 18 19",
        "first: assigned 2, revoked 2, assigned 1, revoked 1",
        "second: assigned 1, revoked 1",
    ],
    "offsets_in_database": ["account 0 70", "account 1 70", "account 2 60"],
    "standalone_consumer": [f"partition {number} has 10 records" for number in range(3)],
    "ordered_workers": ["in order: True", "handled: 200 records of 10 keys"],
    "reprocess": [
        "first time: 10",
        "nothing new: 0",
        "from the beginning: 10",
        "from 12:07: 12:07 12:08 12:09",
    ],
    "clean_exit": ["processed: the only record", "woken up", "committed, left the group"],
    "lag": ["partition 0: lag 5", "partition 1: lag 0", "lag of the group: 5"],
    "transactions": ["aborted: 500", "['alice -10', 'alice -20', 'bob +10', 'bob +20']"],
}
# How many records, or offsets with what transactions add, a program leaves in its topic.
WRITTEN = {"fire_and_forget": 10, "asynchronous_send": 1000, "composite_key_partitioner": 36}
# What the group of a program has committed when it is over.
COMMITTED = {
    "at_most_once": 8,
    "at_least_once": 8,
    "exactly_once": 5,
    "async_commit": 100,
    "ordered_workers": 200,
    "clean_exit": 1,
    "commit_by_offset": 20,
}


@pytest.fixture(scope="module")
def registry(broker: BrokerProcess) -> Iterator[str]:
    config = RegistryConfig.of(
        {"kafkastore.bootstrap.servers": broker.bootstrap, "listeners": "http://127.0.0.1:0"}
    )
    with running(lambda: SchemaRegistry(config)) as service:
        yield service.url


@pytest.fixture
def arguments(broker: BrokerProcess, registry: str) -> list[str]:
    return ["--bootstrap-server", broker.bootstrap, "--registry", registry]


@pytest.mark.parametrize("program", PRINTED)
def test_a_program_does_what_it_says(
    broker: BrokerProcess,
    arguments: list[str],
    program: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = program.replace("_", "-")
    path = str(FOLDER / f"{program}.py")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [path, *arguments, "--topic", topic])
    asked_to_end = signal.getsignal(signal.SIGTERM)
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        signal.signal(signal.SIGTERM, asked_to_end)
    assert capsys.readouterr().out.splitlines() == PRINTED[program]
    if program in WRITTEN:
        assert records_in(broker.bootstrap, topic) == WRITTEN[program]
    if program in COMMITTED:
        assert committed_by(broker.bootstrap, topic) == COMMITTED[program]


def test_a_program_runs_from_any_folder_with_a_topic_of_its_own(arguments: list[str]) -> None:
    command = [sys.executable, "-W", "error", str(FOLDER / "synchronous_send.py"), *arguments]
    for _ in range(2):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, cwd="/"
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == PRINTED["synchronous_send"]


def records_in(bootstrap: str, topic: str) -> int:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        partitions = [
            TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)
        ]
        return sum(consumer.end_offsets(partitions).values())


def committed_by(bootstrap: str, group: str) -> int:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return sum(mark.offset for mark in admin.list_consumer_group_offsets(group)[group].values())


def programs() -> set[str]:
    # common and customer are imported by the others.
    return {path.stem for path in FOLDER.glob("*.py")} - {"common", "customer"}


def test_every_program_is_run_and_listed() -> None:
    assert programs() == set(PRINTED)
    readme = (FOLDER / "README.md").read_text()
    assert [name for name in sorted(programs()) if f"]({name}.py)" not in readme] == []


def test_the_generated_class_is_what_the_command_writes(tmp_path: Path) -> None:
    written = tmp_path / "customer.py"
    command = [sys.executable, "-m", "moldau.cli", "schemas", "generate"]
    subprocess.run([*command, str(FOLDER / "customer.avsc"), "--output", str(written)], check=True)
    assert written.read_text() == (FOLDER / "customer.py").read_text()
