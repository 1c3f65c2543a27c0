"""Dates, times and timestamps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.data.java_time import civil
from moldau.data.java_time.formatter import formatter
from moldau.data.java_time.parsing import parser
from moldau.data.java_time.simple import simple_format
from moldau.data.java_time.zones import SYSTEM_ZONE, UTC_ZONE, zone
from moldau.sql.functions.declarations import overload, scalar
from moldau.sql.functions.errors import FunctionError

_UNITS_NS = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 1_000,
    "MILLISECONDS": 1_000_000,
    "SECONDS": 1_000_000_000,
    "MINUTES": 60_000_000_000,
    "HOURS": 3_600_000_000_000,
    "DAYS": 86_400_000_000_000,
}


def _truncated(value: int, divisor: int) -> int:
    """Towards zero, as Java divides."""
    return value // divisor if value >= 0 else -(-value // divisor)


def _nanos(unit: str, interval: int) -> int:
    name = unit.upper()
    found = _UNITS_NS.get(name if name.endswith("S") else name + "S")
    if found is None:
        raise FunctionError(f"{unit} is not a time unit: use one of {', '.join(_UNITS_NS)}")
    return interval * found


def _millis(unit: str, interval: int) -> int:
    return _truncated(_nanos(unit, interval), civil.NANOS_PER_MS)


def _date_moved(unit: str, interval: int, days: int) -> int:
    return _truncated(days * civil.DAY_MS + _millis(unit, interval), civil.DAY_MS)


def _time_moved(unit: str, interval: int, ms: int) -> int:
    moved = ms * civil.NANOS_PER_MS + _nanos(unit, interval)
    return moved % civil.NANOS_PER_DAY // civil.NANOS_PER_MS


def _guarded(what: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """The error says which value and pattern did not fit."""

    def guarded(value: Any, pattern: str, *more: str) -> Any:
        try:
            return compute(value, pattern, *more)
        except ValueError as error:
            shown = f"'{value}'" if what.startswith("parse") else value
            raise FunctionError(
                f"Failed to {what} {shown} with formatter '{pattern}': {error}"
            ) from None

    return guarded


def _parse_date(text: str, pattern: str) -> int:
    days, rest = divmod(simple_format(pattern).parse(text), civil.DAY_MS)
    if rest:
        raise ValueError("Date format contains time field.")
    return days


def _parse_time(text: str, pattern: str) -> int:
    parsed = parser(pattern).parse(text)
    if parsed.has_date_field:
        raise ValueError("Time format contains date field.")
    if parsed.nanos is None:
        raise ValueError("Unable to obtain LocalTime from TemporalAccessor")
    return parsed.nanos % civil.NANOS_PER_DAY // civil.NANOS_PER_MS


def _format_timestamp(ms: int, pattern: str, zone_name: str = "GMT") -> str:
    return formatter(pattern).timestamp(ms, zone(zone_name))


def _convert_zone(ms: int, source: str, target: str) -> int:
    try:
        ahead = zone(target).offset_at(ms // 1000) - zone(source).offset_at(ms // 1000)
    except ValueError as error:
        raise FunctionError(f"Invalid time zone: {error}") from None
    return ms + ahead * 1000


def _identity(value: int) -> int:
    return value


_FORMAT_TIMESTAMP = _guarded(
    "format timestamp",
    lambda ms, pattern, *zones: _format_timestamp(ms, pattern, *zones),
)
_PARSE_TIMESTAMP = _guarded(
    "parse timestamp",
    lambda text, pattern, *zones: parser(pattern).timestamp_ms(
        text, zone(zones[0]) if zones else UTC_ZONE
    ),
)
_TIMESTAMP_TO_STRING = _guarded(
    "format timestamp",
    lambda ms, pattern, *zones: formatter(pattern).timestamp(
        ms, zone(zones[0]) if zones else SYSTEM_ZONE
    ),
)
_STRING_TO_TIMESTAMP = _guarded(
    "parse timestamp",
    lambda text, pattern, *zones: parser(pattern).timestamp_ms(
        text, zone(zones[0]) if zones else SYSTEM_ZONE
    ),
)
_KIND = "DATE / TIME"

FUNCTIONS = [
    scalar(
        "convert_tz",
        _KIND,
        "The same local time in another time zone.",
        "CONVERT_TZ(ts, 'America/Los_Angeles', 'Europe/Prague')",
        overload(
            "(TIMESTAMP timestamp, STRING fromTimeZone, STRING toTimeZone) -> TIMESTAMP",
            _convert_zone,
        ),
    ),
    scalar(
        "dateadd",
        _KIND,
        "A date moved forward.",
        "DATEADD(DAYS, 3, d)",
        overload("(INTERVAL UNIT unit, INT interval, DATE date) -> DATE", _date_moved),
    ),
    scalar(
        "datesub",
        _KIND,
        "A date moved back.",
        "DATESUB(DAYS, 3, d)",
        overload(
            "(INTERVAL UNIT unit, INT interval, DATE date) -> DATE",
            lambda unit, interval, days: _date_moved(unit, -interval, days),
        ),
    ),
    scalar(
        "datetostring",
        _KIND,
        "A number of days since 1970-01-01, written by a pattern of Java's DateTimeFormatter.",
        "DATETOSTRING(18000, 'yyyy-MM-dd') -> '2019-04-14'",
        overload(
            "(INT epochDays, STRING formatPattern) -> STRING",
            _guarded("format date", lambda days, pattern: formatter(pattern).date(days)),
        ),
    ),
    scalar(
        "format_date",
        _KIND,
        "A date, written by a pattern of Java's DateTimeFormatter.",
        "FORMAT_DATE(d, 'dd.MM.yyyy')",
        overload(
            "(DATE date, STRING formatPattern) -> STRING",
            _guarded("format date", lambda days, pattern: formatter(pattern).date(days)),
        ),
    ),
    scalar(
        "format_time",
        _KIND,
        "A time, written by a pattern of Java's DateTimeFormatter.",
        "FORMAT_TIME(t, 'HH:mm')",
        overload(
            "(TIME time, STRING formatPattern) -> STRING",
            _guarded("format time", lambda ms, pattern: formatter(pattern).time(ms)),
        ),
    ),
    scalar(
        "format_timestamp",
        _KIND,
        "A timestamp, written by a pattern of Java's DateTimeFormatter, in UTC or a time zone.",
        "FORMAT_TIMESTAMP(ts, 'yyyy-MM-dd HH:mm', 'Europe/Prague')",
        overload("(TIMESTAMP timestamp, STRING formatPattern) -> STRING", _FORMAT_TIMESTAMP),
        overload(
            "(TIMESTAMP timestamp, STRING formatPattern, STRING timeZone) -> STRING",
            _FORMAT_TIMESTAMP,
        ),
    ),
    scalar(
        "from_days",
        _KIND,
        "The date so many days after 1970-01-01.",
        "FROM_DAYS(18000) -> 2019-04-14",
        overload("(INT days) -> DATE", _identity),
    ),
    scalar(
        "from_unixtime",
        _KIND,
        "The timestamp so many milliseconds after 1970-01-01T00:00Z.",
        "FROM_UNIXTIME(0) -> 1970-01-01T00:00:00.000",
        overload("(BIGINT epochMilli) -> TIMESTAMP", _identity),
    ),
    scalar(
        "parse_date",
        _KIND,
        "The date that a text names, read by a pattern of Java's SimpleDateFormat.",
        "PARSE_DATE('14.04.2019', 'dd.MM.yyyy')",
        overload(
            "(STRING formattedDate, STRING formatPattern) -> DATE",
            _guarded("parse date", _parse_date),
        ),
    ),
    scalar(
        "parse_time",
        _KIND,
        "The time that a text names, read by a pattern of Java's DateTimeFormatter.",
        "PARSE_TIME('13:45', 'HH:mm')",
        overload(
            "(STRING formattedTime, STRING formatPattern) -> TIME",
            _guarded("parse time", _parse_time),
        ),
    ),
    scalar(
        "parse_timestamp",
        _KIND,
        "The timestamp that a text names, read by a pattern of Java's DateTimeFormatter, in UTC or "
        "a time zone.",
        "PARSE_TIMESTAMP('2019-04-14 13:45', 'yyyy-MM-dd HH:mm')",
        overload(
            "(STRING formattedTimestamp, STRING formatPattern) -> TIMESTAMP", _PARSE_TIMESTAMP
        ),
        overload(
            "(STRING formattedTimestamp, STRING formatPattern, STRING timeZone) -> TIMESTAMP",
            _PARSE_TIMESTAMP,
        ),
    ),
    scalar(
        "stringtodate",
        _KIND,
        "Days from 1970-01-01 to the date that a text names; PARSE_DATE gives a DATE.",
        "STRINGTODATE('2019-04-14', 'yyyy-MM-dd') -> 18000",
        overload(
            "(STRING formattedDate, STRING formatPattern) -> INT",
            _guarded("parse date", lambda text, pattern: parser(pattern).days(text)),
        ),
    ),
    scalar(
        "stringtotimestamp",
        _KIND,
        "Milliseconds from 1970-01-01T00:00Z to the time that a text names; PARSE_TIMESTAMP gives "
        "a TIMESTAMP.",
        "STRINGTOTIMESTAMP('2019-04-14', 'yyyy-MM-dd', 'UTC')",
        overload(
            "(STRING formattedTimestamp, STRING formatPattern) -> BIGINT", _STRING_TO_TIMESTAMP
        ),
        overload(
            "(STRING formattedTimestamp, STRING formatPattern, STRING timeZone) -> BIGINT",
            _STRING_TO_TIMESTAMP,
        ),
    ),
    scalar(
        "timeadd",
        _KIND,
        "A time moved forward; midnight is passed over.",
        "TIMEADD(MINUTES, 5, t)",
        overload("(INTERVAL UNIT unit, INT interval, TIME time) -> TIME", _time_moved),
    ),
    scalar(
        "timesub",
        _KIND,
        "A time moved back; midnight is passed over.",
        "TIMESUB(MINUTES, 5, t)",
        overload(
            "(INTERVAL UNIT unit, INT interval, TIME time) -> TIME",
            lambda unit, interval, ms: _time_moved(unit, -interval, ms),
        ),
    ),
    scalar(
        "timestampadd",
        _KIND,
        "A timestamp moved forward.",
        "TIMESTAMPADD(MINUTES, 5, ts)",
        overload(
            "(INTERVAL UNIT unit, INT interval, TIMESTAMP timestamp) -> TIMESTAMP",
            lambda unit, interval, ms: ms + _millis(unit, interval),
        ),
    ),
    scalar(
        "timestampsub",
        _KIND,
        "A timestamp moved back.",
        "TIMESTAMPSUB(MINUTES, 5, ts)",
        overload(
            "(INTERVAL UNIT unit, INT interval, TIMESTAMP timestamp) -> TIMESTAMP",
            lambda unit, interval, ms: ms - _millis(unit, interval),
        ),
    ),
    scalar(
        "timestamptostring",
        _KIND,
        "Milliseconds since 1970-01-01T00:00Z, written by a pattern of Java's DateTimeFormatter; "
        "FORMAT_TIMESTAMP takes a TIMESTAMP.",
        "TIMESTAMPTOSTRING(0, 'yyyy-MM-dd', 'UTC') -> '1970-01-01'",
        overload("(BIGINT epochMilli, STRING formatPattern) -> STRING", _TIMESTAMP_TO_STRING),
        overload(
            "(BIGINT epochMilli, STRING formatPattern, STRING timeZone) -> STRING",
            _TIMESTAMP_TO_STRING,
        ),
    ),
]
