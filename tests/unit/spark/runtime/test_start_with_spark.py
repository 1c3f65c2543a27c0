"""`moldau start --spark`: up together and down together; a small program is in Spark's place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moldau import __version__
from moldau.cli.brokers.start_with_spark import spark_address
from moldau.cli.support.failures import Failure
from moldau.pipelines import daemon
from moldau.spark.runtime.server import ConnectServer
from support.processes import free_port
from support.waiting import eventually

SPARK_SUBMIT = f"""#!{sys.executable}
import socket, sys
conf = dict(word.split("=", 1) for word in sys.argv if "=" in word)
with socket.create_server(("127.0.0.1", int(conf["spark.connect.grpc.binding.port"]))) as listener:
    while True:
        listener.accept()[0].close()
"""
MOLDAU = """
import pathlib, sys
from moldau.cli.main import main
from moldau.spark.runtime import probe, startup
from moldau.spark.runtime.java import JavaHome
home = pathlib.Path(sys.argv[1])
startup.spark_home = lambda: home
startup.find_java = lambda environ, cache: JavaHome("/jvm", 21, "PATH", "/usr/bin/java")
probe.answers = lambda host, port, seconds_max, token: "4.3.0"
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("listeners", "secured", "address"),
    [
        ("PLAINTEXT://127.0.0.1:9092", False, "127.0.0.1:9092"),
        ("SSL://h:9093, PLAINTEXT://0.0.0.0:9092", False, "127.0.0.1:9092"),
        ("PLAINTEXT://broker.example:9092", False, "broker.example:9092"),
        ("SASL_SSL://0.0.0.0:9094", True, "127.0.0.1:9094"),
        ("SSL://h:9093, PLAINTEXT://0.0.0.0:9092", True, "h:9093"),
    ],
)
def test_where_spark_finds_the_broker(listeners: str, secured: bool, address: str) -> None:
    assert spark_address(listeners, secured=secured) == address


def test_a_broker_that_wants_a_password_needs_the_settings_of_a_client() -> None:
    with pytest.raises(Failure, match="--command-config FILE"):
        spark_address("SASL_SSL://127.0.0.1:9092", secured=False)


def test_all_comes_up_and_goes_down_together(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text(SPARK_SUBMIT)
    script.chmod(0o755)
    data, output = tmp_path / "data", tmp_path / "output"
    port = free_port()
    command = [sys.executable, "-c", MOLDAU, str(tmp_path), "start", "--spark"]
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--data", str(data)],
            stdout=file,
            stderr=file,
            env=os.environ | {"MOLDAU_CACHE": str(tmp_path / "cache")},
        )
    folder = tmp_path / "data-spark"
    server = ConnectServer(folder, stop_seconds_max=5)
    try:
        eventually(
            lambda: "\nSpark 4.3.0 is up.\n" in output.read_text() or process.poll() is not None,
            what="Spark is up",
            seconds_max=120,
        )
        shown = output.read_text()
        assert f"Moldau {__version__} is up." in shown
        assert f"on 127.0.0.1:{port}\n" in shown
        assert server.attach()
        assert daemon.status(folder).alive
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(120)
        server.stop()
    assert code == 0, output.read_text()
    assert not server.alive()
    assert not daemon.status(folder).alive
    assert "all data is on disk" in output.read_text()
    # Apache Kafka refuses a data folder that has more than partitions in it.
    assert not [each for each in data.iterdir() if each.is_dir() and "-" not in each.name]
