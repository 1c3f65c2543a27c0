"""Keeps a trail of all orders, with Moldau's own client; auditors share the topic as a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.client import Consumer
from moldau.client.errors import WakeupError


class Auditor:
    def __init__(
        self, bootstrap_servers: str, seen: Callable[[int], None], **settings: Any
    ) -> None:
        """`seen` is called with the number of each order."""
        self._seen = seen
        self._consumer = Consumer(
            bootstrap_servers=bootstrap_servers,
            group_id="audit",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            value_deserializer="json",
            **settings,
        )

    def run(self) -> None:
        """Until `stop`."""
        with self._consumer as consumer:
            consumer.subscribe(["orders"])
            try:
                while True:
                    for record in consumer.poll(timeout=1.0):
                        self._seen(record.value["number"])
                    consumer.commit_sync()
            except WakeupError:
                # It may have come instead of a commit.
                consumer.commit_sync()

    def stop(self) -> None:
        """From another thread."""
        self._consumer.wakeup()
