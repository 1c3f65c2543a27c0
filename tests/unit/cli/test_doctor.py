"""What `moldau doctor` calls well, and what it advises."""

from __future__ import annotations

import json
import os
import resource
import socket
from pathlib import Path

import pytest

from moldau.cli.main import main
from moldau.cli.setup import doctor as doctor_tool
from moldau.cli.setup import doctor_checks as _doctor_checks
from moldau.cli.setup.doctor_checks import (
    Check,
    Status,
    ahead_by,
    judge_clock,
    judge_disk_space,
    judge_open_files,
    judge_python,
    judge_sync,
)
from moldau.cli.setup.doctor_spark import (
    judge_connector,
    judge_java,
    judge_packages,
    judge_spark,
)
from moldau.spark.runtime.java import JavaHome

Capture = pytest.CaptureFixture[str]
GIB = 1 << 30


@pytest.mark.parametrize(
    ("check", "status", "part"),
    [
        (judge_python((3, 11, 0)), Status.OK, "3.11.0"),
        (judge_python((3, 10, 9)), Status.FAIL, "3.11"),
        (judge_disk_space(50 * GIB, 100 * GIB, "/d"), Status.OK, "50.0 of 100.0 GiB"),
        (judge_disk_space(3 * GIB, 10 * GIB, "/d"), Status.WARN, "--data"),
        (judge_disk_space(40 * GIB, 1000 * GIB, "/d"), Status.WARN, "40.0"),
        (judge_disk_space(GIB // 8, 10 * GIB, "/d"), Status.FAIL, "0.1"),
        (judge_sync(0.001, "/d"), Status.OK, "1.00 ms"),
        (judge_sync(0.05, "/d"), Status.WARN, "local SSD"),
        (judge_open_files(20_000, 20_000), Status.OK, "20000"),
        (judge_open_files(resource.RLIM_INFINITY, 1), Status.OK, "unlimited"),
        (judge_open_files(1024, 1_000_000), Status.WARN, "ulimit -n 100000"),
        (judge_open_files(1024, 4096), Status.WARN, "LimitNOFILE"),
        (judge_open_files(256, 4096), Status.FAIL, "256"),
        (judge_clock(0.0), Status.OK, "0.01 s"),
        (judge_clock(-2.5), Status.WARN, "2.50 s behind"),
        (judge_clock(90), Status.FAIL, "90.00 s ahead"),
        # Answers that took ten seconds.
        (judge_clock(ahead_by(109.5, 100.0, 110.0)), Status.OK, "0.01 s"),
        (judge_clock(ahead_by(98.5, 100.0, 110.0)), Status.WARN, "1.50 s behind"),
        (judge_clock(ahead_by(112.5, 100.0, 110.0)), Status.WARN, "2.50 s ahead"),
    ],
)
def test_judgements(check: Check, status: Status, part: str) -> None:
    assert check.status is status
    assert part in f"{check.found} {check.fix}"
    assert bool(check.fix) == (status is not Status.OK)


@pytest.mark.parametrize(
    ("check", "status", "part"),
    [
        (judge_java(JavaHome("/jvm", 21, "PATH", "/usr/bin/java")), Status.OK, "Java 21 (PATH: "),
        (judge_java("no Java was found. Install one"), Status.WARN, "Only pipelines"),
        (judge_spark("4.3.1"), Status.OK, "pyspark 4.3.1"),
        (judge_spark("4.10.0"), Status.WARN, "4.3 is needed"),
        (judge_spark(None), Status.WARN, "not installed"),
        (judge_packages({"pyarrow": "26.0", "pandas": "2.3.3"}), Status.OK, "pandas 2.3.3"),
        (
            judge_packages({"pyarrow": None, "pandas": "3.0"}),
            Status.WARN,
            "pandas 3.0 does",
        ),
        (judge_connector(["spark-sql-kafka-0-10_2.13-4.2.0.jar"]), Status.OK, "own 4.2.0"),
        (judge_connector([]), Status.OK, "--connector kafka"),
    ],
)
def test_what_is_enough_for_spark(check: Check, status: Status, part: str) -> None:
    assert check.status is status
    assert part in check.found
    assert bool(check.fix) == (status is not Status.OK)


def doctor(capsys: Capture, *words: str) -> tuple[int, dict[str, dict[str, str]]]:
    code = main(["doctor", "--json", *words])
    return code, {each["check"]: each for each in json.loads(capsys.readouterr().out)}


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting one takes longer than all the rest."""
    monkeypatch.setattr(doctor_tool, "spark_checks", lambda: ())


def test_a_machine_that_is_well(tmp_path: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    code, found = doctor(capsys, "--data", str(tmp_path / "new"), "--port", str(port))
    assert code == 0
    assert found["port"]["status"] == "OK"
    assert found["python"]["status"] == "OK"
    assert "will be created" in found["data directory"]["found"]
    assert "ms at" in found["disk sync"]["found"]
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_something_else_has(tmp_path: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken.settimeout(0.1)
        port = taken.getsockname()[1]
        answer = _doctor_checks._answers_as_broker
        _doctor_checks._answers_as_broker = lambda port: False
        try:
            code, found = doctor(capsys, "--data", str(tmp_path), "--port", str(port))
        finally:
            _doctor_checks._answers_as_broker = answer
    assert code == 1
    assert found["port"]["status"] == "fail"
    assert f"(process {os.getpid()}: " in found["port"]["found"]
    assert "Stop it or choose another port" in found["port"]["fix"]


@pytest.mark.parametrize(
    ("name", "text", "status", "part"),
    [
        ("meta.properties", "node.id=4\ncluster.id=abc\n", "OK", "node 4 of cluster abc"),
        ("other", "x", "warn", "not formatted"),
        ("meta.properties", "\\u12", "fail", "cannot be read"),
    ],
)
def test_data_folders(
    name: str, text: str, status: str, part: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / name).write_text(text)
    _, found = doctor(capsys, "--data", str(tmp_path))
    assert found["data directory"]["status"] == status
    assert part in found["data directory"]["found"]


def test_a_data_folder_that_is_a_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    code, found = doctor(capsys, "--data", str(tmp_path / "file"))
    assert code == 1
    assert "is not a directory" in found["data directory"]["found"]


def test_a_broker_that_is_not_there_fails_in_words(tmp_path: Path, capsys: Capture) -> None:
    assert main(["doctor", "--data", str(tmp_path), "--bootstrap-server", "127.0.0.1:1"]) == 1
    shown = capsys.readouterr()
    assert "\nfail  broker            no broker can be reached at 127.0.0.1:1" in shown.out
    assert "moldau start" in shown.out
    assert "checks failed." in shown.out
    assert shown.err == ""
