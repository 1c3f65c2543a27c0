"""java.time's DateTimeFormatter.parse, without regard to case, and what its fields resolve to."""

from __future__ import annotations

from functools import lru_cache

from moldau.data.java_time import civil, patterns
from moldau.data.java_time.patterns import (
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
from moldau.data.java_time.zones import SYSTEM_ZONE, UTC_ZONE, Zone, offset_of, zone

_ZONE_CHARACTERS = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-~.:"
)
_ABBREVIATIONS = {
    "UTC": "UTC",
    "GMT": "GMT",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "BST": "Europe/London",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
}
#: The values that a field may have; others have no bounds that matter.
_RANGES = {
    "month": (1, 12),
    "quarter": (1, 4),
    "day": (1, 31),
    "day_of_year": (1, 366),
    "local_weekday": (1, 7),
    "week_of_year": (1, 53),
    "week_of_month": (0, 6),
    "hour": (0, 24),
    "clock_hour": (1, 24),
    "hour_of_ampm": (0, 11),
    "clock_hour_of_ampm": (1, 12),
    "minute": (0, 59),
    "second": (0, 59),
    "nano": (0, 999_999_999),
    "milli_of_day": (0, civil.DAY_MS - 1),
    "nano_of_day": (0, civil.NANOS_PER_DAY - 1),
}


class ParseFailed(ValueError):
    """A text that does not follow its pattern, with the words of DateTimeParseException."""


class Parsed:
    """The fields of a text, resolved as far as they go, in SMART style."""

    __slots__ = ("days", "fields", "nanos", "zone")

    def __init__(self, fields: dict[str, int], found_zone: Zone | None) -> None:
        self.fields = fields
        self.zone = found_zone
        self.nanos: int | None = None
        self.days: int | None = None
        self._resolve_time()
        self._resolve_date()

    def _resolve_time(self) -> None:
        fields = self.fields
        if "clock_hour" in fields:
            fields["hour"] = fields.pop("clock_hour") % 24
        if "clock_hour_of_ampm" in fields:
            fields["hour_of_ampm"] = fields.pop("clock_hour_of_ampm") % 12
        if "ampm" in fields and "hour_of_ampm" in fields:
            fields["hour"] = fields.pop("ampm") * 12 + fields.pop("hour_of_ampm")
        if "nano_of_day" in fields:
            self.nanos = fields["nano_of_day"]
            return
        if "milli_of_day" in fields:
            self.nanos = fields["milli_of_day"] * civil.NANOS_PER_MS
            return
        hour = fields.get("hour")
        minute, second, nano = (fields.get(each) for each in ("minute", "second", "nano"))
        gap = (minute is None and (second is not None or nano is not None)) or (
            second is None and nano is not None
        )
        if hour is None or gap:
            return
        seconds = (hour * 60 + (minute or 0)) * 60 + (second or 0)
        if hour == 24 and (minute or second or nano):
            raise ValueError("Invalid value for HourOfDay (valid values 0 - 23): 24")
        self.nanos = seconds * 10**9 + (nano or 0)

    def _resolve_date(self) -> None:
        fields = self.fields
        if "year_of_era" in fields:
            year = fields.pop("year_of_era")
            fields.setdefault("year", 1 - year if fields.get("era") == 0 else year)
        year_given = fields.get("year")
        if year_given is None:
            return
        month, day = fields.get("month"), fields.get("day")
        if month is not None and day is not None:
            # Smart: a day that this month has not got is the month's last one.
            day = min(day, civil.month_length(year_given, month))
            self.days = civil.days_from_civil(year_given, month, day)
        elif "day_of_year" in fields:
            number = fields["day_of_year"]
            if number == 366 and not civil.is_leap(year_given):
                raise ValueError(
                    f"Invalid date 'DayOfYear 366' as '{year_given}' is not a leap year"
                )
            self.days = civil.days_from_civil(year_given, 1, 1) + number - 1
        if self.days is not None and self.nanos == civil.NANOS_PER_DAY:
            self.days += 1
            self.nanos = 0
        wanted = fields.get("weekday")
        if self.days is not None and wanted is not None and civil.weekday(self.days) != wanted:
            raise ValueError(
                f"Conflict found: Field DayOfWeek {civil.weekday(self.days)} differs from "
                f"DayOfWeek {wanted} derived from {civil.date_text(self.days)}"
            )

    @property
    def has_date_field(self) -> bool:
        return self.days is not None or bool(_DATE_FIELDS & self.fields.keys())


