"""Triggers as they are written: `1 second`, `available now`, `once`, or Spark's own names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_INTERVAL = re.compile(
    r"(\d+)\s*(ms|s|milliseconds?|seconds?|minutes?|hours?|days?)"
    r"(\s+\d+\s*(milliseconds?|seconds?|minutes?|hours?|days?))*",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+)\s*([a-z]+)", re.IGNORECASE)
_UNITS_MS = {"millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000}
_DAY_MS = 86_400_000
_SHORT = {"ms": "milliseconds", "s": "seconds"}
EXPECTED = "'1 second', 'available now' or 'once'"


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a query looks for new data; after 0 seconds, at once when the last batch is done."""

    processing_time: str = "0 seconds"
    available_now: bool = False
    once: bool = False

    def to_json(self) -> str:
        if self.available_now:
            return "available now"
        return "once" if self.once else self.processing_time

    def for_spark(self) -> dict[str, Any]:
        """The arguments of `DataStreamWriter.trigger`."""
        if self.available_now:
            return {"availableNow": True}
        if self.once:
            return {"once": True}
        return {"processingTime": self.processing_time}

    @property
    def interval_ms(self) -> int:
        """How long it waits from the beginning of one batch to that of the next."""
        return interval_ms(self.processing_time)

    @property
    def finite(self) -> bool:
        """Whether the query ends by itself when it has read what there is."""
        return self.available_now or self.once


def trigger_of(written: str | Mapping[str, Any] | None) -> Trigger:
    """Raises `ValueError` with a sentence about what was expected."""
    if written is None:
        return Trigger()
    if isinstance(written, Mapping):
        if len(written) != 1:
            raise ValueError(
                f"expected one of processingTime, availableNow and once, got {written}"
            )
        (name, value), *_ = written.items()
        if name in ("processingTime", "processing_time"):
            return trigger_of(str(value))
        if name in ("availableNow", "available_now", "once") and value is True:
            return Trigger(once=True) if name == "once" else Trigger(available_now=True)
        raise ValueError(f"unknown trigger {name}: {value}; expected {EXPECTED}")
    text = " ".join(written.split())
    match text.lower():
        case "available now" | "availablenow" | "available-now":
            return Trigger(available_now=True)
        case "once":
            return Trigger(once=True)
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(f"expected {EXPECTED}, got {written!r}")
    if (unit := found[2].lower()) in _SHORT:
        text = f"{found[1]} {_SHORT[unit]}"
    return Trigger(processing_time=text)


def is_interval(text: str) -> bool:
    return _INTERVAL.fullmatch(" ".join(text.split())) is not None


def interval_ms(text: str) -> int:
    """How long an interval is; it must be one."""
    return sum(
        int(count)
        * _UNITS_MS.get(_SHORT.get(unit.lower(), unit.lower()).removesuffix("s"), _DAY_MS)
        for count, unit in _PART.findall(text)
    )
