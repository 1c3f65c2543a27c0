"""The project in examples/ and the tests printed in docs/testing.md run as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pytest_in(
    folder: Path, *arguments: str, cache: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Only the plugin is loaded beside pytest itself, as in a fresh environment."""
    environment = dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    if cache is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(cache)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "moldau.testing.plugin"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_example_project_passes(tmp_path: Path) -> None:
    ran = pytest_in(ROOT / "examples" / "orders", cache=tmp_path)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    # One that was not found would pass as well.
    assert re.search(r"\b1[1-9] passed", ran.stdout), ran.stdout


def test_the_example_project_uses_only_what_a_user_has() -> None:
    folder = ROOT / "examples" / "orders"
    imported = {
        line.split()[1].partition(".")[0] + "." + line.split()[1].partition(".")[2]
        for path in folder.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.match(r"(from|import) moldau", line)
    }
    assert imported <= {"moldau.testing", "moldau.client"}
    assert not list((folder / "src").rglob("*moldau*"))


def test_the_tests_in_the_documentation_pass(tmp_path: Path) -> None:
    blocks = TESTS.findall((ROOT / "docs" / "testing.md").read_text())
    tests = [block for block in blocks if "def test_" in block]
    assert len(tests) >= 5
    for number, block in enumerate(tests):
        (tmp_path / f"test_block_{number}.py").write_text(block)
    ran = pytest_in(tmp_path)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    scripts = [block for block in blocks if "def test_" not in block]
    for block in scripts:
        run = subprocess.run(
            [sys.executable, "-c", block], capture_output=True, text=True, timeout=60, check=False
        )
        assert run.returncode == 0, f"{block}\n{run.stderr}"
