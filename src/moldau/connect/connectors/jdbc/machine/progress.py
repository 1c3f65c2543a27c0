"""Where a query of a source continues: offsets, and the conditions made of them.

| mode | condition | order |
|---|---|---|
| bulk | none: the whole table each time | |
| incrementing | id > last id | id |
| timestamp | last < ts < now - delay | ts |
| timestamp+incrementing | ts < now - delay and (ts = last and id > last id or ts > last) | ts, id |

Several timestamp columns count as one: the first that is not null.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeVar

from moldau.connect.connectors.jdbc.machine.columns import instant
from moldau.connect.connectors.jdbc.machine.statements import MARK, Syntax
from moldau.data.errors import DataError

BULK: Final = "bulk"
R = TypeVar("R")

INCREMENTING: Final = "incrementing"
TIMESTAMP: Final = "timestamp"
BOTH: Final = "timestamp+incrementing"

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class Progress:
    """The last row that was returned. Timestamps keep the database's microseconds."""

    incrementing: int | None = None
    timestamp: datetime.datetime = _EPOCH

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Progress:
        if not offset:
            return cls()
        moment = _EPOCH
        if (milliseconds := offset.get("timestamp")) is not None:
            nanos = int(offset.get("timestamp_nanos") or milliseconds % 1000 * 1_000_000)
            moment += datetime.timedelta(seconds=milliseconds // 1000, microseconds=nanos // 1000)
        incrementing = offset.get("incrementing")
        return cls(None if incrementing is None else int(incrementing), moment)

    def offset(self, mode: str) -> dict[str, Any] | None:
        found: dict[str, Any] = {}
        if mode in (INCREMENTING, BOTH) and self.incrementing is not None:
            found["incrementing"] = self.incrementing
        if mode in (TIMESTAMP, BOTH):
            since = self.timestamp - _EPOCH
            found["timestamp"] = since // datetime.timedelta(milliseconds=1)
            found["timestamp_nanos"] = since.microseconds * 1000
        return found or None


@dataclass(frozen=True, slots=True)
class Tracking:
    """Which columns tell what is new."""

    mode: str
    incrementing: str | None = None
    timestamps: tuple[str, ...] = ()

    def condition(
        self,
        syntax: Syntax,
        progress: Progress,
        until: datetime.datetime,
        moment: Any = lambda value: value,
    ) -> tuple[str, list[Any]]:
        """The WHERE and ORDER BY of a query, and the values of its marks. `moment` turns a
        timestamp into what the driver takes."""
        mark = MARK
        identity = syntax.quoted(self.incrementing) if self.incrementing else ""
        stamps = [syntax.timestamp.format(syntax.quoted(name)) for name in self.timestamps]
        time = f"COALESCE({', '.join(stamps)})" if len(stamps) > 1 else "".join(stamps)
        last, end = moment(progress.timestamp), moment(until)
        match self.mode:
            case "incrementing":
                order = f" ORDER BY {identity} ASC"
                if progress.incrementing is None:
                    return order, []
                return f" WHERE {identity} > {mark}{order}", [progress.incrementing]
            case "timestamp":
                where = f" WHERE {time} > {mark} AND {time} < {mark} ORDER BY {time} ASC"
                return where, [last, end]
            case "timestamp+incrementing":
                where = (
                    f" WHERE {time} < {mark} AND (({time} = {mark} AND {identity} > {mark})"
                    f" OR {time} > {mark}) ORDER BY {time}, {identity} ASC"
                )
                number = -1 if progress.incrementing is None else progress.incrementing
                return where, [end, last, number, last]
            case _:
                return "", []

    def advance(
        self, progress: Progress, row: Mapping[str, Any], zone: datetime.tzinfo = datetime.UTC
    ) -> Progress:
        """The progress after a row, whose values are as the driver returned them."""
        number, moment = progress.incrementing, progress.timestamp
        if self.incrementing is not None:
            number = _integer(self.incrementing, row[self.incrementing])
        if self.timestamps:
            value = next((row[name] for name in self.timestamps if row[name] is not None), None)
            if value is None:
                raise DataError(f"row without a timestamp in {', '.join(self.timestamps)}: {row}")
            moment = instant(value, zone)
        return Progress(number, moment)


def storable(
    mode: str, before: Progress, rows: Iterable[tuple[R, Progress]]
) -> Iterator[tuple[R, Progress]]:
    """Rows, each with the progress that may be stored with it. By timestamps alone, a time counts
    only when the row of a later one is there: else a restart would miss rows of the same time."""
    if mode != TIMESTAMP:
        yield from rows
        return
    held: tuple[R, Progress] | None = None
    for row, progress in rows:
        if held is not None:
            if held[1].timestamp < progress.timestamp:
                before = held[1]
            yield held[0], before
        held = row, progress
    if held is not None:
        yield held


def _integer(name: str, value: Any) -> int:
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"the incrementing column {name} has {value!r}, which is no integer")
    return value
