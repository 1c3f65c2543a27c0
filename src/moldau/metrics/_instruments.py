# cython: annotation_typing=False, boundscheck=False, wraparound=False
"""What numbers are collected in: meters and histograms, cheap enough to be updated per request.

Plain Python, and with `_instruments.pxd` beside it also the source of a compiled module with the
same names and results. All instruments of a registry share a `Ticker`, which its owner advances:
an update reads no clock. Rates are Yammer's moving averages (5 s steps, one, five and fifteen
minutes), which is what Kafka reports. Histograms count in buckets of at most 6 % width and weigh
recent values more (forward decay with Yammer's factor), so that percentiles describe about the last
five minutes; nothing is sampled or sorted, and memory is fixed.
"""

from __future__ import annotations

import math
from array import array
from time import perf_counter_ns
from typing import Final

STEP_SECONDS: Final = 5.0
#: As in Yammer's exponentially decaying sample: values of the last five minutes dominate.
DECAY_PER_SECOND: Final = 0.015
#: Weights grow by e^(0.015 * 3600) = 2.8e23 within this time, which a double holds easily.
RESCALE_SECONDS: Final = 3600.0
#: After so many steps without events a moving average is zero for every purpose.
STEPS_MAX: Final = 5000

#: The smallest difference that counts: about a microsecond, in milliseconds.
UNITS: Final = 1024.0
SUB_BUCKETS: Final = 16
#: Enough for values up to 2^45.
BUCKETS: Final = 54 * SUB_BUCKETS
VALUE_MAX: Final = 2.0**45

_ALPHA_1: Final = 1.0 - math.exp(-STEP_SECONDS / 60.0)
_ALPHA_5: Final = 1.0 - math.exp(-STEP_SECONDS / 300.0)
_ALPHA_15: Final = 1.0 - math.exp(-STEP_SECONDS / 900.0)


