"""Runs a service's rules on topics, exactly once.

What was read, what was written and how the state changed are committed in one transaction, several
records at a time. The state of a partition lives in this process and in the service's changelog;
who gets the partition, after a crash or because there are more instances now, rebuilds it from
there.

What goes wrong inside a transaction ends this life of the processor: clients and state are thrown
away and made again, and what was not committed is read again. So there is only one way to begin.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from moldau.client import (
    Admin,
    Consumer,
    ConsumerRebalanceListener,
    ConsumerRecord,
    OffsetSpec,
    Producer,
    TopicPartition,
)
from moldau.client.consumer import GroupMembershipOperation
from moldau.client.errors import (
    AuthorizationError,
    ConfigError,
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
)
from orders import topics
from orders.logic import Incoming, Logic, Outgoing
from orders.model import InvalidOrder, decoded, encoded

__all__ = ["GlobalTable", "Processor", "Service"]

log = logging.getLogger("orders")

#: How long records are gathered for one transaction: latency against transactions per second.
COMMIT_INTERVAL_S: Final = 0.1
_POLL_S: Final = 0.5
_RESTORE_S_MAX: Final = 60.0
#: The transaction of a crashed instance that does not come back is aborted after this long.
_TRANSACTION_TIMEOUT_MS: Final = 10_000
_SESSION_TIMEOUT_MS: Final = 10_000
_LIVES_WITHOUT_PROGRESS_MAX: Final = 10
_PAUSE_S_MAX: Final = 5.0
#: Another try with the same settings would end the same.
_HOPELESS: Final = (AuthorizationError, ConfigError, FencedInstanceIdError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a processor needs to know of a service; `name` is its consumer group."""

    name: str
    sources: tuple[str, ...]
    #: Makes the state and rules of one partition.
    logic: Callable[[], Logic]
    changelog: str | None = None
    #: Compacted topics with the keys of the sources: read whole before the first record.
    tables: tuple[str, ...] = ()
    global_table: GlobalTable | None = None


class GlobalTable:
    """A compacted topic, all partitions of it, as a dict that follows the topic."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._rows: dict[str, dict[str, Any]] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        return self._rows.get(key)

    def clear(self) -> None:
        self._rows.clear()

    def replay(self, topic: str, key: str, value: dict[str, Any] | None) -> None:
        if value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = value


class Processor:
    """One instance of a service. `run` in a thread, `stop` from another."""

    def __init__(self, service: Service, bootstrap_servers: str, instance: str = "1") -> None:
        self._service = service
        self._name = f"{service.name}-{instance}"
        self._bootstrap_servers = bootstrap_servers
        self._stopping = threading.Event()
        self.records_done = 0

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Until `stop`, or an error that a retry does not fix."""
        failures = 0
        while not self._stopping.is_set():
            done_before = self.records_done
            life = _Life(self._service, self._name, self._bootstrap_servers, self._stopping)
            try:
                life.run(self._count)
            except KafkaError as error:
                failures = 1 if self.records_done > done_before else failures + 1
                if isinstance(error, _HOPELESS) or failures > _LIVES_WITHOUT_PROGRESS_MAX:
                    raise
                log.warning("%s: starts again after %s", self._name, error)
                self._stopping.wait(min(_PAUSE_S_MAX, 0.1 * 2**failures))

    def _count(self, records: int) -> None:
        self.records_done += records


