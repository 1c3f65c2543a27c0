"""Cassandra, HDFS, YARN and Neo4j by Maven coordinate (`make parts`): servers on 127.0.0.1 for a
run of tests, ended by the id of their process."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.ports import free_port

PARTS = Path(__file__).parents[2] / ".cache/parts"
SOURCES = Path(__file__).parents[1] / "java/parts"
_START_SECONDS_MAX = 180.0
_SMALL = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

#: Packages of the JDK that Cassandra reaches into.
_OPENED = (
    "java.base/java.io", "java.base/java.lang", "java.base/java.lang.reflect",
    "java.base/java.math", "java.base/java.net", "java.base/java.nio", "java.base/java.util",
    "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader", "java.base/jdk.internal.math", "java.base/jdk.internal.misc",
    "java.base/jdk.internal.module", "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect", "java.base/jdk.internal.util", "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.management/com.sun.jmx.remote.security", "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server", "java.rmi/sun.rmi.transport.tcp", "java.sql/java.sql",
    "jdk.management/com.sun.management.internal",
)  # fmt: skip
_CASSANDRA = """\
cluster_name: test
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10s
data_file_directories: [{folder}/data]
commitlog_directory: {folder}/commitlog
saved_caches_directory: {folder}/caches
hints_directory: {folder}/hints
cdc_raw_directory: {folder}/cdc
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage}
native_transport_port: {port}
endpoint_snitch: SimpleSnitch
auto_snapshot: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "127.0.0.1:{storage}"}}]
"""
_QUIET = '<configuration><root level="OFF"/></configuration>'


def java_server_missing(name: str) -> str | None:
    if not (PARTS / name / ".copied").exists():
        return f"the jars of {name} are not here: `make parts` fetches them"
    return None if shutil.which("java") else "there is no Java"


@dataclass
class Cassandra:
    port: int
    session: Any

    @property
    def config(self) -> dict[str, str]:
        return {
            "cassandra.contact.points": "127.0.0.1",
            "cassandra.port": str(self.port),
            "cassandra.local.datacenter": "datacenter1",
        }

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(each) for each in self.session.execute(query))


@contextlib.contextmanager
def running_cassandra() -> Iterator[Cassandra]:
    from cassandra.cluster import Cluster

    with tempfile.TemporaryDirectory(prefix="moldau-cassandra-") as folder:
        port = free_port()
        settings = Path(folder) / "cassandra.yaml"
        settings.write_text(_CASSANDRA.format(folder=folder, port=port, storage=free_port()))
        (Path(folder) / "logback.xml").write_text(_QUIET)
        options = [
            *(f"--add-opens={each}=ALL-UNNAMED" for each in _OPENED),
            *(f"--add-exports={each}=ALL-UNNAMED" for each in _OPENED),
            f"-Dcassandra.config={settings.as_uri()}", f"-Dcassandra.storagedir={folder}",
            f"-Dlogback.configurationFile={folder}/logback.xml", "-Dcassandra-foreground=yes",
            "-Djdk.attach.allowAttachSelf=true", "-Dcassandra.ring_delay_ms=100",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.jmx.local.port=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
            "-cp", f"{PARTS}/cassandra/*", "org.apache.cassandra.service.CassandraDaemon",
        ]  # fmt: skip
        with _process("Cassandra", options, Path(folder)) as process:
            _wait_for(process, "Cassandra", Path(folder), lambda: is_listening(port))
            with Cluster(["127.0.0.1"], port=port) as cluster:
                yield Cassandra(port, cluster.connect())


@contextlib.contextmanager
def running_hdfs(rpc_port: int | None = None) -> Iterator[str]:
    """The address of its name node, for WebHDFS; hdfs://127.0.0.1:`rpc_port` is the other one."""
    with tempfile.TemporaryDirectory(prefix="moldau-hdfs-") as folder:
        port = free_port()
        arguments = [
            "-cp", f"{PARTS}/hdfs/*", str(SOURCES / "HdfsCluster.java"), folder, str(port),
            str(rpc_port or free_port()),
        ]  # fmt: skip
        with _process("HDFS", arguments, Path(folder)) as process:
            _wait_for(process, "HDFS", Path(folder), lambda: _line(Path(folder)) == "ready")
            yield f"http://127.0.0.1:{port}"


def yarn_missing() -> str | None:
    """Hadoop's mini cluster also needs Log4j, which Spark has, and Bouncy Castle, as Neo4j does."""
    return java_server_missing("hdfs") or java_server_missing("neo4j")


@contextlib.contextmanager
def running_yarn(libraries: Sequence[Path], *, nodes: int = 1) -> Iterator[Path]:
    """The folder with the configuration of a YARN; `libraries` are Spark's jars of Log4j."""
    with tempfile.TemporaryDirectory(prefix="moldau-yarn-") as name:
        folder = Path(name)
        conf = folder / "conf"
        conf.mkdir()
        (conf / "core-site.xml").write_text("<configuration/>")
        jars = [str(each) for each in (*libraries, *(PARTS / "neo4j").glob("bc*.jar"))]
        arguments = [
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "-cp", ":".join([f"{PARTS}/hdfs/*", *jars]), str(SOURCES / "YarnCluster.java"),
            str(conf), str(nodes),
        ]  # fmt: skip
        with _process("YARN", arguments, folder) as process:
            _wait_for(process, "YARN", folder, lambda: _line(folder) == "ready")
            yield conf


@contextlib.contextmanager
def running_neo4j() -> Iterator[str]:
    """The address of its Bolt server."""
    with tempfile.TemporaryDirectory(prefix="moldau-neo4j-") as folder:
        arguments = ["-cp", f"{PARTS}/neo4j/*", str(SOURCES / "Neo4jServer.java"), folder]
        with _process("Neo4j", arguments, Path(folder)) as process:
            _wait_for(
                process, "Neo4j", Path(folder), lambda: _line(Path(folder)).startswith("bolt:")
            )
            yield _line(Path(folder)).rstrip("/")


def is_listening(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _line(folder: Path) -> str:
    """The last line that the program has printed."""
    return ((folder / "out").read_text().splitlines() or [""])[-1]


@contextlib.contextmanager
def _process(
    name: str, arguments: Sequence[str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "out").open("wb") as out, (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            ["java", *_SMALL, *arguments], cwd=folder, stdin=subprocess.PIPE, stdout=out,
            stderr=errors,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], name: str, folder: Path, ready: Any) -> Any:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        found = ready()
        if found:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"{name} does not run: {(folder / 'errors').read_text()[-3000:]}")
