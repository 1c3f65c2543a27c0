"""What `moldau start` runs is found by commands that name neither address nor directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.cli.support.addresses import running_cluster
from moldau.cli.support.failures import Failure
from moldau.cli.support.running import (
    Announcement,
    find_deployment,
    running,
    running_address,
)
from moldau.spark.runtime.processes import start_mark
from support.waiting import eventually


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def announce(environment: dict[str, str], name: str, **fields: object) -> None:
    """A file as another process of this user has it; the process is this one."""
    folder = Path(environment["XDG_STATE_HOME"], "moldau", "running")
    folder.mkdir(parents=True, exist_ok=True)
    me = os.getpid()
    entry = {"pid": me, "mark": start_mark(me), "address": None, "data": "/d", "spark": None}
    (folder / f"{name}.json").write_text(json.dumps(entry | fields))


def deployment(path: str) -> str:
    Path(path).mkdir(parents=True)
    Path(path, "deployment.json").write_text("{}")
    return path


def test_an_announcement_counts_until_it_is_withdrawn(environment: dict[str, str]) -> None:
    announcement = Announcement(environment)
    announcement.make(address="127.0.0.1:9692", data="/data", spark="/data-spark")
    (found,) = running(environment)
    assert (found.pid, found.address, found.spark) == (os.getpid(), "127.0.0.1:9692", "/data-spark")
    announcement.withdraw()
    assert running(environment) == []
    announcement.withdraw()


def test_what_a_killed_process_has_left_does_not_count(environment: dict[str, str]) -> None:
    announce(environment, "1", mark="another start", address="h:1")
    announce(environment, "2", pid="no")
    assert running(environment) == []
    assert list(Path(environment["XDG_STATE_HOME"]).glob("**/*.json")) == []


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ([], None),
        (["127.0.0.1:9692"], "127.0.0.1:9692"),
        (["127.0.0.1:9692", "127.0.0.1:9792"], None),
        (["127.0.0.1:9692", "127.0.0.1:9092"], "127.0.0.1:9092"),
        ([None], None),
    ],
)
def test_which_broker_is_meant(
    environment: dict[str, str], addresses: list[str | None], expected: str | None
) -> None:
    for number, address in enumerate(addresses):
        announce(environment, str(number), address=address)
    assert running_address(environment) == expected
    cluster = running_cluster(environment)
    assert (None if cluster is None else cluster.bootstrap_servers) == expected


def test_which_deployment_is_meant(environment: dict[str, str], tmp_path: Path) -> None:
    assert find_deployment(None, environment) == "moldau-data-spark"
    deployment("other-spark")
    assert find_deployment(None, environment) == "other-spark"
    deployment("more-spark")
    with pytest.raises(Failure, match="several deployments are here: more-spark, other-spark"):
        find_deployment(None, environment)
    deployment("moldau-data-spark")
    assert find_deployment(None, environment) == "moldau-data-spark"
    announce(environment, "1", spark="/elsewhere-spark")
    assert find_deployment(None, environment) == "/elsewhere-spark"
    announce(environment, "2", spark=str(Path("moldau-data-spark").absolute()))
    assert find_deployment(None, environment) == "moldau-data-spark"


def test_the_directory_of_the_broker_names_its_deployment(environment: dict[str, str]) -> None:
    Path("other").mkdir()
    Path("other", "meta.properties").touch()
    assert find_deployment("other", environment) == "other-spark"
    assert find_deployment("other-spark", environment) == "other-spark"
    assert find_deployment("new", environment) == "new"


def test_a_broker_on_another_port_is_found(tmp_path: Path) -> None:
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    for name in ("MOLDAU_BOOTSTRAP_SERVERS", "MOLDAU_PROFILE"):
        environ.pop(name, None)
    environ["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    command = [sys.executable, "-m", "moldau.cli"]
    broker = subprocess.Popen(
        [*command, "start", "--port", "0", "--data", str(tmp_path / "data")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
    )
    try:
        eventually(lambda: running(environ), what="an announcement", seconds_max=120)
        done = subprocess.run(
            [*command, "topics", "--create", "--topic", "found"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stdout == "Created topic found.\n", done
    finally:
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(60) == 0
    assert running(environ) == []
