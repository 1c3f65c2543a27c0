"""The states of an application and of its threads, and which may follow which.

CREATED          not started yet
REBALANCING      tasks are being assigned or restored
RUNNING          every task that was assigned is being processed
PENDING_SHUTDOWN closing
NOT_RUNNING      closed
PENDING_ERROR    closing because of an error
ERROR            closed because of an error
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from moldau.streams.errors import InvalidStateStoreError, StreamsError, StreamsNotStartedError

NOT_STARTED: Final = "KafkaStreams has not been started, you can retry after calling start()"


class State(Enum):
    """The state of a `KafkaStreams`, as in Kafka Streams."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"

    @property
    def is_running_or_rebalancing(self) -> bool:
        """Whether records are, or soon will be, processed."""
        return self in (State.RUNNING, State.REBALANCING)

    def check_queryable(self) -> None:
        """Raises InvalidStateStoreError unless stores can be looked for."""
        if self is State.CREATED:
            raise StreamsNotStartedError(NOT_STARTED)
        if not self.is_running_or_rebalancing:
            raise InvalidStateStoreError(f"KafkaStreams is not running. State is {self.name}.")

    @property
    def has_started_or_finished_shutting_down(self) -> bool:
        return self not in (State.CREATED, State.RUNNING, State.REBALANCING)

    @property
    def has_completed_shutdown(self) -> bool:
        return self in (State.NOT_RUNNING, State.ERROR)


class ThreadState(Enum):
    """The state of a stream thread, as in Kafka Streams."""

    CREATED = "CREATED"
    STARTING = "STARTING"
    PARTITIONS_REVOKED = "PARTITIONS_REVOKED"
    PARTITIONS_ASSIGNED = "PARTITIONS_ASSIGNED"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    DEAD = "DEAD"


class UncaughtExceptionResponse(Enum):
    """What follows an error that no handler of records took care of."""

    REPLACE_THREAD = "replace_thread"
    SHUTDOWN_CLIENT = "shutdown_client"
    SHUTDOWN_APPLICATION = "shutdown_application"


#: The states that may follow each state.
NEXT: Final[Mapping[State, frozenset[State]]] = {
    State.CREATED: frozenset({State.REBALANCING, State.PENDING_SHUTDOWN}),
    State.REBALANCING: frozenset({State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.RUNNING: frozenset({State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.PENDING_SHUTDOWN: frozenset({State.NOT_RUNNING}),
    State.NOT_RUNNING: frozenset(),
    State.PENDING_ERROR: frozenset({State.ERROR}),
    State.ERROR: frozenset(),
}

StateListener = Callable[[State, State], None]


class Lifecycle:
    """The state of an application, from the states of its threads. Not thread-safe."""

    def __init__(self) -> None:
        self.state = State.CREATED
        self.threads: dict[str, ThreadState] = {}
        #: Global stores are filled before anything is processed.
        self.global_ready = True

    def enter(self, state: State) -> tuple[State, State] | None:
        """Go to a state: the new and the old one, or `None` if it is the same or comes too late."""
        before = self.state
        if state is before:
            return None
        if state not in NEXT[before]:
            if before.has_started_or_finished_shutting_down:
                return None
            raise StreamsError(f"The application cannot go from {before.name} to {state.name}")
        self.state = state
        return state, before

    def on_thread(self, name: str, state: ThreadState) -> tuple[State, State] | None:
        """A thread's state changed: the change of the application's state, if there is one."""
        if state is ThreadState.DEAD:
            self.threads.pop(name, None)
        else:
            self.threads[name] = state
        if not self.state.is_running_or_rebalancing:
            return None
        states = self.threads.values()
        if any(
            each in (ThreadState.PARTITIONS_REVOKED, ThreadState.PARTITIONS_ASSIGNED)
            for each in states
        ):
            return self.enter(State.REBALANCING)
        if self.global_ready and states and all(each is ThreadState.RUNNING for each in states):
            return self.enter(State.RUNNING)
        return None
