"""One node, wired: start reading here.

`Node` opens the log directories, binds the listeners and follows the metadata; `ControllerServer`
and `BrokerServer` are its parts, one of them or both (process.roles). They get from here what they
need from one another.

Start: log directories are locked, listeners bound, the clean shutdown files removed, metadata
loaded, the controller answers, the broker registers and accepts clients. Stop is the reverse;
everything that a client got a response about is on disk before the clean shutdown files are
written. A start that fails or is cancelled is undone the same way, as far as it had come, and keeps
the clean shutdown files where nothing was changed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from moldau.broker.audit_topic import AuditTopic
from moldau.broker.broker_server import BrokerServer
from moldau.broker.config import BrokerConfig, ConfigRules, DynamicBrokerConfig, Listener
from moldau.broker.controller_server import ControllerServer
from moldau.broker.core_files import keep_memory_out_of_core_files
from moldau.broker.environment import Environment
from moldau.broker.gauges.node import NodeObservation, broker_server
from moldau.broker.local_channel import LoopbackTransport
from moldau.broker.log.log_dirs import LogDir, MetaProperties, WrongLogDir
from moldau.broker.log.machine.names import META_PROPERTIES
from moldau.broker.log.manager import LogManager
from moldau.broker.log_lines import configure_logging
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.machine.exposure import exposure_of
from moldau.broker.machine.supported import check_supported
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ResourceType
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.own_topics import OwnTopics
from moldau.broker.security.audit.log import AuditLog
from moldau.broker.security.audit.machine.settings import audit_settings
from moldau.broker.security.authorization.authorization import (
    AUTHORIZER_CLASS,
    load_authorization,
)
from moldau.broker.security.quotas.address_rates import AddressRates
from moldau.broker.security.quotas.shell import ClientQuotas, load_quota_callback
from moldau.broker.shared import Shared, endpoints_of
from moldau.wire.uuids import random_uuid

logger = logging.getLogger(__name__)

STOP_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What is up."""

    cluster_id: str
    node_id: int
    listeners: tuple[Listener, ...]
    metrics_port: int | None = None
    """Where metrics are served; None: nowhere."""


