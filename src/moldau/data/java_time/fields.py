"""A moment, taken apart into what patterns print."""

from __future__ import annotations

from moldau.data.java_time import civil
from moldau.data.java_time.zones import UTC_ZONE, Zone


class Moment:
    """A local date, time and zone; each part may be missing, as in java.time's temporals."""

    __slots__ = ("_civil", "days", "nanos", "offset", "zone")

    def __init__(
        self, days: int | None, nanos: int | None, zone: Zone | None = None, offset: int = 0
    ) -> None:
        self.days = days
        self.nanos = nanos
        self.zone = zone
        self.offset = offset
        self._civil: civil.Civil | None = None

    @classmethod
    def at(cls, epoch_ms: int, zone: Zone = UTC_ZONE) -> Moment:
        offset = zone.offset_at(epoch_ms // 1000)
        days, ms = divmod(epoch_ms + offset * 1000, civil.DAY_MS)
        return cls(days, ms * civil.NANOS_PER_MS, zone, offset)

    @classmethod
    def of_date(cls, days: int) -> Moment:
        return cls(days, None)

    @classmethod
    def of_time(cls, ms: int) -> Moment:
        return cls(None, ms * civil.NANOS_PER_MS)

    @property
    def date(self) -> civil.Civil:
        if self._civil is None:
            if self.days is None:
                raise ValueError("Unsupported field: it needs a date")
            self._civil = civil.civil_from_days(self.days)
        return self._civil

    @property
    def day_number(self) -> int:
        if self.days is None:
            raise ValueError("Unsupported field: it needs a date")
        return self.days

    @property
    def nano_of_day(self) -> int:
        if self.nanos is None:
            raise ValueError("Unsupported field: it needs a time")
        return self.nanos

    @property
    def epoch_seconds(self) -> int:
        return self.day_number * civil.DAY_SECONDS + self.nano_of_day // 10**9 - self.offset

    @property
    def known_zone(self) -> Zone:
        if self.zone is None:
            raise ValueError("Unable to extract ZoneId")
        return self.zone
