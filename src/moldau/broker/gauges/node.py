"""Everything that a node has collected, and the ways out of it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from moldau.broker.broker_server import BrokerServer
from moldau.broker.config import BrokerConfig
from moldau.broker.gauges.controller import ControllerGauges, QuorumGauges
from moldau.broker.gauges.coordinators import CoordinatorGauges
from moldau.broker.gauges.history import MetricsHistory
from moldau.broker.gauges.network import NetworkGauges, node_samples, quota_samples
from moldau.broker.gauges.partitions import LogGauges, PartitionGauges
from moldau.broker.metrics import tables
from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.server import SocketNetwork
from moldau.broker.network.transport_layer import LoginObserver
from moldau.broker.shared import Shared
from moldau.broker.telemetry_store import ClientMetrics
from moldau.broker.topic_writer import TopicWriter
from moldau.clock import Clock
from moldau.config.errors import ConfigError
from moldau.metrics.endpoint import MetricsEndpoint
from moldau.metrics.process import LoopWatch, add_process_metrics
from moldau.metrics.settings import MetricsSettings, SettingsError, metrics_settings

if TYPE_CHECKING:
    from moldau.metrics.otlp_push import OtlpPush

logger = logging.getLogger(__name__)


class NodeObservation:
    """Starts with a node and ends with it."""

    def __init__(self, metrics: NodeMetrics, config: BrokerConfig) -> None:
        """ConfigError if `moldau.metrics.*` is wrong."""
        try:
            self.settings: MetricsSettings = metrics_settings(config.originals)
        except SettingsError as error:
            raise ConfigError(str(error), key=error.key) from None
        self._metrics = metrics
        self._watch = LoopWatch(metrics.registry, asyncio.get_running_loop())
        self._idle = [
            metrics.registry.meter(spec, scale=1e-9)
            for spec in (*tables.HANDLER_IDLE, tables.CONTROLLER_IDLE)
        ]
        self._node_id = config.node_id
        self._push: OtlpPush | None = None
        self._endpoint: MetricsEndpoint | None = None
        self.clients = ClientMetrics()
        metrics.registry.collector(self.clients.collect)

    @property
    def port(self) -> int | None:
        """Where metrics are served; None: nowhere."""
        return None if self._endpoint is None else self._endpoint.port

    async def start(self) -> None:
        """Serve metrics from the start: a node that does not come up shows why."""
        add_process_metrics(self._metrics.registry)
        self._watch.on_idle = self._mark_idle
        self._watch.start()
        settings = self.settings
        if settings.otlp_endpoint:
            # It needs an HTTP client, which takes its time to import.
            from moldau.metrics.otlp_push import OtlpPush

            labels = {"service.name": "moldau", "service.instance.id": str(self._node_id)}
            try:
                self._push = OtlpPush(self._metrics.registry, settings, labels=labels)
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"moldau.metrics.otlp.ssl: the files cannot be used: {error}",
                    key="moldau.metrics.otlp.ssl.ca.location",
                ) from error
            self._push.start()
        if settings.port is None:
            return
        self._endpoint = MetricsEndpoint(
            self._metrics.registry,
            host=settings.host,
            port=settings.port,
            clients=self.clients.shown,
        )
        try:
            await self._endpoint.start()
        except OSError as error:
            raise ConfigError(
                f"moldau.metrics.port: cannot serve metrics on {settings.host}:{settings.port}: "
                f"{error.strerror or error}",
                key="moldau.metrics.port",
            ) from error
        logger.info("metrics at http://%s:%d/metrics", settings.host, self._endpoint.port)

    def _mark_idle(self, idle_s: float) -> None:
        for meter in self._idle:
            meter.mark(int(idle_s * 1e9))

    def add_node(self, shared: Shared) -> None:
        """The node has its metadata."""
        registry, clock = self._metrics.registry, shared.environment.clock
        started_ms = int(clock.now_ms())
        registry.collector(
            lambda: node_samples(shared.cluster_id, started_ms),
            QuorumGauges(shared.metadata, clock, lambda: self._watch.idle_ratio).collect,
            lambda: quota_samples(shared.quotas),
        )
        registry.gauge(tables.METRICS_COUNT, lambda: registry.series_count)
        if shared.config.is_controller:
            gauges = ControllerGauges(shared.metadata, clock, self._metrics)
            registry.collector(gauges.collect)
        network = shared.environment.network
        if isinstance(network, SocketNetwork):
            sockets = NetworkGauges(network, self._watch)
            registry.collector(sockets.collect)
            audit = None if shared.audit is None else shared.audit.on_login
            shared.environment.observe_logins(_both(sockets.on_login, audit))

    def add_broker(self, broker: BrokerServer, shared: Shared) -> None:
        """The broker has its parts."""
        registry, now_ms = self._metrics.registry, shared.environment.clock.now_ms
        partitions = PartitionGauges(
            broker.replicas,
            broker.replication.fetchers,
            lambda: shared.metadata.image,
            now_ms,
            node_id=shared.config.node_id,
        )
        logs = LogGauges(shared.logs, broker.cleaner, shared.environment.disk, now_ms)
        coordinators = CoordinatorGauges(
            broker.coordinators, broker.share_partitions, broker.telemetry, self._metrics
        )
        registry.collector(partitions.collect, logs.collect, coordinators.collect)
        registry.gauge(tables.BROKER_STATE, lambda: int(broker.lifecycle.state))

    def history(self, writer: TopicWriter, clock: Clock) -> MetricsHistory:
        """What writes readings to the topic, as the settings say."""
        return MetricsHistory(
            self._metrics.registry,
            writer,
            clock,
            node_id=self._node_id,
            interval_ms=self.settings.history_interval_ms,
            slots=self.settings.history_slots,
        )

    async def stop(self) -> None:
        self._watch.stop()
        if self._push is not None:
            await self._push.stop()
        if self._endpoint is not None:
            await self._endpoint.stop()


def broker_server(shared: Shared, observation: NodeObservation | None) -> BrokerServer:
    """The broker of a node, observed where the node is."""
    if observation is None:
        return BrokerServer(shared)
    server = BrokerServer(
        shared,
        receive_telemetry=observation.clients.receive,
        on_built=lambda: observation.add_broker(server, shared),
    )
    return server


def _both(first: LoginObserver, second: LoginObserver | None) -> LoginObserver:
    if second is None:
        return first

    def observe(connection: ConnectionInfo, mechanism: str, problem: str | None) -> None:
        first(connection, mechanism, problem)
        second(connection, mechanism, problem)

    return observe
