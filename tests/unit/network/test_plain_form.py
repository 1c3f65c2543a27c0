"""The modules that every request passes do the same in plain Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import moldau.broker.network._connection as connection

ROOT = Path(__file__).parents[3]
TESTED = (
    "tests/unit/network/test_frames.py",
    "tests/unit/network/test_connection.py",
    "tests/unit/network/test_appended.py",
    "tests/unit/handlers/test_produce_codec.py",
    "tests/unit/handlers/test_fetch_codec.py",
)
PROGRAM = """
import sys
sys.path.insert(0, "tests")
from support.plain import PlainForms
sys.meta_path[:0] = [PlainForms("moldau.broker."), PlainForms("moldau.wire.")]
import pytest
from moldau.broker.network import _connection
assert _connection.__file__.endswith(".py"), _connection.__file__
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_tests_of_requests_pass_in_plain_form() -> None:
    if connection.__file__.endswith(".py"):
        return  # Nothing is compiled here: the other tests ran this form.
    options = ["-q", "-x", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options, *TESTED],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-2000:]
