"""Times printed and read in formats of Java's SimpleDateFormat, in UTC and English (pure).

Reading is as lenient as Java's: numbers may have fewer or more digits than the pattern, may be out
of range (`13` as a month is January of the next year), and what follows the date is ignored.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", re.ASCII)
_DAY_MS = 86_400_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_LETTERS = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
#: Names of zones that are not UTC, in hours.
_ZONES = {
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "CEST": 2, "CET": 1, "EEST": 3, "EET": 2, "WEST": 1, "WET": 0, "JST": 9,
}  # fmt: skip
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?")


class DateFormat:
    """A pattern; ValueError for one that Java would refuse."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._parts: list[tuple[str, int]] = []
        position = 0
        for match in _TOKEN.finditer(pattern):
            if match.start() != position:
                break
            position = match.end()
            if match[2] is not None:
                if match[2] not in _LETTERS:
                    raise ValueError(f"Illegal pattern character '{match[2]}'")
                if match[2] == "X" and len(match[0]) > 3:
                    raise ValueError(f"invalid ISO 8601 format: length={len(match[0])}")
                self._parts.append((match[2], len(match[0])))
            elif match[1] is not None:
                self._parts.append(("'" + (match[1].replace("''", "'") or "'"), 0))
            else:
                self._parts.append(("'" + match[0], 0))
        if position != len(pattern):
            raise ValueError("Unterminated quote")

    def format(self, since_epoch_ms: int) -> str:
        moment = _EPOCH + datetime.timedelta(milliseconds=since_epoch_ms)
        return "".join(
            letter[1:] if letter[0] == "'" else _PRINTERS[letter](moment, width)
            for letter, width in self._parts
        )

    def parse(self, text: str) -> int:
        """Milliseconds since 1970; ValueError if the text does not fit."""
        reader = _Reader(text)
        for index, (letter, width) in enumerate(self._parts):
            if letter[0] == "'":
                reader.literal(letter[1:])
            else:
                following = self._parts[index + 1][0] if index + 1 < len(self._parts) else "'"
                reader.field(letter, width, abuts=following[0] != "'")
        return reader.moment()


def _number(value: int, width: int) -> str:
    return f"{value:0{width}d}"


def _year(moment: datetime.datetime, width: int) -> str:
    return _number(moment.year % 100, 2) if width == 2 else _number(moment.year, width)


def _month(moment: datetime.datetime, width: int) -> str:
    if width >= 3:
        name = _MONTHS[moment.month - 1]
        return name if width > 3 else name[:3]
    return _number(moment.month, width)


