"""What both share consumers have in common: the calls that wait for nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Generic, overload

from moldau.client.consumer.guard import Guard
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.errors import IllegalStateError, KafkaError
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.other_clients import SHARE_CONSUMER_NAMES, point_from
from moldau.client.share.core import ShareCore
from moldau.client.share.machine.acknowledgements import AcknowledgeType, TopicIdPartition
from moldau.client.topics import TopicPartition
from moldau.client.type_parameters import K, V

__all__ = [
    "CLOSE_TIMEOUT_S",
    "POLL_TIMEOUT_S",
    "AcknowledgementCommitCallback",
    "Kind",
    "ShareFace",
    "callback_error",
]

CLOSE_TIMEOUT_S = 30.0
POLL_TIMEOUT_S = 1.0

#: Called with the offsets of each partition and the error, None if all went well.
AcknowledgementCommitCallback = Callable[[dict[TopicIdPartition, set[int]], KafkaError | None], Any]
Kind = AcknowledgeType | str | int


@point_from(SHARE_CONSUMER_NAMES)
class ShareFace(Generic[K, V]):
    """See the module."""

    _core: ShareCore
    _guard: Guard
    _callback: AcknowledgementCommitCallback | None = None
    _in_callback = False

    def _inside(self) -> AbstractContextManager[None]:
        if self._in_callback:
            raise IllegalStateError(
                "KafkaShareConsumer methods are not accessible from user-defined acknowledgement "
                "commit callback."
            )
        return self._guard

    def __repr__(self) -> str:
        core = self._core
        state = "closed" if self._guard.closed else f"topics {sorted(core.topics)}"
        return (
            f"<{type(self).__name__} {core.settings.client_id!r} at {core.cluster.bootstrap}, "
            f"group {core.settings.group_id!r}, {state}>"
        )

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to these topics instead of others; the next poll joins the group.

        >>> consumer.subscribe(["jobs"])
        """
        with self._inside():
            wanted = _checked_topics(topics)
            if wanted:
                self._core.subscribe(wanted)
            else:
                self._give_up_subscription()

    @abstractmethod
    def _give_up_subscription(self) -> None:
        """As `unsubscribe`."""

    def subscription(self) -> set[str]:
        """The topics subscribed to.

        >>> print(consumer.subscription())
        """
        with self._inside():
            return set(self._core.topics)

    @overload
    def acknowledge(self, record: ConsumerRecord[K, V], type: Kind = ..., /) -> None: ...

    @overload
    def acknowledge(self, topic: str, partition: int, offset: int, type: Kind, /) -> None: ...

    def acknowledge(self, record: ConsumerRecord[K, V] | str, *rest: Any) -> None:
        """Acknowledge a record that the last poll returned or that is kept, with ACCEPT by default.

        A record that the last poll could not deserialize is named by topic, partition and offset;
        it is released if it is not acknowledged. Acknowledgements are sent with the next poll or
        commit. Only with `share.acknowledgement.mode=explicit`.

        >>> consumer.acknowledge(record, AcknowledgeType.RELEASE)
        """
        with self._inside():
            self._core.check_explicit()
            if isinstance(record, str):
                if len(rest) != 3:
                    raise TypeError("acknowledge(topic, partition, offset, type)")
                partition, offset, kind = rest
                key = TopicPartition(record, partition)
                self._core.in_flight.acknowledge_unreadable(key, offset, _kind(kind))
            else:
                kind = rest[0] if rest else AcknowledgeType.ACCEPT
                self._core.in_flight.acknowledge(record, _kind(kind))

    def keep(self, record: ConsumerRecord[K, V]) -> None:
        """Acknowledge a record of the last poll some other time: polls go on without it, return
        other records, and do not return it again.

        Not in Kafka's client. A kept record is locked as any other: acknowledge it with RENEW
        before the lock expires, as often as needed, and at last with another type. Such
        acknowledgements are sent with the next poll or commit. A broker refuses all that is said
        about a partition at once if one of the locks is lost: the records then stay kept, and can
        be acknowledged one by one, or dropped. While records are kept, others are fetched during
        polls only. Only with `share.acknowledgement.mode=explicit`.

        >>> consumer.keep(record)
        """
        with self._inside():
            self._core.check_explicit()
            self._core.in_flight.keep(record)

    def drop(self, record: ConsumerRecord[K, V]) -> None:
        """Do not keep a record any longer, and tell the broker nothing: its lock is lost, or
        expires. Not in Kafka's client.

        >>> consumer.drop(record)
        """
        with self._inside():
            self._core.in_flight.drop(record)

    def set_acknowledgement_commit_callback(
        self, callback: AcknowledgementCommitCallback | None
    ) -> None:
        """Call this with the outcome of acknowledgements, during later calls of poll, commit and
        close; None for no callback.

        >>> consumer.set_acknowledgement_commit_callback(
        ...     lambda offsets, error: print(offsets, error)
        ... )
        """
        with self._inside():
            self._callback = callback

    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long records of the last fetch stay acquired; None before the first.

        >>> print(consumer.acquisition_lock_timeout_ms())
        """
        with self._inside():
            return self._core.in_flight.lock_timeout_ms

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """The consumer's metrics, by Kafka's names.

        >>> rates = {name.name: metric.value for name, metric in consumer.metrics().items()}
        """
        return self._core.registry.metrics()

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push an application metric with the client's own (KIP-1076).

        >>> consumer.register_metric_for_subscription(metric)
        """
        if self._core.telemetry is not None and metric.metric_name not in self.metrics():
            self._core.telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Stop pushing the metric.

        >>> consumer.unregister_metric_from_subscription(metric)
        """
        if self._core.telemetry is not None:
            self._core.telemetry.unregister(metric)

    def _release(self) -> None:
        """The consumer is closed: let go of what only the blocking one has."""
        return

    def wakeup(self) -> None:
        """Can be called from any thread: the call that waits, or the next one that would, raises
        WakeupError.

        >>> signal.signal(signal.SIGTERM, lambda *_: consumer.wakeup())
        """
        self._core.wakeup.ask()


def _kind(given: Kind) -> AcknowledgeType:
    try:
        if isinstance(given, str):
            return AcknowledgeType[given.upper()]
        return AcknowledgeType(given)
    except (KeyError, ValueError):
        names = ", ".join(each.name for each in AcknowledgeType)
        raise ValueError(f"{given!r} is not an acknowledgement type: use one of {names}") from None


def _checked_topics(topics: Iterable[str]) -> frozenset[str]:
    if isinstance(topics, str):
        raise TypeError(f"subscribe to a list of topics: [{topics!r}], not {topics!r}")
    listed = list(topics)
    for topic in listed:
        if not isinstance(topic, str) or not topic.strip():
            raise ValueError("Topic collection to subscribe to cannot contain null or empty topic")
    return frozenset(listed)


def callback_error(error: BaseException) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    return KafkaError(f"Exception thrown from acknowledgement commit callback: {error!r}")
