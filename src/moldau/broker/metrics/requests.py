"""Requests of each API: how many, how large, how long each phase takes, and with which errors.

Phases that Kafka has and that take no time here are reported as what they are: a request does not
queue for a thread, because the loop that received it also handles it.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.broker.metrics.tables import ERRORS, REQUEST, REQUESTS
from moldau.metrics import ApiTimes, Meter, Registry, RequestTimes
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

__all__ = ["ApiMetrics", "RequestMetrics"]

T = TypeVar("T")


class ApiMetrics:
    """Of one API in one version; `times` is shared by its versions."""

    __slots__ = ("answered", "name", "requests", "times")

    def __init__(
        self, metrics: RequestMetrics, name: str, version: int, parent: ApiMetrics | None = None
    ) -> None:
        registry = metrics.registry
        self.name = name
        self.requests: Meter = registry.meter(
            REQUESTS, name, str(version), parent=None if parent is None else parent.requests
        )
        self.times = metrics.times(name, None if parent is None else parent.name)
        #: The hot path calls this, and nothing else.
        self.answered = ApiTimes(self.requests, self.times).answered
        # Of clients over their quotas only: updated in `throttled`.
        registry.histogram(REQUEST["ThrottleTimeMs"], name)

    def waits(self, started_ns: int, size: int, reply: asyncio.Future[Any]) -> None:
        """A request was begun and is answered later."""
        self.requests.mark(1)
        begun_ns = perf_counter_ns()
        local_ns = begun_ns - started_ns

        def end(_: object) -> None:
            self.times.record(local_ns, perf_counter_ns() - begun_ns, size)

        reply.add_done_callback(end)

    async def awaited(self, started_ns: int, size: int, reply: Awaitable[T]) -> T:
        """As `waits`, for a request that has work left before it can be answered."""
        self.requests.mark(1)
        begun_ns = perf_counter_ns()
        try:
            return await reply
        finally:
            self.times.record(begun_ns - started_ns, perf_counter_ns() - begun_ns, size)


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
        self.registry.histogram(REQUEST["ThrottleTimeMs"], name).update(throttle_ms)

    def times(self, name: str, parent: str | None = None) -> RequestTimes:
        found = self._times.get(name)
        if found is None:
            registry = self.registry
            found = self._times[name] = RequestTimes(
                parent=None if parent is None else self.times(parent),
                total=registry.histogram(REQUEST["TotalTimeMs"], name),
                local=registry.histogram(REQUEST["LocalTimeMs"], name),
                remote=registry.histogram(REQUEST["RemoteTimeMs"], name),
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
