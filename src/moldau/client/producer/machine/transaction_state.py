"""The states of a producer's transactions, and the operations that callers wait for.

Pure. Invariants: a state is only left for one that the table allows; a fatal error is never
left.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from moldau.client.errors import KafkaError
from moldau.client.machine.coordinators import CoordinatorType
from moldau.wire.message import Message

__all__ = ["ALLOWED", "Operation", "Priority", "State", "TransactionRequest", "Verdict"]


class State(Enum):
    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    COMMITTING = "committing the transaction"
    ABORTING = "aborting the transaction"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


#: The states that each state may come from.
ALLOWED: dict[State, frozenset[State]] = {
    State.UNINITIALIZED: frozenset({State.READY, State.ABORTABLE_ERROR}),
    State.INITIALIZING: frozenset({State.UNINITIALIZED, State.COMMITTING, State.ABORTING}),
    State.READY: frozenset({State.INITIALIZING, State.COMMITTING, State.ABORTING}),
    State.IN_TRANSACTION: frozenset({State.READY}),
    State.COMMITTING: frozenset({State.IN_TRANSACTION}),
    State.ABORTING: frozenset({State.IN_TRANSACTION, State.ABORTABLE_ERROR}),
    State.ABORTABLE_ERROR: frozenset(
        {State.IN_TRANSACTION, State.COMMITTING, State.ABORTABLE_ERROR, State.INITIALIZING}
    ),
    State.FATAL_ERROR: frozenset(State),
}


class Operation:
    """Something that takes a while; the caller may give up waiting, come back and wait again."""

    __slots__ = ("acknowledged", "done", "error", "listeners", "name", "next_state")

    def __init__(self, name: str, next_state: State | None = None) -> None:
        self.name = name
        #: The state that it leads through: a call that leads there again continues this one.
        self.next_state = next_state
        self.done = False
        #: Somebody has seen how it ended.
        self.acknowledged = False
        self.error: KafkaError | None = None
        self.listeners: list[Callable[[], None]] = []

    def succeed(self) -> None:
        self._end(None)

    def fail(self, error: KafkaError) -> None:
        self._end(error)

    def _end(self, error: KafkaError | None) -> None:
        if self.done:
            return
        self.done = True
        self.error = error
        listeners, self.listeners = self.listeners, []
        for listener in listeners:
            listener()


class Priority:
    """What goes first. The end of a transaction comes after all that belongs to it, and a bump of
    the epoch after that."""

    INIT_PRODUCER_ID = 0
    ADD = 1
    END = 2
    EPOCH_BUMP = 3


class TransactionRequest:
    """A request to a coordinator, or to any node; there is one in flight at a time."""

    __slots__ = (
        "backoff_ms",
        "coordinator",
        "detail",
        "max_version",
        "message",
        "operation",
        "priority",
    )

    def __init__(
        self,
        message: Message,
        operation: Operation,
        *,
        priority: int,
        coordinator: tuple[CoordinatorType, str] | None,
        max_version: int | None = None,
        detail: Any = None,
    ) -> None:
        self.message = message
        self.operation = operation
        self.priority = priority
        self.coordinator = coordinator
        self.max_version = max_version
        self.detail = detail
        #: Before it is tried again; None for the usual time.
        self.backoff_ms: int | None = None

    @property
    def is_end(self) -> bool:
        """Whether it ends the transaction."""
        return self.priority == Priority.END


class Verdict(NamedTuple):
    """What a response means for its request."""

    retry: bool = False
    find_coordinator: bool = False


DONE = Verdict()
RETRY = Verdict(retry=True)
RETRY_ELSEWHERE = Verdict(retry=True, find_coordinator=True)
