"""`make run`, `make demo` and `make test` of a fresh checkout compile once and show progress."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from support.processes import ROOT


@pytest.fixture(scope="module")
def set_up() -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "tools" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def would_run(venv: Path, target: str) -> list[str]:
    """The lines of `make TARGET` that set something up."""
    done = subprocess.run(
        ["make", "-n", f"VENV={venv}", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    marks = ("tools/set_up.py", "-m venv", "pip ")
    return [
        line.replace(f"{venv}/bin/", "")
        for line in done.stdout.splitlines()
        if any(mark in line for mark in marks)
    ]


def test_a_fresh_checkout_is_compiled_by_whichever_comes_first(tmp_path: Path) -> None:
    created, compiled = f"python3 -m venv {tmp_path}", "python tools/set_up.py"
    assert would_run(tmp_path, "run") == [created, compiled]
    assert would_run(tmp_path, "demo") == [created, compiled, f"{compiled} spark"]
    assert would_run(tmp_path, "check") == [created, compiled, f"{compiled} test"]


def test_after_make_run_nothing_is_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / ".installed").touch()
    assert would_run(tmp_path, "run") == []
    assert would_run(tmp_path, "demo") == ["python tools/set_up.py spark"]
    assert would_run(tmp_path, "check") == ["python tools/set_up.py test"]
    (tmp_path / ".installed-test").touch()
    assert would_run(tmp_path, "check") == []


def test_every_step_is_shown_once(set_up: ModuleType) -> None:
    steps = set_up.Steps(2)
    shown = [
        steps.read(line)
        for line in (
            "  Installing build dependencies: started",
            "  Collecting Cython>=3.1",
            "    Downloading cython-3.3.1-cp311.whl (3 MB)",
            "  Getting requirements to build editable: started",
            "  warning: src/moldau/client/_records.py:500:4: Unreachable code",
            "  building 'moldau.client._records' extension",
            "  gcc -Wsign-compare -c src/moldau/client/_records.c",
            "  building 'moldau.wire._record_codec' extension",
            "Installing collected packages: xxhash, rich, moldau",
        )
    ]
    assert [step for step in shown if step is not None] == [
        "fetching the build tools",
        "fetching Cython",
        "translating 2 modules to C",
        "compiling moldau.client._records (1 of 2)",
        "compiling moldau.wire._record_codec (2 of 2)",
        "installing 3 packages",
    ]
    assert not steps.uncompiled
    steps.read("  building extension \"moldau.client._records\" failed: command 'gcc' failed")
    assert steps.uncompiled
