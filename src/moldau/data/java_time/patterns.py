"""DateTimeFormatter's pattern letters, read into parts that print and parse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from moldau.data.java_time import civil
from moldau.data.java_time.fields import Moment

DIGITS_MAX = 19


@dataclass(frozen=True, slots=True)
class Literal:
    text: str


@dataclass(slots=True)
class Number:
    """A number field. `subsequent` digits after it belong to fields that follow without a gap."""

    name: str
    width_min: int = 1
    width_max: int = DIGITS_MAX
    sign: str = "normal"  # or "never", "exceeds"
    reduced: bool = False  # two digits of a year from 2000 on
    subsequent: int = 0

    @property
    def is_fixed(self) -> bool:
        return self.width_min == self.width_max and self.sign == "never"


@dataclass(frozen=True, slots=True)
class Fraction:
    width: int


@dataclass(frozen=True, slots=True)
class Text:
    name: str
    style: str  # short, full, narrow


@dataclass(frozen=True, slots=True)
class Offset:
    pattern: str
    zero: str


@dataclass(frozen=True, slots=True)
class ZoneText:
    style: str  # id, short, full


@dataclass(slots=True)
class Padded:
    part: Part
    width: int


@dataclass(slots=True)
class Optional:
    parts: list[Part] = field(default_factory=list)


Part = Literal | Number | Fraction | Text | Offset | ZoneText | Padded | Optional

_TWO_DIGIT = {
    "d": "day",
    "h": "clock_hour_of_ampm",
    "H": "hour",
    "k": "clock_hour",
    "K": "hour_of_ampm",
    "m": "minute",
    "s": "second",
}
_YEARS = {"u": "year", "y": "year_of_era", "Y": "week_based_year"}
_LONG = {"A": "milli_of_day", "n": "nano", "N": "nano_of_day"}
_WEEKS = {"w": "week_of_year", "e": "local_weekday", "c": "local_weekday"}
_OFFSETS_X = ("+HHmm", "+HHMM", "+HH:MM", "+HHMMss", "+HH:MM:ss")


def read(pattern: str) -> list[Part]:
    """The parts of a pattern; ValueError with Java's words for one that is none."""
    stack: list[list[Part]] = [[]]
    optionals: list[Optional] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter.isascii() and letter.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            count = end - position
            if letter == "p":
                position = _read_pad(pattern, end, count, stack[-1])
                continue
            stack[-1].append(_field(letter, count))
            position = end
        elif letter == "'":
            position = _read_quoted(pattern, position, stack[-1])
        elif letter == "[":
            optional = Optional()
            stack[-1].append(optional)
            optionals.append(optional)
            stack.append(optional.parts)
            position += 1
        elif letter == "]":
            if not optionals:
                raise ValueError("Pattern invalid as it contains ] without previous [")
            optionals.pop()
            stack.pop()
            position += 1
        elif letter in "{}#":
            raise ValueError(f"Pattern includes reserved character: '{letter}'")
        else:
            stack[-1].append(Literal(letter))
            position += 1
    _join_adjacent(stack[0])
    return stack[0]


def _read_pad(pattern: str, position: int, width: int, into: list[Part]) -> int:
    end = position
    while end < len(pattern) and pattern[end] == pattern[position] and pattern[end].isalpha():
        end += 1
    if end == position:
        raise ValueError(f"Pad letter 'p' must be followed by valid pad pattern: {pattern}")
    into.append(Padded(_field(pattern[position], end - position), width))
    return end


def _read_quoted(pattern: str, position: int, into: list[Part]) -> int:
    text = ""
    end = position + 1
    while end < len(pattern):
        if pattern[end] == "'":
            if pattern[end + 1 : end + 2] != "'":
                break
            end += 1
        text += pattern[end]
        end += 1
    else:
        raise ValueError(f"Pattern ends with an incomplete string literal: {pattern}")
    into.append(Literal(text or "'"))
    return end + 1


