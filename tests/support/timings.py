"""How long tests took: the slowest of a run, and those that are slow without a stated reason.

A test may take `SECONDS_MAX`; above that it carries `@pytest.mark.slow("reason")`. One that takes
longer without a reason is named and does not fail the run, because machines differ: a bound that
fails a run would itself be a cause of chance failures.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

SECONDS_MAX: Final = 20.0
SLOWEST_COUNT: Final = 20
#: Directory in which each part of a run leaves what the summary of the whole run needs.
DIRECTORY: Final = "MOLDAU_TEST_REPORTS"


@dataclass(frozen=True)
class Timing:
    test: str
    seconds: float
    reason: str | None


@dataclass(frozen=True)
class FileTime:
    """What the tests of a file took, and the processor time in it; see `support.run_report`."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: FileTime) -> FileTime:
        return FileTime(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


def slowest_of(timings: Sequence[Timing]) -> list[Timing]:
    """The slowest, and all above the limit that have no reason."""
    ranked = sorted(timings, key=lambda each: -each.seconds)
    rest = [each for each in ranked[SLOWEST_COUNT:] if is_unexplained(each)]
    return ranked[:SLOWEST_COUNT] + rest


def is_unexplained(timing: Timing) -> bool:
    return timing.seconds > SECONDS_MAX and timing.reason is None


def lines(timings: Sequence[Timing]) -> list[str]:
    """A table of the slowest, and a list of those that need a reason."""
    ranked = slowest_of(timings)
    printed = [f"the {min(len(ranked), SLOWEST_COUNT)} slowest tests, in seconds:"]
    for each in ranked[:SLOWEST_COUNT]:
        why = f"  ({each.reason})" if each.reason else ""
        printed.append(f"  {each.seconds:6.1f}  {each.test}{why}")
    unexplained = [each for each in ranked if is_unexplained(each)]
    if unexplained:
        printed.append(f"over {SECONDS_MAX:.0f} s without a reason (pytest.mark.slow):")
        printed += [f"  {each.seconds:6.1f}  {each.test}" for each in unexplained]
    return printed


def file_lines(files: Mapping[str, FileTime]) -> list[str]:
    """The files that took the longest, with the fixtures that their tests share, and those that
    took the most processor time: on a busy machine these are what a whole run waits for."""
    whole = sum(files.values(), FileTime())
    return [
        f"the slowest files, in seconds and processor seconds, of {whole.seconds:.0f} and"
        f" {whole.cpu_seconds:.0f}:",
        *_ranked(files, lambda took: took.seconds),
        "the files with the most processor seconds:",
        *_ranked(files, lambda took: took.cpu_seconds),
    ]


def _ranked(files: Mapping[str, FileTime], by: Callable[[FileTime], float]) -> list[str]:
    ranked = sorted(files.items(), key=lambda each: -by(each[1]))[:SLOWEST_COUNT]
    return [f"  {took.seconds:6.1f} {took.cpu_seconds:6.1f}  {file}" for file, took in ranked]


def write(directory: Path, timings: Sequence[Timing], files: Mapping[str, FileTime]) -> None:
    """Leave the slowest of one part of a run, and the time of each file, in the directory."""
    written = json.dumps([asdict(each) for each in slowest_of(timings)])
    (directory / f"slowest-{os.getpid()}.json").write_text(written)
    taken = {file: asdict(each) for file, each in files.items()}
    (directory / f"files-{os.getpid()}.json").write_text(json.dumps(taken))


def read_files(directory: Path) -> dict[str, FileTime]:
    """The time of each file in all parts of a run."""
    found: dict[str, FileTime] = defaultdict(FileTime)
    for path in sorted(directory.glob("files-*.json")):
        for file, fields in json.loads(path.read_text()).items():
            found[file] += FileTime(**fields)
    return found


def read(directory: Path) -> list[Timing]:
    """What the parts of a run have left in the directory; of a test that ran again, the slower."""
    found: dict[str, Timing] = {}
    for path in sorted(directory.glob("slowest-*.json")):
        for each in (Timing(**fields) for fields in json.loads(path.read_text())):
            if each.test not in found or found[each.test].seconds < each.seconds:
                found[each.test] = each
    return list(found.values())
