"""The hand-written part of the blocking producer; tools/generate_twins.py generates the rest.

By hand: the constructor and the end, which differ by the thread, and `send`, which must not take
longer than it has to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack
from weakref import WeakSet

from moldau.client.errors import KafkaError
from moldau.client.machine.producer_records import ProducerRecord
from moldau.client.other_clients import PRODUCER_NAMES, point_from
from moldau.client.producer._batch import DeliveryCallback, RecordFuture
from moldau.client.producer._send_path import Outgoing
from moldau.client.producer.at_exit import watch
from moldau.client.producer.core import ProducerCore
from moldau.client.producer.settings import producer_settings

if TYPE_CHECKING:
    from moldau.client.config.keywords import ProducerKeywords

from moldau.client.environment import ENVIRONMENT

__all__ = ["BlockingProducer"]

_producers: WeakSet[BlockingProducer] = WeakSet()


def _after_fork() -> None:
    """In the child nobody sends what is put into batches: `send` leaves its short way."""
    for producer in list(_producers):
        producer._path.closed = True


os.register_at_fork(after_in_child=_after_fork)


@point_from(PRODUCER_NAMES)
class BlockingProducer:
    """Sends records to a Kafka cluster.

    Settings have Kafka's names, in a mapping (`"linger.ms"`) or as keyword arguments
    (`linger_ms`). `send` appends a record to a batch and returns; a thread of the producer's sends
    the batches. Use it in a `with` statement, or `close` it.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ProducerKeywords]
    ) -> None:
        self._core = ProducerCore(producer_settings(config, settings))
        self._path = self._core.path
        self._thread = ENVIRONMENT.get().thread(f"moldau-producer {self._core.settings.client_id}")
        self._closed = False
        try:
            self._thread.call(self._core.start())
        except BaseException:
            self._thread.stop()
            raise
        _producers.add(self)
        # What was sent still goes out.
        name = f"Producer {self._core.settings.client_id!r}"
        self._thread.ended_with(self, name, self._core.close)
        watch(self)

    def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Any = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> RecordFuture:
        """Append a record to a batch, which is sent in the background.

        Blocks for at most `max.block.ms`, while the topic is not known or `buffer.memory` is full.
        An error of the record is raised by the future, and `on_delivery(metadata, error)` is
        called in the producer's thread, in order within a partition.

        >>> future = producer.send("orders", b"two beers", key=b"table 5")
        >>> print(future.result(timeout=10).offset)
        """
        future = self._path.send(topic, value, key, partition, timestamp, headers, on_delivery)
        if isinstance(future, Outgoing):
            return self._send_slowly(future)
        return future

    def _send_slowly(self, outgoing: Outgoing) -> RecordFuture:
        core = self._core
        self._thread.check_process()
        until_ms = core.block_until_ms(outgoing)
        try:
            while True:
                future = self._path.retry(outgoing)
                if future is not None:
                    return future
                if core.lacks_memory(outgoing):
                    self._thread.check()
                    core.memory.wait_in_thread(outgoing, until_ms)
                else:
                    self._thread.call(core.await_room(outgoing, until_ms))
        except KafkaError as error:
            return core.refused(outgoing, error)
        finally:
            core.memory.release(outgoing)

    def close(self, timeout: float | None = None) -> None:
        """Send the remaining records, and fail those that are not acknowledged within `timeout`
        seconds. In a delivery callback it does not wait.

        >>> producer.close(timeout=5)
        """
        if self._closed:
            return
        self._closed = True
        if self._thread.on_it:
            # In a delivery callback: nothing can be waited for here, so what is left fails.
            closing = self._thread.loop.create_task(self._core.close(0.0))
            closing.add_done_callback(lambda _: self._thread.stop())
            return
        try:
            self._thread.call(self._core.close(timeout))
        finally:
            self._thread.stop()

    def leave(self, timeout: float) -> tuple[ProducerCore, Future[None]] | None:
        """Begin to close at the end of the process."""
        if self._closed:
            return None
        self._closed = True
        try:
            return self._core, self._thread.submit(self._core.close(timeout))
        except KafkaError:
            return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core.described(closed=self._closed)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
