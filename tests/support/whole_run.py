"""`whole_run.py MAKE STAGE...` runs targets of the Makefile one after the other, up to the first
that fails, and ends with a summary: the time of each, the slowest tests of all, and the tests that
failed and passed when run again alone (support/crowd.py).

Targets joined as `a+b` run at the same time: each of them waits a good deal for others, and two
cores do both in little more than the time of one. The output of the second follows the first's.

Only the standard library is imported here: the first stage may be the one that installs pytest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import crowd, timings

POLL_SECONDS: Final = 0.1


@dataclass(frozen=True)
class Ended:
    target: str
    code: int
    seconds: float


def main(arguments: Sequence[str]) -> int:
    make, *stages = arguments
    with tempfile.TemporaryDirectory(prefix="moldau-run-") as name:
        began = time.monotonic()
        ended: list[Ended] = []
        for stage in stages:
            ended += run_stage(make, stage.split("+"), Path(name))
            if any(each.code for each in ended):
                break
        seconds = time.monotonic() - began
        print("\n".join(summary(Path(name), ended, seconds)), flush=True)
    return max(abs(each.code) for each in ended)


def run_stage(make: str, targets: Sequence[str], directory: Path) -> list[Ended]:
    """Run targets at the same time, each to its end."""
    logs = [directory / f"{target}.log" for target in targets[1:]]
    if logs:
        print(" and ".join(targets), "run at the same time; the first is printed first", flush=True)
    began = time.monotonic()
    running: dict[str, subprocess.Popen[bytes]] = {}
    ended: dict[str, Ended] = {}
    try:
        for target, log in zip(targets, [None, *logs], strict=True):
            running[target] = begin(make, target, log, directory)
        while len(ended) < len(running):
            for target, process in running.items():
                if target not in ended and process.poll() is not None:
                    ended[target] = Ended(target, process.returncode, time.monotonic() - began)
            time.sleep(POLL_SECONDS)
    finally:
        for process in running.values():
            if process.poll() is None:
                process.terminate()
    for log in logs:
        print(log.read_text(errors="replace"), flush=True)
    return [ended[target] for target in targets]


def begin(make: str, target: str, log: Path | None, directory: Path) -> subprocess.Popen[bytes]:
    command = [make, "--no-print-directory", target]
    environment = os.environ | {timings.DIRECTORY: str(directory)}
    if log is None:
        return subprocess.Popen(command, env=environment)
    with log.open("wb") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)


def summary(directory: Path, ended: Sequence[Ended], seconds: float) -> list[str]:
    printed = ["", "The run, in minutes:"]
    printed += [f"  {each.seconds / 60:6.1f}  {each.target}" for each in ended]
    printed.append(f"  {seconds / 60:6.1f}  in all")
    slowest = timings.read(directory)
    if slowest:
        printed += ["", *timings.lines(slowest)]
        printed += ["", *timings.file_lines(timings.read_files(directory))]
    chance = crowd.read(directory)
    printed.append("")
    if chance:
        printed.append(f"{crowd.BY_CHANCE} ({len(chance)}):")
        printed += [f"  {test}" for test in chance]
    else:
        printed.append("No test failed by chance.")
    printed += [f"FAILED: make {each.target}" for each in ended if each.code]
    return printed


if __name__ == "__main__":
    # A run that is stopped stops what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
