"""The reporter between a client's metrics and a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from moldau.client import errors
from moldau.client.cluster import ClusterClient
from moldau.client.metrics import KafkaMetric, MetricName, Metrics
from moldau.client.metrics._stats import Windows
from moldau.client.network_settings import NetworkSettings
from moldau.client.telemetry import TelemetryReporter
from moldau.wire.compression import Compression, decompress
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

ID = UUID(int=9)


class FakeCluster(ClusterClient):
    """Grants a subscription whose pushes are due at once."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        super().__init__(NetworkSettings(bootstrap=()))
        self._reply = answer
        self.pushes: list[PushTelemetryRequest] = []
        self.arrivals: asyncio.Queue[None] = asyncio.Queue()
        self.asked = 0

    async def call_any(self, request: Any, **options: Any) -> Any:
        if isinstance(request, PushTelemetryRequest):
            self.pushes.append(request)
            self.arrivals.put_nowait(None)
        else:
            self.asked += 1
        answer = self._reply(request)
        if isinstance(answer, Exception):
            raise answer
        return answer


def granting(**fields: Any) -> Callable[[Any], Any]:
    granted = {
        "client_instance_id": ID,
        "subscription_id": 5,
        "push_interval_ms": 1,
        "accepted_compression_types": [Compression.ZSTD, Compression.GZIP],
        "requested_metrics": ["*"],
    } | fields

    def answer(request: Any) -> Any:
        if isinstance(request, PushTelemetryRequest):
            return PushTelemetryResponse()
        return GetTelemetrySubscriptionsResponse(**granted)

    return answer


def metrics() -> Metrics:
    registry = Metrics(Windows(2, 30_000), tags={"client-id": "c"})
    registry.register(_metric("things-total", lambda: 7.0, is_cumulative=True))
    registry.register(_metric("speed", lambda: 3))
    registry.register(_metric("version", lambda: "1.0"))
    registry.register(_metric("not-yet", lambda: float("nan")))
    return registry


def _metric(name: str, measure: Callable[[], Any], **more: Any) -> KafkaMetric:
    return KafkaMetric(MetricName(name, "test-metrics"), measure, **more)


def run(cluster: FakeCluster, use: Callable[[TelemetryReporter], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        reporter = TelemetryReporter(cluster, metrics(), labels={"client_rack": "r"})
        try:
            return await use(reporter)
        finally:
            await reporter.close()

    return asyncio.run(main())


async def pushed(reporter: TelemetryReporter, cluster: FakeCluster, count: int) -> None:
    reporter.start()
    async with asyncio.timeout(60):
        for _ in range(count):
            await cluster.arrivals.get()


def payload(push: PushTelemetryRequest) -> bytes:
    return decompress(Compression(push.compression_type), push.metrics)


def test_numbers_are_pushed_and_the_last_time_at_close() -> None:
    cluster = FakeCluster(granting())
    run(cluster, lambda reporter: pushed(reporter, cluster, 2))
    first, last = cluster.pushes[0], cluster.pushes[-1]
    assert (first.client_instance_id, first.subscription_id) == (ID, 5)
    assert first.compression_type == Compression.ZSTD
    assert [push.terminating for push in cluster.pushes].count(True) == 1
    assert last.terminating
    text = payload(first)
    assert b"org.apache.kafka.test.things.total" in text
    assert b"org.apache.kafka.test.speed" in text
    assert b"client_rack" in text
    assert b"version" not in text
    assert b"not.yet" not in text


def test_only_what_is_wanted_and_what_was_registered() -> None:
    cluster = FakeCluster(granting(requested_metrics=["org.apache.kafka.mine."]))
    mine = KafkaMetric(MetricName("load", "mine-metrics"), lambda: 1)

    async def use(reporter: TelemetryReporter) -> None:
        reporter.register(mine)
        await pushed(reporter, cluster, 1)
        assert b"org.apache.kafka.mine.load" in payload(cluster.pushes[0])
        assert b"speed" not in payload(cluster.pushes[0])
        reporter.unregister(mine)

    run(cluster, use)
    assert b"org.apache.kafka.mine.load" not in payload(cluster.pushes[-1])


def test_deltas_are_what_came_since_the_last_push() -> None:
    cluster = FakeCluster(granting(delta_temporality=True, accepted_compression_types=[]))
    run(cluster, lambda reporter: pushed(reporter, cluster, 2))
    seven = bytes.fromhex("210000000000001c40")
    assert seven in payload(cluster.pushes[0])
    assert seven not in payload(cluster.pushes[1])


def test_failing_gauge_does_not_stop_the_others() -> None:
    cluster = FakeCluster(granting())

    async def use(reporter: TelemetryReporter) -> None:
        reporter.register(_metric("broken", lambda: 1 // 0))
        await pushed(reporter, cluster, 1)

    run(cluster, use)
    assert b"speed" in payload(cluster.pushes[0])


def test_instance_id_starts_it() -> None:
    cluster = FakeCluster(granting(push_interval_ms=60_000, requested_metrics=[]))
    given = run(cluster, lambda reporter: reporter.client_instance_id(timeout_ms=5000))
    assert given == ID
    assert cluster.pushes == []
    assert cluster.asked == 1


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (errors.UnsupportedVersionError("not served"), errors.UnsupportedVersionError),
        (
            GetTelemetrySubscriptionsResponse(error_code=ErrorCode.INVALID_REQUEST),
            errors.InvalidRequestError,
        ),
    ],
)
def test_cluster_without_it_is_asked_once(answer: Any, raised: type[Exception]) -> None:
    cluster = FakeCluster(lambda request: answer)
    with pytest.raises(raised):
        run(cluster, lambda reporter: reporter.client_instance_id(timeout_ms=5000))
    assert cluster.asked == 1


def test_unreachable_cluster_gives_no_id_in_time() -> None:
    cluster = FakeCluster(lambda request: errors.DisconnectError("gone"))
    with pytest.raises(errors.KafkaTimeoutError):
        run(cluster, lambda reporter: reporter.client_instance_id(timeout_ms=20))


def test_closing_does_not_wait_for_a_broker_that_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moldau.client.telemetry.reporter._LAST_PUSH_MS_MAX", 10)
    cluster = FakeCluster(granting(push_interval_ms=60_000))

    async def use(reporter: TelemetryReporter) -> None:
        await reporter.client_instance_id(timeout_ms=5000)

        async def silent(request: Any, **options: Any) -> Any:
            await asyncio.get_running_loop().create_future()

        cluster.call_any = silent  # type: ignore[method-assign]
        async with asyncio.timeout(60):
            await reporter.close()

    run(cluster, use)


def test_settings_decide_and_describe() -> None:
    cluster = FakeCluster(granting())
    values = {"enable.metrics.push": False, "group.id": "g", "client.rack": ""}
    assert TelemetryReporter.of(values, cluster, metrics()) is None
    reporter = TelemetryReporter.of({**values, "enable.metrics.push": True}, cluster, metrics())
    assert reporter is not None
    assert reporter.labels == {"group_id": "g"}

    async def use() -> None:
        (begin,) = cluster.on_metadata
        begin(cluster.metadata)
        async with asyncio.timeout(60):
            await cluster.arrivals.get()
        await reporter.close()
        asked = cluster.asked
        # What comes after the end begins nothing.
        begin(cluster.metadata)
        await reporter.close()
        assert cluster.asked == asked

    asyncio.run(use())


def test_unused_reporter_asks_nobody() -> None:
    cluster = FakeCluster(granting())

    async def use(reporter: TelemetryReporter) -> None:
        await reporter.close()

    run(cluster, use)
    assert cluster.asked == 0
