"""Records that the application has been given and has to acknowledge.

Pure. Invariants: a record is in flight from the poll that gives it until its acknowledgement
is taken to be sent; one that is renewed comes back when the node has agreed, and is given again.
A record that the application keeps is no longer in flight. It is kept until a node has agreed to
accept, release or reject it, until it is dropped, or until it is delivered again or its partition
by another node, which shows that its lock is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.client.consumer_record import ConsumerRecord
from moldau.client.errors import IllegalStateError, KafkaError
from moldau.client.share.machine.acknowledgements import (
    Acknowledgements,
    AcknowledgeType,
    TopicIdPartition,
)
from moldau.client.topics import TopicPartition

__all__ = ["InFlight", "NodeAcknowledgements"]

_CANNOT = "The record cannot be acknowledged."
_CANNOT_KEEP = "The record cannot be kept: the last poll did not return it."


class NodeAcknowledgements:
    """Acknowledgements of a partition's records, for the node that gave them."""

    __slots__ = ("acknowledgements", "node_id")

    def __init__(self, node_id: int, acknowledgements: Acknowledgements) -> None:
        self.node_id = node_id
        self.acknowledgements = acknowledgements


class _Batch:
    """What is in flight of one partition."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.records: dict[int, ConsumerRecord] = {}
        self.acknowledged: set[int] = set()
        self.acknowledgements = Acknowledgements()
        #: Offsets of records that could not be read: the application may still reject them.
        self.unreadable: frozenset[int] = frozenset()
        self.renewing: dict[int, ConsumerRecord] = {}
        self.renewed: dict[int, ConsumerRecord] = {}
        self.kept: set[int] = set()
        #: Apart from the others: one that renews and is sent with a fetch would get no records.
        self.of_kept = Acknowledgements()

    @property
    def is_done(self) -> bool:
        waits = self.records or len(self.acknowledgements) or self.renewing or self.renewed
        return not (waits or self.kept)

    def drop(self, offset: int) -> None:
        self.kept.discard(offset)
        self.of_kept.discard(offset)

    def take(self) -> Acknowledgements:
        taken = self.acknowledgements
        if len(self.acknowledged) == len(self.records) and not taken.renews:
            # The usual case, and that of implied acknowledgements.
            self.records.clear()
        for offset in self.acknowledged if self.records else ():
            record = self.records.pop(offset)
            if taken.get(offset) == AcknowledgeType.RENEW:
                self.renewing[offset] = record
        self.acknowledged = set()
        self.acknowledgements = Acknowledgements()
        self.unreadable = frozenset()
        return taken

    def take_of_kept(self) -> Acknowledgements:
        taken, self.of_kept = self.of_kept, Acknowledgements()
        return taken


class InFlight:
    """See the module. Belongs to the thread or task that uses the consumer."""

    def __init__(self) -> None:
        self._batches: dict[TopicIdPartition, _Batch] = {}
        self.lock_timeout_ms: int | None = None
        self._renewed_lock_timeout_ms: int | None = None

    # What was delivered.

    def add(
        self,
        partition: TopicIdPartition,
        node_id: int,
        records: Iterable[ConsumerRecord],
        acknowledgements: Acknowledgements,
        unreadable: Iterable[int] = (),
    ) -> None:
        """Records and, with them, what is acknowledged without the application: gaps, and records
        that cannot be read."""
        batch = self._batches.get(partition)
        if batch is None or batch.node_id != node_id:
            batch = self._batches[partition] = _Batch(node_id)
        for record in records:
            batch.records[record.offset] = record
            if batch.kept:
                batch.drop(record.offset)
        batch.acknowledgements.merge(acknowledgements)
        batch.unreadable = frozenset(unreadable)

    def records(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        return {
            partition.topic_partition: [batch.records[offset] for offset in sorted(batch.records)]
            for partition, batch in self._batches.items()
            if batch.records
        }

    @property
    def is_empty(self) -> bool:
        return not any(batch.records for batch in self._batches.values())

    # What the application says.

    def acknowledge(self, record: ConsumerRecord, kind: AcknowledgeType) -> None:
        batch = self._batch(record.topic, record.partition)
        if batch is not None and record.offset in batch.records:
            batch.acknowledgements.add(record.offset, kind)
            batch.acknowledged.add(record.offset)
        elif batch is not None and record.offset in batch.kept:
            batch.of_kept.add(record.offset, kind)
        else:
            raise IllegalStateError(_CANNOT)

    def acknowledge_unreadable(
        self, key: TopicPartition, offset: int, kind: AcknowledgeType
    ) -> None:
        """A record that the last poll could not read."""
        batch = self._batch(*key)
        if batch is None or offset not in batch.unreadable:
            raise IllegalStateError(_CANNOT)
        batch.acknowledgements.add(offset, kind)

    def acknowledge_all(self, kind: AcknowledgeType) -> None:
        for batch in self._batches.values():
            batch.acknowledged.update(batch.acknowledgements.add_missing(batch.records, kind))

    def keep(self, record: ConsumerRecord) -> None:
        """Polls do not wait for it, nor give it again; what was said about it is forgotten."""
        batch = self._batch(record.topic, record.partition)
        if batch is None or record.offset not in batch.records:
            raise IllegalStateError(_CANNOT_KEEP)
        del batch.records[record.offset]
        batch.acknowledged.discard(record.offset)
        batch.acknowledgements.discard(record.offset)
        batch.kept.add(record.offset)

    def drop(self, record: ConsumerRecord) -> None:
        """Forget a kept record, if it is one."""
        batch = self._batch(record.topic, record.partition)
        if batch is not None:
            batch.drop(record.offset)

    @property
    def keeps(self) -> bool:
        return any(batch.kept for batch in self._batches.values())

    @property
    def all_acknowledged(self) -> bool:
        return all(
            len(batch.records) == len(batch.acknowledged) for batch in self._batches.values()
        )

    def _batch(self, topic: str, partition: int) -> _Batch | None:
        for key, batch in self._batches.items():
            if key.partition == partition and key.topic == topic:
                return batch
        return None

    # What is sent, and what came of it.

    def take(self) -> dict[TopicIdPartition, NodeAcknowledgements]:
        """Acknowledgements to send; their records are no longer in flight."""
        taken = {}
        for partition, batch in list(self._batches.items()):
            acknowledgements = batch.take()
            acknowledgements.merge(batch.take_of_kept())
            if len(acknowledgements):
                taken[partition] = NodeAcknowledgements(batch.node_id, acknowledgements)
            if batch.is_done:
                del self._batches[partition]
        return taken

    def take_of_kept(self) -> dict[TopicIdPartition, NodeAcknowledgements]:
        """As `take`, of kept records alone: they are not to be sent with a fetch."""
        return {
            partition: NodeAcknowledgements(batch.node_id, batch.take_of_kept())
            for partition, batch in self._batches.items()
            if len(batch.of_kept)
        }

    @property
    def renews(self) -> bool:
        """Whether records are being renewed, or have been and wait to be given again."""
        return any(batch.renewing or batch.renewed for batch in self._batches.values())

    def on_acknowledged(
        self,
        partition: TopicIdPartition,
        acknowledgements: Acknowledgements,
        error: KafkaError | None,
        lock_timeout_ms: int | None,
    ) -> None:
        """A node has answered: what it agreed to renew comes back at the next poll, unless it is
        kept. If it refused, kept records stay: which of them the error is about is not known."""
        batch = self._batches.get(partition)
        if batch is None:
            return
        if batch.kept and error is None:
            for offset, kind in acknowledgements.items():
                if kind != AcknowledgeType.RENEW:
                    batch.drop(offset)
            self.lock_timeout_ms = lock_timeout_ms or self.lock_timeout_ms
        if batch.renewing:
            self._take_back(batch, acknowledgements, error, lock_timeout_ms)
        if batch.is_done:
            del self._batches[partition]

    def _take_back(
        self,
        batch: _Batch,
        acknowledgements: Acknowledgements,
        error: KafkaError | None,
        lock_timeout_ms: int | None,
    ) -> None:
        for offset, kind in acknowledgements.items():
            record = batch.renewing.pop(offset, None)
            if record is not None and error is None and kind == AcknowledgeType.RENEW:
                batch.renewed[offset] = record
        if lock_timeout_ms is not None:
            self._renewed_lock_timeout_ms = lock_timeout_ms

    def take_renewed(self) -> None:
        for batch in self._batches.values():
            batch.records.update(batch.renewed)
            batch.renewed.clear()
        if self._renewed_lock_timeout_ms is not None:
            self.lock_timeout_ms = self._renewed_lock_timeout_ms
            self._renewed_lock_timeout_ms = None

    def forget(self) -> None:
        self._batches.clear()


def by_node(
    taken: Mapping[TopicIdPartition, NodeAcknowledgements],
) -> dict[int, dict[TopicIdPartition, Acknowledgements]]:
    found: dict[int, dict[TopicIdPartition, Acknowledgements]] = {}
    for partition, each in taken.items():
        found.setdefault(each.node_id, {})[partition] = each.acknowledgements
    return found
