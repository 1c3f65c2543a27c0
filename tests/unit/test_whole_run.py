"""The end of a test run: times, slow tests, chance failures; and what `make test` leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import timings
from support.nested_pytest import plain_environment
from support.processes import ROOT
from support.repeats import mostly_long
from support.timings import FileTime, Timing

WHOLE_RUN = ROOT / "tests" / "support" / "whole_run.py"
CONFTEST = """
from support.run_report import RunReport

def pytest_configure(config):
    for marker in ("long(reason)", "slow(reason)"):
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(RunReport(config))
"""
TESTS = """
import time
import pytest

@pytest.fixture(scope="module")
def shared():
    time.sleep(1)

def test_first(shared):
    pass

def test_slowest(shared):
    time.sleep(0.1)
"""


def run(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=plain_environment() | {"PYTHONPATH": str(ROOT / "tests")} | more,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_timings_name_the_slowest_and_what_needs_a_reason() -> None:
    some = [Timing(f"test_{number}", float(number), None) for number in range(30)]
    some[25] = Timing("test_25", 25.0, "waits for a session")
    printed = timings.lines(some)
    assert printed[0] == "the 20 slowest tests, in seconds:"
    assert printed[1].split() == ["29.0", "test_29"]
    assert printed[5] == "    25.0  test_25  (waits for a session)"
    assert printed[21] == "over 20 s without a reason (pytest.mark.slow):"
    assert [line.split()[1] for line in printed[22:]] == [
        f"test_{number}" for number in (29, 28, 27, 26, 24, 23, 22, 21)
    ]


def test_files_are_named_with_the_time_of_processors() -> None:
    files = {f"test_{number}.py": FileTime(float(number), 31.0 - number) for number in range(1, 31)}
    printed = timings.file_lines(files)
    assert printed[0].endswith("in seconds and processor seconds, of 465 and 465:")
    assert printed[1].split() == ["30.0", "1.0", "test_30.py"]
    assert printed[22].split() == ["1.0", "30.0", "test_1.py"]
    assert len(printed) == 42


@pytest.mark.parametrize("how", [(), ("-n", "2")], ids=["alone", "in workers"])
def test_the_time_of_processors_is_counted_with_programs_that_tests_run(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys, time\n\n"
        "WORK = 'import time\\nwhile time.process_time() < 0.5: pass'\n\n"
        "def test_it():\n"
        "    subprocess.run([sys.executable, '-c', WORK], check=True)\n"
    )
    (tmp_path / "test_rest.py").write_text("import time\n\ndef test_it():\n    time.sleep(0.5)\n")
    reports = tmp_path / "reports"
    reports.mkdir()
    run(
        tmp_path, sys.executable, "-m", "pytest", "--rootdir=.", *how,
        **{timings.DIRECTORY: str(reports)},
    )  # fmt: skip
    files = timings.read_files(reports)
    assert files["test_it.py"].cpu_seconds > 0.5, files
    assert files["test_rest.py"].cpu_seconds < 0.4, files
    assert files["test_rest.py"].seconds > 0.5, files


@pytest.mark.parametrize("how", [(), ("-n", "2")], ids=["alone", "in workers"])
def test_the_time_of_a_shared_fixture_is_not_the_first_tests(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    ended = run(tmp_path, sys.executable, "-m", "pytest", "test_it.py", "--rootdir=.", *how)
    slowest = ended.stdout.partition("slowest tests")[2].splitlines()
    assert slowest[1].split()[1] == "test_it.py::test_slowest", ended.stdout
    assert slowest[2].split()[1] == "test_it.py::test_first"


@pytest.mark.parametrize("marker", ["long", "slow"])
def test_a_marker_without_a_reason_stops_the_run(tmp_path: Path, marker: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(
        f"import pytest\n\n@pytest.mark.{marker}\ndef test_it():\n    pass\n"
    )
    ended = run(tmp_path, sys.executable, "-m", "pytest", "test_it.py", "--rootdir=.")
    assert ended.returncode != 0
    assert f"write the reason, as in {marker}('reason')" in ended.stdout + ended.stderr


def test_a_whole_run_ends_with_its_stages_and_its_chance_failures(tmp_path: Path) -> None:
    """A test fails once; of two targets at once the second fails, so the last does not run."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n\n"
        "def test_unlucky():\n"
        "    seen = Path('seen')\n"
        "    was_there = seen.exists()\n"
        "    seen.touch()\n"
        "    assert was_there\n"
    )
    crowd = ROOT / "tests" / "support" / "crowd.py"
    (tmp_path / "Makefile").write_text(
        f"first:\n\ttrue\n"
        f"second:\n\t{sys.executable} {crowd} test_it.py --rootdir=.\n"
        f"third:\n\techo done; false\n"
        f"fourth:\n\ttrue\n"
    )
    stages = ("first", "second+third", "fourth")
    ended = run(tmp_path, sys.executable, str(WHOLE_RUN), "make", *stages, CI="true")
    assert ended.returncode != 0
    printed = ended.stdout
    assert printed.index("1 passed") < printed.index("done"), "the second's output is not the last"
    summary = ended.stdout.partition("The run, in minutes:")[2]
    assert [line.split()[1] for line in summary.splitlines()[1:5]] == [
        "first", "second", "third", "in",
    ]  # fmt: skip
    assert "the 1 slowest tests" in summary
    files = summary.partition("the slowest files, in seconds")[2].splitlines()
    assert files[1].split()[2] == "test_it.py"
    chance = summary.partition("FAILED BY CHANCE, and passed alone (1):")[2]
    assert chance.splitlines()[1] == "  test_it.py::test_unlucky"
    assert summary.rstrip().endswith("FAILED: make third")


@pytest.mark.parametrize("keep", [1, ["first"]])
def test_of_many_values_some_are_not_long(keep: int | list[str]) -> None:
    first, second, third = mostly_long(
        ["first", "second", pytest.param("third", id="3", marks=pytest.mark.slow("waits"))],
        "more of the same",
        keep=keep,
    )
    assert (first.values, first.marks) == (("first",), ())
    assert [mark.name for mark in second.marks] == ["long"]
    assert (third.values, third.id) == (("third",), "3")
    assert [(mark.name, mark.args[0]) for mark in third.marks] == [
        ("slow", "waits"),
        ("long", "more of the same"),
    ]


def test_make_test_and_make_test_long_run_every_test() -> None:
    """Each directory is in `make test` without its long tests, which are in `make test-long`."""
    short = commands("test")
    for directory in ("tests/unit", "tests/scripts", "tests/simulation", "tests/conformance",
                      "tests/spark"):  # fmt: skip
        assert any(directory in line and '-m "not long"' in line for line in short), directory
    assert not [line for line in short if "tests/" in line and "-m long" in line]
    long = [line for line in commands("test-long") if "-m long" in line]
    assert any(" tests --ignore=tests/spark " in line for line in long)
    assert any(" tests/spark " in line for line in long)


def commands(target: str) -> list[str]:
    printed = run(ROOT, "make", "-n", target)
    assert printed.returncode == 0, printed.stderr
    joined = printed.stdout.replace("\\\n", " ")
    return [line for line in joined.splitlines() if "pytest" in line or "crowd.py" in line]