def _field(letter: str, count: int) -> Part:
    if letter in _YEARS:
        if count == 2:
            return Number(_YEARS[letter], 2, 2, "never", reduced=True)
        return Number(_YEARS[letter], count, DIGITS_MAX, "normal" if count < 4 else "exceeds")
    if letter in _TWO_DIGIT:
        return _small(_TWO_DIGIT[letter], letter, count)
    if letter in ("M", "L"):
        return _small_or_text("month", letter, count)
    if letter in ("Q", "q"):
        return _small_or_text("quarter", letter, count)
    if letter == "D":
        _at_most(letter, count, 3)
        return Number("day_of_year") if count == 1 else Number("day_of_year", count, 3, "never")
    if letter in ("E", "e", "c"):
        return _weekday(letter, count)
    if letter in ("G", "a"):
        _at_most(letter, count, 5 if letter == "G" else 1)
        return Text("era" if letter == "G" else "ampm", _style(count))
    if letter == "S":
        _at_most(letter, count, 9)
        return Fraction(count)
    if letter in _LONG:
        _at_most(letter, count, DIGITS_MAX)
        return Number(_LONG[letter], count, DIGITS_MAX, "never")
    if letter in ("w", "W", "F"):
        return _week(letter, count)
    return _zone_field(letter, count)


def _weekday(letter: str, count: int) -> Part:
    _at_most(letter, count, 5)
    if letter != "E" and count <= 2:
        if letter == "c" and count == 2:
            raise ValueError('Invalid pattern "cc"')
        return Number("local_weekday", count, 2 if count == 2 else DIGITS_MAX, "never")
    return Text("weekday", _style(count))


def _week(letter: str, count: int) -> Part:
    if letter == "F":
        _at_most(letter, count, 1)
        return Number("week_of_month_aligned")
    if letter == "W":
        _at_most(letter, count, 1)
        return Number("week_of_month")
    _at_most(letter, count, 2)
    return Number("week_of_year", count, 2, "never")


def _zone_field(letter: str, count: int) -> Part:
    match letter:
        case "V":
            if count != 2:
                raise ValueError(f"Pattern letter count must be 2: {letter}")
            return ZoneText("id")
        case "z":
            _at_most(letter, count, 4)
            return ZoneText("full" if count == 4 else "short")
        case "O":
            if count not in (1, 4):
                raise ValueError(f"Pattern letter count must be 1 or 4: {letter}")
            return Offset("GMT+H" if count == 1 else "GMT+HH:MM", "GMT")
        case "X":
            _at_most(letter, count, 5)
            return Offset(_OFFSETS_X[count - 1], "Z")
        case "x":
            _at_most(letter, count, 5)
            zero = "+00" if count == 1 else "+00:00" if count % 2 else "+0000"
            return Offset(_OFFSETS_X[count - 1], zero)
        case "Z":
            _at_most(letter, count, 5)
            if count < 4:
                return Offset("+HHMM", "+0000")
            return Offset("GMT+HH:MM", "GMT") if count == 4 else Offset("+HH:MM:ss", "Z")
        case _:
            raise ValueError(f"Unknown pattern letter: {letter}")


def _style(count: int) -> str:
    return "full" if count == 4 else "narrow" if count == 5 else "short"


def _small(name: str, letter: str, count: int) -> Number:
    _at_most(letter, count, 2)
    return Number(name) if count == 1 else Number(name, 2, 2, "never")


def _small_or_text(name: str, letter: str, count: int) -> Part:
    _at_most(letter, count, 5)
    return _small(name, letter, count) if count <= 2 else Text(name, _style(count))


def _at_most(letter: str, count: int, most: int) -> None:
    if count > most:
        raise ValueError(f"Too many pattern letters: {letter}")


