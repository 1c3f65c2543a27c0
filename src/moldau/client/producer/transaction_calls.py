"""What the application does with transactions: each call starts an operation and waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moldau.client.cluster import ClusterClient
from moldau.client.errors import ClosedError, IllegalStateError, KafkaTimeoutError
from moldau.client.machine.arguments import checked_offsets
from moldau.client.metrics import ProducerMetrics
from moldau.client.producer._send_path import SendPath
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.machine.transaction_state import Operation, State
from moldau.client.producer.machine.transactions import Features, TransactionManager
from moldau.client.producer.sender import Sender
from moldau.client.producer.settings import ProducerSettings
from moldau.client.producer.time_spent import spent
from moldau.client.topics import OffsetsLike

__all__ = ["TransactionCalls"]


class TransactionCalls:
    """See the module. Runs on the loop."""

    def __init__(
        self,
        settings: ProducerSettings,
        cluster: ClusterClient,
        manager: TransactionManager | None,
        accumulator: Accumulator,
        sender: Sender,
        path: SendPath,
        metrics: ProducerMetrics,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._manager = manager
        self._accumulator = accumulator
        self._sender = sender
        self._path = path
        self._metrics = metrics

    def _required(self) -> TransactionManager:
        if self._manager is None or not self._manager.is_transactional:
            raise IllegalStateError(
                "cannot use transactional methods without enabling transactions",
                advice="set transactional.id",
            )
        if self._path.closed:
            raise ClosedError("the producer is closed")
        return self._manager

    @property
    def needs_init(self) -> bool:
        """Whether `init_transactions` has not been called yet."""
        return self._required().status.state is State.UNINITIALIZED

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open, so that it can be committed or aborted."""
        return self._manager is not None and self._manager.status.has_ongoing_transaction

    async def init(self, timeout: float | None) -> None:
        with spent(self._metrics, "txn-init"):
            await self._finish(self._required().initialize(), timeout)

    async def begin_as(self, transactional_id: str) -> None:
        """Begin a transaction of this id, whatever the producer had before."""
        with self._accumulator.lock:
            self._required().start_over(transactional_id)
        await self.init(None)
        await self.begin()

    async def begin(self) -> None:
        with spent(self._metrics, "txn-begin"):
            self._required().begin()

    async def send_offsets(
        self, offsets: OffsetsLike, group_metadata: Any, timeout: float | None
    ) -> None:
        manager = self._required()
        if group_metadata is None:
            raise ValueError("group_metadata must not be None: pass consumer.group_metadata()")
        if not hasattr(group_metadata, "generation_id"):
            raise TypeError(f"pass consumer.group_metadata(), not {group_metadata!r}")
        found = checked_offsets(offsets)
        if group_metadata.generation_id > 0 and not group_metadata.member_id:
            raise ValueError(f"{group_metadata} has a generation but no member id")
        if found:
            with spent(self._metrics, "txn-send-offsets"), self._sending_records():
                await self._finish(manager.send_offsets(found, group_metadata), timeout)

    @contextmanager
    def _sending_records(self) -> Iterator[None]:
        """Do not let batches linger meanwhile: a commit comes next, which would wait for them."""
        with self._accumulator.lock:
            flush = self._accumulator.begin_flush(lambda: None)
        try:
            yield
        finally:
            if flush is not None:
                with self._accumulator.lock:
                    self._accumulator.end_flush(flush)

    async def commit(self, timeout: float | None) -> None:
        with spent(self._metrics, "txn-commit"):
            manager, features = self._required(), self.features()
            with self._accumulator.lock:
                operation = manager.begin_commit(features)
            await self._finish(operation, timeout)

    async def abort(self, timeout: float | None) -> None:
        with spent(self._metrics, "txn-abort"):
            manager, features = self._required(), self.features()
            with self._accumulator.lock:
                operation = manager.begin_abort(features)
            await self._finish(operation, timeout)

    def features(self) -> Features:
        epoch, levels = self._cluster.finalized_features()
        return epoch, levels.get("transaction.version", 0)

    async def _finish(self, operation: Operation, timeout: float | None) -> None:
        """Wait for an operation for `max.block.ms`; later it may be called again."""
        limit_ms = self._settings.max_block_ms if timeout is None else max(0, int(timeout * 1000))
        if not operation.done:
            done = asyncio.Event()
            operation.listeners.append(done.set)
            self._sender.wake_now()
            try:
                # Not wait_for, which loses a cancellation that comes with the end (Python 3.11).
                async with asyncio.timeout(limit_ms / 1000):
                    await done.wait()
            except TimeoutError:
                limit = "max.block.ms, " if timeout is None else ""
                raise KafkaTimeoutError(
                    f"{operation.name} was not done within {limit}{limit_ms} ms",
                    advice="call it again to continue waiting",
                ) from None
        operation.acknowledged = True
        if operation.error is not None:
            raise operation.error
