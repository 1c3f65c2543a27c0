"""The scripts with Kafka's names as an operator runs them, on real folders and brokers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaError, Message, Producer

from moldau.wire.records import encode_batch
from support import asking
from support.processes import (
    ROOT,
    BrokerProcess,
    free_port,
    kafka_missing,
    kafka_properties,
    kafka_tool,
    write_properties,
)
from support.raw import RawConnection
from support.waiting import eventually

BIN = ROOT / "bin"
CLUSTER, OTHER_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg", "Kk_cSiQTQDqhhUKH_WdW0w"


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / script), *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def storage(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("kafka-storage.sh", *arguments)


def node(folder: Path, **changes: str) -> Path:
    """A server.properties for a node of its own below `folder`."""
    settings = kafka_properties(folder, free_port())
    settings |= {key.replace("_", "."): value for key, value in changes.items()}
    return write_properties(folder / "server.properties", settings)


def formatted_node(folder: Path, **changes: str) -> Path:
    file = node(folder, **changes)
    done = storage("format", "-t", CLUSTER, "--standalone", "-c", str(file))
    assert done.returncode == 0, done.stderr
    return file


def port_of(file: Path) -> int:
    found = re.search(r"PLAINTEXT://127\.0\.0\.1:([0-9]+)", file.read_text())
    assert found is not None
    return int(found[1])


def server(file: Path, *overrides: str) -> BrokerProcess:
    command = [str(BIN / "kafka-server-start.sh"), str(file)]
    for override in overrides:
        command += ["--override", override]
    return BrokerProcess(command, port_of(file), file.parent / "server.log")


def refused(*arguments: str, script: str = "kafka-server-start.sh") -> str:
    """The one line in which a start is refused."""
    done = run(script, *arguments)
    assert (done.returncode, done.stdout) == (1, ""), done
    (line,) = done.stderr.splitlines()
    return line


# Each is run on fresh folders in turn, so that later ones find what earlier ones left.
STORAGE_SESSION = [
    ("info",),
    ("format", "-t", CLUSTER),
    ("format", "-t", CLUSTER, "--standalone"),
    ("info",),
    ("format", "-t", CLUSTER, "--standalone"),
    ("format", "-t", CLUSTER, "--standalone", "--ignore-formatted"),
    ("format", "-t", OTHER_CLUSTER, "--standalone", "--ignore-formatted"),
    ("format", "-t", CLUSTER, "--standalone", "--release-version", "9.9"),
]
JAVA_PREFIX = re.compile(r'Exception in thread "main" [\w.]+: ')


def told(done: subprocess.CompletedProcess[str], folder: Path) -> tuple[int, str, list[str]]:
    """What a tool told, without a folder's name, ids, and what only a JVM says."""
    text = re.sub(r"directory\.id=[\w-]{22}", "directory.id=ID", done.stdout)
    text = "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("Bootstrap metadata")
    )
    errors = [
        JAVA_PREFIX.sub("", line)
        for line in done.stderr.splitlines()
        if not line.startswith("\tat ")
    ]
    name = str(folder)
    return done.returncode, text.replace(name, ""), [line.replace(name, "") for line in errors]


@pytest.mark.slow("a JVM starts for each command of the session")
@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
def test_storage_says_what_kafkas_tool_says(tmp_path: Path) -> None:
    ours, kafkas = tmp_path / "ours", tmp_path / "kafkas"
    files = {folder: node(folder) for folder in (ours, kafkas)}
    for command, *rest in STORAGE_SESSION:
        mine = storage(command, "-c", str(files[ours]), *rest)
        theirs = kafka_tool("kafka.tools.StorageTool", command, "-c", str(files[kafkas]), *rest)
        assert told(mine, ours) == told(theirs, kafkas), (command, *rest)


def test_random_uuids_are_ids_of_clusters(tmp_path: Path) -> None:
    ids = {storage("random-uuid").stdout for _ in range(3)}
    assert len(ids) == 3
    for text in ids:
        assert re.fullmatch(r"[\w-]{22}\n", text)
        assert not text.startswith("-")
    file = node(tmp_path)
    done = storage("format", "-t", text.strip(), "--standalone", "-c", str(file))
    assert done.returncode == 0
    assert f"cluster.id={text.strip()}" in storage("info", "-c", str(file)).stdout


def test_what_is_formatted_starts(tmp_path: Path) -> None:
    file = formatted_node(tmp_path)
    with (
        server(file, "num.partitions=3", "auto.create.topics.enable=false") as broker,
        RawConnection(broker.port) as to,
    ):
        asking.create_topic(to, "t", -1)
        assert len(asking.describe_topic(to, "t").partitions) == 3
        assert asking.config(to, asking.BROKER_CONFIG, "1", "num.partitions") == ("3", 4)
        eventually(lambda: "Kafka Server started" in broker.output(), what="it says so")
        assert broker.stop() == 0


