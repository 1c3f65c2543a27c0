"""The share consumer for threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, Unpack
from uuid import UUID

from moldau.client.callbacks import BlockingCalls
from moldau.client.config.keywords import ShareConsumerKeywords
from moldau.client.consumer.guard import ThreadGuard
from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.errors import KafkaError
from moldau.client.loop_thread import LoopThread
from moldau.client.share.core import ShareCore
from moldau.client.share.face import ShareFace, callback_error
from moldau.client.share.machine.acknowledgements import TopicIdPartition
from moldau.client.share.settings import ShareSettings
from moldau.client.type_parameters import K, V

__all__ = ["CLOSE_TIMEOUT_S", "ShareConsumer"]

CLOSE_TIMEOUT_S = 30.0
POLL_TIMEOUT_S = 1.0


class ShareConsumer(ShareFace[K, V]):
    """Takes records of topics as a member of a share group, and says what became of each.

    One thread at a time may use it; only `wakeup` may come from another. Settings are Kafka's, as
    a mapping or as keyword arguments with underscores. Timeouts are seconds; without one
    `default.api.timeout.ms` is the limit.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ShareConsumerKeywords]
    ) -> None:
        checked = ShareSettings.of(config, settings)
        self._guard = ThreadGuard()
        self._thread = LoopThread(checked.client_id)
        self._calls = BlockingCalls(self._thread)
        try:
            self._core = ShareCore(checked, self._thread.soon)
            self._thread.call(self._core.cluster.bootstrap.resolve())
        except BaseException:
            self._thread.stop()
            raise
        name = f"ShareConsumer {checked.client_id!r}"
        self._thread.ended_with(self, name, self._core.abandon)

    def _give_up_subscription(self) -> None:
        self.unsubscribe()

    def unsubscribe(self) -> None:
        """Leave the group. Records that were given may still be acknowledged.

        >>> consumer.unsubscribe()
        """
        with self._inside():
            core = self._core
            self._calls.call(core.unsubscribe(core.deadline(None)))

    def poll(self, timeout: float = POLL_TIMEOUT_S) -> ConsumerRecords[K, V]:
        """Records, as soon as there are any; none if there are none within `timeout` seconds.

        Accepts all records of the last poll, unless `share.acknowledgement.mode` is explicit: then
        each of them must have been acknowledged.

        >>> for record in consumer.poll(1.0):
        ...     print(record.value)
        """
        with self._inside():
            core = self._core
            self._settle()
            core.begin_poll()
            try:
                deadline = core.deadline(timeout)
                fetch = True
                while True:
                    taken = core.in_flight.take()
                    records = core.collect(taken)
                    if records or (deadline.passed and not fetch):
                        # Nothing that may fail comes in between: records would be accepted unseen.
                        core.send(taken)
                        return records
                    self._calls.call(core.wait(taken, deadline, fetch=fetch))
                    fetch = False
                    self._settle()
                    core.raise_errors()
            finally:
                core.end_poll()

    def commit_sync(
        self, timeout: float | None = None
    ) -> dict[TopicIdPartition, KafkaError | None]:
        """Send acknowledgements and wait: the error of each partition, None if it went well.

        >>> results = consumer.commit_sync()
        >>> print([error for error in results.values() if error is not None])
        """
        with self._inside():
            core = self._core
            self._settle()
            core.acknowledge_if_implied()
            taken = core.in_flight.take()
            if not taken:
                return {}
            results = self._calls.call(core.commit(taken, core.deadline(timeout)))
            self._settle()
            return results

    def commit_async(self) -> None:
        """Send acknowledgements; the commit callback is told what became of them.

        >>> consumer.commit_async()
        """
        with self._inside():
            self._settle()
            self._core.acknowledge_if_implied()
            self._core.send(self._core.in_flight.take())

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """By which the cluster knows this client's metrics (KIP-714).

        >>> print(consumer.client_instance_id(timeout=5))
        """
        with self._inside():
            core = self._core
            return self._calls.call(core.client_instance_id(core.deadline(timeout)))

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Send acknowledgements, release all other records, leave the group.

        >>> consumer.close(timeout=5)
        """
        if self._guard.closed:
            return
        with self._inside():
            core = self._core
            try:
                self._calls.call(core.close(core.deadline(timeout)))
                self._settle()
            finally:
                self._guard.closed = True
                self._thread.stop()

    def _settle(self) -> None:
        """Take over what nodes answered, and tell the callback."""
        problem: BaseException | None = None
        for offsets, error in self._core.settle():
            if self._callback is None:
                continue
            self._in_callback = True
            try:
                self._callback(offsets, error)
            except Exception as caught:
                problem = problem or caught
            finally:
                self._in_callback = False
        if problem is not None:
            raise callback_error(problem) from problem

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
