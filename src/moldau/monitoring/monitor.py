"""The monitor: reads, measures, decides and sends alerts, round by round.

Runs outside the cluster and speaks only Kafka's protocol, so it watches Apache Kafka as well. One
thread reads groups, another runs the canary; the loop serves `/metrics`, and `status()` is what the
command line shows. A cluster that cannot be reached is itself a condition (ClusterUnreachable).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from moldau.client import Admin
from moldau.client.errors import KafkaError
from moldau.metrics import Kind, Registry, Spec
from moldau.metrics.endpoint import MetricsEndpoint
from moldau.metrics.process import LoopWatch, add_process_metrics
from moldau.metrics.registry import Reading
from moldau.monitoring.canary import Canary, Probe
from moldau.monitoring.history import HistoryWriter
from moldau.monitoring.lag_reader import LagReader
from moldau.monitoring.machine.alerts import Alerts, Condition
from moldau.monitoring.machine.conditions import conditions_of
from moldau.monitoring.machine.config import MonitorConfig
from moldau.monitoring.machine.lag import GroupState, LagTracker, PartitionLag
from moldau.monitoring.machine.objectives import Tracker
from moldau.monitoring.notify import Notifier

__all__ = ["Monitor"]

logger = logging.getLogger(__name__)


def _gauge(type_: str, name: str, help: str, *tags: str, kind: Kind = Kind.GAUGE) -> Spec:
    return Spec("kafka" if type_ == "consumergroup" else "moldau", type_, name, kind, help, tags)


#: As the exporters that are usual for lag name them.
_PLACE: Final = ("consumergroup", "topic", "partition")
LAG: Final = _gauge("consumergroup", "lag", "records behind", *_PLACE)
LAG_SECONDS: Final = _gauge("consumergroup", "lag_seconds", "seconds behind", *_PLACE)
TREND: Final = _gauge("consumergroup", "lag_trend", "records per second it grows", *_PLACE)
CLEARS: Final = _gauge("consumergroup", "lag_clears_seconds", "seconds until it is gone", *_PLACE)
STUCK: Final = _gauge("consumergroup", "stuck", "1: it does not advance", *_PLACE)
MEMBERS: Final = _gauge("consumergroup", "members", "members", "consumergroup")
REBALANCES: Final = _gauge(
    "consumergroup", "rebalances_total", "rebalances seen", "consumergroup", kind=Kind.COUNTER
)
PROBES: Final = _gauge("canary", "probes_total", "records written", kind=Kind.COUNTER)
FAILURES: Final = _gauge("canary", "failures_total", "that did not come back", kind=Kind.COUNTER)
LATENCY: Final = Spec("moldau", "canary", "latency_ms", Kind.HISTOGRAM, "ms from send to poll")
BUDGET: Final = _gauge("slo", "budget", "share of the error budget left", "objective")
BURN: Final = _gauge("slo", "burnrate", "times faster than allowed", "objective", "window")
PIPELINE: Final = _gauge("pipeline", "state", "1: it is in this state", "pipeline", "state")
ROUND: Final = Spec("moldau", "monitor", "round_ms", Kind.HISTOGRAM, "ms of a round")


class Monitor:
    def __init__(
        self,
        config: MonitorConfig,
        *,
        pipelines: Callable[[], dict[str, str]] | None = None,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        """`pipelines` returns the state of each pipeline by name."""
        self._config = config
        self._pipelines = pipelines
        self._clock_s = clock_s
        self.registry = Registry(time.monotonic)
        self._tracker = LagTracker(stuck_after_s=config.stuck_after_s)
        self._alerts = Alerts(holds_s=config.targets.holds_s)
        self._objectives = [Tracker(each) for each in config.objectives]
        self._notifier = Notifier(config.targets, config.cluster)
        self._lags: list[PartitionLag] = []
        self._groups: list[GroupState] = []
        self._states: dict[str, str] = {}
        self._problem = ""
        self._probes = self._failed_probes = 0
        self._latency = self.registry.histogram(LATENCY)
        self._rounds = self.registry.histogram(ROUND)
        self._admin: Admin | None = None
        self._closing: list[Callable[[], None]] = []
        self.registry.collector(self._collect)

    # Rounds.

    async def run(self, stopping: asyncio.Event, *, host: str, port: int | None) -> None:
        """Until `stopping` is set; metrics at `port`, if there is one."""
        watch = LoopWatch(self.registry, asyncio.get_running_loop())
        watch.start()
        add_process_metrics(self.registry)
        endpoint = None
        if port is not None:
            endpoint = MetricsEndpoint(self.registry, host=host, port=port, clients=self.status)
            await endpoint.start()
            logger.info("metrics at http://%s:%d/metrics", host, endpoint.port)
        tasks = [asyncio.create_task(self._repeat(stopping, self._config.interval_s, self.round))]
        if self._config.history_nodes:
            writer = HistoryWriter(
                self._config.cluster,
                self._config.history_nodes,
                interval_s=self._config.history_interval_s,
                slots=self._config.history_slots,
            )
            self._closing.append(writer.close)
            tasks.append(
                asyncio.create_task(
                    self._repeat(stopping, self._config.history_interval_s, writer.write)
                )
            )
        if self._config.canary_interval_s is not None:
            canary = Canary(
                self._config.cluster,
                self._config.canary_topic,
                timeout_ms=self._config.canary_timeout_ms,
            )
            self._closing.append(canary.close)
            probe = canary.probe
            tasks.append(
                asyncio.create_task(
                    self._repeat(
                        stopping, self._config.canary_interval_s, lambda: self.on_probes(probe())
                    )
                )
            )
        try:
            await stopping.wait()
        finally:
            for task in tasks:
                with suppress(Exception):
                    await task
            watch.stop()
            if endpoint is not None:
                await endpoint.stop()
            await asyncio.to_thread(self.close)

    async def _repeat(
        self, stopping: asyncio.Event, interval_s: float, work: Callable[[], object]
    ) -> None:
        while not stopping.is_set():
            began_s = time.monotonic()
            try:
                await asyncio.to_thread(work)
            except Exception:
                logger.exception("a round failed")
            pause_s = max(0.0, interval_s - (time.monotonic() - began_s))
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), pause_s)

    def round(self) -> list[Condition]:
        """Read, decide, send alerts; returns what fires now."""
        began_s = time.monotonic()
        now_s = self._clock_s()
        try:
            ends, groups = LagReader(self._opened(), exclude=self._config.exclude).read()
        except KafkaError as error:
            self._problem = f"{type(error).__name__}: {error}"
            self._close_admin()
        else:
            self._problem = ""
            self._groups = groups
            self._lags = self._tracker.observe(ends, groups, now_s)
            self._record_lag_objectives(now_s)
        self._read_pipelines()
        conditions = conditions_of(
            lags=self._lags if not self._problem else [],
            lag_seconds_max=self._config.lag_seconds_max,
            reports=[each.report(now_s) for each in self._objectives],
            pipelines=self._states,
            problem=self._problem,
        )
        self._notifier.send(self._alerts.observe(conditions, now_s))
        self._rounds.update((time.monotonic() - began_s) * 1000)
        return self._alerts.firing

    def _opened(self) -> Admin:
        if self._admin is None:
            timeout_ms = str(int(max(self._config.interval_s, 5) * 1000))
            self._admin = Admin(
                dict(self._config.cluster)
                | {"client.id": "moldau-monitor", "default.api.timeout.ms": timeout_ms,
                   "request.timeout.ms": timeout_ms}
            )  # fmt: skip
        return self._admin

    def _record_lag_objectives(self, now_s: float) -> None:
        for tracker in self._objectives:
            objective = tracker.objective
            if objective.kind != "lag":
                continue
            behind = [
                each.seconds
                for each in self._lags
                if not objective.group or each.group_id == objective.group
            ]
            tracker.record(max(behind, default=0.0) <= objective.threshold, now_s)

    def _read_pipelines(self) -> None:
        if self._pipelines is None:
            return
        try:
            self._states = self._pipelines()
        except Exception as error:
            logger.error("reading the states of pipelines failed: %s", error)

    def on_probes(self, probes: list[Probe]) -> None:
        """What the canary saw."""
        now_s = self._clock_s()
        for probe in probes:
            self._probes += 1
            self._failed_probes += not probe.good
            if probe.latency_ms is not None:
                self._latency.update(probe.latency_ms)
            else:
                logger.warning("canary, partition %d: %s", probe.partition, probe.problem)
            for tracker in self._objectives:
                objective = tracker.objective
                if objective.kind == "availability":
                    tracker.record(probe.good, now_s)
                elif objective.kind == "latency":
                    fast = probe.latency_ms is not None and probe.latency_ms <= objective.threshold
                    tracker.record(fast, now_s)

    def close(self) -> None:
        for close in self._closing:
            close()
        self._close_admin()
        self._notifier.close()

    def _close_admin(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close(timeout=1)

    # What it shows.

    def _collect(self) -> Iterator[tuple[Spec, tuple[str, ...], Reading]]:
        for lag in self._lags:
            place = lag.group_id, lag.place.topic, str(lag.place.partition)
            yield LAG, place, lag.records
            yield LAG_SECONDS, place, lag.seconds
            yield TREND, place, lag.trend
            if lag.clears_in is not None:
                yield CLEARS, place, lag.clears_in
            yield STUCK, place, int(lag.stuck)
        for group in self._groups:
            name = (group.group_id,)
            yield MEMBERS, name, len(group.members)
            yield REBALANCES, name, self._tracker.rebalances(group.group_id)
        yield PROBES, (), self._probes
        yield FAILURES, (), self._failed_probes
        now_s = self._clock_s()
        for tracker in self._objectives:
            report = tracker.report(now_s)
            yield BUDGET, (report.objective.name,), report.budget
            yield BURN, (report.objective.name, "long"), report.long_burn_rate
            yield BURN, (report.objective.name, "short"), report.short_burn_rate
        for pipeline, state in self._states.items():
            yield PIPELINE, (pipeline, state), 1

    def status(self) -> dict[str, Any]:
        """Everything it knows, as plain data."""
        now_s = self._clock_s()
        return {
            "problem": self._problem,
            "groups": [
                {
                    "group": group.group_id,
                    "kind": group.kind,
                    "state": group.state,
                    "members": len(group.members),
                    "rebalances": self._tracker.rebalances(group.group_id),
                }
                for group in self._groups
            ],
            "lags": [each._asdict() | {"place": list(each.place)} for each in self._lags],
            "canary": {
                "probes": self._probes,
                "failures": self._failed_probes,
                "p50_ms": self._latency.percentile(0.5),
                "p99_ms": self._latency.percentile(0.99),
            },
            "objectives": [
                {
                    "name": report.objective.name,
                    "target": report.objective.target,
                    "good": report.good,
                    "total": report.total,
                    "budget": report.budget,
                    "burn_rate": report.long_burn_rate,
                    "burning": report.burning,
                }
                for report in (each.report(now_s) for each in self._objectives)
            ],
            "pipelines": dict(self._states),
            "alerts": [
                {"name": each.name, "summary": each.summary, "severity": each.severity}
                for each in self._alerts.firing
            ],
        }
