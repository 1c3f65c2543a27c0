"""What a process that crashes leaves behind: real core files, where the system writes them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

PATTERN = Path("/proc/sys/kernel/core_pattern")
# Made when it runs: its code is in the process, too.
CRASH = """
import os, sys
from moldau.broker.core_files import keep_memory_out_of_core_files
if sys.argv[1] == "secured":
    keep_memory_out_of_core_files()
secret = "-".join(str(number) for number in range(900, 930))
os.abort()
"""
SECRET = "-".join(str(number) for number in range(900, 930)).encode()


@pytest.mark.skipif(
    not PATTERN.exists() or not PATTERN.read_text().startswith("core"),
    reason="core files are not written to the current directory",
)
@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_CORE)[1] == 0, reason="core files are not allowed"
)
def test_secrets_are_not_in_core_files(tmp_path: Path) -> None:
    def left(how: str) -> bytes:
        folder = tmp_path / how
        folder.mkdir()
        done = subprocess.run(
            ["bash", "-c", 'ulimit -c "$(ulimit -H -c)"; exec "$@"', "-"]
            + [sys.executable, "-c", CRASH, how],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert done.returncode
        return b"".join(each.read_bytes() for each in folder.iterdir())

    # What would be there otherwise, so that the search is known to find it.
    assert SECRET in left("plain")
    assert SECRET not in left("secured")
