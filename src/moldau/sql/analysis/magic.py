"""Comparisons of ROWTIME and window bounds with texts: the texts are read as timestamps."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from moldau.sql.errors import KsqlException
from moldau.sql.sources.schema import ROWTIME, WINDOW_BOUNDS
from moldau.sql.syntax.expressions import (
    Between,
    ColumnRef,
    Comparison,
    Expression,
    LongLiteral,
    StringLiteral,
    rewrite,
)

_TIMES = WINDOW_BOUNDS | {ROWTIME}
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_HELP = """
Required format is: "yyyy-MM-dd'T'HH:mm:ss.SSS", with an optional numeric 'Z' or named \
timezone, for example: 2020-05-26T23.59.58.000 or 2020-05-26T23.59.58.100+0200. Partials are \
also supported, for example "2020-05-26\""""


def with_timestamps(expression: Expression) -> Expression:
    """The expression with such texts as numbers of milliseconds."""
    return rewrite(expression, _rewritten)


def _rewritten(node: Expression) -> Expression | None:
    if isinstance(node, Between) and _is_time(node.value):
        return replace(node, low=_number(node.low), high=_number(node.high))
    if isinstance(node, Comparison):
        if _is_time(node.left) and isinstance(node.right, StringLiteral):
            return replace(node, right=_number(node.right))
        if _is_time(node.right) and isinstance(node.left, StringLiteral):
            return replace(node, left=_number(node.left))
    return None


def _is_time(node: Expression) -> bool:
    return isinstance(node, ColumnRef) and node.name in _TIMES


def _number(node: Expression) -> Expression:
    if not isinstance(node, StringLiteral):
        return node
    return LongLiteral(parse_partial(node.value), position=node.position)


def parse_partial(text: str) -> int:
    """Milliseconds of a timestamp that may stop after any part: 2020, 2020-05-26T23."""
    date_part, separator, rest = text.partition("T")
    date = _DATE.fullmatch(date_part)
    zone: timezone | ZoneInfo = UTC
    time_part = rest
    try:
        if separator:
            time_part, zone = _zone(rest)
        time = _TIME.fullmatch(time_part) if time_part else None
        if date is None or (time_part and time is None):
            raise ValueError(text)
        year, month, day = (int(each or 1) for each in date.groups())
        hour = minute = second = micros = 0
        if time is not None:
            hour, minute, second = (int(each or 0) for each in time.groups()[:3])
            micros = int((time.group(4) or "0").ljust(9, "0")[:6])
        # T24 is the start of the next day.
        found = datetime(year, month, day, hour % 24, minute, second, micros, tzinfo=zone)
        if hour > 24 or (hour == 24 and (minute or second or micros)):
            raise ValueError("hour must be in 0..23")
        found += timedelta(days=hour // 24)
    except (ValueError, KeyError) as error:
        raise KsqlException(f"Failed to parse timestamp '{text}': {error}{_HELP}") from error
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _zone(text: str) -> tuple[str, timezone | ZoneInfo]:
    """The time and its zone: Z, +0200, or a name."""
    if text.endswith("Z"):
        return text[:-1], UTC
    found = _OFFSET.search(text)
    if found is not None:
        sign = 1 if found.group(1) == "+" else -1
        offset = timedelta(hours=int(found.group(2)), minutes=int(found.group(3)))
        return text[: found.start()], timezone(sign * offset)
    letters = re.search("[A-Za-z]", text)
    if letters is not None:
        return text[: letters.start()], ZoneInfo(text[letters.start() :])
    return text, UTC
