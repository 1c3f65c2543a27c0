"""ActiveController: one controller while it leads one epoch of the metadata quorum.

    submit(decide) -> decide on its image -> append -> (committed) -> respond

Invariants: decisions are made one after another, each on what the ones before it appended; a
response is returned when everything before it in the log is committed; requests whose records are
not committed when the epoch ends get an error, although these may still become committed later.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from moldau.broker.metadata.machine.activation import activate
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import RECORDS_PER_BATCH_MAX, Decision
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.raft.machine.batches import MetadataBatch, encode_records
from moldau.broker.raft.node import RaftNode
from moldau.clock import Alarm, Clock
from moldau.times import ELAPSED_ZERO, ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode

P = ParamSpec("P")
R = TypeVar("R")

# It wakes up at least this often: an alarm that goes off much too late shows that the process was
# suspended, or starved of CPU.
WAKE_INTERVAL_MS = 1_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A response that waits until everything before `end_offset` is committed."""

    end_offset: int
    done: asyncio.Future[None]


class ActiveController:
    def __init__(
        self,
        controller: Controller,
        raft: RaftNode,
        clock: Clock,
        *,
        epoch: int,
        batch_size_max: int,
    ) -> None:
        """`controller` has replayed the whole log, including what is not committed."""
        controller.check_kraft_upgrade = self._check_kraft_upgrade
        self.controller = controller
        self.epoch = epoch
        self._raft = raft
        self._clock = clock
        self._batch_size_max = batch_size_max
        self._pending: deque[_Pending] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._alarm: Alarm | None = None
        self._alarm_ms = ELAPSED_ZERO
        self._ended: ApiError | None = None

    @property
    def leads(self) -> bool:
        return self._ended is None and self._raft.is_leader and self._raft.epoch == self.epoch

    def submit(
        self,
        decide: Callable[Concatenate[ControllerView, P], Decision[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> tuple[R, Awaitable[None]]:
        """Decide and append; the response is for the client once the awaitable is done."""
        if not self.leads:
            raise self._ended or not_active()
        decision = self._decide(decide, *args, **options)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Even without records of its own a response may contain what is not committed yet.
        end_offset = self._raft.log.end_offset
        if end_offset <= self._raft.high_watermark:
            done.set_result(None)
            return decision.response, done
        if self._ended is not None:
            raise self._ended
        self._pending.append(_Pending(end_offset, done))
        self._idle.clear()
        # Shielded: a client that disconnects must not cancel what is in the log.
        return decision.response, asyncio.shield(done)

    def begin(self, bootstrap: Sequence[Any], *, departed: Collection[int]) -> None:
        """Track heartbeats and write what a new active controller writes first."""
        self.controller.lead(self._clock.elapsed_ms(), departed=departed)
        self._decide(activate, bootstrap)

    def _decide(
        self,
        decide: Callable[Concatenate[ControllerView, P], Decision[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> Decision[R]:
        self._follow_quorum()
        decision = decide(self.controller, *args, **options)
        if decision.kraft_version is not None:
            self._raft.upgrade_kraft_version(decision.kraft_version, epoch=self.epoch)
        if decision.records:
            self._append(decision)
        self._arm()
        return decision

    def on_committed(self, high_watermark: int) -> None:
        """Release the responses that waited for it."""
        while self._pending and self._pending[0].end_offset <= high_watermark:
            done = self._pending.popleft().done
            if not done.done():
                done.set_result(None)
        if not self._pending:
            self._idle.set()

    def end(self, error: ApiError) -> None:
        """End the epoch, or stop because the log has failed: later requests get `error`."""
        if self._ended is not None:
            return
        self._ended = error
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self.controller.resign()
        while self._pending:
            done = self._pending.popleft().done
            if not done.done():
                done.set_exception(error)
                # Mark it as retrieved: a request whose client is gone has no waiter.
                done.exception()
        self._idle.set()

    async def drained(self, timeout_ms: int) -> None:
        """Return when everything that was submitted is committed, or after `timeout_ms`."""
        task = asyncio.get_running_loop().create_task(self._idle.wait())
        alarm = self._clock.call_later(timeout_ms, lambda: _cancel(task))
        await asyncio.gather(task, return_exceptions=True)
        alarm.cancel()

    # Appending ----------------------------------------------------------------------------

    def _follow_quorum(self) -> None:
        """Take over the quorum's own records: their offsets and the voters."""
        controller, raft = self.controller, self._raft
        controller.skip_to(raft.log.end_offset)
        history = raft.machine.history
        controller.kraft_version = history.kraft_version
        voter_ids = tuple(history.voters.voters)
        if controller.config.quorum_node_ids != voter_ids:
            controller.config = controller.config.replace(quorum_node_ids=voter_ids)

    def _check_kraft_upgrade(self, level: int) -> None:
        self._raft.machine.check_upgrade(level)

    def _append(self, decision: Decision[Any]) -> None:
        for batch, data in self._encode(decision):
            self._raft.append(data, epoch=self.epoch, batch=batch)
            self.controller.replay(batch.records, base_offset=batch.base_offset)

    def _encode(self, decision: Decision[Any]) -> list[tuple[MetadataBatch, bytes]]:
        """Encode before the log changes, so that a failure has no effect."""
        now_ms = self._clock.now_ms()
        offset = self._raft.log.end_offset
        encoded: list[tuple[MetadataBatch, bytes]] = []
        for records in _batches_of(decision):
            data = encode_records(
                records,
                base_offset=offset,
                epoch=self.epoch,
                now_ms=now_ms,
                metadata_version=self.controller.image.metadata_version,
            )
            if len(data) > self._batch_size_max:
                raise ApiError(
                    ErrorCode.POLICY_VIOLATION,
                    "Unable to perform excessively large batch operation.",
                )
            batch = MetadataBatch(
                base_offset=offset,
                next_offset=offset + len(records),
                epoch=self.epoch,
                append_time_ms=now_ms,
                size=len(data),
                controls=(),
                records=records,
            )
            encoded.append((batch, data))
            offset += len(records)
        return encoded

    # Time -----------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Wake up when the controller has something to do; too early is harmless."""
        due_ms = self.controller.due_at_ms()
        if due_ms is None or self._ended is not None:
            return
        if self._alarm is not None:
            if self._alarm_ms <= due_ms:
                return
            self._alarm.cancel()
        now_ms = self._clock.elapsed_ms()
        wake_ms = min(max(due_ms, now_ms), now_ms + WAKE_INTERVAL_MS)
        self._alarm_ms = ElapsedMs(wake_ms)
        self._alarm = self._clock.call_later(self._alarm_ms - now_ms, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        now_ms = self._clock.elapsed_ms()
        late_ms = now_ms - self._alarm_ms
        if late_ms > self.controller.config.broker_session_timeout_ms // 3:
            logger.warning("the controller was suspended for %d ms", late_ms)
            self.controller.was_away(now_ms)
        try:
            while self.leads:
                self._follow_quorum()
                decision = self.controller.on_time(self._clock.elapsed_ms())
                if decision is None:
                    break
                if decision.response:
                    logger.warning("%s", decision.response)
                if decision.records:
                    self._append(decision)
        except Exception as error:
            if self._ended is None:
                # A bug in one background task must not stop the others.
                logger.exception("a controller background task failed: %s", error)
        if self.leads:
            self._arm()


def replay_uncommitted(controller: Controller, raft: RaftNode) -> None:
    """Replay the rest of the log in a controller that starts from the committed image."""
    first = controller.next_offset
    for batch in raft.batches(first):
        records = batch.records[max(0, first - batch.base_offset) :]
        controller.replay(records, base_offset=max(batch.base_offset, first))


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


def not_active() -> ApiError:
    return ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")


def _batches_of(decision: Decision[Any]) -> Iterator[tuple[Any, ...]]:
    records = decision.records
    for start in range(0, len(records), RECORDS_PER_BATCH_MAX):
        yield records[start : start + RECORDS_PER_BATCH_MAX]
