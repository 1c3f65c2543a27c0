"""A client that behaves, beside the attack: it writes numbered records and reads them all."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from fuzz.target import TOPIC

_PAUSE_S: Final = 0.01
_FINISH_SECONDS_MAX: Final = 60.0


class Bystander:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self.errors: list[str] = []
        self.latencies_s: list[float] = []
        self.read: list[int] = []
        self._settings = dict(settings)
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, name="writer", daemon=True),
            threading.Thread(target=self._read, name="reader", daemon=True),
        ]
        self._sent = 0
        self._all_sent = threading.Event()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Stop writing, and wait until everything is read; problems are in `errors`."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(_FINISH_SECONDS_MAX)
        if self.read != list(range(self._sent)):
            self.errors.append(f"{self._sent} records were written, {len(self.read)} read")

    def _on_error(self, error: KafkaError) -> None:
        self.errors.append(str(error))

    def _write(self) -> None:
        producer = Producer(self._settings | {"linger.ms": 0, "error_cb": self._on_error})
        while not self._stopping.is_set():
            began = time.perf_counter()

            def delivered(error: KafkaError | None, _: Any, began: float = began) -> None:
                self.latencies_s.append(time.perf_counter() - began)
                if error is not None:
                    self.errors.append(f"not delivered: {error}")

            producer.produce(TOPIC, b"%d" % self._sent, partition=0, callback=delivered)
            self._sent += 1
            producer.flush(_FINISH_SECONDS_MAX)
            self._stopping.wait(_PAUSE_S)
        self._all_sent.set()

    def _read(self) -> None:
        consumer = Consumer(self._settings | {"group.id": "bystander", "error_cb": self._on_error})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        deadline: float | None = None
        while deadline is None or time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is not None:
                self.errors.append(str(message.error()))
            elif message is not None:
                self.read.append(int(message.value() or b"-1"))
            if self._all_sent.is_set():
                deadline = deadline or time.monotonic() + _FINISH_SECONDS_MAX
                if len(self.read) >= self._sent:
                    break
        consumer.close()
