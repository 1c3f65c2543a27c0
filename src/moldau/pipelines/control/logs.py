"""The log of each pipeline: `logs/<name>.log` in the deployment folder.

Invariants: a pipeline's logs take at most `SIZE_MAX` bytes times `FILES_MAX`; a reader that
follows one does not lose lines when the file is replaced by a new one.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

__all__ = ["PipelineLogs", "follow", "is_headline", "tail"]

SIZE_MAX: Final = 2 * 1024 * 1024
FILES_MAX: Final = 3
_LINE_LENGTH_MAX: Final = 64 * 1024
_POLL_SECONDS: Final = 0.2
_INDENT: Final = "    "


class PipelineLogs:
    """Writes lines with their time; the first line of an entry tells its level."""

    def __init__(self, folder: Path, *, size_max: int = SIZE_MAX, now: Callable[[], float]) -> None:
        self._folder = folder
        self._size_max = size_max
        self._now = now

    def path(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def write(self, name: str, level: str, text: str) -> None:
        """Further lines of the text are indented, so that an entry's end can be seen."""
        first, *more = text.rstrip().splitlines() or [""]
        at = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        lines = [f"{at}Z {level:<5} {first}", *(f"{_INDENT}{line}" for line in more)]
        entry = "".join(f"{line[:_LINE_LENGTH_MAX]}\n" for line in lines)
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._make_room(path, len(entry.encode()))
        with path.open("a", encoding="utf-8") as file:
            file.write(entry)

    def remove(self, name: str) -> None:
        for path in _files(self.path(name)):
            path.unlink(missing_ok=True)

    def _make_room(self, path: Path, size: int) -> None:
        try:
            if path.stat().st_size + size <= self._size_max:
                return
        except FileNotFoundError:
            return
        files = _files(path)
        for older, newer in zip(reversed(files[1:]), reversed(files[:-1]), strict=True):
            if newer.exists():
                newer.replace(older)


def _files(path: Path) -> list[Path]:
    """The newest first."""
    return [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, FILES_MAX))]


def is_headline(line: str) -> bool:
    """Whether a line begins an entry; the others are details, mostly of Java's."""
    return not line.startswith(_INDENT)


def tail(
    path: Path, lines_max: int | None, keep: Callable[[str], bool] = lambda line: True
) -> Iterator[str]:
    """The last lines, without their ends, over all files of the log; all of them with None."""
    yield from deque(filter(keep, _lines(_files(path))), maxlen=lines_max)


def _lines(files: Sequence[Path]) -> Iterator[str]:
    """Of files of which the newest comes first, the oldest line first."""
    for each in reversed(files):
        try:
            with each.open(encoding="utf-8", errors="replace") as file:
                yield from (line.rstrip("\n") for line in file)
        except FileNotFoundError:
            continue


def follow(
    path: Path,
    lines_max: int | None,
    keep: Callable[[str], bool] = lambda line: True,
    *,
    until: Callable[[], bool] = lambda: False,
) -> Iterator[str]:
    """The last lines, then those to come; ends when `until` says so after a look at the file."""
    kept = deque(filter(keep, _lines(_files(path)[1:])), maxlen=lines_max)
    file = _opened(path)
    try:
        if file is not None:
            kept.extend(filter(keep, file.read().splitlines()))
        yield from kept
        rest = ""
        while True:
            over = until()
            if file is None:
                file = _opened(path)
            if file is not None:
                rest += file.read()
                *lines, rest = rest.split("\n")
                yield from filter(keep, lines)
                if not _is_current(file, path):
                    rest += file.read()
                    *lines, rest = rest.split("\n")
                    yield from filter(keep, lines)
                    file.close()
                    file = _opened(path)
                    continue
            if over:
                return
            time.sleep(_POLL_SECONDS)
    finally:
        if file is not None:
            file.close()


def _opened(path: Path) -> TextIO | None:
    try:
        return path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _is_current(file: TextIO, path: Path) -> bool:
    """Whether new lines still come into this file; False once another has its name."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return True
    here = os.fstat(file.fileno())
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
