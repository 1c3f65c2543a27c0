"""SimpleDateFormat's patterns, read and written as it and FastDateFormat do.

Reading is lenient: a month 13 is the next January, and text after what the pattern wants is
ignored. What the text leaves out is that of 1970-01-01T00:00 in the format's zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from moldau.data.java_time import civil
from moldau.data.java_time.fields import Moment
from moldau.data.java_time.patterns import NUMBERS
from moldau.data.java_time.zones import UTC_ZONE, Zone, offset_of, offset_text, zone

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", re.ASCII)
_NUMBER_FIELDS = {
    "y": "year",
    "Y": "year",
    "d": "day",
    "D": "day_of_year",
    "F": "week_of_month_aligned",
    "H": "hour",
    "k": "clock_hour",
    "K": "hour_of_ampm",
    "h": "clock_hour_of_ampm",
    "m": "minute",
    "s": "second",
    "S": "milli",
    "u": "weekday",
    "w": "week_of_year",
    "W": "week_of_month",
}
_TEXT_LETTERS = frozenset("GEaMLzZX")
_ZONE = re.compile(r"(?:GMT)?([+-]\d{1,2}:?\d{2})|Z|([A-Za-z][A-Za-z0-9/_+-]*)")
#: A year of two digits is the one between 80 years ago and 20 years ahead of this.
_CENTURY_PIVOT = 2026


class SimpleFormat:
    """Raises ValueError for a pattern with an unknown letter."""

    def __init__(self, pattern: str, default_zone: Zone = UTC_ZONE) -> None:
        self._pattern = pattern
        self._zone = default_zone
        self._tokens = _tokens(pattern)
        self._printers = [_printer(*token) for token in self._tokens]

    def format(self, epoch_ms: int) -> str:
        moment = Moment.at(epoch_ms, self._zone)
        return "".join([each(moment) for each in self._printers])

    def parse(self, text: str) -> int:
        """Milliseconds since 1970. ValueError if the text does not begin as the pattern says."""
        return _SimpleReader(text, self._pattern, self._zone).read(self._tokens)


@lru_cache(maxsize=1000)
def simple_format(pattern: str, zone_name: str = "Z") -> SimpleFormat:
    return SimpleFormat(pattern, zone(zone_name))


def _tokens(pattern: str) -> list[tuple[str, int, str]]:
    """Letter, count and literal text of each part; a literal has no letter."""
    found: list[tuple[str, int, str]] = []
    position = 0
    for match in _TOKEN.finditer(pattern):
        if match.start() != position:
            break
        position = match.end()
        letter = match[2]
        if letter is not None:
            if letter not in _NUMBER_FIELDS and letter not in _TEXT_LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            found.append((letter, len(match[0]), ""))
        else:
            quoted = match[1]
            literal = match[0] if quoted is None else quoted.replace("''", "'") or "'"
            found.append(("", 0, literal))
    if position != len(pattern):
        raise ValueError("Unterminated quote")
    return found


def _printer(letter: str, count: int, literal: str) -> Callable[[Moment], str]:
    match letter:
        case "":
            return lambda moment: literal
        case "y" | "Y":
            year = NUMBERS["year_of_era" if letter == "y" else "week_based_year"]
            if count == 2:
                return lambda moment: f"{year(moment) % 100:02d}"
            return lambda moment: f"{year(moment):0{count}d}"
        case "M" | "L" if count >= 3:
            return lambda moment: civil.MONTHS[moment.date.month - 1][: None if count > 3 else 3]
        case "M" | "L":
            return lambda moment: f"{moment.date.month:0{count}d}"
        case "E":
            names = civil.WEEKDAYS
            return lambda moment: names[civil.weekday(moment.day_number) - 1][
                : None if count > 3 else 3
            ]
        case "a":
            return lambda moment: "PM" if NUMBERS["ampm"](moment) else "AM"
        case "G":
            return lambda moment: "AD" if moment.date.year > 0 else "BC"
        case "S":
            return lambda moment: f"{moment.nano_of_day // 10**6 % 1000:0{count}d}"
        case "z" | "Z" | "X":
            return _zone_printer(letter, count)
    value_of = NUMBERS[_NUMBER_FIELDS[letter]]
    return lambda moment: f"{value_of(moment):0{count}d}"


def _zone_printer(letter: str, count: int) -> Callable[[Moment], str]:
    if letter == "z":
        return lambda moment: moment.known_zone.abbreviation_at(moment.epoch_seconds)
    if letter == "Z":
        return lambda moment: offset_text(moment.offset, "+HHMM", "+0000")
    pattern = ("+HH", "+HHMM", "+HH:MM")[min(count, 3) - 1]
    return lambda moment: offset_text(moment.offset, pattern, "Z")


class _SimpleReader:
    def __init__(self, text: str, pattern: str, default_zone: Zone) -> None:
        self._text = text
        self._pattern = pattern
        self._position = 0
        self._zone = default_zone
        self._fields: dict[str, int] = {}

    def read(self, tokens: list[tuple[str, int, str]]) -> int:
        for index, (letter, count, literal) in enumerate(tokens):
            following = tokens[index + 1][0] if index + 1 < len(tokens) else ""
            self._part(letter, count, literal, adjacent=_is_number(following, tokens, index + 1))
        return self._epoch_ms()

    def _part(self, letter: str, count: int, literal: str, *, adjacent: bool) -> None:
        if not letter:
            end = self._position + len(literal)
            if self._text[self._position : end].lower() != literal.lower():
                raise self._failed()
            self._position = end
        elif letter in ("M", "L") and count >= 3:
            self._name("month", civil.MONTHS, 1)
        elif letter == "E":
            self._name("named_weekday", civil.WEEKDAYS, 1)
        elif letter == "a":
            self._name("ampm", ("AM", "PM"), 0)
        elif letter == "G":
            self._name("era", ("BC", "AD"), 0)
        elif letter in ("z", "Z", "X"):
            self._read_zone()
        else:
            name = "month" if letter in ("M", "L") else _NUMBER_FIELDS[letter]
            value = self._digits(count if adjacent else None)
            if name == "year" and count < 3 and value < 100:
                value = _full_year(value)
            self._fields[name] = value

    def _digits(self, width: int | None) -> int:
        while self._text[self._position : self._position + 1] == " ":
            self._position += 1
        end = self._position
        limit = len(self._text) if width is None else min(len(self._text), end + width)
        while end < limit and self._text[end] in "0123456789":
            end += 1
        if end == self._position:
            raise self._failed()
        value = int(self._text[self._position : end])
        self._position = end
        return value

    def _name(self, name: str, names: tuple[str, ...], base: int) -> None:
        rest = self._text[self._position :].lower()
        best = (0, 0)
        for index, each in enumerate(names):
            for form in (each.lower(), each[:3].lower()):
                if rest.startswith(form):
                    best = max(best, (len(form), index))
        if not best[0]:
            raise self._failed()
        self._position += best[0]
        self._fields[name] = best[1] + base

    def _read_zone(self) -> None:
        found = _ZONE.match(self._text, self._position)
        if found is None:
            raise self._failed()
        if found[1] is not None:
            self._zone = Zone(found[1], offset_of(found[1]), None)
        else:
            try:
                self._zone = zone(found[0])
            except ValueError:
                raise self._failed() from None
        self._position = found.end()

    def _epoch_ms(self) -> int:
        fields = self._fields
        year = fields.get("year", 1970)
        if fields.get("era") == 0:
            year = 1 - year
        # Leniently: months and days beyond their range count on.
        months = year * 12 + fields.get("month", 1) - 1
        if "day_of_year" in fields and "day" not in fields and "month" not in fields:
            days = civil.days_from_civil(year, 1, 1) + fields["day_of_year"] - 1
        else:
            days = civil.days_from_civil(months // 12, months % 12 + 1, 1)
            days += fields.get("day", 1) - 1
        hour = fields.get("hour", fields.get("clock_hour", 0) % 24)
        if "hour_of_ampm" in fields or "clock_hour_of_ampm" in fields:
            half = fields.get("hour_of_ampm", fields.get("clock_hour_of_ampm", 0) % 12)
            hour = half + 12 * fields.get("ampm", 0)
        seconds = (hour * 60 + fields.get("minute", 0)) * 60 + fields.get("second", 0)
        local = days * civil.DAY_SECONDS + seconds
        return self._zone.to_utc(local) * 1000 + fields.get("milli", 0)

    def _failed(self) -> ValueError:
        return ValueError(f"Unparseable date: {self._text}")


def _is_number(letter: str, tokens: list[tuple[str, int, str]], index: int) -> bool:
    if not letter:
        return False
    return letter in _NUMBER_FIELDS or (letter in ("M", "L") and tokens[index][1] < 3)


def _full_year(two_digits: int) -> int:
    century = (_CENTURY_PIVOT - 80) // 100 * 100
    year = century + two_digits
    return year if year >= _CENTURY_PIVOT - 80 else year + 100
