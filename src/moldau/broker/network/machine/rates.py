"""How a rate is measured and how long a client that exceeds it waits, as Kafka computes both.

A rate is the sum of the last samples divided by the time they cover. A new client is measured as if
it had been silent for the rest of the window, so that a short burst is not a high rate:

    throttle time = (rate - limit) / limit * window

After that time without traffic the rate is at the limit again. Controller mutations are counted
with a token bucket instead (KIP-599): bursts are common there, and a window would punish them for
its whole length. Time is passed in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from moldau.times import ElapsedMs


@dataclass(frozen=True, slots=True)
class Window:
    """quota.window.num samples of quota.window.size.seconds each."""

    samples: int = 11
    sample_ms: int = 1000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.last_ms = start_ms
        self.value = 0.0


class SampledRate:
    """What one client used lately, by samples."""

    __slots__ = ("_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        # Oldest first; one more than configured, because the oldest may overlap the window.
        self._samples: deque[_Sample] = deque()

    def record(self, value: float, now_ms: ElapsedMs) -> None:
        """A negative `value` takes back what was recorded."""
        samples, window = self._samples, self._window
        if not samples or now_ms - samples[-1].start_ms >= window.sample_ms:
            samples.append(_Sample(now_ms))
            if len(samples) > window.samples + 1:
                samples.popleft()
        current = samples[-1]
        current.value += value
        current.last_ms = now_ms

    def throttle_ms(self, limit: float, now_ms: ElapsedMs) -> int:
        """How long the client has to be silent until its rate is within `limit` per second."""
        total, window_ms = self._measure(now_ms)
        rate = total * 1000 / window_ms
        if rate <= limit:
            return 0
        return round((rate - limit) / limit * window_ms)

    def per_second(self, now_ms: ElapsedMs) -> float:
        total, window_ms = self._measure(now_ms)
        return total * 1000 / window_ms

    def is_idle(self, now_ms: ElapsedMs) -> bool:
        """Whether nothing that was recorded counts any more."""
        self._drop_old(now_ms)
        return not self._samples

    def _measure(self, now_ms: ElapsedMs) -> tuple[float, int]:
        """What was used, and the time that it is divided by."""
        self._drop_old(now_ms)
        samples, window = self._samples, self._window
        elapsed_ms = now_ms - samples[0].start_ms if samples else 0
        missing = window.samples - 1 - elapsed_ms // window.sample_ms
        if missing > 0:
            elapsed_ms += missing * window.sample_ms
        return sum(each.value for each in samples), max(elapsed_ms, window.sample_ms)

    def _drop_old(self, now_ms: ElapsedMs) -> None:
        samples, window = self._samples, self._window
        span_ms = window.samples * window.sample_ms
        while samples and now_ms - samples[0].last_ms >= span_ms:
            samples.popleft()


class TokenBucket:
    """Tokens that flow back at the limit's rate, up to what a whole window gives.

    More may be taken than there are: the debt has to flow back before the next one is allowed.
    """

    __slots__ = ("_limit", "_tokens", "_updated_ms", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._tokens = 0.0
        # Full at first, as Kafka's, which counts from 1970.
        self._updated_ms: int | None = None
        self._limit = 0.0

    def tokens(self, limit: float, now_ms: ElapsedMs) -> float:
        burst = self._burst(limit)
        self._limit = limit
        if self._updated_ms is None:
            self._tokens = burst
        else:
            gained = limit * (now_ms - self._updated_ms) / 1000
            self._tokens = min(burst, self._tokens + gained)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: ElapsedMs) -> None:
        self._tokens = min(self._burst(limit), self.tokens(limit, now_ms) - count)

    def throttle_ms(self, limit: float, now_ms: ElapsedMs) -> int:
        """How long until the debt is paid; 0 if there is none."""
        tokens = self.tokens(limit, now_ms)
        return round(-tokens / limit * 1000) if tokens < 0 else 0

    def is_idle(self, now_ms: ElapsedMs) -> bool:
        """Whether it is full, like a new one."""
        return self.tokens(self._limit, now_ms) >= self._burst(self._limit)

    def _burst(self, limit: float) -> float:
        return self._window.samples * self._window.sample_ms / 1000 * limit