def test_refusals_are_one_line(tmp_path: Path) -> None:
    plain = node(tmp_path / "plain")
    line = refused(str(plain))
    assert "No readable meta.properties" in line
    assert "kafka-storage.sh format" in line
    assert "no such configuration file" in refused(str(tmp_path / "missing"))

    file = formatted_node(tmp_path / "formatted")
    line = refused(str(file), "--override", "num.partitions=many")
    assert "num.partitions" in line
    assert "many" in line
    line = refused(str(file), "--override", "compression.type=rar")
    for part in ("compression.type", "rar", "gzip", "zstd"):
        assert part in line
    assert "node 1, not 2" in refused(str(file), "--override", "node.id=2")
    assert "key=value" in refused(str(file), "--override", "nonsense")

    other = tmp_path / "other"
    other.mkdir()
    meta = tmp_path / "formatted" / "data" / "meta.properties"
    (other / "meta.properties").write_text(meta.read_text().replace(CLUSTER, OTHER_CLUSTER))
    line = refused(str(file), "--override", f"log.dirs={meta.parent},{other}")
    assert CLUSTER in line
    assert OTHER_CLUSTER in line
    meta.write_text("version=one\n")
    assert str(meta) in refused(str(file))


def test_a_second_broker_is_refused(tmp_path: Path) -> None:
    file = formatted_node(tmp_path)
    with server(file) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, "t")
        same_folder = ("--override", f"listeners=PLAINTEXT://:{free_port()},CONTROLLER://:0")
        line = refused(str(file), *same_folder)
        assert str(tmp_path / "data") in line
        assert "another" in line or "in use" in line or "lock" in line

        elsewhere = formatted_node(tmp_path / "elsewhere")
        taken = f"listeners=PLAINTEXT://127.0.0.1:{broker.port},CONTROLLER://127.0.0.1:0"
        line = refused(str(elsewhere), "--override", taken)
        assert f"port {broker.port} is in use" in line
        # Neither disturbed the first.
        batch = encode_batch([(b"k", b"v", 1, ())])
        assert asking.produce(to, "t", 0, batch).error_code == 0
    # And the refused one has let go of its folder.
    with server(elsewhere):
        pass


def test_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    """SIGINT in the middle of writing: exit code 0, and what was acknowledged is there."""
    file = formatted_node(tmp_path)
    acknowledged: dict[int, bytes] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            acknowledged[offset] = bytes(message.value() or b"")

    with server(file) as broker:
        with RawConnection(broker.port) as to:
            asking.create_topic(to, "t")
        producer = Producer({
            "bootstrap.servers": broker.bootstrap, "linger.ms": 1, "message.timeout.ms": 3000,
            "error_cb": lambda _: None, "log_level": 0,
        })  # fmt: skip
        assert broker.process is not None
        number = 0
        interrupted = False
        while broker.process.poll() is None:
            if len(acknowledged) > 2000 and not interrupted:
                broker.process.send_signal(signal.SIGINT)
                interrupted = True
            try:
                producer.produce("t", b"value %d" % number, partition=0, on_delivery=delivered)
                number += 1
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)
        assert broker.process.returncode == 0
        producer.purge()
        producer.flush(10)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert "Traceback" not in broker.output()
    with server(file) as broker, RawConnection(broker.port) as to:
        stored = {record.offset: record.value for record in asking.fetch_everything(to, "t", 0)}
    assert {offset: stored.get(offset) for offset in acknowledged} == acknowledged


@pytest.fixture
def no_orphans(tmp_path: Path) -> Iterator[None]:
    """Ends what a failed test leaves running in the background."""
    yield
    for process in psutil.process_iter(["cmdline"]):
        if any(word.startswith(str(tmp_path)) for word in process.info["cmdline"] or ()):
            process.kill()


def listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.usefixtures("no_orphans")
def test_daemons_are_stopped_by_their_node_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ids that no other broker on this machine has: the script finds all that run here.
    stopped, running = (1_000_000 + os.getpid() * 10 + number for number in (0, 1))
    ports = {}
    for number in (stopped, running):
        folder = tmp_path / str(number)
        file = formatted_node(folder, node_id=str(number))
        monkeypatch.setenv("LOG_DIR", str(folder / "logs"))
        done = run("kafka-server-start.sh", "-daemon", str(file))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        ports[number] = port_of(file)
        log = folder / "logs" / "kafkaServer.out"
        # The script ends before what it has put into the background has made the file.
        eventually(lambda: log.exists() and "started" in log.read_text(), what="a start")  # noqa: B023

    done = run("kafka-server-stop.sh", f"--node-id={stopped}")
    assert (done.returncode, done.stdout) == (0, "")
    eventually((tmp_path / str(stopped) / "data" / ".kafka_cleanshutdown").exists, what="a stop")
    eventually(lambda: not listening(ports[stopped]), what="the port is free")
    with RawConnection(ports[running]) as to:
        asking.create_topic(to, "t")
    run("kafka-server-stop.sh", f"--node-id={running}")
    eventually((tmp_path / str(running) / "data" / ".kafka_cleanshutdown").exists, what="a stop")
