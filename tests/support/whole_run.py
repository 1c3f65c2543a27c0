"""`whole_run.py MAKE STAGE...` runs targets of the Makefile one after the other, up to the first
that fails, and ends with a summary: the time of each, the slowest tests of all, and the tests that
failed and passed when run again alone (support/crowd.py).

Only the standard library is imported here: the first stage may be the one that installs pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import crowd, timings


def main(arguments: Sequence[str]) -> int:
    make, *stages = arguments
    with tempfile.TemporaryDirectory(prefix="moldau-run-") as name:
        environment = os.environ | {timings.DIRECTORY: name}
        code = 0
        took: list[tuple[str, float]] = []
        for stage in stages:
            began = time.monotonic()
            code = subprocess.call([make, "--no-print-directory", stage], env=environment)
            took.append((stage, time.monotonic() - began))
            if code:
                break
        print("\n".join(summary(Path(name), took, failed=bool(code))), flush=True)
    return code


def summary(directory: Path, took: Sequence[tuple[str, float]], *, failed: bool) -> list[str]:
    printed = ["", "The run, in minutes:"]
    printed += [f"  {seconds / 60:6.1f}  {stage}" for stage, seconds in took]
    printed.append(f"  {sum(seconds for _, seconds in took) / 60:6.1f}  in all")
    slowest = timings.read(directory)
    if slowest:
        printed += ["", *timings.lines(slowest)]
    chance = crowd.read(directory)
    printed.append("")
    if chance:
        printed.append(f"{crowd.BY_CHANCE} ({len(chance)}):")
        printed += [f"  {test}" for test in chance]
    else:
        printed.append("No test failed by chance.")
    if failed:
        printed.append(f"FAILED in {took[-1][0]}.")
    return printed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
