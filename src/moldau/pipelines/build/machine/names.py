"""The columns that travel with a record beside its own, and which steps may lose them."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.pipelines.build.machine.sql_text import ERROR

METADATA = ("_key", "_value", "_topic", "_partition", "_offset", "_timestamp", "_headers")
"""The columns that every topic source has beside those of its format."""

LETTER = "__letter"
"""The record for the dead-letter topic; null for good records."""

ROUTE = "__route"
"""The topic that a row is written to, if that depends on the row."""

ORIGIN = ("_key", "_value", "_topic", "_partition", "_offset")
"""What a dead letter is made of: the record as it came."""

COORDINATES = ("_topic", "_partition", "_offset")
HEADERS = "_headers"
HIDDEN = (ERROR, LETTER, ROUTE)


def visible(columns: Iterable[str], implicit: Iterable[str]) -> list[str]:
    """The columns that the user sees as the pipeline's own and that sinks write."""
    left_out = {*implicit, *HIDDEN}
    return [column for column in columns if column not in left_out]


def carried(columns: Iterable[str]) -> list[str]:
    """The columns that go along untouched when a step makes new rows."""
    return [column for column in columns if column in (*METADATA, ERROR)]
