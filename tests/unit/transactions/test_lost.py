"""Which open transactions nobody would ever end, and how they are ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moldau.broker.coordinator.transaction.machine.metadata import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionMetadata,
    TransactionState,
)
from moldau.broker.replication.coordinator_appends import append_marker
from moldau.broker.replication.partition import Partition
from moldau.broker.transactions.lost import lost_transactions
from support.hosting import Host, batch_of

P = 7
EPOCH = 4
HERE = ("a", 0)
ELSEWHERE = ("a", 1)
COMMITTED, ABORTED, LEFT_ALONE = "committed", "aborted", "left alone"


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    """With a transaction of P open at EPOCH."""
    host = Host(tmp_path)
    host.create_topic("a")
    found = host.partition("a")
    batch = batch_of(
        b"x", producer_id=P, producer_epoch=EPOCH, base_sequence=0, is_transactional=True
    )
    found.append(memoryview(batch), now_ms=1)
    return found


def known(
    state: TransactionState, epoch: int, version: int, *partitions: tuple[str, int]
) -> TransactionMetadata:
    created = TransactionMetadata.created("t", P, 60_000, 1)
    return replace(
        created,
        state=state,
        producer_epoch=epoch,
        client_transaction_version=version,
        partitions=frozenset(partitions),
    )


@pytest.mark.parametrize(
    ("metadata", "fate"),
    [
        (None, ABORTED),
        (known(ONGOING, EPOCH, 2, HERE), LEFT_ALONE),
        (known(ONGOING, EPOCH, 2, ELSEWHERE), ABORTED),
        (known(ONGOING, EPOCH + 1, 2, HERE), ABORTED),
        (known(PREPARE_COMMIT, EPOCH + 1, 2, HERE), LEFT_ALONE),
        # That one's records are gone; what is open here is another.
        (known(PREPARE_COMMIT, EPOCH + 2, 2, HERE), ABORTED),
        (known(PREPARE_COMMIT, EPOCH, 2, HERE), ABORTED),
        (known(PREPARE_COMMIT, EPOCH, 0, HERE), LEFT_ALONE),
        (known(PREPARE_ABORT, EPOCH + 1, 2, HERE), LEFT_ALONE),
        (known(PREPARE_ABORT, EPOCH + 9, 0, HERE), LEFT_ALONE),
        (known(EMPTY, EPOCH, 0), ABORTED),
        (known(COMPLETE_ABORT, EPOCH + 1, 2), ABORTED),
        # Only the marker is missing, and with an epoch of its own there is no doubt whose.
        (known(COMPLETE_COMMIT, EPOCH + 1, 2), COMMITTED),
        (known(COMPLETE_COMMIT, EPOCH + 2, 2), ABORTED),
        (known(COMPLETE_COMMIT, EPOCH, 0), ABORTED),
    ],
)
def test_fates(partition: Partition, metadata: TransactionMetadata | None, fate: str) -> None:
    found = list(lost_transactions([partition], [] if metadata is None else [metadata]))
    if fate is LEFT_ALONE:
        assert found == []
        return
    (marker,) = found
    assert (marker.producer_id, marker.producer_epoch, marker.partitions) == (P, EPOCH, (HERE,))
    assert marker.committed is (fate is COMMITTED)
    append_marker(
        partition,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        committed=marker.committed,
        transaction_version=marker.transaction_version,
        now_ms=2,
    )
    assert partition.log.last_stable_offset == partition.log.log_end_offset
    assert not list(lost_transactions([partition], []))
