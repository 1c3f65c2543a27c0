"""Python as Spark's server starts it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from moldau.spark.runtime import launcher

_TELL = """
import json, os, sys
print(json.dumps([sys.argv[1:], os.environ.get("PYTHONPATH"), os.getpid()]))
"""


@pytest.mark.parametrize(
    ("given", "left"),
    [
        pytest.param("{zip}:/py4j.zip:/own", "/py4j.zip:/own", id="the archive goes"),
        pytest.param("{zip}:/a.zip:{zip}:/a.zip", "/a.zip:/a.zip", id="also the second time"),
        pytest.param("{zip}:{zip}:/own:{zip}", "/own", id="wherever it is"),
        pytest.param("/own:{zip}.old", "/own:{zip}.old", id="but nothing else"),
        pytest.param("", "", id="a path that is empty"),
    ],
)
def test_python_runs_as_it_was_called_without_the_archive(
    tmp_path: Path, given: str, left: str
) -> None:
    home = tmp_path / "it's a home with $HOME * in it"
    archive = str(home / "python" / "lib" / "pyspark.zip")
    command = launcher.install(tmp_path / "python", sys.executable, home)
    assert command == str(tmp_path / "python")
    started = subprocess.Popen(
        [command, "-c", _TELL, "a b", "", "$x"],
        env={**os.environ, "PYTHONPATH": given.format(zip=archive)},
        stdout=subprocess.PIPE,
        text=True,
    )
    told, _ = started.communicate()
    assert json.loads(told) == [["a b", "", "$x"], left.format(zip=archive), started.pid]


def test_a_path_that_is_not_set_stays_harmless(tmp_path: Path) -> None:
    command = launcher.install(tmp_path / "python", sys.executable, tmp_path)
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [command, "-c", "import sys; print('' in sys.path[1:])"],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("sc://localhost:1/;user_id=me;token=abc", "sc://localhost:1/;user_id=me"),
        ("sc://localhost:1/;user_id=me", "sc://localhost:1/;user_id=me"),
    ],
)
def test_a_worker_does_not_get_the_token_in_what_it_prints(
    tmp_path: Path, given: str, left: str
) -> None:
    command = launcher.install(tmp_path / "python", sys.executable, tmp_path)
    done = subprocess.run(
        [command, "-c", "import os; print(os.environ['SPARK_CONNECT_LOCAL_URL'])"],
        env={**os.environ, "SPARK_CONNECT_LOCAL_URL": given},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == left


# In Spark's place: it is imported when the test says so.
_SPARK = """
import os, sys, time
while not os.path.exists(os.environ["MAY_BE_IMPORTED"]):
    time.sleep(0.01)
"""
_UTIL = """
import struct
def local_connect_and_auth(port, secret):
    raise AssertionError("a second connection")
"""
_WORKER = """
import json, os, sys
from pyspark.util import local_connect_and_auth
port = int(os.environ.get("PYTHON_WORKER_FACTORY_PORT", -1))
where = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH", port)
file, _ = local_connect_and_auth(where, os.environ.get("PYTHON_WORKER_FACTORY_SECRET"))
file.write(json.dumps([__name__, sys.argv[1:], sys.path[0], os.getpid()]).encode())
file.flush()
"""


def listening(path: Path | None) -> socket.socket:
    if path is None:
        made = socket.create_server(("127.0.0.1", 0))
    else:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(str(path))
        made.listen()
    made.settimeout(30.0)
    return made


@pytest.mark.parametrize("by_path", [False, True])
def test_a_worker_connects_before_it_imports_anything(tmp_path: Path, by_path: bool) -> None:
    (tmp_path / "pyspark").mkdir()
    for name, text in (("__init__", _SPARK), ("util", _UTIL), ("worker", _WORKER)):
        (tmp_path / "pyspark" / f"{name}.py").write_text(text)
    command = launcher.install(tmp_path / "python", sys.executable, tmp_path)
    with TemporaryDirectory() as short, listening(Path(short) / "s" if by_path else None) as server:
        where = (
            {"PYTHON_WORKER_FACTORY_SOCK_PATH": server.getsockname()}
            if by_path
            else {
                "PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]),
                "PYTHON_WORKER_FACTORY_SECRET": "secret",
            }
        )
        environ = {
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "MAY_BE_IMPORTED": str(tmp_path / "may"),
            **where,
        }
        started = subprocess.Popen(
            [command, "-m", "pyspark.worker", "x"], env=environ, cwd=tmp_path
        )
        try:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb") as file:
                if not by_path:
                    assert file.read(10) == b"\0\0\0\x06secret"
                    file.write(b"\0\0\0\x02ok")
                    file.flush()
                (tmp_path / "may").touch()
                told = json.loads(file.read())
            assert told == ["__main__", ["x"], str(tmp_path), started.pid]
            assert started.wait(30) == 0
        finally:
            started.kill()
            started.wait()


def test_a_worker_that_nobody_waits_for_is_run_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    for name, text in (("__init__", ""), ("util", _UTIL), ("daemon", "print('daemon')")):
        (tmp_path / "pyspark" / f"{name}.py").write_text(text)
    command = launcher.install(tmp_path / "python", sys.executable, tmp_path)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHON_WORKER_FACTORY_SECRET": "s"}
    done = subprocess.run(
        [command, "-m", "pyspark.daemon", "pyspark.worker"],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == "daemon\n"


def test_python_itself_where_nothing_may_be_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert launcher.install(tmp_path / "python", sys.executable, tmp_path) == sys.executable


def test_the_archive_is_where_pyspark_keeps_it() -> None:
    from moldau.spark.runtime.places import spark_home

    assert (spark_home() / "python" / "lib" / "pyspark.zip").is_file()
