"""The consumer for threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.client._records import ConsumerRecord
from moldau.client.callbacks import BlockingCalls
from moldau.client.consumer.consumer_records import ConsumerRecords
from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.face import ConsumerFace
from moldau.client.consumer.guard import ThreadGuard
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.loop_thread import LoopThread

__all__ = ["Consumer"]


class Consumer(ConsumerFace):
    """Reads topics. One thread at a time may use it; only `wakeup` may come from another."""

    def __init__(self, config: Mapping[str, Any] | None = None, **settings: Any) -> None:
        checked = ConsumerSettings.of(config, settings)
        self._guard = ThreadGuard()
        self._thread = LoopThread(checked.client_id)
        self._calls = BlockingCalls(self._thread)
        try:
            self._core = ConsumerCore(checked, self._calls, self._thread.soon)
        except BaseException:
            self._thread.stop()
            raise

    def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """Records, as soon as there are any; none if there are none within `timeout` seconds."""
        with self._guard:
            core = self._core
            if not core.needs_step:
                records = core.collect()
                if records:
                    return records
            deadline = core.deadline(timeout)
            while True:
                self._calls.call(core.step(deadline))
                records = core.collect()
                if records or deadline.passed:
                    return records

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while not self._guard.closed:
            yield from self.poll(1.0)

    def close(self, timeout: float | None = None) -> None:
        if self._guard.closed:
            return
        with self._guard:
            core = self._core
            self._calls.call(core.close(core.deadline(timeout)))
            self._guard.closed = True
            self._thread.stop()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
