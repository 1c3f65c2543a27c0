"""Carries out the decisions of one shard.

One shell owns one shard and calls it from the event loop only, so the shard needs no lock.
Invariants: a record is replayed right after it is appended, and only then; responses and
continuations wait for its commit; when the shell is closed, every waiting request fails.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from moldau.broker.coordinator.machine.decision import (
    Act,
    Action,
    Answer,
    Cancel,
    CoordinatorRecord,
    Decision,
    ProducerStamp,
    Schedule,
    Shard,
    Ticket,
    Timer,
    TransactionEnding,
)
from moldau.broker.coordinator.machine.log import CoordinatorLog
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.broker.metrics.timing import timed
from moldau.clock import Alarm, Clock
from moldau.invariant import invariant
from moldau.times import ELAPSED_ZERO, ElapsedMs, WallMs
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import Message

S = TypeVar("S", bound=Shard)
R = TypeVar("R")

# Independent records are written in batches of at most so many, so that expiring a
# great many offsets stays below the topic's largest batch.
_SPLIT_RECORD_COUNT = 500

_CLIENT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def client_error(error: ErrorCode) -> ErrorCode:
    """What a failed write to the internal topic means for the coordinator's client."""
    return _CLIENT_ERRORS.get(error, error)


class Times(Protocol):
    """Metrics of a coordinator, in milliseconds."""

    def processed(self, milliseconds: float) -> None:
        """A decision took so long."""
        ...

    def committed(self, milliseconds: float) -> None:
        """What was appended was committed after so long."""
        ...


class _Outcome:
    """Whether a decision's records are committed; mostly known before a caller has to wait."""

    __slots__ = ("_error", "_future")

    def __init__(self) -> None:
        self._error: ErrorCode | None = None
        self._future: asyncio.Future[None] | None = None

    def __call__(self, error: ErrorCode) -> None:
        self._error = error
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def close(self, error: ErrorCode) -> None:
        if self._error is None:
            self(error)

    async def wait(self) -> ErrorCode:
        if self._error is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        invariant(self._error is not None, "a waiter is woken with the outcome")
        return self._error or ErrorCode.NONE


class _Write:
    """Appended records whose commit is awaited; ends exactly once."""

    __slots__ = ("_alarm", "_began_ms", "_shell", "_then")

    def __init__(self, shell: ShardShell[Any], then: Callable[[ErrorCode], None]) -> None:
        self._shell = shell
        self._then = then
        self._began_ms = shell.clock.elapsed_ms()
        self._alarm: Alarm | None = None

    def wait_for(self, next_offset: int) -> None:
        shell = self._shell
        shell.writes[self] = None
        shell.log.when_committed(next_offset, self)
        if self in shell.writes:
            self._alarm = shell.clock.call_later(
                shell.write_timeout_ms, lambda: self.give_up(ErrorCode.REQUEST_TIMED_OUT)
            )

    def __call__(self, error: ErrorCode) -> None:
        if self in self._shell.writes:
            del self._shell.writes[self]
            times = self._shell.times
            if times is not None:
                times.committed(self._shell.clock.elapsed_ms() - self._began_ms)
            if self._alarm is not None:
                self._alarm.cancel()
            self._shell.enqueue(lambda: self._then(client_error(error)))

    def give_up(self, error: ErrorCode) -> None:
        self._shell.log.forget_waiter(self)
        self(error)


def _no_actions(action: Action) -> None:
    invariant(False, f"{action!r} cannot be performed")


