"""When a client asks what metrics the cluster wants of it, and when it pushes them.

Pure: time and chance are passed in. States: a subscription is needed; there is one, and pushes
follow at its interval; the last push is due, because the client closes; it is over. Errors of the
broker lead back to the first state after a pause, or to the end:

    needed --granted, metrics wanted--> subscribed --pushed--> subscribed
    needed --granted, none wanted--> needed, after the interval
    any --error that passes--> needed;  any --error that stays--> over
    subscribed --close--> last push --anything--> over

Invariants: no two requests within the interval that the broker last asked for, but for the last
push and for errors that say to ask again at once.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple
from uuid import UUID

from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode
from moldau.wire.uuids import ZERO_UUID

__all__ = ["Ask", "Push", "Subscription", "TelemetryState"]

DEFAULT_INTERVAL_MS: Final = 300_000
_ALL: Final = "*"
_AGAIN_AT_ONCE: Final = frozenset(
    {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
)
_AGAIN_LATER: Final = frozenset(
    {ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
)


class Subscription(NamedTuple):
    """What the cluster wants."""

    client_instance_id: UUID
    subscription_id: int
    push_interval_ms: int
    compression_types: tuple[int, ...]
    is_delta: bool
    metrics: tuple[str, ...]

    def wants(self, name: str) -> bool:
        return self.metrics == (_ALL,) or name.startswith(self.metrics)


class Ask(NamedTuple):
    """Ask for a subscription; a zero id asks for an id as well."""

    client_instance_id: UUID


class Push(NamedTuple):
    subscription: Subscription
    terminating: bool


class _Phase(Enum):
    NEEDED = auto()
    SUBSCRIBED = auto()
    LAST_PUSH = auto()
    OVER = auto()


class TelemetryState:
    """See the module."""

    def __init__(self) -> None:
        self._phase = _Phase.NEEDED
        self._due_ms: int | None = 0
        self.subscription: Subscription | None = None

    @property
    def over(self) -> bool:
        return self._phase is _Phase.OVER

    @property
    def due_ms(self) -> int | None:
        """When there is something to do; None if never."""
        return self._due_ms

    def next(self) -> Ask | Push | None:
        """What is to be done when it is due."""
        subscription = self.subscription
        if self._phase is _Phase.NEEDED:
            return Ask(ZERO_UUID if subscription is None else subscription.client_instance_id)
        if self._phase is _Phase.OVER or subscription is None:
            return None
        return Push(subscription, terminating=self._phase is _Phase.LAST_PUSH)

    def on_granted(self, granted: Subscription, *, now_ms: ElapsedMs, jitter: float) -> None:
        """A subscription came. `jitter`, from 0 to 1, spreads the first pushes of many clients."""
        if self._phase is not _Phase.NEEDED:
            return
        interval_ms = granted.push_interval_ms
        if interval_ms <= 0:
            interval_ms = DEFAULT_INTERVAL_MS
        self.subscription = granted._replace(push_interval_ms=interval_ms)
        if granted.metrics:
            self._phase = _Phase.SUBSCRIBED
            interval_ms = round(interval_ms * (0.5 + jitter))
        self._due_ms = now_ms + interval_ms

    def on_pushed(self, *, now_ms: ElapsedMs) -> None:
        if self._phase is _Phase.LAST_PUSH or self.subscription is None:
            self._end()
        elif self._phase is _Phase.SUBSCRIBED:
            self._due_ms = now_ms + self.subscription.push_interval_ms

    def on_error(self, code: int, *, now_ms: ElapsedMs) -> None:
        """The broker refused a request."""
        if self._phase is _Phase.LAST_PUSH:
            self._end()
        elif code in _AGAIN_AT_ONCE:
            self._ask_again(now_ms)
        elif code in _AGAIN_LATER:
            self._ask_again(now_ms + self._interval_ms())
        else:
            self._end()

    def on_failure(self, *, passes: bool, now_ms: ElapsedMs) -> None:
        """A request was not answered."""
        if passes and self._phase is not _Phase.LAST_PUSH:
            self._ask_again(now_ms + DEFAULT_INTERVAL_MS)
        else:
            self._end()

    def close(self, *, now_ms: ElapsedMs) -> None:
        """The client closes: what was counted since the last push is pushed now."""
        if self._phase is _Phase.SUBSCRIBED:
            self._phase = _Phase.LAST_PUSH
            self._due_ms = now_ms
        elif self._phase is _Phase.NEEDED:
            self._end()

    def _interval_ms(self) -> int:
        known = self.subscription
        return DEFAULT_INTERVAL_MS if known is None else known.push_interval_ms

    def _ask_again(self, due_ms: int) -> None:
        if self._phase is not _Phase.OVER:
            self._phase = _Phase.NEEDED
            self._due_ms = due_ms

    def _end(self) -> None:
        self._phase = _Phase.OVER
        self._due_ms = None