class Ticker:
    """The time of all instruments of a registry, as far as it has been advanced."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.start_s = now_s
        self.now_s = now_s
        self.step = 0
        #: The weight of a value that is recorded now, relative to one recorded at `landmark_s`.
        self.weight = 1.0
        self.landmark_s = now_s
        #: Meters with events that their rates and parents do not have yet.
        self.marked: list[Meter] = []

    def advance(self, now_s: float) -> None:
        """It is now `now_s`, in seconds of a clock that does not jump."""
        if now_s <= self.now_s:
            return
        self.settle()
        self.now_s = now_s
        self.step = int((now_s - self.start_s) / STEP_SECONDS)
        if now_s - self.landmark_s > RESCALE_SECONDS:
            self.landmark_s = now_s
        self.weight = math.exp(DECAY_PER_SECOND * (now_s - self.landmark_s))

    def settle(self) -> None:
        """Count what was marked since the last time: before the time moves, and for readers."""
        for meter in self.marked:
            meter._settle()
        self.marked.clear()


class Meter:
    """Counts events and how many there are per second."""

    def __init__(self, ticker: Ticker, parent: Meter | None = None, scale: float = 1.0) -> None:
        """Events of this meter are also events of its `parent`. Rates are multiplied by `scale`:
        idle nanoseconds per second become the share of time."""
        self._ticker = ticker
        self._parent = parent
        self._scale = scale
        self._start_s = ticker.now_s
        self._step = ticker.step
        self._marked = 0
        self._uncounted = 0.0
        self._initialized = False
        self._rate_1 = 0.0
        self._rate_5 = 0.0
        self._rate_15 = 0.0
        self._count = 0

    def mark(self, events: int = 1) -> None:
        if not self._marked:
            self._ticker.marked.append(self)
        self._marked += events

    def _settle(self) -> None:
        events = self._marked
        self._marked = 0
        meter: Meter | None = self
        while meter is not None:
            if meter._step != meter._ticker.step:
                meter._advance()
            meter._count += events
            meter._uncounted += events
            meter = meter._parent

    @property
    def count(self) -> int:
        self._ticker.settle()
        return self._count

    def _advance(self) -> None:
        """Catch up with the ticker: everything uncounted happened in the first step."""
        steps = min(self._ticker.step - self._step, STEPS_MAX)
        self._step = self._ticker.step
        rate = self._uncounted / STEP_SECONDS
        self._uncounted = 0.0
        if self._initialized:
            self._rate_1 += _ALPHA_1 * (rate - self._rate_1)
            self._rate_5 += _ALPHA_5 * (rate - self._rate_5)
            self._rate_15 += _ALPHA_15 * (rate - self._rate_15)
        elif self._count:
            # A moving average begins with its first rate, as Yammer's does.
            self._initialized = True
            self._rate_1 = rate
            self._rate_5 = rate
            self._rate_15 = rate
        if steps > 1:
            self._rate_1 *= (1.0 - _ALPHA_1) ** (steps - 1)
            self._rate_5 *= (1.0 - _ALPHA_5) ** (steps - 1)
            self._rate_15 *= (1.0 - _ALPHA_15) ** (steps - 1)

    def rate(self, minutes: int) -> float:
        """Events per second over about 1, 5 or 15 minutes."""
        self._ticker.settle()
        if self._step != self._ticker.step:
            self._advance()
        if minutes == 1:
            return self._rate_1 * self._scale
        return (self._rate_5 if minutes == 5 else self._rate_15) * self._scale

    @property
    def mean_rate(self) -> float:
        """Events per second since the meter was made."""
        elapsed_s = self._ticker.now_s - self._start_s
        return self.count * self._scale / elapsed_s if elapsed_s > 0 else 0.0


class Histogram:
    """How values are distributed: bytes, milliseconds."""

    def __init__(self, ticker: Ticker, whole: Histogram | None = None) -> None:
        """With `whole` it has a value for each of that one's, and those that are not recorded are
        zero: what mostly takes no time costs nothing."""
        self._ticker = ticker
        self._whole = whole
        self._landmark_s = ticker.landmark_s
        self._buckets = array("d", bytes(8 * BUCKETS))
        self._weight = 0.0
        self._squares = 0.0
        self._recorded = 0
        self.sum = 0.0
        self._max = -math.inf
        self._min = math.inf

    def update(self, value: float) -> None:
        if self._landmark_s != self._ticker.landmark_s:
            self._rescale()
        index = bucket_of(value)
        weight = self._ticker.weight
        self._buckets[index] += weight
        self._weight += weight
        self._recorded += 1
        self.sum += value
        self._squares += value * value
        if value > self._max:
            self._max = value
        if value < self._min:
            self._min = value

    def lengthen(self, value: float, more: float) -> None:
        """A `value` that was recorded a moment ago has become larger."""
        if self._landmark_s != self._ticker.landmark_s:
            self._rescale()
        longer = value + more
        index = bucket_of(value)
        weight = min(self._ticker.weight, self._buckets[index])
        self._buckets[index] -= weight
        self._buckets[bucket_of(longer)] += weight
        self.sum += more
        self._squares += longer * longer - value * value
        if longer > self._max:
            self._max = longer

    def _rescale(self) -> None:
        """Express all weights relative to the ticker's new landmark."""
        factor = math.exp(-DECAY_PER_SECOND * (self._ticker.landmark_s - self._landmark_s))
        self._landmark_s = self._ticker.landmark_s
        total = 0.0
        for index in range(BUCKETS):
            weight = self._buckets[index] * factor
            self._buckets[index] = weight
            total += weight
        self._weight = total

    def percentile(self, fraction: float) -> float:
        """The value that `fraction` of the recent values do not exceed."""
        if self.count == 0:
            return 0.0
        if self._landmark_s != self._ticker.landmark_s:
            self._rescale()
        zeros = self._zeros_weight()
        wanted = fraction * (self._weight + zeros)
        seen = zeros
        last = 0
        if seen < wanted:
            for index in range(BUCKETS):
                weight = self._buckets[index]
                if weight > 0.0:
                    last = index
                    seen += weight
                    if seen >= wanted:
                        break
        return min(max(value_of(last), self.min), self.max)

    def _zeros_weight(self) -> float:
        """Of the values that are not recorded."""
        whole = self._whole
        if whole is None or whole.count <= self._recorded:
            return 0.0
        if whole._landmark_s != self._ticker.landmark_s:
            whole._rescale()
        return max(whole._weight - self._weight, 0.0)

    @property
    def count(self) -> int:
        if self._whole is None:
            return self._recorded
        # One that is recorded before its request counts is there already.
        return max(self._whole.count, self._recorded)

    @property
    def max(self) -> float:
        """The largest value ever."""
        return self._max if self._recorded else 0.0

    @property
    def min(self) -> float:
        """The smallest value ever."""
        return self._min if self._recorded and self.count == self._recorded else 0.0

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.count else 0.0

    @property
    def std_dev(self) -> float:
        if self.count < 2:
            return 0.0
        variance = (self._squares - self.sum * self.sum / self.count) / (self.count - 1)
        return math.sqrt(variance) if variance > 0.0 else 0.0


