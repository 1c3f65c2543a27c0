"""Publishes orders, and says so only when they are safe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer


@dataclass(frozen=True)
class Order:
    number: int
    customer: str
    amount: int


class NotPublished(Exception):
    """An order that the cluster has not taken; the caller may try again later."""


class OrderPublisher:
    def __init__(
        self,
        bootstrap_servers: str,
        topic: str = "orders",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "delivery.timeout.ms": 10_000,
                **(settings or {}),
            }
        )

    def publish(self, *orders: Order) -> None:
        """Returns when all are written; those of one customer stay in their order."""
        failed: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)

        for order in orders:
            value = json.dumps(asdict(order))
            self._producer.produce(
                self._topic, key=order.customer, value=value, on_delivery=on_delivery
            )
        self._producer.flush()
        if failed:
            raise NotPublished(f"{len(failed)} of {len(orders)} orders: {failed[0].str()}")