class ShardShell(Generic[S]):
    def __init__(
        self,
        shard: S,
        log: CoordinatorLog,
        clock: Clock,
        *,
        write_timeout_ms: int,
        report_bug: Callable[[Exception], None],
        perform: Callable[[Action], None] = _no_actions,
        times: Times | None = None,
    ) -> None:
        """`times` records how long decisions and their commits take."""
        self.times = times
        self.shard = shard
        self.log = log
        self.clock = clock
        self.write_timeout_ms = write_timeout_ms
        # Dicts, so that waiters are woken in their order in every run of a simulation.
        self.writes: dict[_Write, None] = {}
        self.closed = False
        self._report_bug = report_bug
        self._perform_action = perform
        self._timers: TimerQueue[Timer] = TimerQueue()
        self._alarm: Alarm | None = None
        self._alarm_at_ms = ELAPSED_ZERO
        self._waiting: dict[Ticket, asyncio.Future[Message]] = {}
        self._ticket_count = 0
        self._outcomes: dict[_Outcome, None] = {}
        # Everything below is known to be committed.
        self._committed_offset = 0
        self._queue: deque[Callable[[], None]] = deque()
        self._acting = False

    def start(self) -> None:
        """The log has been replayed: let the shard take up its work."""
        self.enqueue(lambda: self._perform(self.shard.on_loaded(self.clock.now_ms()), _ignore))

    async def run(self, decide: Callable[[S, WallMs], Decision[R]]) -> R:
        """Decide, write, and return the response once all that it shows is committed."""
        decision = self._decide(lambda: decide(self.shard, self.clock.now_ms()))
        await self._settled(lambda then: self._perform(decision, then))
        return decision.response

    async def complete_transaction(self, ending: TransactionEnding) -> None:
        """Write the marker, apply it, and return once it is committed."""
        if self.closed:
            raise ApiError(ErrorCode.NOT_COORDINATOR, "the coordinator has moved or stopped")
        await self._settled(lambda then: self._end_transaction(ending, then))

    async def _settled(self, act: Callable[[Callable[[ErrorCode], None]], None]) -> None:
        """Let `act` write, and wait for the outcome."""
        outcome = _Outcome()
        self._outcomes[outcome] = None
        try:
            self.enqueue(lambda: act(outcome))
            error = await outcome.wait()
        finally:
            self._outcomes.pop(outcome, None)
        if error is not ErrorCode.NONE:
            raise ApiError(error, "the coordinator could not write its log")

    async def run_with_ticket(
        self, decide: Callable[[S, Ticket, WallMs], Decision[None]]
    ) -> Message:
        """Decide, and return the response that this or a later decision has for the ticket."""
        self._ticket_count += 1
        ticket = Ticket(self._ticket_count)
        decision = self._decide(lambda: decide(self.shard, ticket, self.clock.now_ms()))
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        try:
            self.enqueue(lambda: self._perform(decision, lambda error: self._fail(ticket, error)))
            return await future
        finally:
            # Also when the client is gone: a later answer of the shard is dropped.
            self._waiting.pop(ticket, None)

    def close(self, error: ErrorCode) -> None:
        """Fail everything that waits: leadership moved or the broker stops."""
        if self.closed:
            return
        self.closed = True
        self._timers.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for write in list(self.writes):
            write.give_up(error)
        for ticket in list(self._waiting):
            self._fail(ticket, error)
        for outcome in list(self._outcomes):
            outcome.close(error)

    def enqueue(self, action: Callable[[], None]) -> None:
        """Act now, or after the present action: a commit may be reported in the middle of an
        append, and the shard must see that append replayed first."""
        self._queue.append(action)
        if self._acting:
            return
        self._acting = True
        try:
            while self._queue:
                try:
                    self._queue.popleft()()
                except Exception as bug:
                    self._stop_on_bug(bug)
        finally:
            self._acting = False

    # Carrying out a decision.

    def _decide(self, decide: Callable[[], Decision[R]]) -> Decision[R]:
        if self.closed:
            raise ApiError(ErrorCode.NOT_COORDINATOR, "the coordinator has moved or stopped")
        try:
            with timed(None if self.times is None else self.times.processed):
                return decide()
        except ApiError:
            raise
        except Exception as bug:
            self._stop_on_bug(bug)
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator failed") from bug

    def _perform(self, decision: Decision[Any], then: Callable[[ErrorCode], None]) -> None:
        if self.closed:
            then(ErrorCode.NOT_COORDINATOR)
            return
        try:
            next_offset = self._append(decision)
        except ApiError as error:
            self._set_timers(decision)
            self._settle(decision, then, client_error(error.code))
            return
        self._set_timers(decision)
        if next_offset is None:
            # A response may show replayed state, and must not show what can still be lost: all
            # that the log held before must be committed, also what another leader wrote.
            next_offset = self.log.end_offset
        if next_offset <= self._committed_offset or (then is _ignore and not decision.has_audience):
            self._settle(decision, then, ErrorCode.NONE)
        elif not self._queue and self.log.is_committed(next_offset):
            # As mostly with one replica. Earlier decisions whose commit is in the queue come first.
            self._committed_offset = next_offset
            if self.times is not None:
                self.times.committed(0.0)
            self._settle(decision, then, ErrorCode.NONE)
        else:
            self._when_committed(next_offset, lambda error: self._settle(decision, then, error))

    def _when_committed(self, next_offset: int, then: Callable[[ErrorCode], None]) -> None:
        def ended(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._committed_offset = max(self._committed_offset, next_offset)
            then(error)

        _Write(self, ended).wait_for(next_offset)

    def _end_transaction(
        self, ending: TransactionEnding, then: Callable[[ErrorCode], None]
    ) -> None:
        if self.closed:
            then(ErrorCode.NOT_COORDINATOR)
            return
        try:
            offset = self.log.append_marker(ending, now_ms=self.clock.now_ms())
        except ApiError as error:
            then(client_error(error.code))
            return
        self.shard.replay_end_transaction(ending.producer_id, ending.committed)
        self._when_committed(offset + 1, then)

    def _append(self, decision: Decision[Any]) -> int | None:
        """Write and replay the records; the offset after the last one, None without any."""
        records = decision.records
        if not records:
            return None
        step = len(records) if decision.atomic else _SPLIT_RECORD_COUNT
        next_offset = None
        for first in range(0, len(records), step):
            next_offset = self._append_batch(records[first : first + step], decision.producer)
        return next_offset

    def _append_batch(
        self, records: tuple[CoordinatorRecord, ...], producer: ProducerStamp | None
    ) -> int:
        offset = self.log.append(
            [record.encode() for record in records], now_ms=self.clock.now_ms(), producer=producer
        )
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        for record in records:
            self.shard.replay(offset, producer_id, record.key, record.value)
            offset += 1
        return offset

    def _settle(
        self, decision: Decision[Any], then: Callable[[ErrorCode], None], error: ErrorCode
    ) -> None:
        """The records are committed, or failed as far as this broker knows."""
        for effect in decision.effects:
            if isinstance(effect, Answer):
                if error is ErrorCode.NONE:
                    self._answer(effect.ticket, effect.response)
                else:
                    self._fail(effect.ticket, error)
            elif isinstance(effect, Act) and error is ErrorCode.NONE and not self.closed:
                self._perform_action(effect.action)
        if decision.continuation is not None and not self.closed:
            follow_up = self.shard.on_written(decision.continuation, error, self.clock.now_ms())
            self._perform(follow_up, _ignore)
        then(error)

    def _answer(self, ticket: Ticket, response: Message) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            future.set_result(response)

    def _fail(self, ticket: Ticket, error: ErrorCode) -> None:
        future = self._waiting.get(ticket)
        if error is not ErrorCode.NONE and future is not None and not future.done():
            future.set_exception(ApiError(error, "the coordinator could not finish the request"))

    def _stop_on_bug(self, bug: Exception) -> None:
        # Memory may no longer be what the log says; the log is right, so stop serving.
        self._report_bug(bug)
        self.close(ErrorCode.NOT_COORDINATOR)

    # Timers.

    def _set_timers(self, decision: Decision[Any]) -> None:
        for effect in decision.effects:
            if isinstance(effect, Schedule):
                at_ms = ElapsedMs(self.clock.elapsed_ms() + effect.delay_ms)
                self._timers.schedule(effect.timer, at_ms)
            elif isinstance(effect, Cancel):
                self._timers.cancel(effect.timer)
        self._arm()

    def _arm(self) -> None:
        next_at_ms = self._timers.next_at_ms()
        if self._alarm is not None:
            if next_at_ms is not None and self._alarm_at_ms <= next_at_ms:
                # At worst it goes off early, and is set again then.
                return
            self._alarm.cancel()
            self._alarm = None
        if next_at_ms is not None:
            self._alarm_at_ms = next_at_ms
            delay_ms = max(next_at_ms - self.clock.elapsed_ms(), 0)
            self._alarm = self.clock.call_later(delay_ms, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self.enqueue(self._fire_due)

    def _fire_due(self) -> None:
        while not self.closed:
            timer = self._timers.pop_due(self.clock.elapsed_ms())
            if timer is None:
                break
            self._perform(self.shard.on_timer(timer, self.clock.now_ms()), _ignore)
        if not self.closed:
            self._arm()


def _ignore(error: ErrorCode) -> None:
    """For decisions without a caller; later ones make up for failed writes."""