_DATE_FIELDS = frozenset(
    ("year", "month", "quarter", "day", "day_of_year", "weekday", "era", "local_weekday")
    + ("week_of_year", "week_of_month", "week_based_year", "week_of_month_aligned")
)


class Parser:
    def __init__(self, pattern: str) -> None:
        self._parts = patterns.read(pattern)

    def parse(self, text: str) -> Parsed:
        reader = _Reader(text)
        for part in self._parts:
            if not reader.read(part):
                raise ParseFailed(f"Text '{text}' could not be parsed at index {reader.error}")
        if reader.position != len(text):
            raise ParseFailed(
                f"Text '{text}' could not be parsed, unparsed text found at index {reader.position}"
            )
        try:
            reader.check_ranges()
            return Parsed(reader.fields, reader.zone)
        except ParseFailed:
            raise
        except ValueError as error:
            raise ParseFailed(f"Text '{text}' could not be parsed: {error}") from None

    def days(self, text: str) -> int:
        """LocalDate.parse."""
        parsed = self.parse(text)
        if parsed.days is None:
            raise ParseFailed(
                f"Text '{text}' could not be parsed: Unable to obtain LocalDate from "
                f"TemporalAccessor"
            )
        return parsed.days

    def timestamp_ms(self, text: str, default_zone: Zone) -> int:
        """The moment, with 1970-01-01T00:00 for what the text leaves out."""
        parsed = self.parse(text)
        where = parsed.zone or default_zone
        seconds, nanos = divmod(_day(parsed) * civil.NANOS_PER_DAY + _nanos(parsed), 10**9)
        return where.to_utc(seconds) * 1000 + nanos // civil.NANOS_PER_MS


@lru_cache(maxsize=1000)
def parser(pattern: str) -> Parser:
    return Parser(pattern)


def _day(parsed: Parsed) -> int:
    if parsed.days is not None:
        return parsed.days
    fields = parsed.fields
    for name in ("week_based_year", "quarter", "week_of_year", "week_of_month", "era"):
        if name in fields:
            raise ValueError(f"Unsupported temporal field in timestamp: {name}")
    year = fields.get("year", 1970)
    if "day_of_year" in fields:
        if fields["day_of_year"] == 366 and "year" not in fields:
            raise ValueError("Leap day cannot be parsed without supplying the year field")
        return civil.days_from_civil(year, 1, 1) + fields["day_of_year"] - 1
    month, day = fields.get("month", 1), fields.get("day", 1)
    if day > civil.month_length(year, month):
        raise ValueError(f"Invalid date '{civil.MONTHS[month - 1].upper()} {day}'")
    days = civil.days_from_civil(year, month, day)
    if "weekday" in fields:
        days += fields["weekday"] - civil.weekday(days)
    return days


def _nanos(parsed: Parsed) -> int:
    if parsed.nanos is not None:
        return parsed.nanos
    fields = parsed.fields
    hour = fields.get("hour", fields.get("ampm", 0) * 12 + fields.get("hour_of_ampm", 0))
    seconds = (hour * 60 + fields.get("minute", 0)) * 60 + fields.get("second", 0)
    return seconds * 10**9 + fields.get("nano", 0)