def bucket_of(value: float) -> int:
    """Small values have a bucket each; above them each power of two has sixteen buckets."""
    if value <= 0.0:
        return 0
    units = int((value if value < VALUE_MAX else VALUE_MAX) * UNITS)
    shift = 0
    while units >= 512 * SUB_BUCKETS:
        units >>= 8
        shift += 8
    while units >= 2 * SUB_BUCKETS:
        units >>= 1
        shift += 1
    return shift * SUB_BUCKETS + units


def value_of(index: int) -> float:
    """The middle of a bucket."""
    if index < 2 * SUB_BUCKETS:
        return index / UNITS
    shift = index // SUB_BUCKETS - 1
    units = index - shift * SUB_BUCKETS
    return (units + 0.5) * 2.0**shift / UNITS


class RequestTimes:
    """The phases of one API's requests; one call records those that every request has."""

    def __init__(
        self,
        *,
        total: Histogram,
        local: Histogram,
        remote: Histogram,
        request_bytes: Histogram,
        errors_none: Meter,
        request_queue: Histogram,
        response_queue: Histogram,
        response_send: Histogram,
        parent: RequestTimes | None = None,
    ) -> None:
        """A request that is recorded here is recorded in `parent`, too. The phases that mostly take
        no time are histograms with `total` as their whole."""
        self._parent = parent
        self._total = total
        self._local = local
        self._remote = remote
        self._request_queue = request_queue
        self._response_queue = response_queue
        self._response_send = response_send
        self._bytes = request_bytes
        self._none = errors_none
        #: Requests that were answered.
        self.count = 0

    def record(self, local_ns: int, remote_ns: int, size: int, failed: int = 0) -> None:
        """A request of `size` bytes is answered. `failed`: its errors are counted elsewhere."""
        self.count += 1
        self._local.update(local_ns * 1e-6)
        if remote_ns:
            self._remote.update(remote_ns * 1e-6)
        self._total.update((local_ns + remote_ns) * 1e-6)
        self._bytes.update(size)
        if not failed:
            self._none.mark(1)
        if self._parent is not None:
            self._parent.record(local_ns, remote_ns, size, failed)

    def queued(self, total_ns: int, more_ns: int) -> None:
        """The request just recorded with `total_ns` waited so long before it was begun."""
        self._request_queue.update(more_ns * 1e-6)
        self._total.lengthen(total_ns * 1e-6, more_ns * 1e-6)
        if self._parent is not None:
            self._parent.queued(total_ns, more_ns)

    def held_back(self, total_ns: int, more_ns: int) -> None:
        """Its response waited so long until it was its turn to be sent."""
        self._response_queue.update(more_ns * 1e-6)
        self._total.lengthen(total_ns * 1e-6, more_ns * 1e-6)
        if self._parent is not None:
            self._parent.held_back(total_ns, more_ns)

    def sent(self, total_ns: int, more_ns: int) -> None:
        """Its response took so long to send."""
        self._response_send.update(more_ns * 1e-6)
        self._total.lengthen(total_ns * 1e-6, more_ns * 1e-6)
        if self._parent is not None:
            self._parent.sent(total_ns, more_ns)


class ApiTimes:
    """One API in one version: counts its requests, and passes their times on."""

    def __init__(self, requests: Meter, times: RequestTimes) -> None:
        self._requests = requests
        self.times = times
        #: When the last request was answered, and how long it had taken.
        self.answered_ns = 0
        self.total_ns = 0

    def answered(self, started_ns: int, size: int) -> None:
        """A request of `size` bytes, begun at `started_ns` (perf_counter_ns), is answered now."""
        now_ns = perf_counter_ns()
        self.answered_ns = now_ns
        self.total_ns = now_ns - started_ns
        self._requests.mark(1)
        self.times.record(now_ns - started_ns, 0, size)


class Flow:
    """What passes somewhere: operations, bytes and records, counted by one call."""

    def __init__(self, operations: Meter, size: Meter, records: Meter | None = None) -> None:
        self.operations = operations
        self.size = size
        self.records = records

    def passed(self, size: int) -> None:
        self.operations.mark(1)
        if size:
            self.size.mark(size)

    def appended(self, size: int, base_offset: int, last_offset: int) -> None:
        """A batch of `size` bytes with these offsets."""
        self.operations.mark(1)
        self.size.mark(size)
        if self.records is not None:
            self.records.mark(last_offset - base_offset + 1)
