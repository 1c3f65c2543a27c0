"""`moldau up` as a user runs it: all services, a kill, a stop, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka.admin import AdminClient

from support.platform import Platform, are_gone, is_free
from support.processes import ROOT
from support.waiting import eventually

SECONDS_TO_UP = 20


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("up"))
    made.call("up", "--detach", "--port", "0")
    yield made
    made.call("destroy", "--yes")
    assert not made.data.exists()


@pytest.fixture(scope="module")
def cpu_seconds(platform: Platform) -> float:
    """What the start has cost; the first test asks for it before it does anything."""
    return sum(sum(each.cpu_times()[:2]) for each in platform.processes())


def test_all_services_answer(platform: Platform, cpu_seconds: float) -> None:
    status = json.loads(platform.call("status", "--json"))
    assert status["running"]
    assert status["allUp"]
    services = platform.services()
    assert {"broker", "registry", "rest", "connect", "sql"} <= services.keys()
    assert (
        AdminClient({"bootstrap.servers": services["broker"]["address"]})
        .list_topics(timeout=10)
        .brokers
    )
    paths = {"registry": "/subjects", "rest": "/v3/clusters", "connect": "/connectors"}
    for name, path in paths.items():
        assert httpx.get(services[name]["address"] + path).status_code == 200
    info = httpx.get(services["sql"]["address"] + "/info").json()
    assert info["KsqlServerInfo"]["serverStatus"] == "RUNNING"


def test_the_time_from_nothing_to_all_services(platform: Platform, cpu_seconds: float) -> None:
    """The log says it: what a test measures would include Python's own start."""
    lines = platform.call("logs", "up")
    (line,) = [line for line in lines.splitlines() if "services are up after" in line]
    seconds = float(line.split("after ")[1].split()[0])
    print(f"all services were up after {seconds} s, {cpu_seconds:.1f} s of CPU in all processes")
    # One core is enough, whatever else the machine does; the time itself is held where it is idle.
    assert cpu_seconds < SECONDS_TO_UP
    if os.getloadavg()[0] < (os.cpu_count() or 1):
        assert seconds < SECONDS_TO_UP


def test_a_schema_reaches_the_rest_proxy(platform: Platform) -> None:
    """The services know each other: Avro over REST needs the registry."""
    rest = platform.services()["rest"]["address"]
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]})
    answer = httpx.post(
        f"{rest}/topics/numbers",
        headers={"Content-Type": "application/vnd.kafka.avro.v2+json"},
        json={"value_schema": schema, "records": [{"value": {"n": 1}}]},
    )
    assert answer.status_code == 200, answer.text
    registry = platform.services()["registry"]["address"]
    assert "numbers-value" in httpx.get(f"{registry}/subjects").json()


