"""A short run of the fuzzer; `make fuzz` is the long one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from fuzz.__main__ import run
from fuzz.target import missing

FRAMES = 4_000
SEED = 13


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_malformed_frames_disturb_nobody(tmp_path: Path) -> None:
    report = io.StringIO()
    problems = run(tmp_path, frames=FRAMES, seed=SEED, console=Console(file=report), seconds_max=15)
    assert problems == [], report.getvalue()
