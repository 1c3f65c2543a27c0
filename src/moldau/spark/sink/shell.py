"""Acts for the protocol: one connection to a cluster per process and settings, kept for reuse.

Invariants: the steps of one attempt run one after the other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Mapping
from typing import Any, Final, TypeVar, assert_never

from moldau.client.admin import TransactionState
from moldau.client.config import ADMIN_KEYS, keys_of
from moldau.client.errors import KafkaError
from moldau.client.loop_thread import LoopThread
from moldau.spark.client_cache import ClientCache
from moldau.spark.sink.machine import protocol
from moldau.spark.sink.machine.log import (
    PARTITION_COUNT,
    SinksLog,
    decision_key,
    part_key,
    partition_of,
)
from moldau.spark.sink.machine.protocol import Opened, Token
from moldau.spark.sink.operations import SinkOperations

__all__ = ["SinkCluster", "clusters"]

IDLE_MAX: Final = 4

T = TypeVar("T")

# Transactions end within milliseconds, so it is worth while to ask again soon.
_BACKOFF = {"retry.backoff.ms": "20"}


class SinkCluster:
    """See the module. Several threads may use it."""

    def __init__(self, config: Mapping[str, str]) -> None:
        known = keys_of(ADMIN_KEYS, config)
        self._thread = LoopThread("moldau-spark-sink")
        self._lock = threading.Lock()
        self._logs: dict[int, SinksLog] = {}
        self._tokens: dict[str, Token] = {}
        self._has_topic = False
        self._timeout_ms: int | None = None
        self._admin = self._thread.call(_admin(_BACKOFF | known))

    def open_attempt(self, prefix: str) -> Opened:
        with self._lock:
            opened = self.run(protocol.open_attempt(prefix, self._tokens.get(prefix)))
            self._tokens[prefix] = opened.token
            return opened

    def run(self, steps: Generator[protocol.Step, Any, T]) -> T:
        """Do what a generator of the protocol asks for, to its end."""
        # All of it on the loop: to come back for each step would cost two changes of threads.
        return self._thread.call(self._run(steps))

    async def _run(self, steps: Generator[protocol.Step, Any, T]) -> T:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await self._perform(step)

    async def _perform(self, step: protocol.Step) -> Any:
        admin = self._admin
        match step:
            case protocol.InitProducer(key, expected):
                return await admin.init_producer(key, expected)
            case protocol.ReadLog(prefix):
                return await self._read_log(prefix)
            case protocol.EndTransactions(transactions, is_commit):
                return await admin.end_transactions(transactions, is_commit=is_commit)
            case protocol.Fence(keys):
                return await admin.transactions.fence_producers(keys)
            case protocol.ListOpen(prefix):
                return await self._open_ids(prefix)
            case protocol.StillOpen(transactions):
                return await admin.gone(transactions)
            case protocol.WriteDecision(prefix, decision):
                key = protocol.coordinator_id(prefix)
                record = decision_key(prefix), decision.to_json()
                await self._ensure_topic()
                partition = partition_of(prefix, PARTITION_COUNT)
                return await admin.write_decision(key, decision.token, partition, record)
            case _:
                assert_never(step)

    async def _ensure_topic(self) -> None:
        if not self._has_topic:
            await self._admin.ensure_topic()
            self._has_topic = True

    async def _read_log(self, prefix: str) -> SinksLog:
        await self._ensure_topic()
        partition = partition_of(prefix, PARTITION_COUNT)
        # One that fails in the middle is read on from there: what it has received is complete.
        log = self._logs.setdefault(partition, SinksLog())
        self._logs[partition] = log = await self._admin.read_log(partition, log)
        return log

    async def _open_ids(self, prefix: str) -> list[str]:
        pattern = re.compile(rf"{re.escape(prefix)}-\d+")
        listed = await self._admin.transactions.list_transactions(
            filtered_states=[TransactionState.ONGOING]
        )
        ids = [each.transactional_id for each in listed]
        return [each for each in ids if pattern.fullmatch(each)]

    def forget(self, prefix: str, transactional_ids: list[str]) -> None:
        """Tombstones for a prefix that is used for one write only."""
        keys = [decision_key(prefix), *map(part_key, transactional_ids)]
        self._thread.call(self._admin.forget(partition_of(prefix, PARTITION_COUNT), keys))

    def transaction_timeout_ms(self, wanted_ms: int) -> int:
        """The wanted one, or what brokers accept at most."""
        if self._timeout_ms is None:
            try:
                found = self._thread.call(self._admin.transaction_timeout_ms_max())
            except KafkaError:
                # Not every user may read the configuration of brokers.
                found = None
            self._timeout_ms = wanted_ms if found is None else min(wanted_ms, found)
        return self._timeout_ms

    def close(self) -> None:
        try:
            self._thread.call(self._admin.close())
        finally:
            self._thread.stop()


async def _admin(config: Mapping[str, str]) -> SinkOperations:
    return SinkOperations(config)


#: Kept with what they know of the sinks' log, so that the next batch need not read it again.
clusters: Final = ClientCache(SinkCluster, SinkCluster.close, idle_max=IDLE_MAX, shared=True)