def test_commands_find_the_broker_by_themselves(platform: Platform) -> None:
    words = [sys.executable, "-m", "moldau.cli", "topics", "--list"]
    done = subprocess.run(
        words, env=platform.environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "_schemas" in done.stdout


def typed(platform: Platform, folder: Path, script: str) -> str:
    """What a script of the documentation prints, with the addresses of this platform."""
    services = platform.services()
    for name, port in (("registry", 8081), ("rest", 8082), ("connect", 8083), ("sql", 8088)):
        script = script.replace(f"http://127.0.0.1:{port}", services[name]["address"])
    programs = folder / "bin"
    programs.mkdir()
    for name, words in (("moldau", "-m moldau.cli"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (programs / name).chmod(0o755)
    said = folder / "said.txt"
    with said.open("w") as errors:
        # The lines that are typed come with the errors: what hangs is the last of them.
        done = subprocess.run(
            ["bash", "-ex", "-c", script],
            cwd=folder,
            env={**platform.environment, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout + said.read_text()
    return done.stdout


@pytest.mark.slow("each line of the script starts a command")
def test_the_ten_minutes_of_the_documentation(platform: Platform, tmp_path: Path) -> None:
    page = (ROOT / "docs/platform.md").read_text()
    script = page.split("## Ten minutes")[1].split("```sh\n")[1].split("```")[0]
    assert '"orders-value"' in typed(platform, tmp_path, script)
    # A worker's relative paths are those of the directory where `moldau up` was called.
    result = platform.data.parent / "big-orders.txt"
    eventually(
        lambda: result.exists() and "o1" in result.read_text(), what="the order is in the file"
    )
    assert "o2" not in result.read_text()


@pytest.mark.slow("each line of the script starts a command")
def test_the_platform_of_the_readme(platform: Platform, tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text().split("## The platform\n")[1].split("\n## ")[0]
    program = section.split("```python\n")[1].split("```")[0]
    script = section.split("```sh\n")[1].split("```")[0]
    services = platform.services()
    address = services["broker"]["address"]
    # The ports of this platform are not the usual ones.
    script = script.replace("file=counts.txt", "file=counts.txt --url http://127.0.0.1:8083")
    script = script.replace("moldau sql", "moldau sql --server http://127.0.0.1:8088")
    (tmp_path / "words.py").write_text(program.replace("127.0.0.1:9092", address))
    # The terminal is closed in the end.
    printed = typed(platform, tmp_path, f"trap 'kill %1' EXIT\n{script}")
    assert "hello\t2\nkafka\t1\n" in printed
    assert "TEXT" in printed
    result = platform.data.parent / "counts.txt"
    eventually(lambda: result.exists() and result.read_text() == "2\n1\n", what="the counts")
    console = services["console"]["address"]
    lineage = httpx.get(f"{console}/api/clusters/default/lineage").json()
    edges = {(each["source"], each["target"]) for each in lineage["edges"]}
    assert ("topic:counts", "connector:counts-file") in edges


def test_a_killed_service_comes_back(platform: Platform) -> None:
    before = platform.services()["rest"]
    os.kill(before["pid"], signal.SIGKILL)

    def is_back() -> bool:
        now = platform.services()["rest"]
        return now["state"] == "up" and now["pid"] != before["pid"]

    eventually(is_back, what="the REST Proxy is back", seconds_max=60)
    assert httpx.get(before["address"] + "/v3/clusters").status_code == 200
    shown = platform.call("up", "logs", "up")
    assert "REST Proxy was killed (SIGKILL" in shown
    assert "REST Proxy is up again" in shown


def test_a_second_one_in_the_same_directory_is_refused(platform: Platform) -> None:
    shown = platform.call("up", "--port", "0", code=1)
    assert f"is running already (process {platform.status()['pid']})" in shown


def test_a_taken_port_is_named_with_who_has_it(platform: Platform, tmp_path: Path) -> None:
    sql = platform.services()["sql"]
    port = sql["address"].rpartition(":")[2]
    other = Platform(tmp_path)
    shown = other.call("up", "--port", "0", "--service-port", f"sql={port}", code=1)
    assert f"SQL cannot listen on 127.0.0.1:{port}" in shown
    assert f"(process {sql['pid']}: " in shown
    assert "--service-port sql=P" in shown
    assert not other.data.exists()


def test_a_stop_leaves_nothing_and_the_next_start_has_the_data(platform: Platform) -> None:
    processes, ports = platform.processes(), platform.ports()
    platform.call("up", "stop")
    assert are_gone(processes)
    assert all(map(is_free, ports))
    assert not (platform.data / "status.json").exists()
    assert "not running" in platform.call("status", code=3)
    platform.call("up", "--detach", "--port", "0", "--only", "broker,registry")
    registry = platform.services()["registry"]["address"]
    assert "numbers-value" in httpx.get(f"{registry}/subjects").json()


@pytest.mark.long("the whole platform again, killed")
def test_nothing_survives_the_command(tmp_path: Path) -> None:
    made = Platform(tmp_path)
    command = made.open("--port", "0", "--without", "connect,sql,console")
    eventually(
        lambda: (made.data / "status.json").exists() and made.status()["allUp"],
        what="the platform is up",
    )
    processes, ports = made.processes(), made.ports()
    assert len(processes) == 4
    command.kill()
    command.wait()
    eventually(lambda: are_gone(processes), what="all services have ended", seconds_max=60)
    assert all(map(is_free, ports))
    made.call("destroy", "--yes")


@pytest.mark.long("the whole platform again, on three nodes")
def test_three_brokers_and_a_signal(tmp_path: Path) -> None:
    made = Platform(tmp_path)
    command = made.open("--port", "0", "--brokers", "3", "--only", "broker,registry")
    eventually(
        lambda: (made.data / "status.json").exists() and made.status()["allUp"],
        what="the platform is up",
    )
    servers = made.status()["bootstrapServers"]
    found = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30)
    assert sorted(found.brokers) == [1, 2, 3]
    assert len(found.topics["_schemas"].partitions[0].replicas) == 3
    processes, ports = made.processes(), made.ports()
    began = time.monotonic()
    command.send_signal(signal.SIGINT)
    output, _ = command.communicate(timeout=120)
    assert command.returncode == 0, output
    assert are_gone(processes), f"after {time.monotonic() - began} s"
    assert all(map(is_free, ports))
    assert "The platform has stopped; all data is on disk." in output
    assert "cannot become several" in made.call("up", "--brokers", "1", code=1)
