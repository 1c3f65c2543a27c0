"""Which writes of a batch count: the decision behind every exactly-once sink here.

Spark writes a batch again, under the same number, when a task, the commit or the whole query
failed. So a table remembers, in the very commit that adds the rows, the last batch of each query;
a batch that is not newer has been committed before and its second copy is dropped.

The files of an attempt carry the attempt's token in their names, and a marker with the same token
is there before the first of them. Only when a batch is committed are the files of its other
attempts removed: before that, any of them might still be the one that wins. The markers go last, so
a crash at any point leaves a trace of what is still to be removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MARKER_FOLDER = "_moldau"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one task at its part of a batch. `token` is a UUID, unlike that of any other."""

    query_id: str
    batch_id: int
    partition: int
    token: str

    @property
    def marker(self) -> str:
        return f"{MARKER_FOLDER}/{self.query_id}.{self.batch_id}.{self.token}"


@dataclass(frozen=True, slots=True)
class Marker:
    path: str
    query_id: str
    batch_id: int
    token: str


def is_committed(batch_id: int, last_batch_id: int | None) -> bool:
    """Whether a table that holds `last_batch_id` of a query holds this batch of it."""
    return last_batch_id is not None and batch_id <= last_batch_id


def parse_markers(names: Iterable[str]) -> list[Marker]:
    """The markers among the names in the marker folder; other names are ignored."""
    found = []
    for name in names:
        query_id, _, rest = name.partition(".")
        batch, _, token = rest.partition(".")
        if query_id and token and batch.isdigit():
            found.append(Marker(f"{MARKER_FOLDER}/{name}", query_id, int(batch), token))
    return found


def tokens_of(markers: Iterable[Marker], *, query_id: str, batch_id: int) -> set[str]:
    """The tokens of all known attempts at one batch."""
    return {
        marker.token
        for marker in markers
        if marker.query_id == query_id and marker.batch_id == batch_id
    }


def losing_tokens(tokens: set[str], table_files: Iterable[str]) -> set[str]:
    """Which attempts at a committed batch lost, seen from the names of the table's files.

    If none of them is in the table (its files have been rewritten since), nothing can be
    concluded, and nothing is called lost.
    """
    won = {token for name in table_files for token in tokens if token in name}
    return tokens - won if won else set()


def finished_markers(markers: Sequence[Marker], *, query_id: str, batch_id: int) -> list[str]:
    """Paths of the markers that have done their duty once this batch is committed."""
    return [
        marker.path
        for marker in markers
        if marker.query_id == query_id and marker.batch_id <= batch_id
    ]


def short_digest(*parts: str) -> str:
    """A short name for a query and a table, for places where names are bounded."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