def _join_adjacent(parts: list[Part]) -> None:
    """A number leaves the digits to the fields of fixed width that follow it without a gap."""
    first: Number | None = None
    for part in parts:
        if isinstance(part, Number):
            if first is not None and part.is_fixed:
                first.subsequent += part.width_max
            else:
                first = part
        elif isinstance(part, Fraction) and first is not None:
            first.subsequent += part.width
        else:
            first = None
            if isinstance(part, Optional):
                _join_adjacent(part.parts)


def _hour(moment: Moment) -> int:
    return moment.nano_of_day // 3_600_000_000_000


def _local_weekday(moment: Moment) -> int:
    return civil.weekday(moment.day_number) % 7 + 1  # weeks begin on Sunday


def _week_based(moment: Moment) -> tuple[int, int]:
    """Year and week as in the United States: weeks begin on Sunday, one day makes the first."""
    year = moment.date.year
    for candidate in (year + 1, year):
        start = civil.days_from_civil(candidate, 1, 1)
        start -= civil.weekday(start) % 7
        if moment.day_number >= start:
            return candidate, (moment.day_number - start) // 7 + 1
    return year - 1, 53


def _week_of_month(moment: Moment) -> int:
    first = moment.day_number - moment.date.day + 1
    return (moment.date.day - 1 + civil.weekday(first) % 7) // 7 + 1


NUMBERS: dict[str, Callable[[Moment], int]] = {
    "year": lambda moment: moment.date.year,
    "year_of_era": lambda moment: (
        moment.date.year if moment.date.year > 0 else 1 - moment.date.year
    ),
    "week_based_year": lambda moment: _week_based(moment)[0],
    "month": lambda moment: moment.date.month,
    "quarter": lambda moment: (moment.date.month + 2) // 3,
    "day": lambda moment: moment.date.day,
    "day_of_year": lambda moment: civil.day_of_year(*moment.date),
    "local_weekday": _local_weekday,
    "weekday": lambda moment: civil.weekday(moment.day_number),
    "week_of_year": lambda moment: _week_based(moment)[1],
    "week_of_month": _week_of_month,
    "week_of_month_aligned": lambda moment: (moment.date.day - 1) // 7 + 1,
    "hour": _hour,
    "clock_hour": lambda moment: _hour(moment) or 24,
    "hour_of_ampm": lambda moment: _hour(moment) % 12,
    "clock_hour_of_ampm": lambda moment: _hour(moment) % 12 or 12,
    "minute": lambda moment: moment.nano_of_day // 60_000_000_000 % 60,
    "second": lambda moment: moment.nano_of_day // 1_000_000_000 % 60,
    "nano": lambda moment: moment.nano_of_day % 1_000_000_000,
    "milli_of_day": lambda moment: moment.nano_of_day // 1_000_000,
    "nano_of_day": lambda moment: moment.nano_of_day,
    "ampm": lambda moment: _hour(moment) // 12,
    "era": lambda moment: int(moment.date.year > 0),
}

_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
#: The texts of a field from its lowest value on, by style.
TEXTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("month", "full"): civil.MONTHS,
    ("month", "short"): tuple(name[:3] for name in civil.MONTHS),
    ("month", "narrow"): tuple(name[0] for name in civil.MONTHS),
    ("weekday", "full"): civil.WEEKDAYS,
    ("weekday", "short"): tuple(name[:3] for name in civil.WEEKDAYS),
    ("weekday", "narrow"): tuple(name[0] for name in civil.WEEKDAYS),
    ("quarter", "full"): _QUARTERS,
    ("quarter", "short"): ("Q1", "Q2", "Q3", "Q4"),
    ("quarter", "narrow"): ("1", "2", "3", "4"),
    ("ampm", "short"): ("AM", "PM"),
    ("era", "short"): ("BC", "AD"),
    ("era", "full"): ("Before Christ", "Anno Domini"),
    ("era", "narrow"): ("B", "A"),
}
TEXT_BASE = {"month": 1, "weekday": 1, "quarter": 1, "ampm": 0, "era": 0}
