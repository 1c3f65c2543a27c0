"""The scripts with Kafka's names, as a shell runs them; and finding brokers to stop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.cli.nodes.stop import Broker, matching_brokers

BIN = Path(__file__).parents[3] / "bin"


def run(script: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / script), *argv], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("script", "argv", "code", "part"),
    [
        ("kafka-storage.sh", ["random-uuid"], 0, ""),
        (
            "kafka-storage.sh",
            [],
            1,
            "kafka-storage: error: a command is required: info, format, ",
        ),
        (
            "kafka-storage.sh",
            ["format"],
            1,
            "kafka-storage format: error: --config/-c, --cluster-id/-t are required",
        ),
        ("kafka-server-start.sh", [], 1, "USAGE:"),
        ("kafka-server-start.sh", ["nope.properties"], 1, "no such configuration file"),
        ("kafka-server-stop.sh", ["--node-id=x"], 1, "--node-id: 'x' is not a whole number"),
    ],
)
def test_scripts(script: str, argv: list[str], code: int, part: str) -> None:
    done = run(script, *argv)
    assert done.returncode == code, done.stderr
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_a_script_is_reached_by_a_link_from_another_folder(tmp_path: Path) -> None:
    scripts = sorted(BIN.glob("kafka-*.sh"))
    (tmp_path / "linked.sh").symlink_to(BIN / "kafka-storage.sh")
    (tmp_path / "again.sh").symlink_to("linked.sh")
    done = subprocess.run(
        ["./again.sh", "random-uuid"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 23, "")
    (start,) = {path.read_text().splitlines()[2] for path in scripts}
    assert "readlink" in start


def test_without_moldau_a_script_says_how_to_get_it(tmp_path: Path) -> None:
    for name in ("_moldau.sh", "kafka-storage.sh"):
        (tmp_path / name).write_bytes((BIN / name).read_bytes())
    done = subprocess.run(
        ["/bin/sh", str(tmp_path / "kafka-storage.sh"), "random-uuid"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install" in done.stderr


@pytest.mark.parametrize(
    ("line", "broker"),
    [
        (
            " 12 /x/.venv/bin/python -m moldau.cli server-start server.properties",
            Broker(12, "server.properties", ()),
        ),
        (
            "13 /x/bin/python3.11 /x/bin/moldau start --port 5 f.properties --override a=b",
            Broker(13, "f.properties", ("a=b",)),
        ),
        ("14 python -u /usr/bin/moldau start --data=/d --override=a=b", Broker(14, None, ("a=b",))),
        ("15 /x/bin/python /x/bin/moldau server-stop", None),
        ("16 /x/bin/python /x/bin/moldau storage format", None),
        ("17 vim moldau start", None),
        ("18 grep moldau.cli server-start", None),
        ("19 /usr/bin/java kafka.Kafka server.properties", None),
        pytest.param(f"{os.getpid()} python -m moldau.cli server-start x", None, id="itself"),
    ],
)
def test_brokers_are_found_by_their_command_line(line: str, broker: Broker | None) -> None:
    assert list(matching_brokers(line)) == ([] if broker is None else [broker])


@pytest.mark.parametrize(
    ("options", "stopped"),
    [
        ([], True),
        (["--node-id=7"], True),
        (["--node-id=8"], False),
        (["--process-role=controller"], False),
        (["--process-role=broker"], True),
    ],
)
def test_stop_asks_only_those_meant(
    options: list[str], stopped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moldau.cli.main import main
    from moldau.cli.nodes import stop

    file = tmp_path / "server.properties"
    file.write_text("node.id=7\nprocess.roles=broker\n")
    listing = f"4242 python -m moldau.cli server-start {file}\n"
    killed: list[int] = []
    monkeypatch.setattr(
        stop.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=listing, stderr=""),
    )
    monkeypatch.setattr(stop.os, "kill", lambda pid, number: killed.append(pid))
    assert main(["server-stop", *options]) == 0
    assert killed == ([4242] if stopped else [])


def test_stop_without_brokers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from moldau.cli.main import main
    from moldau.cli.nodes import stop

    monkeypatch.setattr(
        stop.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], 0, stdout="1 init\n", stderr=""),
    )
    assert main(["server-stop"]) == 1
    assert capsys.readouterr().out == "No kafka server to stop\n"


def test_a_refused_start_loads_nothing_of_the_broker() -> None:
    """A broker's start has half a second; nothing it does not need may be imported before it."""
    code = (
        "import sys; from moldau.cli.main import main;"
        "main(['start', '--override', 'num.partitions=0']);"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "num.partitions" in done.stderr
    loaded = set(done.stdout.split())
    assert "moldau.broker.config.broker_keys" in loaded
    heavy = {"asyncio", "uvloop", "rich", "cramjam", "socketserver", "subprocess", "difflib"}
    assert not loaded & heavy
    parts = ("moldau.broker.log", "moldau.broker.metadata", "moldau.wire.messages")
    assert not {name for name in loaded if name.startswith(parts)}
