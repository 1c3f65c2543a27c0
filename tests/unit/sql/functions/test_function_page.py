"""The page of functions is made from their declarations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_the_page_is_not_stale() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate_sql_functions.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
