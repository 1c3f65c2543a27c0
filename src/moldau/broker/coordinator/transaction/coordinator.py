"""The transaction coordinator as handlers see it: one coroutine per request.

Finds the shard of a transactional id, runs the decision there, fetches producer ids that a decision
needs, and performs the actions of the shards: sending markers, aborting what is overdue. The broker
passes it the partitions of `__transaction_state` that it leads; the leader epoch is in the markers,
so that of two coordinators the older one is rejected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from moldau.broker.coordinator.machine.decision import Action, Decision
from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.coordinator.machine.log import CoordinatorLog
from moldau.broker.coordinator.runtime import CoordinatorRuntime
from moldau.broker.coordinator.transaction.interface import MarkerWriter
from moldau.broker.coordinator.transaction.machine import views
from moldau.broker.coordinator.transaction.machine.config import TransactionConfig
from moldau.broker.coordinator.transaction.machine.events import (
    AbortTimedOut,
    NeedProducerId,
    Outcome,
    SendMarkers,
)
from moldau.broker.coordinator.transaction.machine.lost_epochs import SeenEpochs
from moldau.broker.coordinator.transaction.machine.metadata import (
    TWO_PHASE_COMMIT_TIMEOUT_MS,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.shard import TransactionShard
from moldau.broker.coordinator.transaction.machine.values import (
    NO_PRODUCER,
    TV_2,
    ProducerIdAndEpoch,
    TopicPartition,
)
from moldau.broker.coordinator.transaction.sending import (
    MarkerSending,
    PartitionDirectory,
    marker_backoff,
)
from moldau.clock import Clock, LoopClock
from moldau.invariant import InvariantError, invariant
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

# Every round is a write of another leader of the same transaction.
_GROWTH_WAIT_COUNT_MAX = 20

Decide = Callable[[TransactionShard, int | None, WallMs], Decision[Outcome]]
"""Given the shard, a fresh producer id if there is one, and the time."""


class ProducerIdSource(Protocol):
    async def next_id(self) -> int: ...


@dataclass(slots=True)
class _Leadership:
    epoch: int
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    aborting: bool = False
    """One round through the overdue transactions at a time, however slow the log is."""

    def end(self) -> None:
        for task in list(self.tasks):
            task.cancel()


class TransactionCoordinator:
    def __init__(
        self,
        config: TransactionConfig,
        *,
        partition_count: Callable[[], int],
        producer_ids: ProducerIdSource,
        markers: MarkerWriter,
        topics: PartitionDirectory,
        transaction_version: Callable[[], int],
        report_bug: Callable[[Exception], None],
        clock: Clock | None = None,
        seen_epochs: SeenEpochs = lambda producer_ids: {},
    ) -> None:
        """`partition_count` is how many partitions the state topic has, or will have;
        `transaction_version` the finalized level of that feature; `seen_epochs` the newest
        epochs that partitions have seen of some producer ids."""
        self._config = config
        self._partition_count = partition_count
        self._producer_ids = producer_ids
        self._report_bug = report_bug
        self._clock = clock or LoopClock()
        self._sending = MarkerSending(markers, topics, self._clock, report_bug)
        self._leaderships: dict[int, _Leadership] = {}
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            family="transaction",
            make_shard=lambda: TransactionShard(config, transaction_version, seen_epochs),
            clock=self._clock,
            write_timeout_ms=max(config.request_timeout_ms, 0),
            load_buffer_size=config.transaction_state_log_load_buffer_size,
            report_bug=report_bug,
            perform=self._perform,
        )

    def partition_for(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self._partition_count())

    # Leadership.

    @property
    def runtime(self) -> CoordinatorRuntime[TransactionShard]:
        """For metrics."""
        return self._runtime

    def on_elected(self, partition: int, leader_epoch: int, log: CoordinatorLog) -> None:
        """This broker leads the partition of the state topic from this epoch on."""
        leadership = self._leaderships.get(partition)
        if leadership is None or leadership.epoch < leader_epoch:
            if leadership is not None:
                leadership.end()
            self._leaderships[partition] = _Leadership(leader_epoch)
        self._runtime.load(partition, leader_epoch, log)

    def on_resigned(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another broker leads it, or it is gone."""
        leadership = self._leaderships.get(partition)
        if leadership is not None and (leader_epoch is None or leader_epoch >= leadership.epoch):
            leadership.end()
            del self._leaderships[partition]
        self._runtime.unload(partition, leader_epoch)

    async def loaded(self) -> None:
        """Wait until every partition led here has been loaded."""
        await self._runtime.loaded()

    def transactions(self) -> list[TransactionMetadata] | None:
        """All transactions of the partitions led here; None if one of these is not loaded."""
        found: list[TransactionMetadata] = []
        for partition in self._leaderships:
            try:
                found += self._runtime.read(
                    partition, lambda shard: list(shard.transactions.values())
                )
            except ApiError:
                return None
        return found

    def close(self) -> None:
        for leadership in self._leaderships.values():
            leadership.end()
        self._leaderships.clear()
        self._runtime.close()

    # Requests. All raise ApiError but those that give errors by partition.

    async def init_producer_id(
        self,
        transactional_id: str,
        transaction_timeout_ms: int,
        *,
        expected: ProducerIdAndEpoch | None = None,
        enable_two_phase_commit: bool = False,
        keep_prepared: bool = False,
    ) -> ProducerIdAndEpoch:
        """Begin a producer; `expected` is its present id and epoch, if it recovers (KIP-360)."""
        _check_transactional_id(transactional_id)
        timeout_ms = self._checked_timeout_ms(
            transaction_timeout_ms, enable_two_phase_commit, keep_prepared
        )
        return await self._run(
            transactional_id,
            lambda shard, fresh_id, now_ms: shard.init_producer_id(
                transactional_id, timeout_ms, expected, fresh_id, now_ms
            ),
        )

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
        client_transaction_version: int = TV_2,
    ) -> dict[TopicPartition, ErrorCode]:
        """Implements `TransactionPartitions`."""
        producer = ProducerIdAndEpoch(producer_id, producer_epoch)
        try:
            _check_transactional_id(transactional_id)
            if verify_only:
                return await self._runtime.run(
                    self.partition_for(transactional_id),
                    lambda shard, now_ms: shard.verify_partitions(
                        transactional_id, producer, partitions
                    ),
                )
            await self._wait_while_growing(transactional_id)
            await self._run(
                transactional_id,
                lambda shard, fresh_id, now_ms: shard.add_partitions(
                    transactional_id, producer, partitions, client_transaction_version, now_ms
                ),
            )
        except ApiError as error:
            return dict.fromkeys(partitions, error.code)
        return dict.fromkeys(partitions, ErrorCode.NONE)

    async def _wait_while_growing(self, transactional_id: str) -> None:
        """Wait while another leader's partitions are being added: the leaders of a transaction's
        partitions add these at the same time, and a retry after a pause costs far more."""
        partition = self.partition_for(transactional_id)
        for _ in range(_GROWTH_WAIT_COUNT_MAX):
            if not self._runtime.read(partition, lambda shard: shard.is_growing(transactional_id)):
                return
            # Answered when all that was appended before is committed.
            await self._runtime.run(partition, lambda shard, now_ms: Decision(None))

    async def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        client_transaction_version: int = TV_2,
    ) -> ProducerIdAndEpoch:
        """The producer id and epoch with which the client continues; NO_PRODUCER if they are the
        same (transaction version 1)."""
        _check_transactional_id(transactional_id)
        producer = ProducerIdAndEpoch(producer_id, producer_epoch)
        return await self._run(
            transactional_id,
            lambda shard, fresh_id, now_ms: shard.end_transaction(
                transactional_id,
                producer,
                committed,
                client_transaction_version,
                fresh_id,
                now_ms,
            ),
        )

    async def describe_transaction(
        self, transactional_id: str
    ) -> DescribeTransactionsResponse.TransactionState:
        try:
            _check_transactional_id(transactional_id)
            return await self._runtime.read_committed(
                self.partition_for(transactional_id),
                lambda shard: views.describe(shard.transactions, transactional_id),
            )
        except ApiError as error:
            return DescribeTransactionsResponse.TransactionState(
                transactional_id=transactional_id, error_code=error.code
            )

    async def list_transactions(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        try:
            wanted = views.list_filter(request, self._clock.now_ms())
            found = await self._runtime.read_all(
                lambda shard: views.listed(shard.transactions.values(), wanted)
            )
        except ApiError as error:
            return ListTransactionsResponse(error_code=error.code)
        return ListTransactionsResponse(
            transaction_states=found, unknown_state_filters=views.unknown_states(request)
        )

    def _checked_timeout_ms(
        self, timeout_ms: int, enable_two_phase_commit: bool, keep_prepared: bool
    ) -> int:
        if enable_two_phase_commit and not self._config.transaction_two_phase_commit_enable:
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "two-phase commit is off: transaction.two.phase.commit.enable is false",
            )
        if keep_prepared:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, "prepared transactions are not kept, as in Kafka"
            )
        if enable_two_phase_commit:
            return TWO_PHASE_COMMIT_TIMEOUT_MS
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            raise ApiError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms = {timeout_ms} must be positive and at most "
                f"transaction.max.timeout.ms = {self._config.transaction_max_timeout_ms}",
            )
        return timeout_ms

    async def _run(self, transactional_id: str, decide: Decide) -> ProducerIdAndEpoch:
        """Decide, and if that needs a new producer id, fetch one and decide again."""
        outcome = await self._decide(transactional_id, decide, None)
        if isinstance(outcome, NeedProducerId):
            outcome = await self._decide(transactional_id, decide, await self._fresh_id())
        if isinstance(outcome, ProducerIdAndEpoch):
            return outcome
        if isinstance(outcome, NeedProducerId):
            invariant(False, "one producer id is enough")
        elif outcome is not ErrorCode.NONE:
            raise ApiError(outcome, f"{transactional_id!r} is changing; try again")
        return NO_PRODUCER

    async def _decide(self, transactional_id: str, decide: Decide, fresh_id: int | None) -> Outcome:
        return await self._runtime.run(
            self.partition_for(transactional_id),
            lambda shard, now_ms: decide(shard, fresh_id, now_ms),
        )

    async def _fresh_id(self) -> int:
        try:
            return await self._producer_ids.next_id()
        except ApiError as error:
            # The controller cannot be reached right now: as in Kafka, the client has to retry.
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no producer id is available: {error}"
            ) from error

    # Actions of the shards.

    def _perform(self, partition: int, action: Action) -> None:
        leadership = self._leaderships.get(partition)
        if leadership is None:
            return
        if isinstance(action, SendMarkers):
            work = self._finish(partition, leadership.epoch, action.prepared)
        elif isinstance(action, AbortTimedOut):
            if leadership.aborting:
                return
            leadership.aborting = True
            work = self._abort_timed_out(leadership, action.transactional_ids)
        else:
            raise InvariantError(f"the coordinator of transactions has no action {action!r}")
        task = asyncio.get_running_loop().create_task(work)
        leadership.tasks.add(task)
        task.add_done_callback(lambda task: self._on_done(leadership, task))

    def _on_done(self, leadership: _Leadership, task: asyncio.Task[None]) -> None:
        leadership.tasks.discard(task)
        bug = None if task.cancelled() else task.exception()
        if isinstance(bug, Exception):
            self._report_bug(bug)

    async def _finish(
        self, partition: int, coordinator_epoch: int, prepared: TransactionMetadata
    ) -> None:
        """Send the markers of a decision, then write that all is done."""

        def is_current() -> bool:
            try:
                return self._runtime.read(partition, lambda shard: shard.is_current(prepared))
            except ApiError:
                return False

        if not await self._sending.send(prepared, coordinator_epoch, is_current):
            return
        backoff = marker_backoff(self._clock)
        while is_current():
            try:
                await self._runtime.run(
                    partition, lambda shard, now_ms: shard.complete(prepared, now_ms)
                )
            except ApiError:
                # The log takes no records right now. If the coordinator has moved instead,
                # its successor takes over, and the next look ends this.
                await backoff.wait()

    async def _abort_timed_out(
        self, leadership: _Leadership, transactional_ids: tuple[str, ...]
    ) -> None:
        try:
            for transactional_id in transactional_ids:
                try:
                    await self._run(transactional_id, _abortion(transactional_id))
                except ApiError:
                    # Still overdue at the next look, if it is still there.
                    continue
        finally:
            leadership.aborting = False


def _abortion(transactional_id: str) -> Decide:
    return lambda shard, fresh_id, now_ms: shard.abort_timed_out(transactional_id, fresh_id, now_ms)


def _check_transactional_id(transactional_id: str) -> None:
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
