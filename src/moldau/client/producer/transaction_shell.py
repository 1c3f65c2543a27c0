"""Sends the requests that a transaction manager wants sent, one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from moldau.client.cluster import ClusterClient
from moldau.client.errors import DisconnectError, KafkaError
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.machine.transaction_state import RETRY, TransactionRequest, Verdict
from moldau.client.producer.machine.transactions import TransactionManager
from moldau.clock import pause
from moldau.wire.apis import ApiKey

__all__ = ["TransactionShell"]

_log = logging.getLogger(__name__)
# From here on InitProducerId takes the id that a producer has and gives it the next epoch.
_INIT_PRODUCER_ID_BUMPS = 3


class TransactionShell:
    """There is one request at a time; `wake` is called when something has changed."""

    def __init__(
        self,
        cluster: ClusterClient,
        transactions: TransactionManager,
        accumulator: Accumulator,
        wake: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._txn = transactions
        self._accumulator = accumulator
        self._wake = wake
        self._task: asyncio.Task[None] | None = None
        self._request: TransactionRequest | None = None
        self._stopped = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def run(self) -> None:
        """Begin to send, if something is to be sent and nothing is being sent."""
        if self._task is None and self._txn.has_requests:
            request = self._next_request()
            if request is not None:
                self._request = request
                self._task = asyncio.get_running_loop().create_task(self._work(request))
                self._task.add_done_callback(self._on_done)

    def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            self._on_cancelled()
        elif task.exception() is not None:
            _log.error("A transactional request failed", exc_info=task.exception())
            self._txn.status.to_fatal_error(
                KafkaError(f"an error inside the client: {task.exception()}")
            )
        self._wake()

    def _on_cancelled(self) -> None:
        """The end of `asyncio.run` cancels all tasks. What is left is still sent after that, so the
        request counts as lost with its connection."""
        if self._stopped or self._request is None:
            return
        request, self._request = self._request, None
        if self._txn.on_failure(request, DisconnectError("the request was cancelled")).retry:
            self._txn.enqueue(request)

    async def _work(self, first: TransactionRequest) -> None:
        request: TransactionRequest | None = first
        failures = 0
        while request is not None:
            self._request = request
            verdict = await self._send(request)
            self._request = None
            self._wake()
            if verdict.find_coordinator and request.coordinator is not None:
                self._cluster.forget_coordinator(*request.coordinator)
            if verdict.retry:
                self._txn.enqueue(request)
                failures += 1
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                if request.backoff_ms is not None:
                    delay_ms = request.backoff_ms
                await pause(self._cluster.clock, delay_ms)
            else:
                failures = 0
            request = self._next_request()

    def _next_request(self) -> TransactionRequest | None:
        # Under the lock, for senders add partitions to the transaction meanwhile.
        with self._accumulator.lock:
            return self._txn.next_request(self._accumulator.has_incomplete)

    async def _send(self, request: TransactionRequest) -> Verdict:
        try:
            if request.coordinator is None:
                response: Any = await self._cluster.call_any(
                    request.message, max_version=request.max_version
                )
            else:
                await self._learn_versions(request)
                response = await self._cluster.call_coordinator(
                    *request.coordinator, request.message, max_version=request.max_version
                )
        except KafkaError as error:
            verdict = self._txn.on_failure(request, error)
            return RETRY._replace(find_coordinator=True) if verdict.retry else verdict
        return self._txn.on_response(request, response)

    async def _learn_versions(self, request: TransactionRequest) -> None:
        """Before the first request: what the coordinator and its cluster can do."""
        status = self._txn.status
        kind, key = request.coordinator or (CoordinatorType.TRANSACTION, "")
        if status.producer_id.is_valid or kind is not CoordinatorType.TRANSACTION:
            return
        node = await self._cluster.coordinator(kind, key)
        versions = await self._cluster.versions(node)
        status.coordinator_bumps_epochs = (
            versions.max_version_of(ApiKey.INIT_PRODUCER_ID) >= _INIT_PRODUCER_ID_BUMPS
        )
        status.update_features(
            versions.finalized_features_epoch,
            versions.finalized_features.get("transaction.version", 0),
            on_initialization=True,
        )
