"""The broker's part of a node: what clients and other brokers connect to.

`start` constructs every part, connects them, and accepts clients when they can be served:

    register -> follow the metadata past the registration -> load logs -> host partitions
    -> be unfenced -> coordinators load -> accept

`stop` is the reverse: leaderships move away first, and everything that a client got a response
about is on disk before the clean shutdown file is written (by the node, after the network has
stopped).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, cast

from moldau.broker.api_table import Parts, broker_routes
from moldau.broker.config import LogConfig
from moldau.broker.controller_channel import ControllerChannel
from moldau.broker.coordinators import Coordinators, Surroundings
from moldau.broker.directory_reports import DirectoryReports
from moldau.broker.forwarding import ForwardingManager
from moldau.broker.image_waits import ImageWaits
from moldau.broker.lifecycle.machine.lifecycle import BrokerLifecycle, Identity
from moldau.broker.lifecycle.shell import BrokerLifecycleManager, LifecycleFailed
from moldau.broker.log.cleaner.shell import Cleaner
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log_moves import LogMoves
from moldau.broker.machine.telemetry import ClientTelemetry, Payload
from moldau.broker.maintenance import Maintenance
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ResourceType
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.raft.machine.record_versions import CORDONED_DIRECTORIES_METADATA_VERSION
from moldau.broker.replication.manager import ReplicaManager
from moldau.broker.replication.service import ReplicationService
from moldau.broker.security.authorization.apis.table import BROKER_RULES
from moldau.broker.security.authorization.guard import guarded
from moldau.broker.security.authorization.machine.image_topics import ImageTopicNames
from moldau.broker.share.manager import SharePartitionManager
from moldau.broker.shared import Shared, endpoints_of
from moldau.broker.topic_creation import TopicCreation
from moldau.clock import pause
from moldau.wire.apis import ApiKey
from moldau.wire.messages import AlterPartitionRequest, AlterPartitionResponse
from moldau.wire.uuids import random_uuid

#: How long a broker that stops waits for a quorum without a leader.
LEADERLESS_STOP_MS: Final = 5_000
#: How long the start waits to see its own unfencing in the metadata, and for coordinators.
UNFENCED_MS_MAX: Final = 30_000

#: A response about new partitions waits only if no more than this many are yet to be opened.
UNOPENED_AWAITED_MAX: Final = 100

#: How many logs are loaded in one turn of the loop: after a clean stop, and if they are recovered.
LOADED_PER_TURN: Final = 32
RECOVERED_PER_TURN: Final = 4

logger = logging.getLogger(__name__)


class BrokerServer:
    def __init__(
        self,
        shared: Shared,
        *,
        receive_telemetry: Callable[[Payload], None] | None = None,
        on_built: Callable[[], None] = lambda: None,
    ) -> None:
        """`receive_telemetry` gets what clients push; `on_built` is called when all parts are
        there."""
        self._shared = shared
        self._receive_telemetry = receive_telemetry
        self._on_built = on_built
        self._channels: list[ControllerChannel] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        environment, config = shared.environment, shared.config
        self.cleaner = Cleaner(shared.logs, config.log, environment.clock.now_ms)
        self.telemetry = ClientTelemetry(telemetry_max_bytes=config["telemetry.max.bytes"])
        self._waits = ImageWaits(lambda: shared.metadata.image, environment.clock)
        self.lifecycle = self._lifecycle()
        self.replicas: ReplicaManager
        self.coordinators: Coordinators
        self.share_partitions: SharePartitionManager
        self.replication: ReplicationService
        self._reports: DirectoryReports
        self._creation: TopicCreation
        self._moves: LogMoves
        self._maintenance: Maintenance
        self._requests: Dispatcher
        self._own_requests: Dispatcher
        self.loaded = False
        self._built = False
        # Syncs the logs while the rest stops.
        self._settling: asyncio.Task[None] | None = None

    # Start.

    async def start(self) -> None:
        shared, network = self._shared, self._shared.environment.network
        self.report_cordoned()
        self.lifecycle.start()
        shared.metadata.on_leader_changed(self.lifecycle.on_controller_changed)
        await self._reached(self.lifecycle.caught_up)
        await self._load_logs()
        self.loaded = True
        self._build_parts()
        self._follow_metadata()
        self.replicas.set_strays_aside()
        self.replication.start(self.replicas)
        await self._settled()
        self.lifecycle.set_ready_to_unfence()
        await self._reached(self.lifecycle.unfenced)
        await self._waits.until(self._is_unfenced, timeout_ms=UNFENCED_MS_MAX)
        await self._settled()
        await self.coordinators.loaded()
        self._moves.resume()
        self._maintenance.start()
        self.cleaner.start()
        parts = self._parts()
        routes = broker_routes(parts)
        # The node trusts itself; only what arrives over the network is checked.
        self._own_requests = Dispatcher(routes, limits=shared.quotas)
        self._requests = Dispatcher(
            guarded(routes, BROKER_RULES, shared.authorization, parts.topic_names),
            limits=shared.quotas,
            metrics=shared.request_metrics,
        )
        listeners = [each.name for each in shared.config.broker_listeners]
        for name in listeners:
            shared.transport.serve(name, self._own_requests)
        await network.start(self._requests, listeners)

    async def _load_logs(self) -> None:
        """In turns: a controller in this process must keep running, and heartbeats must be sent."""
        logs = self._shared.logs
        clean = all(directory.clean_shutdown for directory in logs.live_dirs)
        per_turn = LOADED_PER_TURN if clean else RECOVERED_PER_TURN
        for number, _ in enumerate(logs.loading(self._log_config)):
            if number % per_turn == 0:
                await asyncio.sleep(0)

    async def _reached(self, state: asyncio.Future[None]) -> None:
        await asyncio.wait([state])
        if state.cancelled():
            raise LifecycleFailed("the broker was stopped before it could serve")

    def _is_unfenced(self, image: MetadataImage) -> bool:
        own = image.brokers.get(self._shared.node_id)
        return own is not None and not own.fenced and own.epoch == self.lifecycle.broker_epoch

    def _channel(self) -> ControllerChannel:
        channel = self._shared.controller_channel()
        self._channels.append(channel)
        return channel

    def _lifecycle(self) -> BrokerLifecycleManager:
        shared = self._shared
        config, metadata = shared.config.metadata, shared.metadata
        directory_ids = [directory.directory_id for directory in shared.logs.live_dirs]
        identity = Identity(
            broker_id=shared.node_id,
            cluster_id=shared.cluster_id,
            incarnation_id=random_uuid(shared.environment.random_bytes(16)),
            endpoints=endpoints_of(shared.config.advertised_broker_listeners, shared.environment),
            features={
                name: (levels.min_version, levels.max_version)
                for name, levels in SUPPORTED_FEATURES.items()
            },
            log_dirs=tuple(each for each in directory_ids if each is not None),
            rack=shared.config["broker.rack"],
            previous_broker_epoch=shared.logs.last_broker_epoch,
        )
        return BrokerLifecycleManager(
            BrokerLifecycle(
                identity,
                heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
                registration_timeout_ms=config.initial_broker_registration_timeout_ms,
            ),
            self._channel(),
            shared.environment.clock,
            session_timeout_ms=config.broker_session_timeout_ms,
            metadata_offset=lambda: metadata.offset,
            cordoning_supported=lambda: (
                metadata.image.metadata_version >= CORDONED_DIRECTORIES_METADATA_VERSION
            ),
            on_failure=shared.on_failure,
        )

    def _build_parts(self) -> None:
        shared, environment = self._shared, self._shared.environment
        channel = self._channel()
        self._reports = DirectoryReports(
            self._channel(),
            node_id=shared.node_id,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            clock=environment.clock,
        )
        self.replication = self._replication_service()
        self.replicas = ReplicaManager(
            node_id=shared.node_id,
            logs=shared.logs,
            log_config=self._log_config,
            report_directory=self._reports.report,
            defer=asyncio.get_running_loop().call_soon,
            replication=self.replication.replication,
        )
        self._creation = TopicCreation(
            channel, lambda: shared.metadata.image, lambda: shared.config, clock=environment.clock
        )
        self.coordinators = Coordinators(self._surroundings(channel))
        self.share_partitions = SharePartitionManager(
            self.replicas,
            self.coordinators.persister,
            self.coordinators.settings,
            clock=environment.clock,
            loop=asyncio.get_running_loop(),
            sessions_max=shared.config["group.share.max.share.sessions"],
            enabled=lambda: shared.metadata.image.features.get("share.version", 0) >= 1,
        )
        self._moves = LogMoves(shared.logs, self.replicas, environment.clock.now_ms)
        self._maintenance = Maintenance(shared.logs, lambda: shared.config)
        self._built = True
        self._on_built()

    def _replication_service(self) -> ReplicationService:
        shared = self._shared
        channel = self._channel()

        async def alter_partition(request: AlterPartitionRequest) -> AlterPartitionResponse:
            timeout_ms = int(shared.config["request.timeout.ms"])
            response = await channel.call(ApiKey.ALTER_PARTITION, request, timeout_ms=timeout_ms)
            return cast(AlterPartitionResponse, response)

        return ReplicationService(
            node_id=shared.node_id,
            transport=shared.transport,
            clock=shared.environment.clock,
            inter_broker_listener=shared.config.inter_broker_listener_name,
            config=lambda key: shared.config[key],
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            alter_partition=alter_partition,
            metrics=shared.metrics,
        )

    def _surroundings(self, channel: ControllerChannel) -> Surroundings:
        shared = self._shared
        return Surroundings(
            node_id=shared.node_id,
            config=lambda: shared.config,
            environment=shared.environment,
            metadata=shared.metadata,
            replicas=self.replicas,
            creation=self._creation,
            report_bug=_report_bug,
            spawn=self._spawn,
            unclean=not all(each.clean_shutdown for each in shared.logs.live_dirs),
            controller=channel,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            transport=shared.transport,
            inter_broker_listener=shared.config.inter_broker_listener_name,
        )

    def _parts(self) -> Parts:
        shared = self._shared
        forwarding = ForwardingManager(self._channel())
        return Parts(
            shared=shared,
            forward=forwarding.forward,
            replicas=self.replicas,
            replication=self.replication,
            moves=self._moves,
            coordinators=self.coordinators,
            share_partitions=self.share_partitions,
            creation=self._creation,
            telemetry=self.telemetry,
            receive_telemetry=self._receive_telemetry,
            settled=self._settled_on,
            topic_names=ImageTopicNames(
                lambda: shared.metadata.image,
                lambda: bool(shared.config.topics.auto_create_topics_enable),
            ),
        )

    async def _settled(self) -> None:
        """Wait until every partition assigned to this node is open."""
        settled = asyncio.Event()
        self.replicas.when_settled(settled.set)
        await settled.wait()

    async def _settled_on(
        self, condition: Callable[[MetadataImage], bool], timeout_ms: int
    ) -> None:
        """Wait for the condition and for open partitions, together no longer than the timeout.

        After the creation of very many partitions the response does not wait until they are open:
        a client that uses one too early retries, as with Kafka.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                if (
                    await self._waits.until(condition, timeout_ms=timeout_ms)
                    and self.replicas.unopened_count <= UNOPENED_AWAITED_MAX
                ):
                    await self._settled()

    # Metadata.

    def _log_config(self, topic: str) -> LogConfig:
        shared = self._shared
        return LogConfig.for_topic(shared.config, shared.metadata.image.topic_configs(topic))

    def _follow_metadata(self) -> None:
        """In the order in which the parts depend on one another; one that fails does not keep the
        others from what is committed."""
        self._shared.metadata.subscribe(
            self._take_subscriptions,
            self.replicas.apply,
            self.share_partitions.apply,
            self.coordinators.apply,
            self._creation.apply,
            self._waits.apply,
        )

    def _take_subscriptions(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for kind, name in delta.configs:
            if kind == ResourceType.CLIENT_METRICS:
                self.telemetry.update_subscription(name, image.configs.get((kind, name), {}))

    def on_config_changed(self) -> None:
        self.cleaner.update_config(self._shared.config.log)
        self.report_cordoned()

    def report_cordoned(self) -> None:
        directory_ids = (directory.directory_id for directory in self._shared.logs.cordoned_dirs)
        self.lifecycle.propagate_directories_cordoned(
            frozenset(each for each in directory_ids if each is not None)
        )

    def on_dir_failed(self, directory: LogDir) -> None:
        if self._built:
            self.replicas.on_log_dir_failed(directory)
        if directory.directory_id is not None:
            timeout_ms = self._shared.config.log.log_dir_failure_timeout_ms
            self.lifecycle.propagate_directory_failure(
                directory.directory_id, timeout_ms=timeout_ms
            )

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Stop.

    async def stop(self, *, controlled: bool) -> None:
        """Move leaderships away if it is `controlled`, then start nothing new."""
        if self._built:
            # First: more copying would only make the rest take longer.
            await self._moves.stop()
        if self.loaded:
            self._settling = asyncio.create_task(self._shared.logs.begin_close())
        await self._leave(controlled)
        if self._built:
            self.coordinators.close()
            await self.share_partitions.close()
            await self.replication.stop()
            await self._creation.stop()
            await self._reports.stop()
            self._maintenance.stop()
            await self.cleaner.stop()
            # Another move may have been requested in the meantime.
            await self._moves.stop()
        for task in tuple(self._tasks):
            task.cancel()
        for channel in self._channels:
            channel.close()

    async def _leave(self, controlled: bool) -> None:
        stopped = self.lifecycle.stopped
        if controlled and self._shared.config["controlled.shutdown.enable"] and self._built:
            self.lifecycle.begin_controlled_shutdown()
            watch = asyncio.get_running_loop().create_task(self._watch_quorum())
            await asyncio.wait([stopped, watch], return_when=asyncio.FIRST_COMPLETED)
            watch.cancel()
        if not stopped.done():
            self.lifecycle.close()

    async def _watch_quorum(self) -> None:
        """Returns when the quorum has had no leader for a while: it may not come back at all."""
        clock, metadata = self._shared.environment.clock, self._shared.metadata
        leaderless_ms = 0
        while leaderless_ms < LEADERLESS_STOP_MS:
            await pause(clock, 100)
            # The last leader stays known during an election.
            leaderless_ms = 0 if metadata.raft.has_contact else leaderless_ms + 100
        logger.warning("stopping without a controlled shutdown: the quorum has no leader")

    async def finish(self) -> None:
        """The network has stopped."""
        if hasattr(self, "_requests"):
            await self._own_requests.stop()
            await self._requests.stop()
        if self._settling is not None:
            await asyncio.wait([self._settling])
        if self.loaded:
            await self._shared.logs.flush_all()


def _report_bug(error: Exception) -> None:
    logger.error("a coordinator failed", exc_info=error)