class Node:
    """A broker, a controller or both in one process."""

    def __init__(
        self,
        config: BrokerConfig,
        environment: Environment,
        *,
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`on_failure` is called on an unrecoverable error."""
        self._environment = environment
        self._report_failure = on_failure
        self._failed = False
        self._configs = DynamicBrokerConfig(config)
        self._node_id = config.node_id
        self._transport = LoopbackTransport(config.node_id, environment.transport)
        self._started = AsyncExitStack()
        self._own_topics = OwnTopics(
            lambda: self.metadata.image,
            self._transport,
            environment.clock,
            lambda: self.config,
            local=lambda topic, index: (
                None if self.broker is None else self.broker.replicas.find(topic, index)
            ),
            started=self._started,
        )
        self._audit_topic: AuditTopic | None = None
        self._audit = self._audit_log(config)
        if self._audit is not None:
            environment.observe_logins(self._audit.on_login)
        self._quotas = ClientQuotas(
            config, environment.clock, environment.cpu_ns, callback=load_quota_callback(config)
        )
        self._address_rates = AddressRates(environment.network.update_address_rates)
        self.logs = LogManager(
            config.log_dirs,
            disk=environment.disk,
            background=environment.background,
            now_ms=environment.clock.now_ms,
            random_bytes=environment.random_bytes,
            on_dir_failure=self._on_dir_failed,
        )
        self._configure_logs()
        self._metadata_dir = self._metadata_log_dir(config)
        # Whether the metadata log is open, or was left in an unknown state.
        self._metadata_changed = False
        self._metadata_started = False
        self.metadata: MetadataShell
        self._authorization = load_authorization(
            config[AUTHORIZER_CLASS],
            config.originals,
            caught_up=self._is_caught_up,
            audit=self._audit,
        )
        self.controller: ControllerServer | None = None
        self.broker: BrokerServer | None = None
        self.observation: NodeObservation | None = None
        if environment.metrics is not None:
            self.observation = NodeObservation(environment.metrics, config)
            self.logs.context.on_flushed = environment.metrics.flush.update
            self._quotas.on_throttled = environment.metrics.requests.throttled

    def _audit_log(self, config: BrokerConfig) -> AuditLog | None:
        """None if nothing is to be audited; ConfigError if `moldau.audit.*` is wrong."""
        settings = audit_settings(config.originals)
        if settings is None:
            return None
        clock = self._environment.clock
        if settings.topic is not None:
            self._audit_topic = self._own_topics.audit(config)
        to_topic = None if self._audit_topic is None else self._audit_topic.add
        return AuditLog(settings, clock, node_id=config.node_id, to_topic=to_topic)

    @property
    def config(self) -> BrokerConfig:
        """The current configuration, including dynamic changes."""
        return self._configs.current

    # Start.

    async def start(self) -> NodeInfo:
        """If it fails or is cancelled, everything is released again."""
        try:
            return await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> NodeInfo:
        network, started = self._environment.network, self._started
        cluster_id = self._formatted_cluster_id()
        started.callback(self._close_folders)
        self._claim_folders(cluster_id)
        started.push_async_callback(self._finish)
        started.push_async_callback(network.stop, STOP_GRACE_S)
        await network.bind()
        if self.observation is not None:
            started.push_async_callback(self.observation.stop)
            await self.observation.start()
        self._remove_clean_shutdown_files()
        self.metadata = self._metadata_shell(cluster_id)
        if self._environment.authentication is not None:
            self._environment.authentication.follow(lambda: self.metadata.image)
        started.push_async_callback(self._stop_metadata)
        await self._start_metadata()
        self.metadata.subscribe(self._on_metadata)
        shared = self._shared(cluster_id)
        if self.observation is not None:
            self.observation.add_node(shared)
        if self.config.is_controller:
            self.controller = ControllerServer(shared)
            started.push_async_callback(self.controller.stop)
            await self.controller.start()
        if self.config.is_broker:
            self.broker = broker_server(shared, self.observation)
            started.push_async_callback(self._stop_broker, self.broker)
            await self.broker.start()
        if self._audit_topic is not None and self._audit is not None:
            self._own_topics.start_audit(self._audit_topic, shared, self._audit.flush)
        if self.observation is not None:
            self._own_topics.start_history(self.observation, shared)
        port = None if self.observation is None else self.observation.port
        return NodeInfo(cluster_id, self._node_id, self._bound_listeners(), port)

    def _shared(self, cluster_id: str) -> Shared:
        return Shared(
            cluster_id=cluster_id,
            node_id=self._node_id,
            configs=self._configs,
            environment=self._environment,
            transport=self._transport,
            metadata=self.metadata,
            logs=self.logs,
            loggers=(
                BrokerLoggers()
                if self._authorization is None
                else BrokerLoggers(on_changed=self._authorization.forget)
            ),
            authorization=self._authorization,
            quotas=self._quotas,
            audit=self._audit,
            on_failure=self._on_failure,
        )

    def _metadata_log_dir(self, config: BrokerConfig) -> LogDir:
        found = self.logs.dir_by_path(config.metadata_log_dir)
        return found or LogDir(self._environment.disk, config.metadata_log_dir)

    def _formatted_cluster_id(self) -> str:
        """The cluster id that all log directories were formatted with."""
        cluster_id = self._first_cluster_id()
        disk = self._environment.disk
        for directory in self.logs.dirs:
            path = directory.path
            usable = disk.is_dir(path) or not disk.exists(path)
            if usable and not disk.exists(f"{path}/{META_PROPERTIES}"):
                # An empty directory in place of one with replicas would look as if all were lost.
                raise WrongLogDir(
                    f"{path} has no meta.properties: mount its disk, or if it is new, run "
                    f"moldau storage format --ignore-formatted -t {cluster_id} -c FILE"
                )
        return cluster_id

    def _first_cluster_id(self) -> str:
        disk = self._environment.disk
        for directory in (self._metadata_dir, *self.logs.dirs):
            path = f"{directory.path}/{META_PROPERTIES}"
            if disk.exists(path):
                cluster_id = MetaProperties.decode(path, disk.read_bytes(path)).cluster_id
                if cluster_id is not None:
                    return cluster_id
        raise WrongLogDir(
            f"no meta.properties with a cluster id in {', '.join(self.config.log_dirs)}: "
            "format the log directories first (moldau storage format)"
        )

    def _claim_folders(self, cluster_id: str) -> None:
        self.logs.claim_dirs(cluster_id=cluster_id, node_id=self._node_id)
        if self._metadata_dir not in self.logs.dirs:
            self._metadata_dir.claim(
                cluster_id=cluster_id,
                node_id=self._node_id,
                new_id=lambda: random_uuid(self._environment.random_bytes(16)),
            )
        self._check_metadata_dir()

    def _remove_clean_shutdown_files(self) -> None:
        """From here on a crash is an unclean stop."""
        self.logs.begin_dirs()
        if self._metadata_dir not in self.logs.dirs:
            self._metadata_dir.begin()
        self._check_metadata_dir()

    def _check_metadata_dir(self) -> None:
        if self._metadata_dir.failure is not None:
            raise WrongLogDir(
                "the log directory of the metadata log cannot be used: "
                f"{self._metadata_dir.failure.message}"
            )

    def _metadata_shell(self, cluster_id: str) -> MetadataShell:
        environment = self._environment
        directory_id = self._metadata_dir.directory_id
        if directory_id is None:
            raise WrongLogDir(f"{self._metadata_dir.path} has no directory.id")
        return MetadataShell(
            self.config,
            cluster_id=cluster_id,
            directory_id=directory_id,
            rules=ConfigRules(self._configs),
            random=environment.random,
            disk=environment.disk,
            background=environment.background,
            clock=environment.clock,
            transport=environment.transport,
            controller_endpoints=endpoints_of(
                self.config.advertised_controller_listeners, environment
            )
            if self.config.is_controller
            else (),
            dir_state=self._metadata_dir,
            clean_shutdown=self._metadata_dir.clean_shutdown,
            on_failure=self._on_failure,
        )

    async def _start_metadata(self) -> None:
        self._metadata_changed = True
        await self.metadata.start()
        self._metadata_started = True

    async def _stop_metadata(self) -> None:
        await self.metadata.stop()
        # As before only if nothing has failed.
        self._metadata_changed = self._failed or not self._metadata_started

    def _bound_listeners(self) -> tuple[Listener, ...]:
        addresses = self._environment.network.addresses
        return tuple(each._replace(port=addresses[each.name][1]) for each in self.config.listeners)

    # Changes while it runs.

    def _is_caught_up(self) -> bool:
        """Whether the image has all that the current leader has committed, as far as is known."""
        committed = self.metadata.raft.machine.leader_high_watermark
        return committed is not None and 0 < committed <= self.metadata.offset + 1

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The configuration and the ACLs first: the parts that get the same delta use them."""
        own = ((ResourceType.BROKER, ""), (ResourceType.BROKER, str(self._node_id)))
        if delta.from_snapshot or any(key in delta.configs for key in own):
            self._take_configs(image)
        if self._authorization is not None:
            self._authorization.apply(delta, image)
        if delta.quotas_changed or delta.from_snapshot:
            self._quotas.update(image.quotas)
            self._address_rates.update(image.quotas)

    def _take_configs(self, image: MetadataImage) -> None:
        changed, problems = self._configs.apply(
            cluster=image.cluster_configs(), broker=image.broker_configs(self._node_id)
        )
        for problem in problems:
            logger.warning("%s", problem)
        if not changed:
            return
        logger.info("dynamic configuration changed: %s", ", ".join(sorted(changed)))
        if without_effect := changed.intersection(self.config.without_effect):
            logger.warning("these settings have no effect: %s", ", ".join(sorted(without_effect)))
        self._configure_logs()
        self._environment.network.update_settings(self.config.network)
        self._environment.reconfigure(self.config)
        if self.broker is not None:
            self.broker.on_config_changed()

    def _configure_logs(self) -> None:
        log = self.config.log
        self.logs.configure(
            producer_id_expiration_ms=log.producer_id_expiration_ms,
            cordoned=log.cordoned_log_dirs,
        )

    def _on_dir_failed(self, directory: LogDir) -> None:
        # It may fail at any time, also before there is a broker.
        if self.broker is not None:
            self.broker.on_dir_failed(directory)
        if directory is self._metadata_dir or not self.logs.live_dirs:
            failure = directory.failure
            self._on_failure(failure or WrongLogDir(f"{directory.path} is offline"))

    # Stop.

    async def stop(self) -> None:
        """Leave the cluster, answer requests in flight, then flush everything and write the clean
        shutdown files."""
        await self._started.aclose()

    def hurry(self) -> None:
        """Do not wait any longer for other nodes to take over this node's partitions."""
        if self.broker is not None:
            self.broker.lifecycle.close()

    def _on_failure(self, error: BaseException) -> None:
        self._failed = True
        self._report_failure(error)

    async def _stop_broker(self, broker: BrokerServer) -> None:
        # After a failure a controlled shutdown may be impossible.
        await broker.stop(controlled=not self._failed)

    async def _finish(self) -> None:
        """The network has stopped: there are no new requests."""
        if self.broker is not None:
            await self.broker.finish()
        if self.controller is not None:
            await self.controller.finish()
        self._address_rates.close()
        if self._audit is not None:
            self._audit.flush()

    def _close_folders(self) -> None:
        if self.broker is not None and self.broker.loaded:
            self.logs.close(broker_epoch=self.broker.lifecycle.broker_epoch)
        else:
            self.logs.let_go(changed=self._metadata_dir if self._metadata_changed else None)
        if self._metadata_dir not in self.logs.dirs:
            self._metadata_dir.unlock()


def _spare_the_collector() -> None:
    """A start makes very many objects, and nearly all stay alive: what was imported is collected
    before, and garbage is hardly looked for until it is over."""
    gc.collect()
    gc.set_threshold(1_000_000, 20, 50)


def _freeze_what_is_alive() -> None:
    """Objects alive after the start stay alive: collecting them only costs latency."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def serve(config: BrokerConfig, on_ready: Callable[[NodeInfo], None]) -> int:
    """Run until a signal or a failure; the exit code."""
    _spare_the_collector()
    environment = Environment.real(config)
    stopping = asyncio.Event()
    failures: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        stopping.set()

    node = Node(config, environment, on_failure=fail)

    def on_signal() -> None:
        if stopping.is_set():
            node.hurry()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        # A start may wait for a quorum without limit; a signal stops it.
        starting = loop.create_task(node.start())
        ended = loop.create_task(stopping.wait())
        await asyncio.wait([starting, ended], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            started = starting.result()
            if (line := exposure_of(config.listeners)) is not None:
                logger.info("%s", line)
            on_ready(started)
            _freeze_what_is_alive()
            await ended
            await node.stop()
        else:
            starting.cancel()
            await asyncio.wait([starting])
    finally:
        environment.close()
    for failure in failures:
        logger.critical("stopped because of a failure: %s", failure)
    return 1 if failures else 0


def run(config: BrokerConfig, *, on_ready: Callable[[NodeInfo], None]) -> int:
    """Run a node in the foreground; returns the process's exit code."""
    check_supported(config)
    configure_logging()
    if any(each.security_protocol != "PLAINTEXT" for each in config.listeners):
        keep_memory_out_of_core_files()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(serve(config, on_ready))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(config, on_ready))
