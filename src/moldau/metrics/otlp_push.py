"""Pushes a registry's metrics to a collector, by OTLP over HTTP (protobuf).

One push at a time, each with a timeout; one that fails is logged once and the next one tries again:
values are totals, so nothing is lost. Nothing is queued.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from moldau.metrics._instruments import Histogram, Meter
from moldau.metrics.names import Kind
from moldau.metrics.otlp import Point, encode_metrics
from moldau.metrics.registry import PERCENTILES, Registry, Sample, Timer
from moldau.metrics.settings import MetricsSettings
from moldau.metrics.turns import collected

__all__ = ["OtlpPush", "points_of"]

TIMEOUT_S: Final = 10.0
CONTENT_TYPE: Final = "application/x-protobuf"

logger = logging.getLogger(__name__)


def points_of(samples: Iterable[Sample], *, start_ms: int, now_ms: int) -> Iterator[Point]:
    """Names are the MBeans' (`kafka.server.ReplicaManager.LeaderCount`), tags its tags."""
    for spec, values, reading in samples:
        parts = (spec.domain, spec.type, spec.name, spec.attribute)
        name = ".".join(part for part in parts if part)
        tags = dict(zip(spec.tags, values, strict=True))
        if isinstance(reading, Timer):
            reading = reading.histogram
        if isinstance(reading, Meter):
            yield Point(name, tags, reading.count, now_ms, start_ms)
        elif isinstance(reading, Histogram):
            yield Point(f"{name}.Count", tags, reading.count, now_ms, start_ms)
            for attribute, share in PERCENTILES:
                yield Point(f"{name}.{attribute}", tags, reading.percentile(share), now_ms)
        elif not isinstance(reading, str):
            started = start_ms if spec.kind is Kind.COUNTER else None
            yield Point(name, tags, reading, now_ms, started)


class OtlpPush:
    def __init__(
        self, registry: Registry, settings: MetricsSettings, *, labels: Mapping[str, str]
    ) -> None:
        """`labels` describe this process: service.name and so on. ValueError or OSError if the
        files for TLS cannot be used."""
        self._registry = registry
        self._endpoint = settings.otlp_endpoint
        self._interval_s = settings.otlp_interval_ms / 1000
        self._headers = {"Content-Type": CONTENT_TYPE, **settings.otlp_headers}
        self._tls = _tls(settings)
        self._labels = dict(labels)
        self._start_ms = time.time_ns() // 1_000_000
        self._task: asyncio.Task[None] | None = None
        self.pushed = 0
        self.failed = 0

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        broken = False
        while True:
            await asyncio.sleep(self._interval_s)
            samples = [sample async for sample in collected(self._registry)]
            try:
                await asyncio.to_thread(self._push, samples)
            except (OSError, ValueError) as error:
                self.failed += 1
                if not broken:
                    broken = True
                    logger.warning("metrics cannot be pushed to %s: %s", self._endpoint, error)
            else:
                self.pushed += 1
                if broken:
                    broken = False
                    logger.info("metrics are pushed to %s again", self._endpoint)

    def _push(self, samples: list[Sample]) -> None:
        """Encode and send; not on the loop, because it may be much."""
        now_ms = time.time_ns() // 1_000_000
        points = points_of(samples, start_ms=self._start_ms, now_ms=now_ms)
        data = encode_metrics(points, self._labels)
        request = urllib.request.Request(self._endpoint, data, self._headers, method="POST")
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._tls) as answer:
            answer.read(65_536)


def _tls(settings: MetricsSettings) -> ssl.SSLContext | None:
    if not settings.otlp_endpoint.startswith("https://"):
        return None
    context = ssl.create_default_context(cafile=settings.otlp_ca or None)
    if settings.otlp_certificate:
        context.load_cert_chain(settings.otlp_certificate)
    return context
