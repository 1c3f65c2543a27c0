"""The share consumer itself; the two faces in front of it add nothing but waiting.

Decided here: what a poll does and in which order. Invariants: methods named `async` run on
the event loop; the others run in the thread or task of the application, to which `in_flight`
belongs. What the loop has for the application goes through queues: deliveries, outcomes, errors.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Mapping
from uuid import UUID

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.bell import Bell
from moldau.client.consumer.machine.consumer_records import EMPTY_RECORDS, ConsumerRecords
from moldau.client.consumer.wakeup import Wakeup
from moldau.client.deadline import Deadline
from moldau.client.errors import IllegalStateError, KafkaError
from moldau.client.errors.topics import topic_error
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.metrics import (
    SHARE_CONSUMER,
    Metrics,
    NetworkMetrics,
    ShareConsumerMetrics,
    add_app_info,
)
from moldau.client.network_settings import NetworkSettings
from moldau.client.serialization import close_function
from moldau.client.share.machine.acknowledgements import AcknowledgeType, TopicIdPartition
from moldau.client.share.machine.delivery import Delivery
from moldau.client.share.machine.in_flight import InFlight, NodeAcknowledgements
from moldau.client.share.machine.pending_errors import PendingErrors
from moldau.client.share.membership import ShareMembership
from moldau.client.share.node_state import Outcome, answers
from moldau.client.share.nodes import ShareNodes
from moldau.client.share.settings import ShareSettings
from moldau.client.telemetry import TelemetryReporter
from moldau.clock import Alarm
from moldau.wire.errors import ErrorCode
from moldau.wire.uuids import random_uuid, uuid_to_text

__all__ = ["ShareCore"]

_log = logging.getLogger(__name__)

Soon = Callable[..., None]
Taken = Mapping[TopicIdPartition, NodeAcknowledgements]

#: For what a consumer that nobody closed has to say before it goes.
_ABANDON_S = 5.0
#: Nodes that answer sooner would be asked all the time.
_KEPT_WAIT_MS_MIN = 50
_FATAL_FOR_TOPICS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)


class ShareCore:
    """See the module."""

    def __init__(self, settings: ShareSettings, soon: Soon) -> None:
        """`soon` calls something on the loop, from whatever thread."""
        self.settings = settings
        self._soon = soon
        self.registry = Metrics.of(settings.values, client_id=settings.client_id)
        add_app_info(self.registry)
        self.metrics = ShareConsumerMetrics(self.registry)
        self.cluster = ClusterClient(
            NetworkSettings.of(settings.values, client_id=settings.client_id),
            observer=NetworkMetrics(self.registry, SHARE_CONSUMER),
        )
        self.cluster.allow_auto_topic_creation = settings.allow_auto_create_topics
        self.cluster.on_metadata.append(self._on_metadata)
        self.telemetry = TelemetryReporter.of(settings.values, self.cluster, self.registry)
        self.topics: frozenset[str] = frozenset()
        self.in_flight = InFlight()
        # From the loop to the application; a deque's ends are safe to use from both.
        self._deliveries: deque[Delivery] = deque()
        self._outcomes: deque[Outcome] = deque()
        self._errors = PendingErrors()
        self._membership = ShareMembership(
            self.cluster,
            settings,
            uuid_to_text(random_uuid(os.urandom(16))),
            self.metrics,
            idle_ms=self._idle_ms,
            on_assigned=self._on_assigned,
            on_error=self._on_error,
        )
        self._nodes = ShareNodes(
            self.cluster,
            settings,
            self._membership,
            self.metrics,
            on_delivery=self._on_delivery,
            on_outcome=self._on_outcome,
            on_error=self._on_error,
        )
        # Bytes of deliveries that were given out whole since the last count.
        self._size_given = 0
        self._polling = False
        self._polled_ms = self.cluster.clock.elapsed_ms()
        self._bell = Bell(self.cluster.clock)
        self.wakeup = Wakeup(soon, self._bell.ring)
        # Of the loop only.
        self._refresh_alarm: Alarm | None = None

    @property
    def member_id(self) -> str:
        return self._membership.member_id

    def deadline(self, timeout: float | None) -> Deadline:
        """In so many seconds; `default.api.timeout.ms` if None."""
        default_ms = self.settings.default_api_timeout_ms
        return Deadline.in_seconds(self.cluster.clock, timeout, default_ms=default_ms)

    async def client_instance_id(self, deadline: Deadline) -> UUID:
        if self.telemetry is None:
            raise IllegalStateError(
                "Telemetry is not enabled.", advice="set enable.metrics.push=true"
            )
        return await self.telemetry.client_instance_id(timeout_ms=deadline.left_ms())

    # Subscribing.

    def subscribe(self, topics: frozenset[str]) -> None:
        self.topics = topics
        self.cluster.wanted_topics = set(topics)
        self._soon(self._on_subscribed)

    def _on_subscribed(self) -> None:
        self._membership.subscribe(self.topics)
        self.cluster.request_refresh(at_once=True)

    async def unsubscribe(self, deadline: Deadline) -> None:
        self.topics = frozenset()
        self.cluster.wanted_topics = set()
        await self._membership.leave(deadline.left_ms())

    # Polling: begin, then collect and wait in turn until there is something, then end.

    def begin_poll(self) -> None:
        """Acknowledge what the last poll gave if that is implied; raises what is in the way."""
        self._errors.raise_first()
        if self.settings.is_explicit:
            if not self.in_flight.all_acknowledged:
                raise IllegalStateError(
                    "All records must be acknowledged in explicit acknowledgement mode."
                )
        else:
            self.in_flight.acknowledge_all(AcknowledgeType.ACCEPT)
        if not self.topics:
            raise IllegalStateError("Consumer is not subscribed to any topics.")
        self.send(self.in_flight.take_of_kept())
        self._polling = True
        self.metrics.poll_started()

    def end_poll(self) -> None:
        self._polled_ms = self.cluster.clock.elapsed_ms()
        self._polling = False
        if self.in_flight.keeps:
            self._soon(self._nodes.rest)
        self.metrics.poll_ended()

    def _idle_ms(self) -> int:
        return 0 if self._polling else self.cluster.clock.elapsed_ms() - self._polled_ms

    def collect(self, taken: Taken) -> ConsumerRecords:
        """Records that are there, decoded now; raises the error of one that cannot be read, and
        then sends the acknowledgements that were taken."""
        try:
            return self._collect()
        except BaseException:
            self.send(taken)
            raise

    def _collect(self) -> ConsumerRecords:
        in_flight = self.in_flight
        if in_flight.renews:
            in_flight.take_renewed()
            if in_flight.renews and in_flight.is_empty:
                return EMPTY_RECORDS
        if not in_flight.is_empty:
            return ConsumerRecords(in_flight.records())
        count_left = self.settings.max_poll_records
        while count_left > 0 and self._deliveries and not self._errors:
            count_left -= self._deliver(self._deliveries[0], count_left)
        records = in_flight.records()
        if not records:
            return EMPTY_RECORDS
        self.metrics.consumed(sum(map(len, records.values())), self._size_given)
        self._size_given = 0
        return ConsumerRecords(records)

    def _deliver(self, delivery: Delivery, count_max: int) -> int:
        had_records = not self.in_flight.is_empty
        portion = delivery.take(count_max)
        self.in_flight.add(
            delivery.partition,
            delivery.node_id,
            portion.records,
            portion.acknowledgements,
            portion.unreadable,
        )
        if delivery.lock_timeout_ms is not None:
            self.in_flight.lock_timeout_ms = delivery.lock_timeout_ms
        if delivery.is_done:
            self._size_given += delivery.size
            self._deliveries.popleft()
        if portion.error is not None:
            if not had_records:
                raise portion.error
            # The records of other partitions are given first.
            self._errors.add(portion.error)
        return len(portion.records)

    async def wait(self, taken: Taken, deadline: Deadline, *, fetch: bool) -> None:
        """Send acknowledgements, ask for records and wait until something has come."""
        await self.cluster.bootstrap.resolve()
        # What was subscribed to right before may not have come here by itself yet.
        self._membership.subscribe(self.topics)
        self._membership.poll()
        if fetch:
            self._nodes.fetch(taken, self._fetch_wait_ms(deadline))
        elif taken:
            self._send(taken)
        # Not before: acknowledgements must not be lost by it.
        self.wakeup.check()
        # While records are renewed no others are given.
        ready = self._deliveries and not self.in_flight.renews
        if ready or self._outcomes or self._errors:
            return
        await self._bell.wait(max(1, deadline.left_ms()))
        self.wakeup.check()

    def _fetch_wait_ms(self, deadline: Deadline) -> int:
        """A node is asked one thing at a time: while records are kept it does not wait for others
        longer than the poll, so that acknowledgements do not wait for it."""
        limit_ms = self.settings.fetch_max_wait_ms
        if not self.in_flight.keeps:
            return limit_ms
        return min(limit_ms, max(_KEPT_WAIT_MS_MIN, deadline.left_ms()))

    def raise_errors(self) -> None:
        self._errors.raise_first()

    # Acknowledging.

    def acknowledge_if_implied(self) -> None:
        if not self.settings.is_explicit:
            self.in_flight.acknowledge_all(AcknowledgeType.ACCEPT)

    def check_explicit(self) -> None:
        if not self.settings.is_explicit:
            raise IllegalStateError(
                "Implicit acknowledgement of delivery is being used.",
                advice="set share.acknowledgement.mode=explicit",
            )

    def send(self, taken: Taken) -> None:
        """From the application: as soon as possible; outcomes come later."""
        if taken:
            self._soon(self._send, taken)

    def _send(self, taken: Taken) -> None:
        limit_ms = self.settings.default_api_timeout_ms
        self._nodes.acknowledge(taken, Deadline(self.cluster.clock, limit_ms))

    async def commit(
        self, taken: Taken, deadline: Deadline
    ) -> dict[TopicIdPartition, KafkaError | None]:
        # They are sent also if a wakeup ends the call.
        commits = self._nodes.acknowledge(taken, deadline)
        return await self.wakeup.wakeable(answers(taken, commits, deadline))

    def settle(self) -> list[tuple[dict[TopicIdPartition, set[int]], KafkaError | None]]:
        """Take over what nodes have answered; returns the arguments of the commit callback."""
        calls = []
        while self._outcomes:
            outcome = self._outcomes.popleft()
            self.in_flight.on_acknowledged(
                outcome.partition,
                outcome.acknowledgements,
                outcome.error,
                outcome.lock_timeout_ms,
            )
            offsets = {outcome.partition: outcome.acknowledgements.offsets()}
            calls.append((offsets, outcome.error))
        return calls

    # What the loop has.

    def _on_delivery(self, delivery: Delivery) -> None:
        self._deliveries.append(delivery)
        self._bell.ring()

    def _on_outcome(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        self._bell.ring()

    def _on_error(self, error: BaseException) -> None:
        if not self._errors.add(error):
            _log.warning(
                "share group %s: the application does not poll, so this is not raised: %s",
                self.settings.group_id,
                error,
            )
        self._bell.ring()

    def _on_assigned(self) -> None:
        self._nodes.kick()

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        if self._refresh_alarm is not None:
            self._refresh_alarm.cancel()
        self._refresh_alarm = self.cluster.clock.call_later(
            max(1, self.cluster.settings.metadata_max_age_ms), self.cluster.request_refresh
        )
        for topic, code in picture.errors.items():
            if code in _FATAL_FOR_TOPICS and topic in self.topics:
                self._on_error(topic_error(code, topic))
        self._nodes.kick()

    async def abandon(self) -> None:
        """The end of a consumer that nobody closed: its records are released."""
        await self.close(self.deadline(_ABANDON_S))

    async def close(self, deadline: Deadline) -> None:
        """Acknowledgements first, then the sessions, which releases the rest, then the group."""
        taken = self.in_flight.take()
        try:
            await self._nodes.close(taken, deadline)
            await self._membership.close(deadline.left_ms())
        finally:
            if self._refresh_alarm is not None:
                self._refresh_alarm.cancel()
            if self.telemetry is not None:
                await self.telemetry.close()
            await self.cluster.close()
            close_function(self.settings.key_deserializer)
            close_function(self.settings.value_deserializer)
            self.registry.close()
