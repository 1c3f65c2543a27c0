"""Requests of each API: how many, how large, how long each phase takes, and with which errors.

The loop that receives a request also handles it, so that in most requests only the work takes time:
waiting in a queue, waiting for others and sending are recorded where they happen, and are zero for
all other requests (`Histogram`, `whole`). When they happen is in `phases.py`.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.broker.metrics.phases import Phases
from moldau.broker.metrics.tables import ERRORS, REQUEST, REQUESTS
from moldau.metrics import ApiTimes, Histogram, Meter, Registry, RequestTimes
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine

__all__ = ["ApiMetrics", "RequestMetrics"]

T = TypeVar("T")


class ApiMetrics:
    """Of one API in one version; `times` is shared by its versions."""

    __slots__ = ("api", "name", "requests", "times")

    def __init__(
        self, metrics: RequestMetrics, name: str, version: int, parent: ApiMetrics | None = None
    ) -> None:
        registry = metrics.registry
        self.name = name
        self.requests: Meter = registry.meter(
            REQUESTS, name, str(version), parent=None if parent is None else parent.requests
        )
        self.times = metrics.times(name, None if parent is None else parent.name)
        #: The hot path calls its `answered`, and nothing else.
        self.api = ApiTimes(self.requests, self.times)

    def waits(self, started_ns: int, size: int, reply: asyncio.Future[Any], phases: Phases) -> None:
        """A request was begun and is answered later."""
        reply.add_done_callback(self._begun(started_ns, size, phases))

    def awaited(
        self, started_ns: int, size: int, reply: Awaitable[T], phases: Phases
    ) -> Coroutine[Any, Any, T]:
        """As `waits`, for a request that has work left before it can be answered."""
        end = self._begun(started_ns, size, phases)

        async def rest() -> T:
            try:
                return await reply
            finally:
                end()

        return rest()

    def _begun(self, started_ns: int, size: int, phases: Phases) -> Callable[..., None]:
        """What to call when the response is there."""
        self.requests.mark(1)
        begun_ns = perf_counter_ns()
        local_ns = begun_ns - started_ns
        queued_ns = phases.begin(started_ns)

        def end(_: object = None) -> None:
            now_ns = perf_counter_ns()
            total_ns = now_ns - started_ns
            self.times.record(local_ns, now_ns - begun_ns, size)
            if queued_ns > 0:
                self.times.queued(total_ns, queued_ns)
                total_ns += queued_ns
            phases.wait(self.times, total_ns, now_ns)

        return end


class RequestMetrics:
    """`kafka.network:type=RequestMetrics`."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._times: dict[str, RequestTimes] = {}
        self._failed: dict[str, int] = {}
        self._apis: dict[tuple[str, int], ApiMetrics] = {}

    def api(self, name: str, version: int, parent: ApiMetrics | None = None) -> ApiMetrics:
        """Those of an API in a version; Kafka's name of it, such as Produce. What is recorded here
        is recorded in the `parent`, too: Kafka has Fetch, and FetchConsumer and FetchFollower."""
        found = self._apis.get((name, version))
        if found is None:
            found = self._apis[name, version] = ApiMetrics(self, name, version, parent)
        return found

    def counts(self, name: str) -> tuple[int, int]:
        """How many requests of an API were answered, and how many with an error."""
        times = self._times.get(name)
        return (0 if times is None else times.count), self._failed.get(name, 0)

    def throttled(self, key: ApiKey, throttle_ms: int) -> None:
        """A client of this API is held back."""
        name = "FetchConsumer" if key is ApiKey.FETCH else API_BY_KEY[key].name
        self.times(name)
        self.registry.histogram(REQUEST["ThrottleTimeMs"], name).update(throttle_ms)

    def times(self, name: str, parent: str | None = None) -> RequestTimes:
        found = self._times.get(name)
        if found is None:
            registry = self.registry
            total = registry.histogram(REQUEST["TotalTimeMs"], name)

            def phase(each: str) -> Histogram:
                return registry.histogram(REQUEST[each], name, whole=total)

            phase("ThrottleTimeMs")
            found = self._times[name] = RequestTimes(
                parent=None if parent is None else self.times(parent),
                total=total,
                local=registry.histogram(REQUEST["LocalTimeMs"], name),
                remote=phase("RemoteTimeMs"),
                request_queue=phase("RequestQueueTimeMs"),
                response_queue=phase("ResponseQueueTimeMs"),
                response_send=phase("ResponseSendTimeMs"),
                request_bytes=registry.histogram(REQUEST["RequestBytes"], name),
                errors_none=registry.meter(ERRORS, name, "NONE"),
            )
        return found

    def error(self, name: str, code: int) -> None:
        if code:
            self._failed[name] = self._failed.get(name, 0) + 1
            try:
                text = ErrorCode(code).name
            except ValueError:
                text = str(code)
            self.registry.meter(ERRORS, name, text).mark(1)
