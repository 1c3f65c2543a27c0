"""What a partition remembers of its idempotent and transactional producers.

Decides whether a batch is new, a duplicate or out of order, which transactions are open,
and hence up to where the log is stable. Invariants: `check` changes nothing, and
`record` never rejects, so a batch is checked, written and only then recorded; replaying
the log through `record` alone gives the same state on leaders, followers and restarts.
At most five batches are kept per producer, because clients keep at most five in flight.

Whether a transaction is open at all only its coordinator knows, so a producer's first batch in
a partition is verified there before it is appended (KIP-890). A `Verification` spans the time
between: it is dropped when the transaction gets its first batch or its marker, so that an
answer that comes late can never let a batch of an ended transaction into the next one. These
are kept in memory only; after a restart a producer is verified again.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from moldau.wire.checksums import crc32c
from moldau.wire.constants import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE
from moldau.wire.errors import ApiError, ErrorCode

SEQUENCE_MAX = 2**31 - 1
EPOCH_MAX = 32767
BATCHES_KEPT = 5

_HEADER = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1


class CorruptSnapshot(Exception):
    """A producer snapshot cannot be used; older ones or the log itself take its place."""


class KeptBatch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return add_to_sequence(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # the marker's
    aborted: bool


class ProducerEntry:
    """One producer id's state in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        *,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        txn_first_offset: int = NO_OFFSET,
        batches: list[KeptBatch] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        self.batches: list[KeptBatch] = [] if batches is None else batches

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def duplicate_of(self, epoch: int, first_sequence: int, last_sequence: int) -> KeptBatch | None:
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                    return batch
        return None

    def _bump(self, epoch: int) -> None:
        if epoch != self.epoch:
            # Sequences start at 0 in each epoch, so the old ones mean nothing.
            self.epoch = epoch
            self.batches.clear()


