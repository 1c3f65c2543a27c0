"""What `moldau up` runs, when it starts a service again, and how its directory is found."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

import pytest

from moldau.cli.main import main
from moldau.cli.platform.folder import PlatformFolder, find_platform
from moldau.cli.platform.machine.plan import (
    KINDS,
    PlanError,
    Service,
    Wanted,
    chosen,
    plan,
)
from moldau.cli.platform.machine.supervision import (
    Effect,
    Ended,
    Probed,
    Say,
    Start,
    Started,
    State,
    Supervisor,
    Tick,
)
from moldau.cli.support.failures import Failure, listen_problem
from moldau.cli.support.port_owners import port_owner

PORTS = {kind.name: kind.port for kind in KINDS}
USUAL = ["broker", "registry", "rest", "connect", "sql", "console"]


class NoJitter(random.Random):
    def randrange(self, *_: int) -> int:  # type: ignore[override]
        return 20


def names(**options: list[str]) -> list[str]:
    return [kind.name for kind in chosen(**options)]


def service(name: str, *needs: str) -> Service:
    return Service(
        name=name, title=name.upper(), words=(name,), host="h", port=1, health="/", needs=needs
    )


def supervisor() -> Supervisor:
    return Supervisor([service("broker"), service("sql", "broker")], NoJitter(), now_ms=0)


def said(effects: list[Effect]) -> str:
    return "\n".join(effect.text for effect in effects if isinstance(effect, Say))


def states(made: Supervisor) -> list[State]:
    return [status.state for status in made.statuses()]


def up(made: Supervisor) -> Supervisor:
    made.step(Tick(), 0)
    for number, name in enumerate(("broker", "sql"), 1):
        made.step(Started(name, number), 0)
        made.step(Probed(name, number, None), 1_000)
    assert made.all_up
    return made


# Which services.


def test_the_usual_services_in_the_order_of_their_start() -> None:
    assert names() == USUAL


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"without": ["sql", "connect"]}, ["broker", "registry", "rest", "console"]),
        ({"added": ["mqtt"]}, [*USUAL, "mqtt"]),
        ({"only": ["registry", "broker"]}, ["broker", "registry"]),
    ],
)
def test_services_are_chosen(options: dict[str, list[str]], found: list[str]) -> None:
    assert names(**options) == found


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"without": ["ksql"]}, "there is no service ksql"),
        ({"only": ["sql"], "without": ["sql"]}, "no service is left"),
    ],
)
def test_a_choice_that_cannot_be(options: dict[str, list[str]], part: str) -> None:
    with pytest.raises(PlanError, match=part):
        chosen(**options)


def test_services_are_linked_to_those_that_run() -> None:
    kinds = chosen(without=["connect"])
    words = {
        one.name: " ".join(one.words)
        for one in plan(Wanted(kinds=kinds, ports=PORTS, data="/data"))
    }
    assert words["broker"] == "start --port 9092 --data /data/broker"
    assert words["rest"] == (
        "rest start --port 8082 --bootstrap-server 127.0.0.1:9092 "
        "--schema-registry http://127.0.0.1:8081"
    )
    assert "--sql http://127.0.0.1:8088" in words["console"]
    assert "--connect" not in words["console"]


def test_three_brokers_are_one_cluster() -> None:
    broker, registry = plan(
        Wanted(
            kinds=chosen(only=["broker", "registry"]),
            ports=PORTS,
            data="/data",
            brokers=3,
            overrides=["num.partitions=6"],
        )
    )
    assert broker.words[:5] == ("cluster", "--brokers", "3", "--port", "9092")
    assert broker.words[-2:] == ("--override", "num.partitions=6")
    assert "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094" in registry.words


def test_a_cluster_that_runs_already() -> None:
    kinds = chosen(only=["registry"])
    (registry,) = plan(Wanted(kinds=kinds, ports=PORTS, data="/d", bootstrap_servers="kafka1:9092"))
    assert registry.needs == ()
    assert "kafka1:9092" in registry.words
    with pytest.raises(PlanError, match="--bootstrap-server"):
        plan(Wanted(kinds=kinds, ports=PORTS, data="/d"))


def test_other_machines_reach_all_but_a_console_without_login() -> None:
    wanted = {"kinds": chosen(only=["broker", "registry", "console"]), "ports": PORTS, "data": "/d"}
    host = {"host": "0.0.0.0", "advertised_host": "box"}
    broker, registry, console = plan(Wanted(**wanted, **host))  # type: ignore[arg-type]
    assert "advertised.listeners=PLAINTEXT://box:9092" in broker.words
    assert "listeners=http://0.0.0.0:8081" in registry.words
    assert console.words[:4] == ("console", "start", "--port", "9021")
    *_, console = plan(Wanted(**wanted, **host, files={"console": "/c"}))  # type: ignore[arg-type]
    assert "listeners=http://0.0.0.0:9021" in console.words


# Supervision.


def test_services_start_when_the_broker_answers() -> None:
    made = supervisor()
    assert made.step(Tick(), 0) == [Start("broker")]
    assert made.step(Tick(), 100) == []
    made.step(Started("broker", 7), 100)
    assert made.step(Probed("broker", 7, "connection refused"), 200) == []
    effects = made.step(Probed("broker", 7, None), 1_100)
    assert said(effects) == "BROKER is up on http://h:1 after 1.0 s."
    assert effects[1:] == [Start("sql")]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "SQL was killed (SIGKILL"),
        (0, "SQL ended with exit code 0"),
        (1, "SQL ended with exit code 1: no disk"),
    ],
)
def test_a_service_that_ends_is_started_again(code: int, words: str) -> None:
    made = up(supervisor())
    shown = said(made.step(Ended("sql", code, "no disk" if code else ""), 5_000))
    assert shown.startswith(words)
    assert shown.endswith("It is started again in 1 s.")
    assert made.step(Tick(), 5_900) == []
    assert made.step(Tick(), 6_000) == [Start("sql")]
    made.step(Started("sql", 9), 6_000)
    assert "SQL is up again" in said(made.step(Probed("sql", 9, None), 7_000))


def test_the_pause_grows_with_each_failure_up_to_a_minute() -> None:
    made = up(supervisor())
    pauses = []
    now = 0
    for number in range(10, 20):
        effects = made.step(Ended("sql", 1), now)
        pauses.append(int(said(effects).split(" in ")[-1].split()[0]))
        now += 70_000
        assert made.step(Tick(), now) == [Start("sql")]
        made.step(Started("sql", number), now)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_a_service_waits_while_its_broker_is_down() -> None:
    made = up(supervisor())
    made.step(Ended("broker", -9), 5_000)
    made.step(Ended("sql", 1), 5_100)
    assert made.step(Tick(), 10_000) == [Start("broker")]
    made.step(Started("broker", 11), 10_000)
    assert made.step(Tick(), 20_000) == []
    assert Start("sql") in made.step(Probed("broker", 11, None), 20_100)


def test_one_lost_answer_is_no_failure_and_three_are_reported_once() -> None:
    made = up(supervisor())
    found = [said(made.step(Probed("sql", 2, "timed out"), at)) for at in (1, 2, 3, 4)]
    assert found == ["", "", "SQL does not answer: timed out.", ""]
    assert states(made) == [State.UP, State.FAILING]
    assert said(made.step(Probed("sql", 2, None), 5)) == "SQL answers again."


def test_an_answer_of_an_earlier_process_does_not_count() -> None:
    made = up(supervisor())
    made.step(Ended("sql", -9), 5_000)
    assert made.step(Probed("sql", 2, None), 5_001) == []
    assert states(made) == [State.UP, State.ENDED]


def test_a_slow_start_is_reported_once() -> None:
    made = supervisor()
    made.step(Tick(), 0)
    made.step(Started("broker", 1), 0)
    assert made.step(Probed("broker", 1, "refused"), 29_000) == []
    assert "moldau logs broker" in said(made.step(Probed("broker", 1, "refused"), 30_000))
    assert made.step(Probed("broker", 1, "refused"), 31_000) == []


# The directory.


def test_a_directory_with_other_files_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(Failure, match="is not empty and has no platform"):
        PlatformFolder(tmp_path).make()


def test_only_a_platform_is_destroyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    assert main(["destroy", "--yes", "--data", str(tmp_path)]) == 1
    assert "has no platform" in capsys.readouterr().err
    assert (tmp_path / "letter.txt").exists()


def test_a_directory_is_found_by_name_and_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert find_platform("other", environment).path == tmp_path / "other"
    assert find_platform(None, environment).path == tmp_path / "moldau-platform"
    assert not find_platform(None, environment).is_locked()


def test_logs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.cli.platform.folder.LOG_BYTES_MAX", 100)
    folder = PlatformFolder(tmp_path / "p")
    folder.make()
    with folder.log("sql").open("ab") as output:
        output.write(b"x" * 200 + b"\n")
        output.flush()
        folder.limit_logs()
        output.write(b"after\n")
    assert folder.last_lines("sql", 5) == ["after"]
    assert folder.log("sql").with_suffix(".log.1").stat().st_size == 201


# Ports.


def test_the_process_that_has_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        owner = port_owner(port)
        problem = listen_problem("127.0.0.1", port)
    assert owner is not None
    assert owner.pid == os.getpid()
    assert f"port {port} is in use by {owner.name} (process {os.getpid()}" in str(problem)
    assert port_owner(port) is None


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--only", "sql", "--without", "rest"], "--only names all services"),
        (["--without", "kafka"], "there is no service kafka"),
        (["--brokers", "0"], "choose 1 to 100"),
        (["--service-port", "registry"], "use SERVICE=VALUE"),
        (["--service-port", "mqtt=1"], "no service mqtt is to run"),
        (["--service-port", "sql=70000"], "between 0 and 65535"),
        (["--service-config", "sql=/nowhere"], "there is no such file"),
        (["--service-config", "broker=/nowhere"], "use --override"),
        (["--only", "sql"], "--bootstrap-server HOST:PORT"),
        (["stop"], "has no platform"),
        (["logs", "sql"], "has no platform"),
    ],
)
def test_what_is_wrong_is_reported_before_anything_starts(
    words: list[str],
    part: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ports = [] if words[0] in ("stop", "logs") else ["--port", "0"]
    assert main(["up", *ports, *words]) == 1
    assert part in capsys.readouterr().err
    assert not (tmp_path / "moldau-platform").exists()
