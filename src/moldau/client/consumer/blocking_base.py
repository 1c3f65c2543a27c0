"""The hand-written part of the consumer for threads; tools/generate_twins.py generates the rest.

By hand: the constructor, the end of the thread, and iteration, which `yield from` makes faster.
Invariants: whatever may wait runs on the client's own loop, and callbacks of the application
run in the calling thread meanwhile; records are taken and decoded in the calling thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from moldau.client.callbacks import BlockingCalls
from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.face import ITERATION_S, POLL_TIMEOUT_S, ConsumerFace
from moldau.client.consumer.guard import ThreadGuard
from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.consumer.settings import consumer_settings
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.environment import ENVIRONMENT
from moldau.client.type_parameters import K, V

if TYPE_CHECKING:
    from moldau.client.config.keywords import ConsumerKeywords

__all__ = ["BlockingConsumer"]


class BlockingConsumer(ConsumerFace[K, V]):
    """Reads topics. One thread at a time may use it; only `wakeup` may come from another.

    Settings are Kafka's, as a mapping or as keyword arguments with underscores. Timeouts are
    seconds; without one `default.api.timeout.ms` is the limit.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ConsumerKeywords]
    ) -> None:
        checked = consumer_settings(config, settings)
        self._guard = ThreadGuard()
        self._thread = ENVIRONMENT.get().thread(checked.client_id)
        self._calls = BlockingCalls(self._thread)
        try:
            self._core = ConsumerCore(checked, self._calls, self._thread.soon)
            self._thread.call(self._core.cluster.bootstrap.resolve())
        except BaseException:
            self._thread.stop()
            raise
        self._thread.ended_with(self, f"Consumer {checked.client_id!r}", self._core.abandon)

    @abstractmethod
    def poll(self, timeout: float = POLL_TIMEOUT_S) -> ConsumerRecords[K, V]:
        """Generated."""

    @abstractmethod
    def unsubscribe(self) -> None:
        """Generated."""

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Iterate over records until `close`. A record is consumed once it was returned."""
        while not self._guard.closed:
            records = self.poll(ITERATION_S)
            iteration = self._begin_iteration(records)
            try:
                yield from iteration
            finally:
                self._end_iteration(iteration)

    def _give_up_subscription(self) -> None:
        self.unsubscribe()

    def _release(self) -> None:
        self._thread.stop()

    @abstractmethod
    def close(self) -> None:
        """Generated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