class Verification:
    """A producer's wish to take part in a transaction here, while its coordinator is asked.

    The object itself is the guard: what was verified may be appended while the partition
    still has this very object.
    """

    __slots__ = ("epoch", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(
        self, *, epoch: int, sequence: int, supports_epoch_bump: bool, started_ms: int
    ) -> None:
        self.epoch = epoch
        # A later batch must not overtake an earlier one whose verification has to be repeated.
        self.lowest_sequence = sequence
        # Transaction version 2: each transaction has an epoch of its own.
        self.supports_epoch_bump = supports_epoch_bump
        self.started_ms = started_ms

    def note(self, epoch: int, sequence: int) -> None:
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


ONGOING = Verification(epoch=NO_PRODUCER_EPOCH, sequence=0, supports_epoch_bump=False, started_ms=0)
"""Held for a batch of a transaction that was open already: it must still be when appended."""


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequence arithmetic: after 2^31-1 comes 0."""
    return (sequence + increment) & SEQUENCE_MAX


class ProducerStates:
    """All producers of one log, its open transactions and its first unstable offset."""

    __slots__ = ("_ongoing", "_undecided", "entries", "map_end_offset", "verifications")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        # Open transactions, first offset -> producer id, in the order they began.
        self._ongoing: dict[int, int] = {}
        # Ended transactions whose marker is not below the high watermark yet.
        self._undecided: dict[int, int] = {}
        # Every batch below this offset is reflected here.
        self.map_end_offset = 0
        self.verifications: dict[int, Verification] = {}

    # Checks -------------------------------------------------------------------------

    def find_duplicate(
        self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int
    ) -> KeptBatch | None:
        entry = self.entries.get(producer_id)
        return None if entry is None else entry.duplicate_of(epoch, first_sequence, last_sequence)

    def check(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        *,
        transactional: bool,
        check_sequence: bool = True,
        guard: Verification | None = None,
    ) -> None:
        """Refuse a data batch that may not be appended; raises ApiError, changes nothing.

        `check_sequence` is for client appends only: coordinators have no sequences.
        `guard` proves that the batch belongs to an open transaction; None asks for no proof.
        """
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise _older_epoch(producer_id, epoch, entry)
        if guard is not None and transactional:
            self._check_guard(producer_id, epoch, guard)
        if self.verifications and check_sequence:
            self._check_lowest_sequence(producer_id, first_sequence)
        if entry is None:
            return
        if check_sequence:
            if epoch != entry.epoch:
                if first_sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
                    raise _out_of_order(producer_id, first_sequence, "0, as its epoch is new")
            else:
                last = entry.last_sequence
                if first_sequence != last + 1 and not (
                    first_sequence == 0 and last == SEQUENCE_MAX
                ):
                    raise _out_of_order(producer_id, first_sequence, str(add_to_sequence(last, 1)))
        if entry.txn_first_offset != NO_OFFSET and not transactional:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has a transaction open since offset "
                f"{entry.txn_first_offset}, but this batch is not transactional",
            )

    def _check_guard(self, producer_id: int, epoch: int, guard: Verification) -> None:
        if self.has_open_transaction(producer_id, epoch):
            return
        if self.verifications.get(producer_id) is not guard:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"the transaction of producer {producer_id} with epoch {epoch} is not open here",
            )

    def _check_lowest_sequence(self, producer_id: int, first_sequence: int) -> None:
        verification = self.verifications.get(producer_id)
        if verification is None:
            return
        entry = self.entries.get(producer_id)
        if (
            verification.supports_epoch_bump
            and first_sequence != 0
            and (entry is None or not entry.batches)
        ):
            raise _out_of_order(producer_id, first_sequence, "0, as nothing is known of it")
        if first_sequence > verification.lowest_sequence:
            raise _out_of_order(producer_id, first_sequence, f"{verification.lowest_sequence}")

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Refuse a transaction marker of a fenced producer or coordinator."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        if transaction_version >= 2:
            # From version 2 on each transaction ends with a bumped epoch, so an equal one
            # is a late or repeated marker; repeating is harmless once nothing is open.
            retry = epoch == entry.epoch and (
                entry.txn_first_offset == NO_OFFSET or epoch == EPOCH_MAX
            )
            fenced = epoch <= entry.epoch and not retry
        else:
            fenced = epoch < entry.epoch
        if fenced:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"marker with epoch {epoch} of producer {producer_id}, which has {entry.epoch}",
            )
        if entry.coordinator_epoch > coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker for producer {producer_id} from coordinator epoch {coordinator_epoch}, "
                f"but {entry.coordinator_epoch} has written since",
            )

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.txn_first_offset != NO_OFFSET and entry.epoch == epoch

    # Changes ------------------------------------------------------------------------

    def start_verification(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> Verification:
        """The guard a batch needs to be appended: `ONGOING` if its transaction is open here,
        else one that holds once the transaction's coordinator has agreed."""
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise _older_epoch(producer_id, epoch, entry)
        if self.has_open_transaction(producer_id, epoch):
            return ONGOING
        verification = self.verifications.get(producer_id)
        if verification is None:
            verification = self.verifications[producer_id] = Verification(
                epoch=epoch,
                sequence=first_sequence,
                supports_epoch_bump=supports_epoch_bump,
                started_ms=now_ms,
            )
        else:
            verification.note(epoch, first_sequence)
        return verification

    def record_batch(
        self,
        producer_id: int,
        epoch: int,
        last_sequence: int,
        *,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """Remember a data batch that is in the log."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        entry._bump(epoch)
        batches = entry.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(KeptBatch(last_sequence, last_offset, last_offset - first_offset, timestamp))
        entry.last_timestamp = timestamp
        if transactional:
            if entry.txn_first_offset == NO_OFFSET:
                entry.txn_first_offset = first_offset
                self._ongoing[first_offset] = producer_id
            self.verifications.pop(producer_id, None)

    def record_marker(
        self,
        producer_id: int,
        epoch: int,
        *,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        aborted: bool,
    ) -> CompletedTransaction | None:
        """Remember a marker that is in the log; what it ended, if anything was open.

        The caller computes `last_stable_offset_after` and then calls `complete`.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        verification = self.verifications.get(producer_id)
        if verification is not None and not (
            # With an epoch per transaction an equal one is the next transaction's already.
            verification.supports_epoch_bump and verification.epoch == epoch
        ):
            del self.verifications[producer_id]
        entry._bump(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        first_offset = entry.txn_first_offset
        entry.txn_first_offset = NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        return CompletedTransaction(producer_id, first_offset, offset, aborted)

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Where the log is stable once `completed` has ended."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        """Move an ended transaction to those that wait for the high watermark."""
        self._ongoing.pop(completed.first_offset, None)
        self._undecided[completed.first_offset] = completed.last_offset

    def on_high_watermark(self, offset: int) -> None:
        """Markers below the high watermark are decided for good."""
        if self._undecided:
            self._undecided = {
                first: last for first, last in self._undecided.items() if last >= offset
            }

    def on_log_start(self, offset: int) -> None:
        self.on_high_watermark(offset)
        self.map_end_offset = max(self.map_end_offset, offset)

    def open_transactions(self) -> list[ProducerEntry]:
        """The producers that have a transaction open here, in the order they began."""
        return [self.entries[producer_id] for producer_id in self._ongoing.values()]

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction not decided for good, if any."""
        if self._ongoing:
            first = next(iter(self._ongoing))
            return min(first, min(self._undecided)) if self._undecided else first
        return min(self._undecided) if self._undecided else None

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if is_expired(entry, now_ms, expiration_ms)
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        if self.verifications:
            self.verifications = {
                producer_id: verification
                for producer_id, verification in self.verifications.items()
                if now_ms - verification.started_ms < expiration_ms
            }

    def clear(self, map_end_offset: int) -> None:
        self.entries.clear()
        self._ongoing.clear()
        self._undecided.clear()
        self.map_end_offset = map_end_offset

    def load(self, entries: Iterable[ProducerEntry], map_end_offset: int) -> None:
        """Take over the entries of a snapshot."""
        self.clear(map_end_offset)
        for entry in entries:
            self.entries[entry.producer_id] = entry
        self._ongoing = dict(
            sorted(
                (entry.txn_first_offset, entry.producer_id)
                for entry in self.entries.values()
                if entry.txn_first_offset != NO_OFFSET
            )
        )


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms


def _older_epoch(producer_id: int, epoch: int, entry: ProducerEntry) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"epoch {epoch} of producer {producer_id} is older than {entry.epoch}",
    )


def _out_of_order(producer_id: int, sequence: int, expected: str) -> ApiError:
    return ApiError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {producer_id} sent sequence {sequence}, expected {expected}",
    )


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    parts = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.batches[-1].offset_delta if entry.batches else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(parts)) + b"".join(parts)
    return _HEADER.pack(SNAPSHOT_VERSION, crc32c(body)) + body


def decode_snapshot(name: str, data: bytes) -> list[ProducerEntry]:
    if len(data) < _HEADER.size + _COUNT.size:
        raise CorruptSnapshot(f"{name}: {len(data)} bytes are too few for a snapshot")
    version, crc = _HEADER.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"{name}: version {version} is not known")
    body = memoryview(data)[_HEADER.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot(f"{name}: the checksum does not match")
    count = _COUNT.unpack_from(body)[0]
    if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{name}: {count} entries announced, {len(body)} bytes found")
    return [_entry(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(fields: tuple[int, ...]) -> ProducerEntry:
    (
        producer_id,
        epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp,
        coordinator_epoch,
        txn_first_offset,
    ) = fields
    batches = (
        [KeptBatch(last_sequence, last_offset, offset_delta, timestamp)] if last_offset >= 0 else []
    )
    return ProducerEntry(
        producer_id,
        epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        txn_first_offset=txn_first_offset,
        batches=batches,
    )
