"""What a coordinator's pure half returns to its shell.

A shard decides; the shell acts. A `Decision` has the records to append, the response to return once
they are committed, and effects. The order is fixed: append, replay, timers, and only after commit
the responses and the continuation; without records these wait for the commit of all that was
appended before, which they may reveal. So no client ever sees a state that a crash could undo.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, NewType, Protocol, TypeVar

from moldau.times import WallMs
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import Message
from moldau.wire.record_values import encode_coordinator_key, encode_coordinator_value

Ticket = NewType("Ticket", int)
"""A request that the shell holds open until an Answer has its ticket."""


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
    """Complete the request of the ticket, after commit."""

    ticket: Ticket
    response: Message


class Timer:
    """Base of what a shard is woken by; equal values are one timer, so subclasses are frozen."""

    __slots__ = ()


class Action:
    """Base of what a shard has done outside of it."""

    __slots__ = ()


class Continuation:
    """Base of what a shard gets back when the records of a decision are committed, or failed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Call `on_timer(timer)` after the delay; replaces an earlier deadline of the timer."""

    timer: Timer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Cancel:
    timer: Timer


@dataclass(frozen=True, slots=True)
class Act:
    """Have something done outside the shard once the records are committed."""

    action: Action


Effect = Answer | Schedule | Cancel | Act


@dataclass(frozen=True, slots=True)
class ProducerStamp:
    """The producer whose transaction the records of a decision belong to."""

    producer_id: int
    producer_epoch: int
    guard: object | None = None
    """The log's proof that the transaction is open there; None where none is required."""


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
    continuation: Continuation | None = None
    """Passed to `on_written` once the records are committed or have failed."""
    atomic: bool = True
    """False allows the shell to spread many independent records over several batches."""
    producer: ProducerStamp | None = None
    """Write the records in this producer's transaction: they count once its marker follows."""

    @property
    def has_audience(self) -> bool:
        """Whether it has effects for others than its caller."""
        return self.continuation is not None or any(
            isinstance(effect, Answer | Act) for effect in self.effects
        )


@dataclass(slots=True)
class Outbox:
    """Collects the records and effects of one step of a machine, in order."""

    now_ms: WallMs
    records: list[CoordinatorRecord] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    continuation: Continuation | None = None

    def write(self, record: CoordinatorRecord, continuation: Continuation | None = None) -> None:
        self.records.append(record)
        if continuation is not None:
            self.continuation = continuation

    def answer(self, ticket: Ticket, response: Message) -> None:
        self.effects.append(Answer(ticket, response))

    def schedule(self, timer: Timer, delay_ms: int) -> None:
        self.effects.append(Schedule(timer, delay_ms))

    def cancel(self, timer: Timer) -> None:
        self.effects.append(Cancel(timer))

    def act(self, action: Action) -> None:
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
