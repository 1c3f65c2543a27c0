"""All transactional ids of one `__transaction_state` partition: requests in, decisions out.

Replicated state is `transactions`, which only `replay` changes. Invariants:

- One change at a time. Between the writing of a record and its commit, and from the decision to end
  a transaction until every partition has its marker, the id is pending and any other request about
  it gets CONCURRENT_TRANSACTIONS. So two ends, or an end and a timeout, cannot both be decided.
- Markers are sent only after the decision is committed, and for every decision, also after a reload
  and after a write whose outcome was in doubt.
- A transaction is completed only by the sender of the markers of this very decision: it presents
  the `TransactionMetadata` object of its record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar, assert_never

from moldau.broker.coordinator.machine.decision import Act, Decision, Outbox
from moldau.broker.coordinator.transaction.machine import ending
from moldau.broker.coordinator.transaction.machine.config import TransactionConfig
from moldau.broker.coordinator.transaction.machine.events import (
    NEED_PRODUCER_ID,
    AbortTimedOut,
    CaughtUp,
    ExpiryTimer,
    NeedProducerId,
    Outcome,
    Resumed,
    ResumeTimer,
    SendMarkers,
    TimeoutsTimer,
    TransactionContinuation,
    TransactionTimer,
    Written,
)
from moldau.broker.coordinator.transaction.machine.lost_epochs import (
    SeenEpochs,
    find_lost_epochs,
)
from moldau.broker.coordinator.transaction.machine.metadata import (
    EPOCH_MAX,
    IDLE,
    ONGOING,
    PREPARED,
    TransactionMetadata,
    is_epoch_exhausted,
    tombstone,
)
from moldau.broker.coordinator.transaction.machine.values import (
    NO_PRODUCER,
    TV_0,
    TV_1,
    TV_2,
    ProducerIdAndEpoch,
    TopicPartition,
)
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.constants import NO_PRODUCER_EPOCH
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    Message,
    TransactionLogKey,
    TransactionLogValue,
)

R = TypeVar("R")

# After this delay a write whose outcome was in doubt is checked.
_RESUME_DELAY_MS = 500


class TransactionShard:
    def __init__(
        self,
        config: TransactionConfig,
        transaction_version: Callable[[], int] = lambda: TV_2,
        seen_epochs: SeenEpochs = lambda producer_ids: {},
    ) -> None:
        """`transaction_version` returns the finalized level of the feature of that name."""
        self._config = config
        self._transaction_version = transaction_version
        self._seen_epochs = seen_epochs
        # Epochs to continue from when the end of a prepared transaction is complete.
        self._ahead: dict[str, int] = {}
        self.transactions: dict[str, TransactionMetadata] = {}
        # Not replicated: ids with a record that is not yet known to be committed, and
        # prepared ones whose markers must wait for a commit that is in doubt.
        self._writing: set[str] = set()
        self._in_doubt: set[str] = set()

    # Replicated state.

    def replay(self, offset: int, producer_id: int, key: Message, value: Message | None) -> None:
        match key, value:
            case TransactionLogKey(), None:
                self.transactions.pop(key.transactional_id, None)
            case TransactionLogKey(), TransactionLogValue():
                metadata = TransactionMetadata.from_value(key.transactional_id, value)
                self.transactions[key.transactional_id] = metadata
            case _:
                invariant(False, f"{key!r}, {value!r} is no record of this topic")

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        """Does nothing: records of this topic are never part of a transaction."""

    # Events.

    def on_loaded(self, now_ms: WallMs) -> Decision[None]:
        self._in_doubt = {
            transactional_id
            for transactional_id, metadata in self.transactions.items()
            if metadata.state in PREPARED
        }
        out = Outbox(now_ms)
        self._schedule_timeouts(out)
        self._schedule_expiry(out)
        found = find_lost_epochs(self.transactions.values(), self._seen_epochs, now_ms)
        self._ahead = found.ahead
        level = self._transaction_version()
        for metadata in found.caught_up:
            if metadata.state in PREPARED:
                self._in_doubt.add(metadata.transactional_id)
            out.write(metadata.stored_at(level).to_record(level))
        out.continuation = CaughtUp()
        return out.decision(None, atomic=False)

    def on_timer(self, timer: TransactionTimer, now_ms: WallMs) -> Decision[None]:
        out = Outbox(now_ms)
        match timer:
            case TimeoutsTimer():
                self._schedule_timeouts(out)
                overdue = tuple(
                    transactional_id
                    for transactional_id, metadata in self.transactions.items()
                    if metadata.is_overdue(now_ms) and not self._is_pending(metadata)
                )
                if overdue:
                    out.act(AbortTimedOut(overdue))
                return out.decision(None)
            case ExpiryTimer():
                self._schedule_expiry(out)
                out.records = [
                    tombstone(transactional_id)
                    for transactional_id, metadata in self.transactions.items()
                    if self._is_expired(metadata, now_ms)
                ]
                return out.decision(None, atomic=False)
            case ResumeTimer():
                return self._resume(out)
            case _:
                assert_never(timer)

    def on_written(
        self, continuation: TransactionContinuation, error: ErrorCode, now_ms: WallMs
    ) -> Decision[None]:
        out = Outbox(now_ms)
        match continuation:
            case Written(metadata):
                self._on_written(metadata, error, out)
            case Resumed(transactional_ids):
                if error is not ErrorCode.NONE:
                    self._in_doubt.update(transactional_ids)
                    out.schedule(ResumeTimer(), _RESUME_DELAY_MS)
            case CaughtUp():
                return self._resume(out)
            case _:
                assert_never(continuation)
        return out.decision(None)

    def _on_written(self, metadata: TransactionMetadata, error: ErrorCode, out: Outbox) -> None:
        transactional_id = metadata.transactional_id
        self._writing.discard(transactional_id)
        replayed = self.transactions.get(transactional_id) == metadata
        invariant(
            replayed or error is not ErrorCode.NONE,
            f"{transactional_id!r} changed while a change was being written",
        )
        if not replayed:
            # It was not even appended, so all is as before.
            return
        # Equal, but this one also has what no record contains: the last epoch.
        self.transactions[transactional_id] = metadata
        if error is not ErrorCode.NONE and metadata.state in PREPARED:
            # Appended, and perhaps committed later: the decision stands, since it cannot be
            # undone, but markers may be sent only when it is certain.
            self._in_doubt.add(transactional_id)
            out.schedule(ResumeTimer(), _RESUME_DELAY_MS)

    def _resume(self, out: Outbox) -> Decision[None]:
        """Send the markers of what is prepared, once everything appended is committed."""
        ids = tuple(sorted(self._in_doubt))
        self._in_doubt.clear()
        prepared = [
            metadata
            for metadata in (self.transactions.get(each) for each in ids)
            if metadata is not None and metadata.state in PREPARED
        ]
        if not prepared:
            return out.decision(None)
        out.effects.extend(Act(SendMarkers(metadata)) for metadata in prepared)
        return Decision(None, effects=tuple(out.effects), continuation=Resumed(ids))

    def _schedule_timeouts(self, out: Outbox) -> None:
        out.schedule(
            TimeoutsTimer(),
            self._config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        )

    def _schedule_expiry(self, out: Outbox) -> None:
        out.schedule(
            ExpiryTimer(), self._config.transaction_remove_expired_transaction_cleanup_interval_ms
        )

    def _is_expired(self, metadata: TransactionMetadata, now_ms: WallMs) -> bool:
        return (
            metadata.state in IDLE
            and not self._is_pending(metadata)
            and metadata.last_update_timestamp_ms
            <= now_ms - self._config.transactional_id_expiration_ms
        )

    # Requests.

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        fresh_id: int | None,
        now_ms: WallMs,
    ) -> Decision[Outcome]:
        """Begin a producer. `expected` is its present id and epoch, if it recovers (KIP-360)."""
        current = self.transactions.get(transactional_id)
        if current is None:
            if fresh_id is None:
                return Decision(NEED_PRODUCER_ID)
            created = TransactionMetadata.created(transactional_id, fresh_id, timeout_ms, now_ms)
            return self._write(created, created.producer, now_ms)
        if self._is_pending(current):
            raise ending.concurrent(current)
        if expected is not None and not _may_be(current, expected):
            raise ending.fenced(current, expected)
        if current.state not in IDLE:
            # The producer that has the transaction open is fenced. The client retries until that
            # is done, and then gets a yet newer epoch.
            prepared = ending.fence(
                current,
                transaction_version=self._transaction_version(),
                fresh_id=fresh_id,
                now_ms=now_ms,
            )
            if isinstance(prepared, NeedProducerId):
                return Decision(NEED_PRODUCER_ID)
            return self._write(prepared, ErrorCode.CONCURRENT_TRANSACTIONS, now_ms)
        expected_epoch = None if expected is None else expected.producer_epoch
        if current.epoch_exhausted and expected_epoch in (None, current.producer_epoch):
            if fresh_id is None:
                return Decision(NEED_PRODUCER_ID)
            begun = current.with_new_producer_id(fresh_id, expected_epoch, timeout_ms, now_ms)
        else:
            begun = current.with_next_epoch(expected_epoch, timeout_ms, now_ms)
        return self._write(begun, begun.producer, now_ms)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        client_transaction_version: int,
        now_ms: WallMs,
    ) -> Decision[Outcome]:
        current = self._existing(transactional_id)
        if self._is_pending(current):
            # First of all: the client may already have the next producer id.
            raise ending.concurrent(current)
        _check_current(current, producer)
        if current.state is ONGOING and current.partitions.issuperset(partitions):
            return Decision(NO_PRODUCER)
        version = self._storable(client_transaction_version)
        return self._write(
            current.with_partitions(partitions, version, now_ms), NO_PRODUCER, now_ms
        )

    def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> Decision[dict[TopicPartition, ErrorCode]]:
        current = self._existing(transactional_id)
        _check_current(current, producer)
        if current.state in PREPARED:
            raise ending.concurrent(current)
        # A partition counts only when that is committed, or a crash could leave records in it
        # whose transaction is never ended.
        return Decision(
            {
                partition: ErrorCode.NONE
                if partition in current.partitions
                else ErrorCode.TRANSACTION_ABORTABLE
                for partition in partitions
            },
        )

    def end_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        committed: bool,
        client_transaction_version: int,
        fresh_id: int | None,
        now_ms: WallMs,
    ) -> Decision[Outcome]:
        current = self._existing(transactional_id)
        pending = self._is_pending(current)
        prepared: TransactionMetadata | NeedProducerId | None
        if self._storable(client_transaction_version) < TV_2:
            prepared = ending.end_v1(
                current, producer, committed=committed, pending=pending, now_ms=now_ms
            )
            answer = NO_PRODUCER
        else:
            prepared = ending.end_v2(
                current,
                producer,
                committed=committed,
                pending=pending,
                fresh_id=fresh_id,
                now_ms=now_ms,
            )
            answer = current.producer
            if isinstance(prepared, TransactionMetadata):
                answer = prepared.next_producer
        if prepared is ending.DONE:
            return Decision(answer)
        if isinstance(prepared, NeedProducerId):
            return Decision(prepared)
        return self._write(prepared, answer, now_ms)

    def abort_timed_out(
        self, transactional_id: str, fresh_id: int | None, now_ms: WallMs
    ) -> Decision[Outcome]:
        """Abort the transaction if it still is overdue."""
        current = self.transactions.get(transactional_id)
        if current is None or self._is_pending(current) or not current.is_overdue(now_ms):
            return Decision(ErrorCode.NONE)
        prepared = ending.fence(
            current,
            transaction_version=self._transaction_version(),
            fresh_id=fresh_id,
            now_ms=now_ms,
        )
        if isinstance(prepared, NeedProducerId):
            return Decision(prepared)
        return self._write(prepared, ErrorCode.NONE, now_ms)

    def is_growing(self, transactional_id: str) -> bool:
        """Whether partitions are being added to the transaction right now."""
        current = self.transactions.get(transactional_id)
        return (
            current is not None and current.state is ONGOING and transactional_id in self._writing
        )

    def is_current(self, prepared: TransactionMetadata) -> bool:
        """Whether this decision is the last one about its transactional id."""
        return self.transactions.get(prepared.transactional_id) is prepared

    def complete(self, prepared: TransactionMetadata, now_ms: WallMs) -> Decision[None]:
        """Complete a decision whose markers all partitions have; does nothing if it is old."""
        if not self.is_current(prepared) or prepared.transactional_id in self._writing:
            return Decision(None)
        completed = prepared.completed(now_ms)
        ahead = self._ahead.pop(prepared.transactional_id, NO_PRODUCER_EPOCH)
        if completed.producer_id == prepared.producer_id and ahead > completed.producer_epoch:
            completed = replace(completed, producer_epoch=ahead)
        return self._write(completed, None, now_ms)

    # Parts.

    def _existing(self, transactional_id: str) -> TransactionMetadata:
        current = self.transactions.get(transactional_id)
        if current is None:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"there is no transactional id {transactional_id!r}: call InitProducerId first",
            )
        return current

    def _is_pending(self, metadata: TransactionMetadata) -> bool:
        return metadata.state in PREPARED or metadata.transactional_id in self._writing

    def _storable(self, client_transaction_version: int) -> int:
        """Records of level 0 do not have the fields of version 2, so it cannot be used then."""
        if self._transaction_version() < TV_1:
            return TV_0
        return client_transaction_version

    def _write(self, metadata: TransactionMetadata, response: R, now_ms: WallMs) -> Decision[R]:
        level = self._transaction_version()
        metadata = metadata.stored_at(level)
        invariant(
            metadata.transactional_id not in self._writing,
            f"{metadata.transactional_id!r} is being changed already",
        )
        self._writing.add(metadata.transactional_id)
        out = Outbox(now_ms)
        out.write(metadata.to_record(level), Written(metadata))
        if metadata.state in PREPARED:
            out.act(SendMarkers(metadata))
        return out.decision(response)


def _check_current(current: TransactionMetadata, producer: ProducerIdAndEpoch) -> None:
    if current.producer_id != producer.producer_id:
        raise ending.wrong_producer(current, producer)
    if current.producer_epoch != producer.producer_epoch or producer.producer_epoch == EPOCH_MAX:
        raise ending.fenced(current, producer)


def _may_be(current: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether a recovering producer is the one of the transactional id, apart from its epoch.

    It may have missed the response with a new producer id, which it got because the epochs of the
    previous one were exhausted.
    """
    return expected.producer_id == current.producer_id or (
        current.previous_producer_id == expected.producer_id
        and is_epoch_exhausted(expected.producer_epoch)
    )
