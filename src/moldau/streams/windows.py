"""Windows, and when their results are emitted."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from moldau.streams.records import MAX_TIMESTAMP, Window

if TYPE_CHECKING:
    from datetime import timedelta

#: Milliseconds, or a timedelta.
Duration: TypeAlias = "int | timedelta"


def millis(duration: Duration) -> int:
    """The duration in whole milliseconds."""
    if isinstance(duration, int):
        return duration
    # Imported here: who has one has imported it.
    from datetime import timedelta

    return duration // timedelta(milliseconds=1)


def iso(duration_ms: int) -> str:
    """The duration as Java prints it: PT1H0.5S."""
    minutes, left_ms = divmod(duration_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{left_ms // 1000}.{left_ms % 1000:03}".rstrip("0").rstrip(".") if left_ms else ""
    parts = (hours and f"{hours}H", minutes and f"{minutes}M", seconds and f"{seconds}S")
    return "PT" + ("".join(part for part in parts if part) or "0S")


def _not_negative(value: int, message: str) -> None:
    if value < 0:
        raise ValueError(message)


class TimeWindows:
    """Windows of a fixed size: tumbling, or hopping when `advance` is less than `size`.

    TimeWindows(size=60_000, grace=5_000): one window a minute, open five seconds longer.
    """

    __slots__ = ("advance_ms", "grace_ms", "size_ms")

    def __init__(
        self, *, size: Duration, advance: Duration | None = None, grace: Duration = 0
    ) -> None:
        self.size_ms = millis(size)
        self.advance_ms = self.size_ms if advance is None else millis(advance)
        self.grace_ms = millis(grace)
        if self.size_ms <= 0:
            raise ValueError("Window size (sizeMs) must be larger than zero.")
        if not 0 < self.advance_ms <= self.size_ms:
            raise ValueError(
                f"Window advancement interval should be more than zero and less than window "
                f"duration which is {self.size_ms} ms, but given advancement interval is: "
                f"{self.advance_ms} ms"
            )
        _not_negative(self.grace_ms, "Grace period must not be negative.")

    def windows_for(self, timestamp: int) -> list[Window]:
        """The windows that hold `timestamp`, the earliest first; their end is exclusive."""
        advance, size = self.advance_ms, self.size_ms
        first = max(0, timestamp - size + advance) // advance * advance
        return [Window(start, start + size) for start in range(first, timestamp + 1, advance)]


class UnlimitedWindows:
    """One window from `start` to the end of time."""

    __slots__ = ("grace_ms", "size_ms", "start_ms")

    def __init__(self, *, start: int = 0) -> None:
        _not_negative(start, "Window start time (startMs) cannot be negative.")
        self.start_ms = start
        self.size_ms = MAX_TIMESTAMP
        self.grace_ms = 0

    def windows_for(self, timestamp: int) -> list[Window]:
        """The one window, for times from its start on."""
        return [Window(self.start_ms, MAX_TIMESTAMP)] if timestamp >= self.start_ms else []


class SlidingWindows:
    """Windows around records that are at most `time_difference` apart; both ends are inclusive.

    SlidingWindows(time_difference=10_000, grace=1_000)
    """

    __slots__ = ("grace_ms", "time_difference_ms")

    def __init__(self, *, time_difference: Duration, grace: Duration = 0) -> None:
        self.time_difference_ms = millis(time_difference)
        self.grace_ms = millis(grace)
        _not_negative(self.time_difference_ms, "Window time difference must not be negative.")
        _not_negative(self.grace_ms, "Window grace period must not be negative.")


class SessionWindows:
    """Sessions: records of a key that follow each other within `inactivity_gap`.

    SessionWindows(inactivity_gap=timedelta(minutes=5))
    """

    __slots__ = ("grace_ms", "inactivity_gap_ms")

    def __init__(self, *, inactivity_gap: Duration, grace: Duration = 0) -> None:
        self.inactivity_gap_ms = millis(inactivity_gap)
        self.grace_ms = millis(grace)
        _not_negative(self.inactivity_gap_ms, "Gap time cannot be negative.")
        _not_negative(self.grace_ms, "Grace period cannot be negative.")


class JoinWindows:
    """How far apart the two records of a stream-stream join may be.

    JoinWindows(time_difference=10_000) joins a record with those of the other stream from 10 s
    before to 10 s after it; `before` and `after` change one side.
    """

    __slots__ = ("after_ms", "before_ms", "grace_ms")

    def __init__(
        self,
        *,
        time_difference: Duration = 0,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
    ) -> None:
        self.before_ms = millis(time_difference if before is None else before)
        self.after_ms = millis(time_difference if after is None else after)
        self.grace_ms = millis(grace)
        if self.before_ms + self.after_ms < 0:
            raise ValueError("Window interval (ie, beforeMs+afterMs) must not be negative.")
        _not_negative(self.grace_ms, "Grace period must not be negative.")

    @property
    def size_ms(self) -> int:
        """The whole span, before and after."""
        return self.before_ms + self.after_ms


class EmitStrategy(Enum):
    """When a windowed aggregation emits: at every update, or once when the window has closed."""

    ON_WINDOW_UPDATE = "on_window_update"
    ON_WINDOW_CLOSE = "on_window_close"


class Suppressed(NamedTuple):
    """What `KTable.suppress` holds back. Build it with one of its class methods.

    `logging` and `changelog_config` are those of its buffer.
    """

    until: Literal["window_closes", "time_limit"]
    limit_ms: int = 0
    records_max: int = 2**63 - 1
    bytes_max: int = 2**63 - 1
    shut_down_when_full: bool = False
    name: str | None = None
    logging: bool = True
    changelog_config: Mapping[str, str] = {}

    @classmethod
    def until_window_closes(
        cls,
        *,
        records_max: int = 2**63 - 1,
        bytes_max: int = 2**63 - 1,
        name: str | None = None,
        logging: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> Suppressed:
        """One final result per window. A full buffer stops the application: results stay final."""
        return cls(
            until="window_closes",
            records_max=records_max,
            bytes_max=bytes_max,
            shut_down_when_full=True,
            name=name,
            logging=logging,
            changelog_config=changelog_config or {},
        )

    @classmethod
    def until_time_limit(
        cls,
        limit: Duration,
        *,
        records_max: int = 2**63 - 1,
        bytes_max: int = 2**63 - 1,
        shut_down_when_full: bool = False,
        name: str | None = None,
        logging: bool = True,
        changelog_config: Mapping[str, str] | None = None,
    ) -> Suppressed:
        """At most one update per key and `limit` of stream time; a full buffer emits early."""
        return cls(
            until="time_limit",
            limit_ms=millis(limit),
            records_max=records_max,
            bytes_max=bytes_max,
            shut_down_when_full=shut_down_when_full,
            name=name,
            logging=logging,
            changelog_config=changelog_config or {},
        )
