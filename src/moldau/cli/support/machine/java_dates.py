"""Times in a format of Java's SimpleDateFormat, in the local time zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

__all__ = ["DateFormat"]

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", re.ASCII)


def _number(value: int, width: int) -> str:
    return f"{value:0{width}d}"


def _year(moment: datetime, width: int) -> str:
    return _number(moment.year % 100, 2) if width == 2 else _number(moment.year, width)


def _month(moment: datetime, width: int) -> str:
    if width >= 3:
        return moment.strftime("%B" if width > 3 else "%b")
    return _number(moment.month, width)


def _offset(moment: datetime, separator: str) -> str:
    text = moment.strftime("%z")
    return text[:3] + separator + text[3:5]


def _iso_offset(moment: datetime, width: int) -> str:
    if not moment.utcoffset():
        return "Z"
    return moment.strftime("%z")[:3] if width == 1 else _offset(moment, ":" if width > 2 else "")


_FIELDS: dict[str, Callable[[datetime, int], str]] = {
    "y": _year,
    "u": lambda moment, width: _number(moment.isoweekday(), width),
    "M": _month,
    "L": _month,
    "d": lambda moment, width: _number(moment.day, width),
    "D": lambda moment, width: _number(moment.timetuple().tm_yday, width),
    "E": lambda moment, width: moment.strftime("%A" if width > 3 else "%a"),
    "a": lambda moment, _: "AM" if moment.hour < 12 else "PM",
    "H": lambda moment, width: _number(moment.hour, width),
    "k": lambda moment, width: _number(moment.hour or 24, width),
    "K": lambda moment, width: _number(moment.hour % 12, width),
    "h": lambda moment, width: _number(moment.hour % 12 or 12, width),
    "m": lambda moment, width: _number(moment.minute, width),
    "s": lambda moment, width: _number(moment.second, width),
    "S": lambda moment, width: _number(moment.microsecond // 1000, width),
    "z": lambda moment, _: moment.tzname() or "",
    "Z": lambda moment, _: _offset(moment, ""),
    "X": _iso_offset,
}


class DateFormat:
    """Raises ValueError for a pattern with an unknown letter."""

    def __init__(self, pattern: str) -> None:
        self._parts: list[str | tuple[Callable[[datetime, int], str], int]] = []
        position = 0
        for match in _TOKEN.finditer(pattern):
            if match.start() != position:
                break
            position = match.end()
            if match[2] is not None:
                field = _FIELDS.get(match[2])
                if field is None:
                    raise ValueError(f"Illegal pattern character '{match[2]}' in '{pattern}'")
                self._parts.append((field, len(match[0])))
            elif match[1] is not None:
                self._parts.append(match[1].replace("''", "'") or "'")
            else:
                self._parts.append(match[0])
        if position != len(pattern):
            raise ValueError(f"Unterminated quote in the date format '{pattern}'")

    def format(self, timestamp_ms: int) -> str:
        moment = datetime.fromtimestamp(timestamp_ms // 1000).astimezone()
        moment = moment.replace(microsecond=timestamp_ms % 1000 * 1000)
        return "".join(
            part if isinstance(part, str) else part[0](moment, part[1]) for part in self._parts
        )
