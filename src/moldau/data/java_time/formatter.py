"""java.time's DateTimeFormatter.ofPattern: printing. `parsing.py` reads by the same patterns."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from moldau.data.java_time import civil, patterns
from moldau.data.java_time.fields import Moment
from moldau.data.java_time.patterns import (
    NUMBERS,
    TEXT_BASE,
    TEXTS,
    Fraction,
    Literal,
    Number,
    Offset,
    Optional,
    Padded,
    Part,
    Text,
    ZoneText,
)
from moldau.data.java_time.zones import UTC_ZONE, Zone, offset_text

_Printer = Callable[[Moment], str]


class Formatter:
    """Prints moments by a pattern; ValueError if a moment lacks what the pattern wants."""

    def __init__(self, pattern: str) -> None:
        self._printers = [_printer(part) for part in patterns.read(pattern)]

    def format(self, moment: Moment) -> str:
        return "".join([each(moment) for each in self._printers])

    def timestamp(self, epoch_ms: int, zone: Zone = UTC_ZONE) -> str:
        return self.format(Moment.at(epoch_ms, zone))

    def date(self, days: int) -> str:
        return self.format(Moment.of_date(days))

    def time(self, ms: int) -> str:
        return self.format(Moment.of_time(ms))


@lru_cache(maxsize=1000)
def formatter(pattern: str) -> Formatter:
    return Formatter(pattern)


def _printer(part: Part) -> _Printer:
    match part:
        case Literal():
            text = part.text
            return lambda moment: text
        case Number():
            return _number(part)
        case Fraction():
            width = part.width
            nano = NUMBERS["nano"]
            return lambda moment: f"{nano(moment):09d}"[:width]
        case Text():
            texts, base, number = TEXTS[part.name, part.style], TEXT_BASE[part.name], part.name
            value_of = NUMBERS[number]
            return lambda moment: texts[value_of(moment) - base]
        case Offset():
            return _offset(part)
        case ZoneText():
            return _zone(part)
        case Padded():
            return _padded(_printer(part.part), part.width)
        case Optional():
            return _optional([_printer(each) for each in part.parts])


def _number(part: Number) -> _Printer:
    value_of, low, high, sign = NUMBERS[part.name], part.width_min, part.width_max, part.sign
    if part.reduced:
        return lambda moment: f"{value_of(moment) % 100:02d}"

    def show(moment: Moment) -> str:
        value = value_of(moment)
        digits = str(abs(value))
        if len(digits) > high:
            raise ValueError(f"Value {value} cannot be printed with {high} digits")
        text = digits.rjust(low, "0")
        if value < 0:
            return "-" + text
        return "+" + text if sign == "exceeds" and len(digits) > low else text

    return show


def _offset(part: Offset) -> _Printer:
    def show(moment: Moment) -> str:
        if moment.zone is None:
            raise ValueError("Unsupported field: OffsetSeconds")
        if part.pattern.startswith("GMT"):
            return _localized(moment.offset, full=len(part.pattern) > 5)
        return offset_text(moment.offset, part.pattern, part.zero)

    return show


def _localized(seconds: int, *, full: bool) -> str:
    if seconds == 0:
        return "GMT"
    hours, rest = divmod(abs(seconds), 3600)
    minutes, second = divmod(rest, 60)
    text = f"GMT{'-' if seconds < 0 else '+'}" + (f"{hours:02d}" if full else str(hours))
    if full or minutes or second:
        text += f":{minutes:02d}"
    return text + (f":{second:02d}" if second else "")


def _zone(part: ZoneText) -> _Printer:
    if part.style == "id":
        return lambda moment: moment.known_zone.name
    return lambda moment: moment.known_zone.abbreviation_at(moment.epoch_seconds)


def _padded(inner: _Printer, width: int) -> _Printer:
    def show(moment: Moment) -> str:
        text = inner(moment)
        if len(text) > width:
            raise ValueError(f"Output of {len(text)} characters exceeds pad width of {width}")
        return text.rjust(width)

    return show


def _optional(inner: list[_Printer]) -> _Printer:
    def show(moment: Moment) -> str:
        try:
            return "".join([each(moment) for each in inner])
        except ValueError:
            return ""

    return show


ISO_MILLIS = formatter("yyyy-MM-dd'T'HH:mm:ss.SSS")


def timestamp_text(epoch_ms: int) -> str:
    """yyyy-MM-dd'T'HH:mm:ss.SSS in UTC, the way ksqlDB writes timestamps; the fast way."""
    days, ms = divmod(epoch_ms, civil.DAY_MS)
    year, month, day = civil.civil_from_days(days)
    seconds, rest = divmod(ms, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    if not 0 < year <= 9999:
        return ISO_MILLIS.timestamp(epoch_ms)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{rest:03d}"
