"""Functions whose results depend on more than their arguments: the clock and chance."""

from __future__ import annotations

import random
import time
import uuid
from datetime import date

from moldau.sql.functions.declarations import overload, scalar

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _today() -> int:
    return date.today().toordinal() - _EPOCH_ORDINAL


def _uuid_of(value: bytes) -> str | None:
    return str(uuid.UUID(bytes=value)) if len(value) == 16 else None


def _identity(value: int) -> int:
    return value


FUNCTIONS = [
    scalar(
        "random",
        "MATHEMATICAL",
        "A random number from 0.0 up to, but without, 1.0.",
        "RANDOM()",
        overload("() -> DOUBLE", random.random),
    ),
    scalar(
        "unix_date",
        "DATE / TIME",
        "Days from 1970-01-01 to today, or to a date.",
        "UNIX_DATE()",
        overload("() -> INT", _today),
        overload("(DATE date) -> INT", _identity),
    ),
    scalar(
        "unix_timestamp",
        "DATE / TIME",
        "Milliseconds from 1970-01-01T00:00Z to now, or to a timestamp.",
        "UNIX_TIMESTAMP()",
        overload("() -> BIGINT", _now_ms),
        overload("(TIMESTAMP timestamp) -> BIGINT", _identity),
    ),
    scalar(
        "UUID",
        "STRING",
        "A new random UUID, or the one that 16 bytes make.",
        "UUID()",
        overload("() -> STRING", lambda: str(uuid.uuid4())),
        overload("(BYTES bytes) -> STRING", _uuid_of),
    ),
]
