"""The life of a server, with a small program in the place of Spark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.spark.runtime import probe, processes, startup
from moldau.spark.runtime.errors import ServerNotRunning, ServerStartError, SparkRuntimeError
from moldau.spark.runtime.java import JavaHome
from moldau.spark.runtime.machine.settings import ServerState
from moldau.spark.runtime.server import ConnectServer
from support.waiting import eventually

# Listens where the settings say, ends on a signal, and can be told to fail.
PROGRAM = f"""#!{sys.executable}
import os, signal, socket, subprocess, sys
conf = dict(word.split("=", 1) for word in sys.argv if "=" in word)
if "test.fails" in conf:
    sys.exit('Exception in thread "main" java.lang.Error: it has to be like this')
if "test.stubborn" in conf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "test.stray" in conf:
    subprocess.Popen(["sleep", "600"], process_group=0)
# As Spark does, all this before it listens.
print("Successfully started service 'SparkUI' on port 4040", flush=True)
python = [os.environ["PYSPARK_PYTHON"], "-c", "import sys; print(sys.executable, end='')"]
with open("told", "w") as told:
    told.write(subprocess.check_output(python, text=True))
with socket.create_server(("127.0.0.1", int(conf["spark.connect.grpc.binding.port"]))) as listener:
    while True:
        listener.accept()[0].close()
