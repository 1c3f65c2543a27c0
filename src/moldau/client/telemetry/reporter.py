"""Asks a cluster what metrics it wants, and pushes them: the shell of `state`.

Invariants: it never makes an operation of the client fail or wait; a cluster that does not
want metrics, or does not know the API, is asked once. It starts with the client's first use, so
that a client that does nothing connects to nobody.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from moldau.client.cluster import ClusterClient
from moldau.client.errors import (
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.metrics import KafkaMetric, MetricName, Metrics
from moldau.client.telemetry.machine.state import Ask, Push, Subscription, TelemetryState
from moldau.clock import pause
from moldau.times import ElapsedMs, WallMs
from moldau.wire.compression import Compression, compress
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

if TYPE_CHECKING:
    from moldau.metrics.otlp import Point

__all__ = ["TelemetryReporter"]

_log = logging.getLogger(__name__)

# A closing client waits no longer than this for its last push to be taken.
_LAST_PUSH_MS_MAX = 1_000
_JITTER_STEPS = 1_000
# Settings that describe a client to a collector.
_LABELS = {
    "transactional.id": "transactional_id",
    "group.id": "group_id",
    "group.instance.id": "group_instance_id",
    "client.rack": "client_rack",
}


class TelemetryReporter:
    """Pushes the metrics of one client. Lives on the client's event loop, but for `start`."""

    def __init__(
        self, cluster: ClusterClient, metrics: Metrics, *, labels: Mapping[str, str] | None = None
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        #: What describes the client: group_id, transactional_id, client_rack, ...
        self.labels = dict(labels or {})
        self._state = TelemetryState()
        self._task: asyncio.Task[None] | None = None
        self._known = asyncio.Event()
        self._closed = False
        self._ended_by: KafkaError | None = None
        self._registered: dict[MetricName, KafkaMetric] = {}
        self._started_ms = cluster.clock.now_ms()
        self._last: dict[MetricName, tuple[float, WallMs]] = {}

    @classmethod
    def of(
        cls, values: Mapping[str, Any], cluster: ClusterClient, metrics: Metrics
    ) -> TelemetryReporter | None:
        """From parsed settings: one that begins with the first picture of the cluster, or None."""
        if not values["enable.metrics.push"]:
            return None
        labels = {label: str(values[key]) for key, label in _LABELS.items() if values.get(key)}
        reporter = cls(cluster, metrics, labels=labels)
        cluster.on_metadata.append(lambda _: reporter.start())
        return reporter

    def start(self) -> None:
        """Begin, on the running loop; does nothing if it has begun, or ended."""
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def register(self, metric: KafkaMetric) -> None:
        """Push a metric that is not the client's own as well."""
        self._registered[metric.metric_name] = metric

    def unregister(self, metric: KafkaMetric) -> None:
        self._registered.pop(metric.metric_name, None)

    async def client_instance_id(self, *, timeout_ms: int) -> UUID:
        """The id that the cluster gave this client; raises KafkaError if it gives none."""
        self.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._known.wait()
        if self._state.subscription is not None:
            return self._state.subscription.client_instance_id
        if self._ended_by is not None:
            raise self._ended_by
        raise KafkaTimeoutError(f"no client instance id was assigned within {timeout_ms} ms")

    async def close(self) -> None:
        """Push for the last time, if the cluster wants metrics, and end."""
        self._closed = True
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        self._state.close(now_ms=self._now_ms())
        last = self._state.next()
        if isinstance(last, Push):
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_PUSH_MS_MAX / 1000):
                    await self._push(last)

    async def _run(self) -> None:
        while (due_ms := self._state.due_ms) is not None:
            delay_ms = due_ms - self._now_ms()
            if delay_ms > 0:
                await pause(self._cluster.clock, delay_ms)
            match self._state.next():
                case Ask() as wanted:
                    await self._ask(wanted)
                case Push() as due:
                    await self._push(due)
                case None:
                    return

    async def _ask(self, wanted: Ask) -> None:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=wanted.client_instance_id)
        try:
            response: GetTelemetrySubscriptionsResponse = await self._cluster.call_any(request)
        except KafkaError as error:
            self._failed(error)
            return
        if response.error_code != ErrorCode.NONE:
            self._refused(response.error_code)
            return
        granted = Subscription(
            response.client_instance_id,
            response.subscription_id,
            response.push_interval_ms,
            tuple(response.accepted_compression_types),
            response.delta_temporality,
            tuple(response.requested_metrics),
        )
        before = self._state.subscription
        if before is not None and before.is_delta != granted.is_delta:
            self._last.clear()
        jitter = self._cluster.random.randrange(_JITTER_STEPS + 1) / _JITTER_STEPS
        self._state.on_granted(granted, now_ms=self._now_ms(), jitter=jitter)
        self._known.set()

    async def _push(self, due: Push) -> None:
        # Most clusters want none.
        from moldau.metrics.otlp import encode_metrics

        subscription = due.subscription
        payload = encode_metrics(self._points(subscription), self.labels)
        codec = next(
            (Compression(each) for each in subscription.compression_types if each in _CODECS),
            Compression.NONE,
        )
        request = PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            terminating=due.terminating,
            compression_type=codec,
            metrics=compress(codec, payload) if codec is not Compression.NONE else payload,
        )
        try:
            response: PushTelemetryResponse = await self._cluster.call_any(request)
        except KafkaError as error:
            self._failed(error)
            return
        if response.error_code != ErrorCode.NONE:
            self._refused(response.error_code)
        else:
            self._state.on_pushed(now_ms=self._now_ms())

    def _failed(self, error: KafkaError) -> None:
        _log.debug("The cluster does not accept metrics: %s", error)
        passes = error.retriable and not isinstance(error, UnsupportedVersionError)
        self._state.on_failure(passes=passes, now_ms=self._now_ms())
        self._note_end(error)

    def _refused(self, code: int) -> None:
        _log.debug("The cluster refused metrics with error code %d", code)
        self._state.on_error(code, now_ms=self._now_ms())
        self._note_end(error_for(code, "metrics"))

    def _note_end(self, error: KafkaError) -> None:
        if self._state.over:
            self._ended_by = error
            self._known.set()

    def _points(self, subscription: Subscription) -> list[Point]:
        from moldau.metrics.otlp import Point, telemetry_name

        now_ms = self._cluster.clock.now_ms()
        points = []
        for metric in [*self._metrics.metrics().values(), *self._registered.values()]:
            name = telemetry_name(metric.metric_name.group, metric.metric_name.name)
            if not subscription.wants(name):
                continue
            value = _number(metric)
            if value is None:
                continue
            if not metric.is_cumulative:
                points.append(Point(name, metric.metric_name.tags, value, now_ms))
                continue
            start_ms, is_delta = self._started_ms, subscription.is_delta
            if is_delta:
                before, start_ms = self._last.get(metric.metric_name, (0.0, start_ms))
                self._last[metric.metric_name] = float(value), now_ms
                value = float(value) - before
            points.append(
                Point(name, metric.metric_name.tags, float(value), now_ms, start_ms, is_delta)
            )
        return points

    def _now_ms(self) -> ElapsedMs:
        return self._cluster.clock.elapsed_ms()


_CODECS = frozenset(each.value for each in Compression if each is not Compression.NONE)


def _number(metric: KafkaMetric) -> int | float | None:
    """A value that can be pushed: texts cannot, nor can what is not measured yet."""
    try:
        value = metric.metric_value()
    except Exception:
        # A gauge of the application; its fault must not end the pushes.
        _log.warning("The value of %r cannot be read", metric.metric_name, exc_info=True)
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value