class _Life(ConsumerRebalanceListener):
    """From the first connection to the first error."""

    def __init__(
        self, service: Service, name: str, bootstrap_servers: str, stopping: threading.Event
    ) -> None:
        self._service = service
        self._name = name
        self._bootstrap: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": name,
        }
        self._stopping = stopping
        self._logics: dict[int, Logic] = {}
        self._next_offsets: dict[TopicPartition, int] = {}
        self._records = 0
        self._commit_at = 0.0
        self._lost = False
        self._is_behind_marks = False

    def run(self, committed: Callable[[int], None]) -> None:
        self._committed = committed
        with ExitStack() as clients:
            self._connect(clients)
            # Ends what a crashed predecessor of this name has left open, and shuts it out.
            self._producer.init_transactions()
            self._open_global_table(clients)
            self._consumer.subscribe([*self._service.sources, *self._service.tables], self)
            while not self._stopping.is_set():
                self._poll()
            self._commit()
            # Asked to end, it does not come back at once: others need not wait for the session.
            self._consumer.close(operation=GroupMembershipOperation.LEAVE_GROUP)

    def _connect(self, clients: ExitStack) -> None:
        self._producer = clients.enter_context(
            Producer(
                self._bootstrap,
                transactional_id=self._name,
                transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            )
        )
        # A static member: an instance that is back within the session has its partitions at once,
        # and nobody rebalances meanwhile.
        self._consumer = clients.enter_context(
            Consumer(
                self._bootstrap,
                group_id=self._service.name,
                group_instance_id=self._name,
                session_timeout_ms=_SESSION_TIMEOUT_MS,
                partition_assignment_strategy="range",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            )
        )
        self._reader = clients.enter_context(self._table_reader())
        self._admin = clients.enter_context(Admin(self._bootstrap))

    def _table_reader(self) -> Consumer:
        return Consumer(
            self._bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        )

    def _poll(self) -> None:
        wait = self._commit_at - time.monotonic() if self._records else _POLL_S
        batch = self._consumer.poll(max(0.0, wait))
        if self._lost:
            raise KafkaTimeoutError("the group has gone on without this instance")
        if not batch and not self._records:
            self._commit_position()
            return
        self._follow_global_table()
        for record in batch:
            self._take(record)
        if self._records and time.monotonic() >= self._commit_at:
            self._commit()

    # One record after the other.

    def _take(self, record: ConsumerRecord) -> None:
        logic = self._logics[record.partition]
        if record.topic in self._service.tables:
            _replay([record], logic.replay)
            return
        if not self._records:
            self._producer.begin_transaction()
            self._commit_at = time.monotonic() + COMMIT_INTERVAL_S
        try:
            incoming = Incoming(record.topic, _key(record), decoded(record.value), record.timestamp)
            written = logic.process(incoming)
        except InvalidOrder as error:
            self._send_dead_letter(record, error)
        else:
            for each in written:
                self._send(each, record.partition, logic)
        self._records += 1
        self._next_offsets[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def _send(self, record: Outgoing, partition: int, logic: Logic) -> None:
        to = None
        if record.topic == self._service.changelog:
            logic.replay(record.topic, record.key, record.value)
            to = partition
        self._producer.send(
            record.topic,
            encoded(record.value),
            key=record.key,
            partition=to,
            timestamp=record.timestamp,
        )

    def _send_dead_letter(self, record: ConsumerRecord, error: InvalidOrder) -> None:
        log.warning("%s: %s-%d at %d: %s", self._name, record.topic, record.partition,
                    record.offset, error)  # fmt: skip
        headers = {
            "__connect.errors.topic": record.topic,
            "__connect.errors.partition": str(record.partition),
            "__connect.errors.offset": str(record.offset),
            "__connect.errors.connector.name": self._service.name,
            "__connect.errors.exception.message": str(error),
        }
        self._producer.send(topics.DEAD_LETTER, record.value, key=record.key, headers=headers)

    def _commit(self) -> None:
        if not self._records:
            return
        self._producer.send_offsets_to_transaction(
            self._next_offsets, self._consumer.group_metadata()
        )
        self._producer.commit_transaction()
        self._committed(self._records)
        self._records = 0
        self._next_offsets.clear()
        self._is_behind_marks = True

    def _commit_position(self) -> None:
        """Behind the last record lie the marks that end transactions, which nobody is given. With
        nothing else to do the group's offsets are put after them, so that its lag is zero."""
        if not self._is_behind_marks:
            return
        self._is_behind_marks = False
        positions = {
            place: self._consumer.position(place)
            for place in self._consumer.assignment()
            if place.topic in self._service.sources
        }
        self._producer.begin_transaction()
        self._producer.send_offsets_to_transaction(positions, self._consumer.group_metadata())
        self._producer.commit_transaction()

    # Partitions come and go.

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        for number in sorted({each.partition for each in partitions} - self._logics.keys()):
            self._logics[number] = self._restored(number)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._commit()
        for each in partitions:
            self._logics.pop(each.partition, None)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        # Others have them already: what is open here must not be committed.
        self._lost = True

    def _restored(self, number: int) -> Logic:
        logic = self._service.logic()
        changelog = self._service.changelog
        names = (*self._service.tables, *((changelog,) if changelog else ()))
        if not names:
            return logic
        # The offsets of the one who had the partition before are waited for until its transaction
        # is over. All it wrote lies before the ends that are asked for next.
        self._consumer.committed([TopicPartition(topic, number) for topic in self._service.sources])
        places = [TopicPartition(topic, number) for topic in names]
        self._read_to_end(places, logic.replay)
        for place in places:
            if place.topic != changelog:
                self._consumer.seek(place, self._reader.position(place))
        return logic

    # Tables.

    def _read_to_end(
        self,
        places: list[TopicPartition],
        replay: Callable[[str, str, dict[str, Any] | None], None],
    ) -> None:
        """To the end of all that is written, committed or not yet: the reader waits for what is
        still open, or it would miss the last transaction of a predecessor."""
        latest = self._admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
        self._reader.assign(places)
        self._reader.seek_to_beginning(places)
        deadline = time.monotonic() + _RESTORE_S_MAX
        while any(self._reader.position(each) < latest[each].offset for each in places):
            if time.monotonic() > deadline or self._stopping.is_set():
                raise KafkaTimeoutError(f"{', '.join(map(str, places))} could not be read whole")
            _replay(self._reader.poll(_POLL_S), replay)

    def _open_global_table(self, clients: ExitStack) -> None:
        table = self._service.global_table
        if table is None:
            return
        table.clear()
        infos = self._consumer.partitions_for(table.topic)
        places = [TopicPartition(table.topic, each.partition) for each in infos]
        self._read_to_end(places, table.replay)
        self._follower = clients.enter_context(self._table_reader())
        self._follower.assign(places)
        for place in places:
            self._follower.seek(place, self._reader.position(place))

    def _follow_global_table(self) -> None:
        if self._service.global_table is not None:
            _replay(self._follower.poll(0.0), self._service.global_table.replay)


def _replay(
    records: Iterable[ConsumerRecord], replay: Callable[[str, str, dict[str, Any] | None], None]
) -> None:
    for record in records:
        try:
            replay(record.topic, _key(record), decoded(record.value))
        except InvalidOrder as error:
            log.warning("%s-%d at %d is passed over: %s", record.topic, record.partition,
                        record.offset, error)  # fmt: skip


def _key(record: ConsumerRecord) -> str:
    try:
        return bytes(record.key).decode()
    except (TypeError, UnicodeDecodeError):
        raise InvalidOrder(f"its key is no text: {record.key!r}") from None
