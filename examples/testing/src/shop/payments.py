"""Takes payments: for every order exactly one, whatever crashes in between.

Orders read and payments written belong to one transaction, so either both count or neither does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TIMEOUT_S = 30.0


class PaymentProcessor:
    def __init__(
        self,
        bootstrap_servers: str,
        *,
        orders: str = "orders",
        payments: str = "payments",
        name: str = "payments-1",
        before_commit: Callable[[list[Message]], None] = lambda messages: None,
    ) -> None:
        self._payments = payments
        self._before_commit = before_commit
        self._stopping = threading.Event()
        common: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "client.id": name}
        self._consumer = Consumer(
            common
            | {
                "group.id": "payments",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "heartbeat.interval.ms": 500,
            }
        )
        self._producer = Producer(
            common | {"transactional.id": name, "transaction.timeout.ms": 20_000}
        )
        self._consumer.subscribe([orders])

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Until `stop`, or an error that a retry cannot fix."""
        try:
            self._retry(self._producer.init_transactions, TIMEOUT_S)
            while not self._stopping.is_set():
                messages = [m for m in self._consumer.consume(10, 0.2) if m.error() is None]
                if messages:
                    self._take(messages)
        finally:
            self._consumer.close()

    def _take(self, messages: list[Message]) -> None:
        try:
            self._producer.begin_transaction()
            for message in messages:
                order = json.loads(message.value() or b"")
                payment = {"order": order["number"], "amount": order["amount"]}
                self._producer.produce(
                    self._payments, key=str(order["number"]), value=json.dumps(payment)
                )
            self._before_commit(messages)
            self._retry(
                self._producer.send_offsets_to_transaction,
                _after(messages),
                self._consumer.consumer_group_metadata(),
                TIMEOUT_S,
            )
            self._retry(self._producer.commit_transaction, TIMEOUT_S)
        except KafkaException as problem:
            if not _error(problem).txn_requires_abort():
                raise
            self._retry(self._producer.abort_transaction, TIMEOUT_S)
            self._rewind(messages)

    def _retry(self, call: Callable[..., object], *arguments: Any) -> None:
        while True:
            try:
                call(*arguments)
                return
            except KafkaException as problem:
                if not _error(problem).retriable():
                    raise

    def _rewind(self, messages: list[Message]) -> None:
        """Read again what was in the transaction that did not count."""
        first: dict[tuple[str, int], int] = {}
        for message in messages:
            first.setdefault((message.topic(), message.partition()), message.offset())
        assigned = {(each.topic, each.partition) for each in self._consumer.assignment()}
        for where, offset in first.items():
            if where in assigned:
                self._consumer.seek(TopicPartition(*where, offset))


def _after(messages: list[Message]) -> list[TopicPartition]:
    """The offsets behind these messages."""
    last = {(each.topic(), each.partition()): each.offset() + 1 for each in messages}
    return [TopicPartition(*where, offset) for where, offset in last.items()]


def _error(problem: KafkaException) -> KafkaError:
    error: KafkaError = problem.args[0]
    return error
