"""What a user of the command line sees: lines, exit codes and the help that guesses."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import moldau
from moldau.broker.config import BrokerConfig, Listener
from moldau.cli.main import main
from moldau.config import ConfigError

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class Up:
    cluster_id: str
    node_id: int
    listeners: tuple[Listener, ...]


class FakeApp:
    """Stands for the broker: notes its configuration and is up at once, or fails."""

    def __init__(self) -> None:
        self.config: BrokerConfig | None = None
        self.error: BaseException | None = None

    def run(self, config: BrokerConfig, *, on_ready: Callable[[Up], None]) -> int:
        self.config = config
        if self.error is not None:
            raise self.error
        bound = tuple(
            listener._replace(port=listener.port or 4711) for listener in config.listeners
        )
        on_ready(Up("the-cluster", config.node_id, bound))
        return 0


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> FakeApp:
    fake = FakeApp()
    module = types.ModuleType("moldau.broker.app")
    module.run = fake.run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "moldau.broker.app", module)
    return fake


def call(*argv: str) -> int:
    """The exit code, whether returned or raised."""
    try:
        return main(argv)
    except SystemExit as exit_:
        return int(exit_.code or 0)


@pytest.fixture
def server_properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        "controller.quorum.bootstrap.servers=localhost:29093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={tmp_path}/data\n"
    )
    return path


@pytest.mark.parametrize(
    ("argv", "code", "part"),
    [
        (["--version"], 0, f"moldau {moldau.__version__}"),
        (["--help"], 0, "moldau start --port 19092"),
        (["start", "--help"], 0, "examples:"),
        (["storage", "format", "--help"], 0, "--release-version"),
        (["server-start", "--version"], 0, moldau.__version__),
        ([], 1, "usage: moldau COMMAND"),
        (["strat"], 1, "Did you mean start?"),
        (["storage", "formatt"], 1, "Did you mean format?"),
        (["start", "--prot=5"], 1, "Did you mean --port?"),
        (["start", "--port", "x"], 1, "--port: 'x' is not a whole number"),
        (["start", "--port", "99999"], 1, "between 0 and 65535"),
        (["start", "nope.properties"], 1, "no such configuration file: nope.properties"),
        (["start", "a.properties", "--port", "1"], 1, "--override listeners="),
        (["start", "--data", "a,b"], 1, "comma"),
        (["start", "--override", "foo"], 1, "--override foo: expected key=value"),
        (
            ["start", "--override", "num.partitions=0"],
            1,
            "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (["server-start"], 1, "FILE"),
        (["storage"], 1, "a command is required: info, format"),
        (["storage", "info"], 1, "--config"),
        (["storage", "format", "-c", "x"], 1, "--cluster-id"),
        (
            ["storage", "format", "-c", "x", "-t", "y", "-s", "-N"],
            1,
            "--no-initial-controllers/-N cannot be used with --standalone/-s",
        ),
        (["storage", "random-uuid", "extra"], 1, "unexpected argument: extra"),
        (["storage", "version-mapping", "-r", "9"], 1, "Unknown metadata.version '9'"),
        (["storage", "feature-dependencies"], 1, "--feature"),
        (["storage", "feature-dependencies", "-f", "foo=1"], 1, "Unknown feature: foo"),
        (["storage", "feature-dependencies", "-f", "foo"], 1, "Invalid feature format: foo"),
        (["storage", "feature-dependencies", "-f", "group.version=x"], 1, "Invalid version format"),
        (["storage", "feature-dependencies", "-f", "group.version=9"], 1, "Feature level 9 is not"),
        (["storage", "feature-dependencies", "-f", "metadata.version=99"], 1, "Unknown metadata"),
    ],
)
def test_usage(argv: list[str], code: int, part: str, capsys: Capture) -> None:
    assert call(*argv) == code
    captured = capsys.readouterr()
    assert part in (captured.out if code == 0 else captured.err)
    assert "Traceback" not in captured.err


def test_a_wrong_value_is_told_in_exactly_one_line(capsys: Capture) -> None:
    assert call("start", "--override", "log.retention.ms=soon") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "soon" in captured.err
    assert "log.retention.ms" in captured.err


def test_start_without_a_file(tmp_path: Path, app: FakeApp, capsys: Capture) -> None:
    data = tmp_path / "data"
    assert call("start", "--port", "0", "--data", str(data), "--override", "num.partitions=3") == 0
    assert app.config is not None
    assert app.config["num.partitions"] == 3
    assert app.config.listeners[0].host == "127.0.0.1"
    assert app.config.log_dirs == (str(data),)
    assert app.config["offsets.topic.replication.factor"] == 1
    meta = (data / "meta.properties").read_text()
    (cluster_id,) = re.findall(r"cluster.id=(\S{22})\n", meta)
    shown = capsys.readouterr().out
    for part in ("the-cluster", "PLAINTEXT://127.0.0.1:4711", str(data), moldau.__version__):
        assert part in shown
    assert "CONTROLLER" not in shown
    assert "console-consumer --bootstrap-server 127.0.0.1:4711 --topic greetings" in shown
    assert "from moldau.client import Producer" in shown
    assert shown.endswith("all data is on disk.\n")

    assert call("start", "--data", str(data)) == 0
    assert f"cluster.id={cluster_id}\n" in (data / "meta.properties").read_text()


def test_the_python_line_to_try_is_python(tmp_path: Path, app: FakeApp, capsys: Capture) -> None:
    call("start", "--port", "0", "--data", str(tmp_path / "data"))
    (code,) = re.findall(r'python\S* -c "(.*)"', capsys.readouterr().out)
    compile(code, "shown", "exec")


def test_start_with_a_file_formats_a_node_of_its_own(
    server_properties: Path, tmp_path: Path, app: FakeApp
) -> None:
    assert call("start", str(server_properties)) == 0
    assert (tmp_path / "data" / "meta.properties").exists()


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("controller.quorum.voters=1@a:1,2@b:1", "-t CLUSTER_ID"),
        ("controller.quorum.bootstrap.servers=a:1,b:1", "--initial-controllers"),
        ("controller.quorum.bootstrap.servers=192.0.2.1:29093", "--initial-controllers"),
    ],
)
def test_start_does_not_format_a_member_of_a_larger_quorum(
    override: str, part: str, server_properties: Path, tmp_path: Path, app: FakeApp, capsys: Capture
) -> None:
    assert call("start", str(server_properties), "--override", override) == 1
    shown = capsys.readouterr().err
    assert "storage format" in shown
    assert part in shown
    assert app.config is None
    assert not (tmp_path / "data" / "meta.properties").exists()


def test_start_does_not_format_the_folders_of_a_broker(
    tmp_path: Path, app: FakeApp, capsys: Capture
) -> None:
    file = tmp_path / "broker.properties"
    file.write_text(
        "process.roles=broker\nnode.id=4\ncontroller.quorum.bootstrap.servers=localhost:29093\n"
        "listeners=PLAINTEXT://127.0.0.1:0\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={tmp_path}/data\n"
    )
    assert call("start", str(file)) == 1
    assert "moldau storage format -t CLUSTER_ID" in capsys.readouterr().err
    assert call("storage", "format", "-c", str(file), "-t", "x") == 0
    assert call("start", str(file)) == 0
    assert app.config is not None
    assert not app.config.is_controller


def test_server_start_refuses_what_is_not_formatted(
    server_properties: Path, app: FakeApp, capsys: Capture
) -> None:
    assert call("server-start", str(server_properties)) == 1
    captured = capsys.readouterr()
    assert "No readable meta.properties files found" in captured.err
    assert "kafka-storage.sh format --standalone" in captured.err
    assert str(server_properties) in captured.err
    assert app.config is None


def test_server_start_after_format(server_properties: Path, app: FakeApp, capsys: Capture) -> None:
    assert call("storage", "format", "-c", str(server_properties), "-t", "my-cluster", "-s") == 0
    assert call("server-start", str(server_properties), "--override", "num.partitions=7") == 0
    assert app.config is not None
    assert app.config["num.partitions"] == 7
    assert "Kafka Server started" in capsys.readouterr().out


def test_unknown_keys_warn_with_a_guess(tmp_path: Path, app: FakeApp, capsys: Capture) -> None:
    data = str(tmp_path / "data")
    assert call("start", "--port", "0", "--data", data, "--override", "num.partition=3") == 0
    assert "num.partition is unknown and has no effect. Did you mean num.partitions?" in (
        capsys.readouterr().err
    )


def test_what_has_no_effect_is_named_in_one_line(
    tmp_path: Path, app: FakeApp, capsys: Capture
) -> None:
    changes = (
        "num.io.threads=16",
        "ssl.provider=BC",
        "listener.name.plaintext.num.io.threads=5",
        # Kafka's own default says nothing, and is not worth a word.
        "num.network.threads=3",
        "num.partitions=3",
    )
    options = [part for change in changes for part in ("--override", change)]
    assert call("start", "--port", "0", "--data", str(tmp_path / "data"), *options) == 0
    assert capsys.readouterr().err == (
        "moldau: warning: these settings have no effect: listener.name.plaintext.num.io.threads, "
        "num.io.threads, ssl.provider. docs/configuration.md has the reasons\n"
    )


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (ConfigError("listeners is wrong"), ["listeners is wrong"]),
        (PermissionError(errno.EACCES, "Permission denied", "/x/y"), ["/x/y", "owner"]),
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), ["/x/y", "space"]),
        (OSError("something else"), ["something else"]),
    ],
)
def test_a_failing_start_is_one_line(
    error: Exception, parts: list[str], tmp_path: Path, app: FakeApp, capsys: Capture
) -> None:
    app.error = error
    assert call("start", "--port", "0", "--data", str(tmp_path / "data")) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert all(part in shown for part in parts)


def test_a_port_in_use_is_named(tmp_path: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert call("start", "--port", str(port), "--data", str(tmp_path / "data")) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert f"PLAINTEXT://127.0.0.1:{port}" in shown
    assert "in use" in shown
    assert "--port" in shown


def test_a_data_folder_that_is_a_file_is_named(
    tmp_path: Path, app: FakeApp, capsys: Capture
) -> None:
    path = tmp_path / "data"
    path.write_text("")
    assert call("start", "--port", "0", "--data", str(path)) == 1
    assert f"{path} is not a directory" in capsys.readouterr().err
    assert call("start", "--port", "0", "--data", str(path / "below")) == 1
    assert f"cannot create the data directory {path}/below" in capsys.readouterr().err
    assert app.config is None


def test_an_interrupt_is_no_traceback(tmp_path: Path, app: FakeApp, capsys: Capture) -> None:
    app.error = KeyboardInterrupt()
    assert call("start", "--port", "0", "--data", str(tmp_path / "data")) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_node_whose_cluster_has_ended_does_not_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau.cli", "start", "--data", str(tmp_path / "data")]
    done = subprocess.run(
        command,
        env={**os.environ, "MOLDAU_PARENT": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "has ended" in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("words", [["--help"], ["help", "topics"], ["--version"]])
def test_output_that_nobody_reads_is_no_error(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "moldau.cli", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == ""
