"""A stage on which the pure transaction shard plays: writes are held or fail as told.

Decisions are carried out as the shard's shell does: append, replay, timers, and only after
commit the answer, the actions and the continuation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.broker.coordinator.machine.decision import Act, Cancel, Decision, Schedule
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.broker.coordinator.shell import client_error
from moldau.broker.coordinator.transaction.machine.config import TransactionConfig
from moldau.broker.coordinator.transaction.machine.events import (
    AbortTimedOut,
    NeedProducerId,
    SendMarkers,
)
from moldau.broker.coordinator.transaction.machine.metadata import TransactionMetadata
from moldau.broker.coordinator.transaction.machine.shard import TransactionShard
from moldau.broker.coordinator.transaction.machine.values import TV_0, TV_2, ProducerIdAndEpoch
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.record_values import decode_coordinator_record

START_MS = 1_700_000_000_000
FIRST_ID = 100
Written = list[tuple[bytes, bytes | None]]


@dataclass
class Reply:
    """What a request was answered; `outcome` is None as long as it waits for commit."""

    outcome: Any = None

    def __bool__(self) -> bool:
        return self.outcome is not None


class TransactionStage:
    def __init__(self, transaction_version: int = TV_2, **settings: Any) -> None:
        self.config = TransactionConfig(**settings)
        self.transaction_version = transaction_version
        self.now_ms = START_MS
        self.written: Written = []
        self.committed_count = 0
        self.actions: list[SendMarkers | AbortTimedOut] = []
        self.append_error = ErrorCode.NONE
        self.holding = False
        self.next_id = FIRST_ID
        self.seen_epochs: dict[int, int] = {}
        """What partitions have seen, by producer id."""
        self._held: list[tuple[int, Callable[[ErrorCode], None]]] = []
        self._timers = TimerQueue()
        self.shard = self._fresh_shard()
        self._perform(self.shard.on_loaded(self.now_ms), Reply())

    def _fresh_shard(self) -> TransactionShard:
        return TransactionShard(
            self.config, lambda: self.transaction_version, lambda _: self.seen_epochs
        )

    # Carrying out decisions.

    def _perform(self, decision: Decision[Any], reply: Reply) -> Reply:
        for effect in decision.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self._timers.schedule(timer, self.now_ms + delay_ms)
                case Cancel(timer):
                    self._timers.cancel(timer)
        if decision.records and self.append_error is not ErrorCode.NONE:
            self._settle(decision, reply, self.append_error)
            return reply
        for record in decision.records:
            encoded = record.encode()
            self.shard.replay(len(self.written), NO_PRODUCER_ID, record.key, record.value)
            self.written.append(encoded)
        if len(self.written) > self.committed_count:
            self._held.append(
                (len(self.written), lambda error: self._settle(decision, reply, error))
            )
            if not self.holding:
                self.commit()
        else:
            self._settle(decision, reply, ErrorCode.NONE)
        return reply

    def _settle(self, decision: Decision[Any], reply: Reply, error: ErrorCode) -> None:
        error = client_error(error)
        reply.outcome = decision.response if error is ErrorCode.NONE else error
        for effect in decision.effects:
            if isinstance(effect, Act) and error is ErrorCode.NONE:
                assert isinstance(effect.action, SendMarkers | AbortTimedOut)
                self.actions.append(effect.action)
        if decision.continuation is not None:
            continuation: Any = decision.continuation
            follow_up = self.shard.on_written(continuation, error, self.now_ms)
            self._perform(follow_up, Reply())

    def commit(self) -> None:
        """All that is appended becomes committed."""
        self.committed_count = len(self.written)
        while self._held:
            self._held.pop(0)[1](ErrorCode.NONE)

    def give_up(self, error: ErrorCode = ErrorCode.REQUEST_TIMED_OUT) -> None:
        """Nobody waits longer for the commit of what is appended; it may come later."""
        held, self._held = self._held, []
        for _, settle in held:
            settle(error)

    def crash(self, kept_count: int | None = None) -> None:
        """Forget all but the log; of what was not committed only `kept_count` records stay."""
        if kept_count is not None:
            assert kept_count >= self.committed_count
            del self.written[kept_count:]
        self._held.clear()
        self.actions.clear()
        self._timers = TimerQueue()
        self.shard = self.reloaded()
        self._perform(self.shard.on_loaded(self.now_ms), Reply())
        if not self.holding:
            self.commit()

    def reloaded(self) -> TransactionShard:
        shard = self._fresh_shard()
        for offset, (key, value) in enumerate(self.written):
            shard.replay(
                offset, NO_PRODUCER_ID, *decode_coordinator_record("transaction", key, value)
            )
        return shard

    def advance(self, delay_ms: int) -> None:
        """Let time pass, firing every timer at its moment."""
        end_ms = self.now_ms + delay_ms
        while True:
            at_ms = self._timers.next_at_ms()
            if at_ms is None or at_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, at_ms)
            timer = self._timers.pop_due(self.now_ms)
            if timer is not None:
                self._perform(self.shard.on_timer(timer, self.now_ms), Reply())  # type: ignore[arg-type]
        self.now_ms = end_ms

    # Requests.

    def ask(self, decide: Callable[[int | None], Decision[Any]]) -> Reply:
        """Decide, with a fresh producer id if that is needed."""
        reply = Reply()
        try:
            self._perform(decide(None), reply)
            if isinstance(reply.outcome, NeedProducerId):
                fresh_id = self.next_id
                self.next_id += 1
                reply.outcome = None
                self._perform(decide(fresh_id), reply)
                assert not isinstance(reply.outcome, NeedProducerId)
        except ApiError as error:
            reply.outcome = error.code
        return reply

    def init(
        self,
        transactional_id: str = "t",
        *,
        expected: tuple[int, int] | None = None,
        timeout_ms: int = 60_000,
    ) -> Any:
        return self.start_init(transactional_id, expected=expected, timeout_ms=timeout_ms).outcome

    def start_init(
        self,
        transactional_id: str = "t",
        *,
        expected: tuple[int, int] | None = None,
        timeout_ms: int = 60_000,
    ) -> Reply:
        producer = None if expected is None else ProducerIdAndEpoch(*expected)
        return self.ask(
            lambda fresh_id: self.shard.init_producer_id(
                transactional_id, timeout_ms, producer, fresh_id, self.now_ms
            )
        )

    def add(
        self,
        producer: tuple[int, int],
        *partitions: int,
        transactional_id: str = "t",
        version: int | None = None,
    ) -> Any:
        return self.start_add(
            producer, *partitions, transactional_id=transactional_id, version=version
        ).outcome

    def start_add(
        self,
        producer: tuple[int, int],
        *partitions: int,
        transactional_id: str = "t",
        version: int | None = None,
    ) -> Reply:
        return self.ask(
            lambda fresh_id: self.shard.add_partitions(
                transactional_id,
                ProducerIdAndEpoch(*producer),
                [("topic", each) for each in partitions or (0,)],
                self._client_version(version),
                self.now_ms,
            )
        )

    def verify(
        self, producer: tuple[int, int], *partitions: int, transactional_id: str = "t"
    ) -> Any:
        return self.ask(
            lambda fresh_id: self.shard.verify_partitions(
                transactional_id,
                ProducerIdAndEpoch(*producer),
                [("topic", each) for each in partitions or (0,)],
            )
        ).outcome

    def end(
        self,
        producer: tuple[int, int],
        committed: bool = True,
        *,
        transactional_id: str = "t",
        version: int | None = None,
    ) -> Any:
        return self.start_end(
            producer, committed, transactional_id=transactional_id, version=version
        ).outcome

    def start_end(
        self,
        producer: tuple[int, int],
        committed: bool = True,
        *,
        transactional_id: str = "t",
        version: int | None = None,
    ) -> Reply:
        return self.ask(
            lambda fresh_id: self.shard.end_transaction(
                transactional_id,
                ProducerIdAndEpoch(*producer),
                committed,
                self._client_version(version),
                fresh_id,
                self.now_ms,
            )
        )

    def abort_timed_out(self, transactional_id: str = "t") -> Any:
        return self.ask(
            lambda fresh_id: self.shard.abort_timed_out(transactional_id, fresh_id, self.now_ms)
        ).outcome

    def complete(self, prepared: TransactionMetadata) -> Reply:
        return self._perform(self.shard.complete(prepared, self.now_ms), Reply())

    def _client_version(self, version: int | None) -> int:
        if version is not None:
            return version
        return TV_2 if self.transaction_version >= TV_2 else TV_0

    # What came of it.

    def finish(self) -> list[SendMarkers]:
        """Carry out all actions that wait: markers succeed, what is overdue is aborted."""
        sent = []
        while self.actions:
            action = self.actions.pop(0)
            if isinstance(action, AbortTimedOut):
                for transactional_id in action.transactional_ids:
                    self.abort_timed_out(transactional_id)
            else:
                sent.append(action)
                self.complete(action.prepared)
        return sent

    def metadata(self, transactional_id: str = "t") -> TransactionMetadata:
        return self.shard.transactions[transactional_id]

    def state(self, transactional_id: str = "t") -> str:
        return self.metadata(transactional_id).state_name
