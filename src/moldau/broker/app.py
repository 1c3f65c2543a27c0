"""The broker, wired: start reading here.

`Broker` constructs every part, joins them, and starts and stops them in order. Nothing else
constructs anything, and no part knows more of another than it is handed here.

Start: folders are locked, listeners bound, metadata loaded and led, logs loaded, partitions
hosted, coordinators told, and only then is the first connection accepted. Stop is the reverse;
what a client was told is on disk before the mark of a clean stop is written.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from moldau.broker.api_table import Parts, broker_routes, controller_routes
from moldau.broker.config import (
    BrokerConfig,
    ConfigRules,
    DynamicBrokerConfig,
    Listener,
    LogConfig,
    resolve_listeners,
)
from moldau.broker.coordinators import Coordinators, Surroundings
from moldau.broker.directory_reports import DirectoryReports
from moldau.broker.environment import Environment
from moldau.broker.in_process_controller import InProcessController
from moldau.broker.log.cleaner.shell import Cleaner
from moldau.broker.log.log_dirs import LogDir, MetaProperties, WrongLogDir
from moldau.broker.log.manager import LogManager
from moldau.broker.log.names import META_PROPERTIES
from moldau.broker.log_moves import LogMoves
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.maintenance import Maintenance
from moldau.broker.metadata.delta import MetadataDelta
from moldau.broker.metadata.image import MetadataImage
from moldau.broker.metadata.model import Endpoint, ResourceType
from moldau.broker.metadata.shell import BrokerIdentity, MetadataShell
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.replication.manager import ReplicaManager
from moldau.broker.share.manager import SharePartitionManager
from moldau.broker.supported import check_supported
from moldau.broker.telemetry import ClientTelemetry
from moldau.broker.topic_creation import TopicCreation
from moldau.wire.uuids import random_uuid

logger = logging.getLogger(__name__)

STOP_GRACE_S = 5.0
SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """What is up."""

    cluster_id: str
    node_id: int
    listeners: tuple[Listener, ...]


class Broker:
    """One node: broker and controller in one process."""

    def __init__(
        self,
        config: BrokerConfig,
        environment: Environment,
        *,
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`on_failure` hears of a failure after which this node cannot go on."""
        self._environment = environment
        self._on_failure = on_failure
        self._configs = DynamicBrokerConfig(config)
        self._node_id = config.node_id
        self._tasks: set[asyncio.Task[Any]] = set()
        self.logs = LogManager(
            config.log_dirs,
            disk=environment.disk,
            background=environment.background,
            now_ms=environment.clock_ms,
            random_bytes=environment.random_bytes,
            on_dir_failure=self._on_dir_failed,
        )
        self._cleaner = Cleaner(self.logs, config.log, environment.clock_ms)
        self._configure_logs()
        self._metadata_dir = self._metadata_log_dir(config)
        self.metadata: MetadataShell
        self.replicas: ReplicaManager
        self.coordinators: Coordinators
        self.share_partitions: SharePartitionManager
        self._creation: TopicCreation
        self._controller: InProcessController
        self._telemetry = ClientTelemetry(telemetry_max_bytes=config["telemetry.max.bytes"])
        self._reports: DirectoryReports
        self._moves: LogMoves
        self._maintenance: Maintenance
        self._requests: Dispatcher
        self._controller_requests: Dispatcher

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force now, dynamic changes included."""
        return self._configs.current

    # Start.

    async def start(self) -> BrokerInfo:
        environment, config = self._environment, self.config
        cluster_id = self._owner_of_folders()
        self._open_folders(cluster_id)
        try:
            await environment.network.bind()
            await self._start_metadata(cluster_id)
        except BaseException:
            await environment.network.stop(0)
            self.logs.unlock()
            raise
        self._take_configs(self.metadata.image)
        self._report_cordoned()
        self.logs.load(self._log_config)
        self._build_parts()
        self.metadata.subscribe(self._on_metadata)
        self.replicas.set_strays_aside()
        await self._reports.drain()
        await self._controller.drain()
        await self.coordinators.loaded()
        self._moves.resume()
        self._maintenance.start()
        self._cleaner.start()
        parts = self._parts(cluster_id)
        self._requests = Dispatcher(broker_routes(parts))
        self._controller_requests = Dispatcher(controller_routes(parts))
        listeners = [listener.name for listener in self.config.controller_listeners]
        await environment.network.start(self._controller_requests, listeners)
        await environment.network.start(self._requests)
        # Only now: a network that is told of new limits takes connections.
        environment.network.update_settings(self.config.network)
        return BrokerInfo(cluster_id, self._node_id, self._bound(config.listeners))

    def _metadata_log_dir(self, config: BrokerConfig) -> LogDir:
        found = self.logs.dir_by_path(config.metadata_log_dir)
        return found or LogDir(self._environment.disk, config.metadata_log_dir)

    def _owner_of_folders(self) -> str:
        """The cluster id that the folders were formatted with."""
        disk = self._environment.disk
        for directory in (self._metadata_dir, *self.logs.dirs):
            path = f"{directory.path}/{META_PROPERTIES}"
            if disk.exists(path):
                cluster_id = MetaProperties.decode(path, disk.read_bytes(path)).cluster_id
                if cluster_id is not None:
                    return cluster_id
        raise WrongLogDir(
            f"no meta.properties with a cluster id in {', '.join(self.config.log_dirs)}: "
            "format the folders first (moldau storage format)"
        )

    def _open_folders(self, cluster_id: str) -> None:
        self.logs.open_dirs(cluster_id=cluster_id, node_id=self._node_id)
        if self._metadata_dir not in self.logs.dirs:
            self._metadata_dir.open(
                cluster_id=cluster_id,
                node_id=self._node_id,
                new_id=lambda: random_uuid(self._environment.random_bytes(16)),
            )
        if self._metadata_dir.failure is not None:
            self.logs.unlock()
            raise WrongLogDir(
                "the folder of the metadata log cannot be used: "
                f"{self._metadata_dir.failure.message}"
            )

    async def _start_metadata(self, cluster_id: str) -> None:
        environment = self._environment
        directory_id = self._metadata_dir.directory_id
        if directory_id is None:
            raise WrongLogDir(f"{self._metadata_dir.path} has no directory.id")
        self.metadata = MetadataShell(
            self.config,
            cluster_id=cluster_id,
            directory_id=directory_id,
            rules=ConfigRules(self._configs),
            random=environment.random,
            disk=environment.disk,
            background=environment.background,
            clock=environment.clock,
            transport=environment.transport,
            controller_endpoints=self._endpoints(self.config.advertised_controller_listeners),
            dir_state=self._metadata_dir,
            clean_shutdown=self._metadata_dir.clean_shutdown,
            on_failure=self._on_failure,
        )
        await self.metadata.start(self._identity())
        self._controller = InProcessController(self.metadata, self._node_id)
        self._reports = DirectoryReports(
            self._controller,
            node_id=self._node_id,
            broker_epoch=lambda: self.metadata.broker_epoch,
            clock=environment.clock,
        )

    def _identity(self) -> BrokerIdentity:
        config = self.config
        directory_ids = [directory.directory_id for directory in self.logs.live_dirs]
        return BrokerIdentity(
            broker_id=self._node_id,
            incarnation_id=random_uuid(self._environment.random_bytes(16)),
            endpoints=self._endpoints(config.advertised_broker_listeners),
            log_dirs=tuple(each for each in directory_ids if each is not None),
            rack=config["broker.rack"],
            previous_broker_epoch=self.logs.last_broker_epoch,
            controller_endpoints=self._endpoints(config.advertised_controller_listeners),
        )

    def _endpoints(self, listeners: tuple[Listener, ...]) -> tuple[Endpoint, ...]:
        host = "" if all(each.host for each in listeners) else self._environment.host_name()
        return tuple(
            Endpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=SECURITY_PROTOCOL_IDS[each.security_protocol],
            )
            for each in resolve_listeners(
                listeners, canonical_host_name=host, bound_ports=self._bound_ports()
            )
        )

    def _bound_ports(self) -> dict[str, int]:
        addresses = self._environment.network.addresses
        return {name: port for name, (_, port) in addresses.items()}

    def _bound(self, listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
        ports = self._bound_ports()
        return tuple(each._replace(port=ports[each.name]) for each in listeners)

    def _build_parts(self) -> None:
        environment = self._environment
        self.replicas = ReplicaManager(
            node_id=self._node_id,
            logs=self.logs,
            log_config=self._log_config,
            report_directory=self._reports.report,
            defer=asyncio.get_running_loop().call_soon,
        )
        self._creation = TopicCreation(
            self._controller,
            lambda: self.metadata.image,
            lambda: self.config,
            clock=environment.clock,
        )
        self.coordinators = Coordinators(
            Surroundings(
                node_id=self._node_id,
                config=lambda: self.config,
                environment=environment,
                metadata=self.metadata,
                replicas=self.replicas,
                creation=self._creation,
                report_bug=_report_bug,
                spawn=self._spawn,
                unclean=not all(each.clean_shutdown for each in self.logs.live_dirs),
            )
        )
        self.share_partitions = SharePartitionManager(
            self.replicas,
            self.coordinators.persister,
            self.coordinators.settings,
            clock=environment.clock,
            loop=asyncio.get_running_loop(),
            sessions_max=self.config["group.share.max.share.sessions"],
            enabled=lambda: self.metadata.finalized_features.get("share.version", 0) >= 1,
        )
        self._moves = LogMoves(self.logs, self.replicas, environment.clock_ms)
        self._maintenance = Maintenance(self.logs, lambda: self.config)

    def _parts(self, cluster_id: str) -> Parts:
        return Parts(
            cluster_id=cluster_id,
            node_id=self._node_id,
            config=lambda: self.config,
            configs=self._configs,
            metadata=self.metadata,
            logs=self.logs,
            replicas=self.replicas,
            moves=self._moves,
            coordinators=self.coordinators,
            share_partitions=self.share_partitions,
            creation=self._creation,
            telemetry=self._telemetry,
            loggers=BrokerLoggers(),
            clock_ms=self._environment.clock_ms,
            random_bytes=self._environment.random_bytes,
        )

    # What the metadata log says.

    def _log_config(self, topic: str) -> LogConfig:
        return LogConfig.for_topic(self.config, self.metadata.image.topic_configs(topic))

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Committed changes, in the order in which the parts may rely on one another."""
        own = ((ResourceType.BROKER, ""), (ResourceType.BROKER, str(self._node_id)))
        concerned = delta.from_snapshot or any(key in delta.configs for key in own)
        if concerned and self._take_configs(image):
            self._environment.network.update_settings(self.config.network)
        self._take_subscriptions(delta, image)
        self.replicas.apply(delta, image)
        self.share_partitions.apply(delta, image)
        self.coordinators.apply(delta, image)
        self._creation.apply(delta, image)

    def _take_configs(self, image: MetadataImage) -> bool:
        """Whether anything is different now."""
        changed, problems = self._configs.apply(
            cluster=image.cluster_configs(), broker=image.broker_configs(self._node_id)
        )
        for problem in problems:
            logger.warning("%s", problem)
        if changed:
            logger.info("dynamic configuration now differs in %s", ", ".join(sorted(changed)))
            self._cleaner.update_config(self.config.log)
            self._configure_logs()
            self._report_cordoned()
        return bool(changed)

    def _configure_logs(self) -> None:
        log = self.config.log
        self.logs.configure(
            producer_id_expiration_ms=log.producer_id_expiration_ms,
            cordoned=log.cordoned_log_dirs,
        )

    def _report_cordoned(self) -> None:
        directory_ids = (directory.directory_id for directory in self.logs.cordoned_dirs)
        self._controller.report_cordoned(
            frozenset(each for each in directory_ids if each is not None)
        )

    def _take_subscriptions(self, delta: MetadataDelta, image: MetadataImage) -> None:
        keys = image.configs if delta.from_snapshot else delta.configs
        for kind, name in keys:
            if kind == ResourceType.CLIENT_METRICS:
                self._telemetry.update_subscription(name, image.configs.get((kind, name), {}))

    def _on_dir_failed(self, directory: LogDir) -> None:
        # It may fail at any time, also before these exist.
        if hasattr(self, "replicas"):
            self.replicas.on_log_dir_failed(directory)
        if hasattr(self, "_controller") and directory.directory_id is not None:
            self._controller.report_failed(directory.directory_id)
        if directory is self._metadata_dir or not self.logs.live_dirs:
            failure = directory.failure
            self._on_failure(failure or WrongLogDir(f"{directory.path} is offline"))

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Stop.

    async def stop(self) -> None:
        """Answer what is under way, then make everything durable and leave the folders clean."""
        self.coordinators.close()
        await self.share_partitions.close()
        await self._environment.network.stop(STOP_GRACE_S)
        await self._requests.stop()
        await self._controller_requests.stop()
        self._maintenance.stop()
        await self._cleaner.stop()
        await self._moves.stop()
        await self._creation.stop()
        await self._reports.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await self.metadata.stop()
        self.logs.close(broker_epoch=self.metadata.broker_epoch)
        if self._metadata_dir not in self.logs.dirs:
            self._metadata_dir.unlock()


def _report_bug(error: Exception) -> None:
    logger.error("a coordinator failed", exc_info=error)


def _spare_the_collector() -> None:
    """What is alive after the start stays alive: looking for garbage in it only costs latency."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def serve(config: BrokerConfig, on_ready: Callable[[BrokerInfo], None]) -> int:
    """Run until a signal or a failure; the exit code."""
    environment = Environment.real(config)
    stopping = asyncio.Event()
    failures: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    broker = Broker(config, environment, on_failure=fail)
    try:
        on_ready(await broker.start())
        _spare_the_collector()
        await stopping.wait()
        await broker.stop()
    finally:
        environment.close()
    for failure in failures:
        logger.critical("stopped because of a failure: %s", failure)
    return 1 if failures else 0


def run(config: BrokerConfig, *, on_ready: Callable[[BrokerInfo], None]) -> int:
    """Run a broker in the foreground; returns the process's exit code."""
    check_supported(config)
    logging.basicConfig(
        level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
    )
    try:
        import uvloop
    except ImportError:
        return asyncio.run(serve(config, on_ready))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(config, on_ready))