"""


@pytest.fixture(autouse=True)
def _small_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").write_text(PROGRAM)
    (home / "bin" / "spark-submit").chmod(0o755)
    java = JavaHome("/jvm", 21, "PATH", "/usr/bin/java")
    monkeypatch.setattr(startup, "spark_home", lambda: home)
    monkeypatch.setattr(startup, "find_java", lambda environ, cache: java)
    monkeypatch.setattr(probe, "answers", lambda host, port, seconds_max, token: "4.3.0")
    monkeypatch.setenv("MOLDAU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", "/another/spark")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "deploy"
    ConnectServer(tmp_path / "deploy", stop_seconds_max=0).stop()


def strays_of(pid: int) -> list[int]:
    return [member for member, _ in processes._session_members(pid) if member != pid]


def test_it_starts_once_and_is_found_by_others(folder: Path) -> None:
    first = ConnectServer(folder, master="local[1]", conf={"a.b": "c"}).start()
    second = ConnectServer(folder)
    assert second.attach()
    assert (second.pid, second.url) == (first.pid, first.url)
    assert ConnectServer(folder, master="local[7]").start().pid == first.pid
    assert second.alive()
    status = second.status()
    assert status["ui"] == "http://127.0.0.1:4040"
    assert status["master"] == "local[1]"
    assert status["versions"]["java"] == "Java 21 (PATH: /usr/bin/java)"
    assert (folder / "told").read_text() == sys.executable
    assert (folder / "settings.json").stat().st_mode & 0o077 == 0
    assert second.stop()
    assert not first.alive()
    assert not second.stop()


def test_every_deployment_has_a_token_that_only_its_owner_reads(folder: Path) -> None:
    first = ConnectServer(folder).start()
    token = first.token
    assert token is not None
    assert len(token) > 40
    assert (folder / "token").stat().st_mode & 0o077 == 0
    assert (folder / "server.out").stat().st_mode & 0o077 == 0
    environ = Path(f"/proc/{first.pid}/environ").read_bytes().split(b"\0")
    assert f"SPARK_CONNECT_AUTHENTICATE_TOKEN={token}".encode() in environ
    assert token.encode() not in Path(f"/proc/{first.pid}/cmdline").read_bytes()
    assert first.session_url == f"{first.url}/;use_ssl=false;token={token}"
    assert token not in str(first.status())
    assert first.status()["token"] == str(folder / "token")
    first.stop()
    assert ConnectServer(folder).start().token == token


def test_a_token_of_the_users_own_is_not_kept_among_the_settings(folder: Path) -> None:
    own = {"spark.connect.authenticate.token": "of-mine", "a.b": "c"}
    server = ConnectServer(folder, conf=own).start()
    assert server.token == "of-mine"
    assert b"of-mine" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert "of-mine" not in (folder / "settings.json").read_text()
    assert server.settings.conf == {"a.b": "c"}


def test_two_that_start_at_once_get_the_same(folder: Path) -> None:
    servers = [ConnectServer(folder) for _ in range(4)]
    threads = [threading.Thread(target=each.start) for each in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.pid for each in servers}) == 1


def test_after_a_crash_it_has_its_settings_and_its_port_and_no_strays(folder: Path) -> None:
    first = ConnectServer(folder, master="local[3]", conf={"test.stray": "1"}).start()
    pid, url = first.pid, first.url
    assert eventually(lambda: strays_of(pid), what="the stray runs")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not first.alive(), what="it is seen to be gone")
    assert first.status()["running"] is False
    again = ConnectServer(folder).start()
    assert again.settings.master == "local[3]"
    assert again.pid != pid
    assert again.url == url
    eventually(lambda: not strays_of(pid), what="what the first left behind is gone")


def test_a_server_that_does_not_stop_is_killed(folder: Path) -> None:
    stubborn = ConnectServer(
        folder, conf={"test.stubborn": "1", "test.stray": "1"}, stop_seconds_max=0.2
    ).start()
    pid = stubborn.pid
    assert eventually(lambda: strays_of(pid), what="the stray runs")
    assert stubborn.stop()
    eventually(lambda: not strays_of(pid), what="nothing is left")


def test_another_process_with_the_same_id_is_not_ours(folder: Path) -> None:
    ConnectServer(folder).start().stop()
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        state = ServerState(
            pid=other.pid, mark="boot:1", url="sc://127.0.0.1:1", master="x", log="y", ready=True
        )
        (folder / "server.json").write_text(state.to_json())
        mistaken = ConnectServer(folder)
        assert not mistaken.attach()
        assert not mistaken.stop()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_one_whose_starter_died_is_taken_over(folder: Path) -> None:
    first = ConnectServer(folder).start()
    path = folder / "server.json"
    path.write_text(replace(ServerState.from_json(path.read_text()), ready=False).to_json())
    taken = ConnectServer(folder).start()
    assert taken.pid == first.pid
    assert taken.state.ready


def test_a_start_that_fails_says_why_and_leaves_nothing(folder: Path) -> None:
    failing = ConnectServer(folder, conf={"test.fails": "1"})
    with pytest.raises(ServerStartError, match=r"ended at its start: it has to be like this\. Its"):
        failing.start()
    assert not (folder / "server.json").exists()
    with pytest.raises(ServerNotRunning, match="moldau spark start --data"):
        _ = failing.url


def test_one_that_never_answers_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "answers", lambda host, port, seconds_max, token: None)
    hanging = ConnectServer(folder, start_seconds_max=0.5)
    with pytest.raises(ServerStartError, match="did not answer within"):
        hanging.start()
    assert not hanging.alive()


def test_a_port_that_somebody_has(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerStartError, match=f"port {port} is in use"):
            ConnectServer(folder, port=port).start()


def test_damaged_settings_are_named(folder: Path) -> None:
    folder.mkdir()
    (folder / "settings.json").write_text("{")
    with pytest.raises(SparkRuntimeError, match=r"settings\.json is damaged"):
        ConnectServer(folder)
    (folder / "settings.json").unlink()


def test_old_events_are_deleted(folder: Path) -> None:
    for number in range(12):
        application = folder / "events" / f"eventlog_v2_local-{number}"
        application.mkdir(parents=True)
        for file in range(1, 11):
            (application / f"events_{file}_local-{number}.zstd").write_text("")
        (application / f"appstatus_local-{number}").write_text("")
        os.utime(application, (number, number))
    ConnectServer(folder).tidy()
    left = {path.name for path in (folder / "events").iterdir()}
    assert left == {f"eventlog_v2_local-{number}" for number in range(2, 12)}
    files = sorted(path.name for path in (folder / "events" / "eventlog_v2_local-5").iterdir())
    assert files[0] == "appstatus_local-5"
    assert {int(name.split("_")[1]) for name in files[1:]} == set(range(3, 11))
