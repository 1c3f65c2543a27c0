"""Topics that a node itself writes: the audit log and the history of metrics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

from moldau.broker.audit_topic import AuditTopic
from moldau.broker.config import BrokerConfig
from moldau.broker.gauges.node import NodeObservation
from moldau.broker.machine.topics import AUDIT_TOPIC, METRICS_TOPIC
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.replication.partition import Partition
from moldau.broker.shared import Shared
from moldau.broker.topic_creation import TopicCreation
from moldau.broker.topic_writer import TopicWriter
from moldau.clock import Clock
from moldau.peers.channel import Transport

__all__ = ["OwnTopics"]


class OwnTopics:
    def __init__(
        self,
        image: Callable[[], MetadataImage],
        transport: Transport,
        clock: Clock,
        config: Callable[[], BrokerConfig],
        *,
        local: Callable[[str, int], Partition | None],
        started: AsyncExitStack,
    ) -> None:
        """`local` finds a partition that this node has; what is started is ended by `started`."""
        self._image = image
        self._transport = transport
        self._clock = clock
        self._config = config
        self._local = local
        self._started = started

    def audit(self, config: BrokerConfig) -> AuditTopic:
        """Collects from now on, and writes when it is started."""
        writer = self._writer(AUDIT_TOPIC, config)
        return AuditTopic(self._image, writer, self._clock, node_id=config.node_id)

    def start_audit(self, topic: AuditTopic, shared: Shared, flush: Callable[[], None]) -> None:
        creation = self._creation(shared)
        shared.metadata.subscribe(topic.apply)
        topic.start(lambda: creation.ensure_internal_topic(AUDIT_TOPIC))

        async def stop() -> None:
            flush()
            await topic.stop()

        self._started.push_async_callback(stop)

    def start_history(self, observation: NodeObservation, shared: Shared) -> None:
        """Write readings of the node's metrics, if the settings say so."""
        if not observation.settings.history_interval_ms:
            return
        creation = self._creation(shared)
        writer = self._writer(METRICS_TOPIC, self._config())
        shared.metadata.subscribe(writer.apply)
        history = observation.history(writer, self._clock)
        history.start(self._image, lambda: creation.ensure_internal_topic(METRICS_TOPIC))
        self._started.push_async_callback(history.stop)

    def _writer(self, name: str, config: BrokerConfig) -> TopicWriter:
        return TopicWriter(
            name,
            self._image,
            self._transport,
            self._clock,
            node_id=config.node_id,
            inter_broker_listener=config.inter_broker_listener_name,
            local=self._local,
            timeout_ms=lambda: int(self._config()["request.timeout.ms"]),
        )

    def _creation(self, shared: Shared) -> TopicCreation:
        channel = shared.controller_channel()
        creation = TopicCreation(channel, self._image, self._config, clock=self._clock)
        shared.metadata.subscribe(creation.apply)

        async def stop() -> None:
            await creation.stop()
            channel.close()

        self._started.push_async_callback(stop)
        return creation
