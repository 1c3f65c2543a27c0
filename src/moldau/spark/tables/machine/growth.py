"""Where a stream over a growing table stands, and how far its next batch goes.

A table is a row of versions, each of which adds files. A position says that the first `index` files
of `version` have been read; with `whole` these are not the files that the version added but all of
the table at that version, which is how a stream over a table that has rows already begins. From
there on each added file is given once. A version that removes or rewrites rows cannot be given as
added files: it stops the stream, or is left out with `skipChangeCommits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.spark.tables.errors import ChangedRowsError


@dataclass(frozen=True, slots=True)
class Version:
    """What one version of a table did. `change` says why it is no plain addition of rows."""

    number: int
    files: tuple[Any, ...]
    change: str = ""


class TableLog(Protocol):
    """The versions of a table, oldest first."""

    def following(self, number: int) -> Sequence[int]:
        """The versions after this one, as far as they exist."""

    def version(self, number: int) -> Version:
        """What this version added."""

    def whole(self, number: int) -> Version:
        """All files of the table at this version."""


@dataclass(frozen=True, slots=True)
class Position:
    version: int
    index: int
    whole: bool = False

    def as_offset(self) -> dict[str, object]:
        """The form in the checkpoint. Iceberg's ids go beyond what JSON readers keep exactly."""
        return {"version": str(self.version), "index": self.index, "whole": self.whole}


def position_of(offset: dict[str, Any]) -> Position:
    return Position(int(offset["version"]), int(offset["index"]), bool(offset["whole"]))


def initial_offset(start: Position) -> dict[str, object]:
    """Where a stream begins. Each of its offsets names this beginning, see `batch_range`."""
    return {**start.as_offset(), "start": start.as_offset()}


def next_offset(offset: dict[str, Any], end: Position) -> dict[str, object]:
    return {**end.as_offset(), "start": offset["start"]}


def batch_range(start: dict[str, Any], end: dict[str, Any]) -> tuple[Position, Position]:
    """The positions between two offsets.

    Spark does not keep where a stream began: when it runs the first batch again it asks again, and
    the table may have grown since. The batch's end shows where it really began.
    """
    begins = start["start"] == {name: start[name] for name in start["start"]}
    return position_of(end["start"] if begins else start), position_of(end)


def advance(
    log: TableLog,
    start: Position,
    *,
    files_max: int | None,
    last: int | None = None,
    skip_changes: bool,
) -> Position:
    """The position after at most `files_max` more files, not beyond version `last`."""
    position, room = start, files_max
    for at, files in _ahead(log, start, last, skip_changes=skip_changes):
        if room is not None and len(files) - at.index > room:
            return Position(at.version, at.index + room, at.whole)
        if room is not None:
            room -= len(files) - at.index
        position = Position(at.version, len(files), at.whole)
    return position


def between(log: TableLog, start: Position, end: Position, *, skip_changes: bool) -> list[Any]:
    """The files after `start` and up to `end`: the same ones whenever it is asked."""
    found: list[Any] = []
    for at, files in _ahead(log, start, end.version, skip_changes=skip_changes):
        reached = at.version == end.version and at.whole == end.whole
        found += files[at.index : end.index if reached else len(files)]
        if reached:
            break
    return found


def _ahead(
    log: TableLog, start: Position, last: int | None, *, skip_changes: bool
) -> Iterator[tuple[Position, tuple[Any, ...]]]:
    """The start's own version from its index on, then the following ones from their first file."""
    first = log.whole(start.version) if start.whole else log.version(start.version)
    yield start, _added(first, start, skip_changes=skip_changes)
    if last == start.version:
        return
    for number in log.following(start.version):
        yield Position(number, 0), _added(log.version(number), None, skip_changes=skip_changes)
        if number == last:
            return


def _added(version: Version, start: Position | None, *, skip_changes: bool) -> tuple[Any, ...]:
    if not version.change or (start is not None and start.whole):
        return version.files
    if skip_changes:
        return ()
    raise ChangedRowsError(
        f"version {version.number} {version.change}, so its rows cannot be given as added ones",
        "Set skipChangeCommits: true to leave such versions out, or start again with a new "
        "checkpoint",
    )
