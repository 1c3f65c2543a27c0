"""TopicLog: a compacted topic that holds a worker's state, read from its beginning by a thread.

Invariants: records are applied in the order of their partition, each once, by one thread; after
`read_to_end` everything is applied that was in the topic when it was called.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from moldau.client import (
    Admin,
    ConfigResource,
    Consumer,
    KafkaError,
    NewTopic,
    OffsetSpec,
    Producer,
    TopicExistsError,
    TopicPartition,
)
from moldau.connect.api import ConnectError

logger = logging.getLogger(__name__)

Apply = Callable[[bytes | None, bytes | None, int], None]
READ_TIMEOUT_S = 30.0
_POLL_S = 0.5
_RETRY_S = 0.5
_LOOK_UP_S = 0.1


class TopicLog:
    """`apply(key, value, offset)` is called in the reading thread."""

    def __init__(
        self,
        topic: str,
        apply: Apply,
        *,
        producer: Mapping[str, str],
        consumer: Mapping[str, str],
        admin: Mapping[str, str],
        create: NewTopic,
    ) -> None:
        self.topic = topic
        self._apply = apply
        self._settings = producer, consumer, admin
        self._create = create
        self._producer: Producer | None = None
        self._consumer: Consumer[bytes, bytes] | None = None
        self._admin: Admin | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._partitions: list[TopicPartition] = []

    def start(self) -> None:
        """Create the topic if need be, read all of it, and go on reading."""
        producer, consumer, admin = self._settings
        self._admin = Admin(admin)
        self._ensure_topic(self._admin)
        self._producer = Producer(
            {
                **producer,
                "acks": "all",
                "delivery.timeout.ms": "2147483647",
                "linger.ms": "0",
            }
        )
        self._consumer = Consumer(
            {**consumer, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        )
        self._partitions = self._find_partitions(self._consumer)
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning(self._partitions)
        self._positions = dict.fromkeys(self._partitions, 0)
        self._thread = threading.Thread(
            target=self._run, name=f"connect-log {self.topic}", daemon=True
        )
        self._thread.start()
        self.read_to_end(committed=True)

    def _ensure_topic(self, admin: Admin) -> None:
        if self.topic not in admin.list_topics():
            try:
                admin.create_topics([self._create])
                return
            except TopicExistsError:
                pass
            except KafkaError as error:
                raise ConnectError(
                    f"The topic {self.topic} cannot be created with a replication factor of "
                    f"{self._create.replication_factor}: {error}"
                ) from error
        resource = ConfigResource.topic(self.topic)
        policy = admin.describe_configs([resource])[resource]["cleanup.policy"].value
        if policy != "compact":
            raise ConnectError(
                f"Topic '{self.topic}' is required to have 'cleanup.policy=compact' to guarantee "
                f"consistency and durability of Connect's state, but found '{policy}'. Change it "
                "with kafka-configs, or name another topic"
            )

    def _find_partitions(self, consumer: Consumer[bytes, bytes]) -> list[TopicPartition]:
        """Brokers may know a new topic a moment after it has been created; without its partitions
        nothing would ever be read."""
        deadline = time.monotonic() + READ_TIMEOUT_S
        while not (found := consumer.partitions_for(self.topic)):
            if time.monotonic() > deadline:
                raise ConnectError(
                    f"No broker knows the topic {self.topic} within {READ_TIMEOUT_S} s of its "
                    "creation: look for errors in the brokers' logs, and start the worker again"
                )
            self._stopping.wait(_LOOK_UP_S)
        return [TopicPartition(self.topic, each.partition) for each in found]

    def _run(self) -> None:
        consumer = self._consumer
        while consumer is not None and not self._stopping.is_set():
            try:
                records = consumer.poll(_POLL_S)
                for record in records:
                    try:
                        self._apply(record.key, record.value, record.offset)
                    except Exception:
                        logger.exception("%s offset %d is skipped", self.topic, record.offset)
                positions = {each: consumer.position(each) for each in self._partitions}
            except KafkaError as error:
                if not self._stopping.is_set():
                    logger.warning("reading %s failed and is retried: %s", self.topic, error)
                    self._stopping.wait(_RETRY_S)
                continue
            if positions != self._positions:
                with self._changed:
                    self._positions = positions
                    self._changed.notify_all()

    def read_to_end(self, timeout_s: float = READ_TIMEOUT_S, *, committed: bool = False) -> None:
        """Wait until everything is applied that is in the topic now; ConnectError if it takes
        too long. With `committed`, transactions that are still open are not waited for: after a
        crash that would take until they time out."""
        deadline = time.monotonic() + timeout_s
        ends = self._end_offsets(committed=committed)
        with self._changed:
            while any(self._positions.get(each, 0) < end for each, end in ends.items()):
                left = deadline - time.monotonic()
                if left <= 0 or self._stopping.is_set():
                    raise ConnectError(f"The topic {self.topic} was not read within {timeout_s} s")
                self._changed.wait(min(left, 1.0))

    def _end_offsets(self, *, committed: bool) -> dict[TopicPartition, int]:
        if self._admin is None:
            raise ConnectError(f"The topic {self.topic} is not open")
        try:
            found = self._admin.list_offsets(
                dict.fromkeys(self._partitions, OffsetSpec.latest()),
                isolation_level="read_committed" if committed else "read_uncommitted",
            )
        except KafkaError as error:
            raise ConnectError(f"The end of {self.topic} could not be read: {error}") from error
        return {each: found[each].offset for each in self._partitions}

    def write(
        self,
        records: Sequence[tuple[bytes | str, bytes | None]],
        timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        """Write, and wait until all are stored; ConnectError if that fails."""
        if self._producer is None:
            raise ConnectError(f"The topic {self.topic} is not open")
        deadline = time.monotonic() + timeout_s
        try:
            sent = [
                self._producer.send(
                    self.topic, value, key.encode() if isinstance(key, str) else key
                )
                for key, value in records
            ]
            for each in sent:
                each.result(max(deadline - time.monotonic(), 0.001))
        except KafkaError as error:
            raise ConnectError(f"Writing to {self.topic} failed: {error}") from error

    def send(self, key: bytes | str, value: bytes | None) -> None:
        """Write without waiting."""
        if self._producer is not None and not self._stopping.is_set():
            self._producer.send(self.topic, value, key.encode() if isinstance(key, str) else key)

    def stop(self) -> None:
        self._stopping.set()
        if self._consumer is not None:
            self._consumer.wakeup()
        if self._thread is not None:
            self._thread.join(5)
        for client in (self._producer, self._consumer, self._admin):
            if client is not None:
                client.close(timeout=2)
