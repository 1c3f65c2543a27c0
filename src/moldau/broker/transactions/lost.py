"""Transactions that no coordinator will ever end, because a power failure took their records.

A broker that dies loses nothing: a partition takes a transaction's first batch only after the
coordinator has written that it takes part, and the coordinator completes a transaction only
after every partition has its marker. When the machine loses power, each log may lose its own
end, if that had not been synced. A transaction that is then open in a partition but not at its
coordinator would block readers for ever; it is found here, and how it has to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.broker.coordinator.transaction.machine.metadata import (
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.values import TV_2, Marker, TopicPartition
from moldau.broker.log.machine.producer_state import ProducerEntry
from moldau.broker.replication.partition import Partition


def lost_transactions(
    partitions: Iterable[Partition], transactions: Iterable[TransactionMetadata]
) -> Iterator[Marker]:
    """The markers that end them. `transactions` is all that every coordinator knows."""
    known = {metadata.producer_id: metadata for metadata in transactions}
    for partition in partitions:
        if partition.error is not None:
            continue
        name = (partition.topic, partition.index)
        for entry in partition.log.producers.open_transactions():
            metadata = known.get(entry.producer_id)
            if metadata is not None and _will_end(metadata, name, entry.epoch):
                continue
            yield Marker(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                coordinator_epoch=max(entry.coordinator_epoch, 0),
                committed=metadata is not None and _was_committed(metadata, entry),
                partitions=(name,),
            )


def _will_end(metadata: TransactionMetadata, name: TopicPartition, epoch: int) -> bool:
    """Whether the coordinator's transaction is the one that is open in the partition."""
    if name not in metadata.partitions:
        return False
    if metadata.state is PREPARE_ABORT:
        return epoch <= metadata.producer_epoch
    if metadata.state is PREPARE_COMMIT and metadata.client_transaction_version >= TV_2:
        return epoch == metadata.producer_epoch - 1
    return metadata.state in (ONGOING, PREPARE_COMMIT) and epoch == metadata.producer_epoch


def _was_committed(metadata: TransactionMetadata, entry: ProducerEntry) -> bool:
    """With an epoch per transaction it is certain which one the coordinator has committed."""
    return (
        metadata.state is COMPLETE_COMMIT
        and metadata.client_transaction_version >= TV_2
        and metadata.producer_epoch == entry.epoch + 1
    )
