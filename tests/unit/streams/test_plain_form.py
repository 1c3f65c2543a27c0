"""The modules that are compiled do the same as plain Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import moldau.streams._records as records

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
sys.path.insert(0, "tests")
from support.plain import PlainForms
sys.meta_path.insert(0, PlainForms("moldau.streams."))
import pytest
from moldau.streams import _records
assert _records.__file__.endswith(".py"), _records.__file__
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_all_tests_of_streams_pass_in_plain_form() -> None:
    if records.__file__.endswith(".py"):
        return  # Nothing is compiled here: the other tests ran this form.
    ignored = [f"--ignore={path}" for path in (Path(__file__), ROOT / "tests/unit/streams/hosts")]
    options = ["-q", "-x", "-p", "no:cacheprovider", *ignored]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options, "tests/unit/streams"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-2000:]
