"""pytest for tests that share the machine with many processes: `crowd.py ARGS` is `pytest ARGS`.

Such a test can fail because the machine is busy, without a fault in the code. On a developer's
machine a failure is a failure. In CI (the variable `CI`), as in Apache Kafka's own build, the
failed tests of up to `FILES_MAX` files are run once more, alone: what fails again has failed, and
what passes is printed by name and listed at the end of the whole run, because the test relies on a
wrong assumption. Failures in more files are never attributed to chance. Files are counted, not
tests, because the tests of a file share a server: when it does not start, they all fail.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import timings

FILES_MAX: Final = 3
BY_CHANCE: Final = "FAILED BY CHANCE, and passed alone"
_TESTS_FAILED: Final = 1


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="moldau-crowd-") as cache:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        code = _call(command)
        if code != _TESTS_FAILED or not os.environ.get("CI"):
            return code
        failed = _failed(Path(cache))
        if not 0 < len({each.partition("::")[0] for each in failed}) <= FILES_MAX:
            return code
        _print(f"{len(failed)} failed; run once more, alone:", failed)
        code = _call([*command, "--last-failed", "--numprocesses=0", "--dist=no"])
        if code == 0:
            _print(f"{BY_CHANCE}:", failed)
            _write(failed)
        return code


def _call(command: Sequence[str]) -> int:
    """Run a command to its end, and stop it in order if this process is to stop: a pytest that is
    left alone goes on, and one that is killed leaves its brokers behind."""
    with subprocess.Popen(command) as process:
        previous = signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT))
        try:
            return process.wait()
        finally:
            signal.signal(signal.SIGTERM, previous)


def _failed(cache: Path) -> list[str]:
    """The tests that the last run left failed, as pytest remembers them."""
    try:
        return sorted(json.loads((cache / "v/cache/lastfailed").read_text()))
    except FileNotFoundError:
        return []


def _write(tests: Sequence[str]) -> None:
    directory = os.environ.get(timings.DIRECTORY)
    if directory:
        Path(directory, f"chance-{os.getpid()}.json").write_text(json.dumps(tests))


def read(directory: Path) -> list[str]:
    """The tests that passed when run again, of all parts of a run."""
    found = []
    for path in sorted(directory.glob("chance-*.json")):
        found += json.loads(path.read_text())
    return found


def _print(headline: str, tests: Sequence[str]) -> None:
    print("\n".join([headline, *(f"  {test}" for test in tests)]), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
