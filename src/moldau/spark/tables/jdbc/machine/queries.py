"""Which rows a source reads: parts of a table, or what was added since the last batch.

The streaming modes are Kafka Connect's. `incrementing`: a column that only grows; `timestamp`: a
column with the time of the last change; `timestamp+incrementing`: both, which
distinguishes rows of the same time. A batch is the rows after one position and up to another, so it
is the same rows whenever it is read, as long as they are not changed meanwhile.
"""

from __future__ import annotations

import datetime
import itertools
from dataclasses import dataclass
from typing import Any

from moldau.spark.tables.errors import OptionError
from moldau.spark.tables.jdbc.machine.statements import quoted


def parts(column: str, lower: str, upper: str, count: int) -> list[str]:
    """Conditions that cut a table into `count` parts; together they are true for every row.

    As in Spark, the bounds decide where it is cut, not which rows are read.
    """
    low, high = _bound(lower), _bound(upper)
    if type(low) is not type(high) or not low < high:
        raise OptionError(
            f"lowerBound {lower!r} and upperBound {upper!r} are no range",
            "Both are whole numbers, dates or timestamps, the lower one first",
        )
    name = quoted(column)
    cuts = []
    for index in range(1, count):
        cut = (
            _literal(low + (high - low) * index // count)
            if isinstance(low, int)
            else _literal(low + (high - low) * index / count)
        )
        if cut not in cuts:
            cuts.append(cut)
    if not cuts:
        return [""]
    return [
        f"({name} < {cuts[0]} OR {name} IS NULL)",
        *(f"({name} >= {a} AND {name} < {b})" for a, b in itertools.pairwise(cuts)),
        f"{name} >= {cuts[-1]}",
    ]


def _bound(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"the bound {text!r} is no whole number, date or timestamp",
            "Write 0, 2026-01-31 or 2026-01-31 12:00:00",
        ) from None


def _literal(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    return f"'{value.isoformat(sep=' ', timespec='microseconds')}'"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stream has read; None: nothing yet. Times are kept as the database gives them."""

    timestamp: Any = None
    incrementing: Any = None

    def as_offset(self) -> dict[str, Any]:
        time = self.timestamp
        if isinstance(time, datetime.datetime):
            return {"timestamp": {"iso": time.isoformat()}, "incrementing": self.incrementing}
        return {"timestamp": time, "incrementing": self.incrementing}


def progress_of(offset: dict[str, Any]) -> Progress:
    time = offset["timestamp"]
    if isinstance(time, dict):
        time = datetime.datetime.fromisoformat(time["iso"])
    return Progress(time, offset["incrementing"])


def earlier(one: Progress, other: Progress) -> Progress:
    """The position that comes first. One without any row is the first of all."""
    return min(
        one, other, key=lambda at: [(v is not None, v) for v in (at.timestamp, at.incrementing)]
    )


@dataclass(frozen=True, slots=True)
class Cursor:
    """The columns a stream follows. `mark` is the database's placeholder, `now` its clock."""

    timestamp: str
    incrementing: str
    mark: str
    now: str = ""

    @property
    def _columns(self) -> list[str]:
        return [quoted(name) for name in (self.timestamp, self.incrementing) if name]

    def _values(self, at: Progress) -> list[Any]:
        found = []
        if self.timestamp:
            found.append(at.timestamp)
        if self.incrementing:
            found.append(at.incrementing)
        return found

    def _compare(self, at: Progress, operator: str) -> tuple[str, list[Any]]:
        """`columns operator position`, as two columns are compared: the first one first."""
        columns, values = self._columns, self._values(at)
        if len(columns) == 1:
            return f"{columns[0]} {operator} {self.mark}", values
        first, second = columns
        strict = operator[0]
        condition = (
            f"({first} {strict} {self.mark} OR ({first} = {self.mark} AND "
            f"{second} {operator} {self.mark}))"
        )
        return condition, [values[0], values[0], values[1]]

    def _is_start(self, at: Progress) -> bool:
        return all(value is None for value in self._values(at))

    def _after(self, start: Progress) -> tuple[list[str], list[Any]]:
        conditions = [f"{column} IS NOT NULL" for column in self._columns]
        values: list[Any] = []
        if not self._is_start(start):
            condition, values = self._compare(start, ">")
            conditions.append(condition)
        return conditions, values

    def latest(self, relation: str, start: Progress, rows_max: int) -> tuple[str, list[Any]]:
        """A query for the position after at most `rows_max` (0: all) rows; no row if none is new.

        Rows of one timestamp alone cannot be distinguished, so all of them go into the same batch.
        """
        conditions, values = self._after(start)
        if self.now:
            conditions.append(f"{quoted(self.timestamp)} <= {self.now}")
        columns = ", ".join(self._columns)
        descending = ", ".join(f"{column} DESC" for column in self._columns)
        rows = f"SELECT {columns} FROM {relation} moldau_rows WHERE {' AND '.join(conditions)}"
        if rows_max:
            rows += f" ORDER BY {columns} LIMIT {rows_max}"
        query = f"SELECT {columns} FROM ({rows}) moldau_latest ORDER BY {descending} LIMIT 1"
        return query, values

    def position(self, row: tuple[Any, ...]) -> Progress:
        values = list(row)
        timestamp = values.pop(0) if self.timestamp else None
        return Progress(timestamp, values.pop(0) if self.incrementing else None)

    def between(self, start: Progress, end: Progress) -> tuple[str, list[Any]]:
        """The condition for the rows after `start` and up to `end`."""
        conditions, values = self._after(start)
        condition, more = self._compare(end, "<=")
        return " AND ".join([*conditions, condition]), values + more

    @property
    def order(self) -> str:
        return ", ".join(self._columns)
