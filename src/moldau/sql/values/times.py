"""Texts of DATE, TIME and TIMESTAMP, as casts and comparisons read and write them."""

from __future__ import annotations

import re

from moldau.data.java_time import civil
from moldau.data.java_time.formatter import timestamp_text
from moldau.data.java_time.parsing import ParseFailed, parser
from moldau.data.java_time.zones import UTC_ZONE, zone
from moldau.sql.errors import KsqlException

__all__ = [
    "date_text",
    "parse_date",
    "parse_time",
    "parse_timestamp",
    "time_text",
    "timestamp_text",
]

_TIME_PATTERN = "HH:mm:ss.SSS"
_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSS"
_COMPLETE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z?", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)

_TIMESTAMP_HELP = (
    f'\nRequired format is: "{_PATTERN}", with an optional numeric 4-digit timezone, for example: '
    "'2020-05-26T23:59:58.000' or with tz: '2020-05-26T23:59:58.000+0200'. A trailing 'Z' instead "
    'of tz indicates the zero UTC offset. Partials are also supported, for example "2020-05-26"'
)
_TIME_HELP = (
    f"\nRequired format is: \"{_TIME_PATTERN}\", for example: '01:34:20.123' or '01:34:20'. "
    "Partials are also supported, for example '01:34'"
)
_DATE_HELP = (
    "\nRequired format is: \"yyyy-MM-dd\", for example '2020-05-26'. "
    "Partials are also supported, for example '2020-05'"
)


def parse_timestamp(text: str) -> int:
    """Milliseconds since 1970 of a text that may leave out everything after the year."""
    found = _COMPLETE.fullmatch(text)
    if found is not None:
        year, month, day, hour, minute, second, ms = map(int, found.groups())
        # Rarer texts, and wrong ones, take the way of java.time below.
        if 1 <= month <= 12 and 1 <= day <= 28 and hour < 24 and minute < 60 and second < 60:
            seconds = (hour * 60 + minute) * 60 + second
            return civil.days_from_civil(year, month, day) * civil.DAY_MS + seconds * 1000 + ms
    date, mark, rest = text.partition("T")
    zone_name = ""
    if mark:
        for sign in "+-":
            if sign in rest:
                zone_name = rest[rest.index(sign) :]
                break
        rest = rest[: len(rest) - len(zone_name)].removesuffix("Z")
    else:
        date = _completed_date(text)
    time = rest + re.sub("[A-Za-z]", "0", _TIME_PATTERN[len(rest) :])
    try:
        where = zone(zone_name) if zone_name.strip() else UTC_ZONE
        return parser(_PATTERN).timestamp_ms(f"{date}T{time}", where)
    except ValueError as error:
        raise KsqlException(
            f"Failed to parse timestamp '{text}': {error}{_TIMESTAMP_HELP}"
        ) from None


def parse_time(text: str) -> int:
    """Milliseconds of the day of HH:mm[:ss[.fraction]]."""
    found = _TIME.fullmatch(text)
    if found is not None:
        hour, minute, second = (int(each or 0) for each in found.groups()[:3])
        if hour < 24 and minute < 60 and second < 60:
            ms = int((found[4] or "0").ljust(3, "0")[:3])
            return ((hour * 60 + minute) * 60 + second) * 1000 + ms
    raise KsqlException(
        f"Failed to parse time '{text}': Text '{text}' could not be parsed at index 0{_TIME_HELP}"
    )


def parse_date(text: str) -> int:
    """Days since 1970 of yyyy[-MM[-dd]]."""
    try:
        days = parser("uuuu-MM-dd").days(_completed_date(text))
        if civil.civil_from_days(days).day != int(_completed_date(text)[-2:]):
            raise ParseFailed(f"Text '{text}' could not be parsed: Invalid date")
        return days
    except ValueError as error:
        raise KsqlException(f"Failed to parse date '{text}': {error}{_DATE_HELP}") from None


def _completed_date(text: str) -> str:
    parts = text.split("-")
    return text + {1: "-01-01", 2: "-01"}.get(len(parts), "")


def date_text(days: int) -> str:
    return civil.date_text(days)


def time_text(ms: int) -> str:
    """LocalTime.toString of whole seconds: the seconds are left out where they are zero."""
    minutes, second = divmod(ms // 1000, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if second else "")
