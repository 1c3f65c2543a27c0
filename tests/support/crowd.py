"""pytest for tests that share the machine with many processes: `crowd.py ARGS` is `pytest ARGS`.

Such a test can fail for want of a core and not for a fault. On a developer's machine a failure is a
failure. In CI (the variable `CI`), as in Apache Kafka's own build, a few that failed are run once
more, alone: whatever fails again has failed, and what passes is printed by name, for somebody to
find out what it took for granted. More than `AGAIN_MAX` failures are never put down to chance.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

AGAIN_MAX: Final = 3
_TESTS_FAILED: Final = 1


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="moldau-crowd-") as cache:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        code = subprocess.call(command)
        if code != _TESTS_FAILED or not os.environ.get("CI"):
            return code
        failed = _failed(Path(cache))
        if not 0 < len(failed) <= AGAIN_MAX:
            return code
        _print(f"{len(failed)} failed; run once more, alone:", failed)
        code = subprocess.call([*command, "--last-failed", "--numprocesses=0", "--dist=no"])
        if code == 0:
            _print("FAILED BY CHANCE, and passed alone:", failed)
        return code


def _failed(cache: Path) -> list[str]:
    """The tests that the last run left failed, as pytest remembers them."""
    try:
        return sorted(json.loads((cache / "v/cache/lastfailed").read_text()))
    except FileNotFoundError:
        return []


def _print(headline: str, tests: Sequence[str]) -> None:
    print("\n".join([headline, *(f"  {test}" for test in tests)]), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