def _week_of_year(moment: datetime.datetime, width: int) -> str:
    # The week of the root locale: it begins on Sunday, the first one has the first of January.
    if _week_year(moment) > moment.year:
        return _number(1, width)
    first = moment.replace(month=1, day=1).isoweekday() % 7
    return _number((moment.timetuple().tm_yday - 1 + first) // 7 + 1, width)


def _week_year(moment: datetime.datetime) -> int:
    """The year that the week belongs to: the next one if the first of January is in it."""
    until_saturday = 6 - moment.isoweekday() % 7
    return moment.year + (moment.month == 12 and moment.day + until_saturday > 31)


def _year_of_week(moment: datetime.datetime, width: int) -> str:
    year = _week_year(moment)
    return _number(year % 100, 2) if width == 2 else _number(year, width)


def _week_of_month(moment: datetime.datetime, width: int) -> str:
    first = moment.replace(day=1).isoweekday() % 7
    return _number((moment.day - 1 + first) // 7 + 1, width)


_PRINTERS: dict[str, Callable[[datetime.datetime, int], str]] = {
    "G": lambda moment, _: "AD",
    "y": _year,
    "Y": _year_of_week,
    "M": _month,
    "L": _month,
    "w": _week_of_year,
    "W": _week_of_month,
    "F": lambda moment, width: _number((moment.day - 1) // 7 + 1, width),
    "u": lambda moment, width: _number(moment.isoweekday(), width),
    "d": lambda moment, width: _number(moment.day, width),
    "D": lambda moment, width: _number(moment.timetuple().tm_yday, width),
    "E": lambda moment, width: _DAYS[moment.weekday()][: None if width > 3 else 3],
    "a": lambda moment, _: "AM" if moment.hour < 12 else "PM",
    "H": lambda moment, width: _number(moment.hour, width),
    "k": lambda moment, width: _number(moment.hour or 24, width),
    "K": lambda moment, width: _number(moment.hour % 12, width),
    "h": lambda moment, width: _number(moment.hour % 12 or 12, width),
    "m": lambda moment, width: _number(moment.minute, width),
    "s": lambda moment, width: _number(moment.second, width),
    "S": lambda moment, width: _number(moment.microsecond // 1000, width),
    "z": lambda moment, width: "UTC" if width < 4 else "Coordinated Universal Time",
    "Z": lambda moment, _: "+0000",
    "X": lambda moment, _: "Z",
}
_HOURS = {"H": 24, "k": 24, "K": 12, "h": 12}


class _Reader:
    """Reads fields from a text, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: dict[str, int] = {}
        self._offset_ms = 0

    def literal(self, wanted: str) -> None:
        for character in wanted:
            if character == " ":
                # Java skips any white space where the pattern has some.
                start = self._at
                self._skip_spaces()
                if self._at == start:
                    raise ValueError(wanted)
                continue
            if self._text[self._at : self._at + 1] != character:
                raise ValueError(wanted)
            self._at += 1

    def field(self, letter: str, width: int, *, abuts: bool) -> None:
        self._skip_spaces()
        match letter:
            case "M" | "L" if width >= 3:
                self._found["M"] = self._name(_MONTHS) + 1
            case "E":
                self._name(_DAYS)
            case "a":
                self._found["a"] = self._name(["AM", "PM"])
            case "G":
                self._name(["AD", "BC"])
            case "z" | "Z" | "X":
                self._zone(letter)
            case _:
                self._found["M" if letter == "L" else letter] = self._int(letter, width, abuts)

    def _skip_spaces(self) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t") and self._at < len(self._text):
            self._at += 1

    def _int(self, letter: str, width: int, abuts: bool) -> int:
        end = self._at
        if self._text[end : end + 1] == "-":
            end += 1
        while end < len(self._text) and self._text[end].isdigit():
            # Fields that stand side by side share the digits by the widths of the pattern.
            if abuts and end - self._at >= width:
                break
            end += 1
        text = self._text[self._at : end]
        if not text.strip("-"):
            raise ValueError(letter)
        self._at = end
        value = int(text)
        if letter in "yY" and width <= 2 and len(text) == 2 and not text.startswith("-"):
            # Java: within 80 years before and 20 years after now; the century is fixed here.
            value += 2000 if value < 50 else 1900
        return value

    def _name(self, names: list[str]) -> int:
        rest = self._text[self._at :].lower()
        for index, name in enumerate(names):
            for form in (name.lower(), name[:3].lower()):
                if rest.startswith(form):
                    self._at += len(form)
                    return index
        raise ValueError(names[0])

    def _zone(self, letter: str) -> None:
        rest = self._text[self._at :]
        if letter == "X" and rest.startswith("Z"):
            self._at += 1
            return
        for name in ("Coordinated Universal Time", "UTC", "GMT", "UT", "Z"):
            if letter != "X" and rest.upper().startswith(name.upper()):
                self._at += len(name)
                rest = self._text[self._at :]
                if not rest.startswith(("+", "-")) or name != "GMT":
                    return
                break
        for name, hours in _ZONES.items():
            if letter == "z" and rest.upper().startswith(name):
                self._at += len(name)
                self._offset_ms = hours * 3_600_000
                return
        match = _OFFSET.match(rest)
        if match is None:
            raise ValueError("time zone")
        self._at += match.end()
        hours, minutes = int(match[2]), int(match[3] or 0)
        self._offset_ms = (hours * 60 + minutes) * 60_000 * (-1 if match[1] == "-" else 1)

    def moment(self) -> int:
        found = self._found
        year = found.get("y", found.get("Y", 1970))
        months = year * 12 + found.get("M", 1) - 1
        first = datetime.date(months // 12, months % 12 + 1, 1)
        days = (first - _EPOCH.date()).days + found.get("d", 1) - 1
        if "D" in found and "d" not in found and "M" not in found:
            days = (datetime.date(year, 1, 1) - _EPOCH.date()).days + found["D"] - 1
        if "Y" in found and "y" not in found:
            # The Sunday of a week, of the first one if there is no other.
            january = datetime.date(year, 1, 1)
            sunday = (january - _EPOCH.date()).days - january.isoweekday() % 7
            days = sunday + (found.get("w", 1) - 1) * 7
        minutes = self._hour() * 60 + found.get("m", 0)
        in_day = (minutes * 60 + found.get("s", 0)) * 1000 + found.get("S", 0)
        return days * _DAY_MS + in_day - self._offset_ms

    def _hour(self) -> int:
        for letter, modulus in _HOURS.items():
            if letter in self._found:
                hour = self._found[letter]
                if letter in "kh" and hour == modulus:
                    hour = 0
                if modulus == 12:
                    hour += 12 * self._found.get("a", 0)
                return hour
        return 0