class _Reader:
    """Reads a text part by part; `error` is where the last failure was."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = 0
        self.error = 0
        self.fields: dict[str, int] = {}
        self.zone: Zone | None = None

    def read(self, part: Part) -> bool:
        match part:
            case Literal():
                return self._literal(part.text)
            case Number():
                return self._number(part)
            case Fraction():
                return self._fraction(part.width)
            case Text():
                return self._texts(part)
            case Offset():
                return self._offset(part)
            case ZoneText():
                return self._zone()
            case Padded():
                while self._text[self.position : self.position + 1] == " ":
                    self.position += 1
                return self.read(part.part)
            case Optional():
                return self._optional(part)

    def _fail(self, position: int | None = None) -> bool:
        self.error = self.position if position is None else position
        return False

    def _literal(self, wanted: str) -> bool:
        end = self.position + len(wanted)
        if self._text[self.position : end].lower() != wanted.lower():
            return self._fail()
        self.position = end
        return True

    def _optional(self, part: Optional) -> bool:
        kept = (self.position, dict(self.fields), self.zone)
        for each in part.parts:
            if not self.read(each):
                self.position, self.fields, self.zone = kept
                break
        return True

    def _number(self, part: Number) -> bool:
        start = self.position
        sign = self._text[start : start + 1]
        sign_given = sign == "+" or sign == "-"
        negative = False
        if sign_given:
            if part.sign == "never" or (sign == "+" and part.sign == "normal"):
                return self._fail()
            negative = sign == "-"
            start += 1
        end = start
        while end < len(self._text) and self._text[end] in "0123456789":
            end += 1
        # What follows without a gap gets its digits first; the rest is this field's.
        width = min(end - start, part.width_max + part.subsequent)
        width = max(min(width - part.subsequent, part.width_max), min(width, part.width_min))
        if width < part.width_min:
            return self._fail(start if width == 0 else self.position)
        if sign == "+" and part.sign == "exceeds" and width <= part.width_min:
            return self._fail()
        value = int(self._text[start : start + width])
        unsigned_excess = part.sign == "exceeds" and not sign_given and not part.subsequent
        if unsigned_excess and width > part.width_min:
            return self._fail()
        if part.reduced:
            value += 2000
        self.position = start + width
        return self._put(part.name, -value if negative else value)

    def _put(self, name: str, value: int) -> bool:
        if self.fields.setdefault(name, value) != value:
            raise ParseFailed(
                f"Text '{self._text}' could not be parsed: Conflict found: {name} "
                f"{self.fields[name]} differs from {value}"
            )
        return True

    def _fraction(self, width: int) -> bool:
        digits = self._text[self.position : self.position + width]
        if len(digits) < width or not (digits.isascii() and digits.isdigit()):
            return self._fail()
        self.position += width
        return self._put("nano", int(digits.ljust(9, "0")))

    def _texts(self, part: Text) -> bool:
        rest = self._text[self.position :].lower()
        found = [
            (len(each), index)
            for index, each in enumerate(TEXTS[part.name, part.style])
            if rest.startswith(each.lower())
        ]
        if not found:
            return self._fail()
        length, index = max(found)
        self.position += length
        return self._put(part.name, index + TEXT_BASE[part.name])

    def _offset(self, part: Offset) -> bool:
        rest = self._text[self.position :]
        if part.pattern.startswith("GMT"):
            if not rest.upper().startswith("GMT"):
                return self._fail()
            self.position += 3
            rest = rest[3:]
            if rest[:1] not in ("+", "-"):
                self.zone = UTC_ZONE
                return True
        if rest[:1] not in ("+", "-"):
            if part.zero and rest.lower().startswith(part.zero.lower()):
                self.position += len(part.zero)
                self.zone = UTC_ZONE
                return True
            return self._fail()
        return self._signed_offset(rest, ":" in part.pattern, optional="m" in part.pattern)

    def _signed_offset(self, rest: str, colon: bool, *, optional: bool) -> bool:
        end = 1
        groups = 0
        while groups < 3:
            step = 1 if colon and groups and rest[end : end + 1] == ":" else 0
            if colon and groups and not step:
                break
            if not rest[end + step : end + step + 2].isdigit() or len(rest) < end + step + 2:
                break
            end += step + 2
            groups += 1
        if groups == 0 or (groups == 1 and not optional):
            return self._fail()
        seconds = offset_of(rest[:end])
        self.zone = Zone(rest[:end], seconds, None)
        self.position += end
        return True

    def _zone(self) -> bool:
        end = self.position
        while end < len(self._text) and self._text[end] in _ZONE_CHARACTERS:
            end += 1
        while end > self.position:
            name = self._text[self.position : end]
            try:
                self.zone = zone(_ABBREVIATIONS.get(name.upper(), name))
            except ValueError:
                end -= 1
                continue
            self.position = end
            return True
        return self._fail()

    def check_ranges(self) -> None:
        for name, value in self.fields.items():
            low, high = _RANGES.get(name, (value, value))
            if not low <= value <= high:
                raise ValueError(f"Invalid value for {name} (valid values {low} - {high}): {value}")


__all__ = ["SYSTEM_ZONE", "UTC_ZONE", "ParseFailed", "Parsed", "Parser", "parser"]
