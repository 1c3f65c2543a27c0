"""Which writes of a batch count: the decision behind every exactly-once sink here.

Spark writes a batch again, under the same number, when a task, the commit or the whole query
failed. So a table remembers, in the very commit that adds the rows, the last batch of each query;
a batch that is not newer has been committed before and its second copy is dropped.

The files of an attempt carry the attempt's token in their names, and a marker with the same token
is there before the first of them. What a marker names and the commit does not is what a crash left
behind. Order within a commit: drop what lost, commit, drop the markers; then a crash at any point
leaves nothing that a later look would take for the wrong thing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MARKER_FOLDER = "_moldau"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one task at its part of a batch. `token` is unique among all tries."""

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
    """The markers among the names in the marker folder; other names are nobody's business."""
    found = []
    for name in names:
        query_id, _, rest = name.partition(".")
        batch, _, token = rest.partition(".")
        if query_id and token and batch.isdigit():
            found.append(Marker(f"{MARKER_FOLDER}/{name}", query_id, int(batch), token))
    return found


def lost_tokens(
    markers: Sequence[Marker], *, query_id: str, batch_id: int, kept: Iterable[str]
) -> set[str]:
    """Tokens of attempts at this batch, not yet committed, whose files nobody will commit.

    Markers of older batches are left from a crash after their commit: what lost was dropped before
    it, so their tokens may name committed files.
    """
    keep = set(kept)
    return {
        marker.token
        for marker in markers
        if marker.query_id == query_id and marker.batch_id == batch_id and marker.token not in keep
    }


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
