"""What a coordinator's pure half hands to its shell.

A shard decides; the shell acts. A `Decision` names the records to append, the
answer to give once they are committed, and effects. The order is fixed: append,
replay, timers, and only after commit the answers and the continuation; without
records these wait for the commit of all that was appended before, which they may
reveal. So no client ever hears of a state that a crash could take back.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, NewType, Protocol, TypeVar

from moldau.times import WallMs
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import Message
from moldau.wire.record_values import encode_coordinator_key, encode_coordinator_value

Ticket = NewType("Ticket", int)
"""Stands for a request that the shell keeps open until an Answer names it."""


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """One record of an internal topic; a value of None is a tombstone."""

    key: Message
    value: Message | None
    value_version: int = 0

    def encode(self) -> tuple[bytes, bytes | None]:
        key = encode_coordinator_key(self.key)
        if self.value is None:
            return key, None
        return key, encode_coordinator_value(self.value, self.value_version)


@dataclass(frozen=True, slots=True)
class Answer:
    """Complete the request behind the ticket; leaves after commit."""

    ticket: Ticket
    response: Message


@dataclass(frozen=True, slots=True)
class Schedule:
    """Call `on_timer(timer)` after the delay; replaces an earlier deadline of the timer."""

    timer: Hashable
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Cancel:
    timer: Hashable


@dataclass(frozen=True, slots=True)
class Act:
    """Something to be done outside the shard once the records are committed."""

    action: object


Effect = Answer | Schedule | Cancel | Act


@dataclass(frozen=True, slots=True)
class ProducerStamp:
    """Whose transaction the records of a decision belong to."""

    producer_id: int
    producer_epoch: int
    guard: object | None = None
    """The log's proof that the transaction is open there; None where none is asked for."""


@dataclass(frozen=True, slots=True)
class TransactionEnding:
    """How one producer's transaction ended."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int = 0
    """From version 2 on the epoch must be newer than that of the transaction's records."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """Append the records, then act; the response leaves only after commit."""

    response: R
    records: tuple[CoordinatorRecord, ...] = ()
    effects: tuple[Effect, ...] = ()
    continuation: object | None = None
    """Handed back through `on_written` once the records are committed or have failed."""
    atomic: bool = True
    """False allows the shell to spread many independent records over several batches."""
    producer: ProducerStamp | None = None
    """Write the records in this producer's transaction: they count once its marker follows."""

    @property
    def tells(self) -> bool:
        """Whether anybody hears of it but who asked for it."""
        return self.continuation is not None or any(
            isinstance(effect, Answer | Act) for effect in self.effects
        )


@dataclass(slots=True)
class Outbox:
    """Collects what one step of a machine wants done, in order."""

    now_ms: WallMs
    records: list[CoordinatorRecord] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    continuation: object | None = None

    def write(self, record: CoordinatorRecord, continuation: object | None = None) -> None:
        self.records.append(record)
        if continuation is not None:
            self.continuation = continuation

    def answer(self, ticket: Ticket, response: Message) -> None:
        self.effects.append(Answer(ticket, response))

    def schedule(self, timer: Hashable, delay_ms: int) -> None:
        self.effects.append(Schedule(timer, delay_ms))

    def cancel(self, timer: Hashable) -> None:
        self.effects.append(Cancel(timer))

    def act(self, action: object) -> None:
        self.effects.append(Act(action))

    def decision(
        self,
        response: R,
        *,
        atomic: bool = True,
        producer: ProducerStamp | None = None,
    ) -> Decision[R]:
        return Decision(
            response,
            tuple(self.records),
            tuple(self.effects),
            self.continuation,
            atomic,
            producer,
        )


class Shard(Protocol):
    """The state of one internal-topic partition: pure, and rebuilt by replay alone."""

    def replay(self, offset: int, producer_id: int, key: Message, value: Message | None) -> None:
        """Apply one record; the only way replicated state changes, live and at load."""

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        """Apply a transaction marker found in the log."""

    def on_loaded(self, now_ms: WallMs) -> Decision[None]:
        """The whole log has been replayed: start timers, take up work."""

    def on_timer(self, timer: Any, now_ms: WallMs) -> Decision[None]:
        """A scheduled timer is due."""

    def on_written(self, continuation: Any, error: ErrorCode, now_ms: WallMs) -> Decision[None]:
        """A decision's records are committed (NONE), or could not be written."""
