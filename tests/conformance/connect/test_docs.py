"""The lines of docs/connect.md, pasted into a shell, and its Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from moldau.cli.services.connect_client import WorkerClient, _explain
from support.connect_workers import WorkerUnderTest, distributed_worker
from support.ports import free_port
from support.processes import ROOT, BrokerProcess
from support.waiting import eventually

DOCUMENT = (ROOT / "docs" / "connect.md").read_text()
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
_MANAGES = re.compile(
    r"^(moldau connect "
    r"(?:create|list|status|explain|metrics|edit|restart|offsets|pause|delete)\b.*)$",
    re.M,
)


def blocks(heading: str, language: str = "sh") -> list[str]:
    section = DOCUMENT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euc", program],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{program}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def in_background(command: str, folder: Path) -> Iterator[None]:
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(30) == 0, (folder / "worker.log").read_text()


@pytest.fixture(scope="module")
def worker(broker: BrokerProcess) -> Iterator[WorkerUnderTest]:
    with distributed_worker(broker.bootstrap, "docs") as found:
        yield found


def test_a_file_to_a_topic_to_a_file(broker: BrokerProcess, tmp_path: Path) -> None:
    files, command = blocks("A file to a topic to a file")
    # A port of its own, as the documented one may be taken.
    files = files.replace("127.0.0.1:9092", f"{broker.bootstrap}\nlisteners=http://127.0.0.1:0")
    run(files, tmp_path)
    result = tmp_path / "test.sink.txt"
    for each in (
        command,
        command.replace("moldau connect standalone", f"{ROOT}/bin/connect-standalone.sh"),
    ):
        result.unlink(missing_ok=True)
        (tmp_path / "connect.offsets").unlink(missing_ok=True)
        with in_background(each.strip(), tmp_path):
            eventually(
                lambda: result.exists() and result.read_text().endswith("foo\nbar\n"),
                what="the lines",
            )


def test_by_rest(worker: WorkerUnderTest, tmp_path: Path) -> None:
    (block,) = blocks("By REST")
    program = block.replace("http://127.0.0.1:8083", worker.url)
    first, _, rest = program.partition("curl -s " + worker.url + "/connectors\n")
    run(first, tmp_path)
    worker.wait_for("orders", "RUNNING", "RUNNING")
    answers = run(rest.replace("\n", "; echo\n"), tmp_path)
    assert '"state":"RUNNING"' in answers
    assert '{"message":"The offsets for this connector have been reset successfully"}' in answers


def test_on_the_command_line(worker: WorkerUnderTest, tmp_path: Path) -> None:
    commands, dry_run = blocks("On the command line")
    (tmp_path / "test.txt").write_text("one\n")
    program = _MANAGES.sub(rf"\1 --url {worker.url}", commands)
    create, _, rest = program.partition("\n")
    assert run(create, tmp_path) == "lines: a source connector, FileStreamSource\n"
    worker.wait_for("lines", "RUNNING", "RUNNING")
    shown = run(rest, tmp_path)
    assert re.search(r"lines +source +RUNNING +1 RUNNING", shown)
    assert "lines: nothing has failed; RUNNING, tasks: 1 RUNNING" in shown
    assert re.search(r"lines-0 +RUNNING +\S+ +\d+ +[\d.]+ +\d+ ", shown)
    assert "org.apache.kafka.connect.file.FileStreamSinkConnector" in shown
    assert re.search(r"batch.size +int +2000 +low", shown)
    (tmp_path / "orders.txt").write_text('{"id": 1, "card": "4711", "note": "x"}\n')
    assert run(dry_run, tmp_path) == blocks("On the command line", "text")[0]


def test_explain_names_the_reason(worker: WorkerUnderTest, tmp_path: Path) -> None:
    config = {"connector.class": "FileStreamSink", "file": "/no/such/file", "topics": "none"}
    worker.call("PUT", "/connectors/broken/config", config)
    worker.wait_for("broken", "RUNNING", "FAILED")
    done = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "connect", "explain", "broken", "--url", worker.url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(
        r"broken: task 0 failed on \S+: Couldn't find or create file '/no/such/file' for "
        r"FileStreamSinkTask: No such file or directory\n",
        done.stdout,
    )
    worker.call("DELETE", "/connectors/broken")


def test_explain_names_a_worker_that_is_gone(
    worker: WorkerUnderTest, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {"state": "RUNNING", "worker_id": f"127.0.0.1:{free_port()}"}
    here = {"state": "RUNNING", "worker_id": urlsplit(worker.url).netloc}
    status = {"name": "a", "connector": here, "tasks": [{"id": 0, **gone}, {"id": 1, **gone}]}
    assert _explain(status, WorkerClient(worker.url)) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"a: task 0, task 1 ran on {gone['worker_id']}, which does not answer:")


def test_python(tmp_path: Path) -> None:
    function, drivers = blocks("Plug-ins", "python")
    (tmp_path / "my_module.py").write_text(function)
    (tmp_path / "drivers.py").write_text(drivers)
    shown = run("python drivers.py", tmp_path)
    assert shown.splitlines()[0] == "['one', 'two']"
    assert "{'position': 8}" in shown
    check = (
        "from moldau.connect.api import SinkRecord\n"
        "from moldau.testing.connect import transform\n"
        "config = {'transforms': 'u', 'transforms.u.type': 'python:my_module.upper',\n"
        "          'transforms.u.field': 'city'}\n"
        "print(transform(config, SinkRecord('t', 0, 0, value={'city': 'praha'})).value)\n"
    )
    (tmp_path / "check.py").write_text(check)
    assert run("python check.py", tmp_path) == "{'city': 'PRAHA'}\n"
