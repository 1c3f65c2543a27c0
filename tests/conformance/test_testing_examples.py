"""The project in examples/testing and what is printed in docs/testing.md run as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "examples" / "testing"
BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS_MAX = 240


def blocks(*, tests: bool) -> list[str]:
    """Of Python in the documentation: the tests, or the scripts."""
    found = BLOCKS.findall((ROOT / "docs" / "testing.md").read_text())
    return [block for block in found if ("def test_" in block) is tests]


def begin_pytest(folder: Path) -> subprocess.Popen[str]:
    """Only the plugin is loaded beside pytest itself, as in a fresh environment."""
    environment = dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "moldau.testing.plugin"]
    return subprocess.Popen(
        [*command, "-p", "no:cacheprovider"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Both at once: they mostly wait."""
    documented = tmp_path_factory.mktemp("documented")
    for number, block in enumerate(blocks(tests=True)):
        (documented / f"test_block_{number}.py").write_text(block)
    begun = {"project": begin_pytest(PROJECT), "documented": begin_pytest(documented)}
    yield begun
    for process in begun.values():
        process.kill()
        process.communicate()


def passed(process: subprocess.Popen[str]) -> int:
    """How many tests passed, if all did."""
    output, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, output[-8000:]
    counted = re.search(r"\b(\d+) passed", output)
    assert counted is not None, output
    return int(counted[1])


@pytest.mark.long("a project with a pytest of its own; `make examples` runs it, too")
@pytest.mark.slow("a project with a pytest of its own runs")
def test_the_example_project_passes(runs: dict[str, subprocess.Popen[str]]) -> None:
    written = sum(path.read_text().count("\ndef test_") for path in PROJECT.rglob("test_*.py"))
    assert passed(runs["project"]) >= written > 10


def test_the_tests_in_the_documentation_pass(runs: dict[str, subprocess.Popen[str]]) -> None:
    written = sum(block.count("\ndef test_") for block in blocks(tests=True))
    assert passed(runs["documented"]) == written >= 6


@pytest.mark.parametrize("script", blocks(tests=False))
def test_the_scripts_in_the_documentation_run(script: str) -> None:
    command = [sys.executable, "-W", "error", "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_example_project_uses_only_what_a_user_has() -> None:
    used = {
        line.split()[1]
        for path in PROJECT.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.match(r"(from|import) moldau", line)
    }
    assert used == {"moldau.testing", "moldau.client", "moldau.client.errors"}
