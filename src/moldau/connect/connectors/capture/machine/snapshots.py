"""The rows of a snapshot: which are the first and the last, of all and of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.connect.connectors.capture.machine.envelope import Row

Found = tuple[str, str, Row]


def marked(rows: Iterable[Found]) -> Iterator[tuple[str, Found]]:
    """Each row with what the field `snapshot` of its source is. Reads one row ahead."""
    before: Found | None = None
    held: Found | None = None
    for row in rows:
        if held is not None:
            yield _marker(before, held, row), held
        before, held = held, row
    if held is not None:
        yield "last", held


def _marker(before: Found | None, row: Found, after: Found) -> str:
    if before is None:
        return "first"
    if after[:2] != row[:2]:
        return "last_in_data_collection"
    return "first_in_data_collection" if before[:2] != row[:2] else "true"
