"""Time zones by the names that Java's ZoneId takes."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_MIN = -62_135_510_400  # one day into the year 1, so that every offset fits
_SECONDS_MAX = 253_402_214_400
_OFFSET_SECONDS_MAX = 18 * 3600


class Zone:
    """A time zone: how far local time is ahead of UTC at a moment."""

    __slots__ = ("_fixed", "_region", "name")

    # With neither a fixed offset nor a region, `astimezone(None)` gives the system's zone.
    def __init__(self, name: str, fixed: int | None, region: zoneinfo.ZoneInfo | None) -> None:
        self.name = name
        self._fixed = fixed
        self._region = region

    @property
    def is_offset(self) -> bool:
        return self._fixed is not None

    def offset_at(self, epoch_seconds: int) -> int:
        """Seconds that local time is ahead of UTC at a moment."""
        if self._fixed is not None:
            return self._fixed
        offset = self._local(epoch_seconds).utcoffset() or timedelta()
        return int(offset.total_seconds())

    def abbreviation_at(self, epoch_seconds: int) -> str:
        if self._fixed is not None:
            return self.name
        return self._local(epoch_seconds).tzname() or self.name

    def _local(self, epoch_seconds: int) -> datetime:
        # datetime ends at the year 9999; rules do not change out there.
        bounded = min(max(epoch_seconds, _SECONDS_MIN), _SECONDS_MAX)
        return (_EPOCH + timedelta(seconds=bounded)).astimezone(self._region)

    def to_utc(self, local_seconds: int) -> int:
        """The moment of a local time. In an overlap the earlier one; a gap is passed over."""
        if self._fixed is not None:
            return local_seconds - self._fixed
        before = self.offset_at(local_seconds - 86_400)
        after = self.offset_at(local_seconds + 86_400)
        if before == after and self.offset_at(local_seconds - before) == before:
            return local_seconds - before
        for offset in (before, after):
            if self.offset_at(local_seconds - offset) == offset:
                return local_seconds - offset
        return local_seconds - before


UTC_ZONE = Zone("Z", 0, None)


@lru_cache(maxsize=1000)
def zone(name: str) -> Zone:
    """Java's ZoneId.of; ValueError with its words for a name it does not know."""
    if name == "Z":
        return UTC_ZONE
    if name[:1] in ("+", "-"):
        return Zone(_offset_name(offset_of(name)), offset_of(name), None)
    if name in ("UTC", "GMT", "UT"):
        return Zone(name, 0, None)
    for prefix in ("UTC", "GMT", "UT"):
        if name.startswith((prefix + "+", prefix + "-")):
            seconds = offset_of(name[len(prefix) :])
            return Zone(prefix + (_offset_name(seconds) if seconds else ""), seconds, None)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9~/._+-]+", name):
        raise ValueError(f"Invalid ID for region-based ZoneId, invalid format: {name}")
    try:
        return Zone(name, None, zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"Unknown time-zone ID: {name}") from None


def offset_of(text: str) -> int:
    """Seconds of an offset such as +2, +02, +0200, +02:00 or +02:00:30."""
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise ValueError(f"Invalid ID for ZoneOffset, invalid format: {text}")
    hours, minutes, seconds = (int(each or 0) for each in found.groups()[1:])
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > _OFFSET_SECONDS_MAX:
        raise ValueError(f"Zone offset not in valid range: -18:00 to +18:00: {text}")
    return -total if found[1] == "-" else total


def _offset_name(seconds: int) -> str:
    return offset_text(seconds, "+HH:MM:ss", "Z")


def offset_text(seconds: int, pattern: str, zero: str) -> str:
    """An offset by one of the patterns of DateTimeFormatterBuilder.appendOffset."""
    if seconds == 0:
        return zero
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(abs(seconds), 3600)
    minutes, second = divmod(rest, 60)
    colon = ":" if ":" in pattern else ""
    text = f"{sign}{hours:02d}"
    # Capitals are always written, small letters if they are not zero.
    if "MM" in pattern or ("mm" in pattern and (minutes or second)):
        text += f"{colon}{minutes:02d}"
        if "SS" in pattern or ("ss" in pattern and second):
            text += f"{colon}{second:02d}"
    return text


#: The zone of this process, by whatever the system's settings say; ZoneId.systemDefault().
SYSTEM_ZONE = Zone("SYSTEM", None, None)
