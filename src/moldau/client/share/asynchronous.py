"""The share consumer for asyncio."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack
from uuid import UUID

from moldau.client.consumer.guard import TaskGuard
from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.errors import IllegalStateError, KafkaError
from moldau.client.share.core import ShareCore
from moldau.client.share.face import CLOSE_TIMEOUT_S, POLL_TIMEOUT_S, ShareFace, callback_error
from moldau.client.share.machine.acknowledgements import TopicIdPartition
from moldau.client.share.settings import ShareSettings
from moldau.client.type_parameters import K, V

if TYPE_CHECKING:
    from moldau.client.config.keywords import ShareConsumerKeywords

__all__ = ["AsyncShareConsumer"]


class AsyncShareConsumer(ShareFace[K, V]):
    """As `ShareConsumer`; what may wait there is a coroutine here. One task at a time may use it,
    only `wakeup` may come from elsewhere. The commit callback may be a coroutine function."""

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ShareConsumerKeywords]
    ) -> None:
        checked = ShareSettings.of(config, settings)
        self._guard = TaskGuard()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._core = ShareCore(checked, self._soon)

    def _soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread_id = threading.get_ident()
        if threading.get_ident() == self._thread_id:
            self._loop.call_soon(callback, *arguments)
        else:
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _give_up_subscription(self) -> None:
        raise IllegalStateError(
            "subscribing to no topics leaves the group, which takes time",
            advice="await unsubscribe()",
        )

    async def unsubscribe(self) -> None:
        """Leave the group. Records that were returned can still be acknowledged.

        >>> await consumer.unsubscribe()
        """
        with self._inside():
            core = self._core
            await core.unsubscribe(core.deadline(None))

    async def poll(self, timeout: float = POLL_TIMEOUT_S) -> ConsumerRecords[K, V]:
        """Return records as soon as there are any, or none after `timeout` seconds.

        Acknowledges all records of the last poll with ACCEPT, unless `share.acknowledgement.mode`
        is explicit: then each of them must have been acknowledged.

        >>> for record in await consumer.poll(1.0):
        ...     print(record.value)
        """
        with self._inside():
            core = self._core
            await self._settle()
            # Other tasks get their turn also while there is no end of records.
            await asyncio.sleep(0)
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
                    await core.wait(taken, deadline, fetch=fetch)
                    fetch = False
                    await self._settle()
                    core.raise_errors()
            finally:
                core.end_poll()

    async def commit_sync(
        self, timeout: float | None = None
    ) -> dict[TopicIdPartition, KafkaError | None]:
        """Send acknowledgements and wait; returns the error of each partition, None for success.

        >>> results = await consumer.commit_sync()
        >>> print([error for error in results.values() if error is not None])
        """
        with self._inside():
            core = self._core
            await self._settle()
            core.acknowledge_if_implied()
            taken = core.in_flight.take()
            if not taken:
                return {}
            results = await core.commit(taken, core.deadline(timeout))
            await self._settle()
            return results

    async def commit_async(self) -> None:
        """Send acknowledgements; the commit callback is called with the outcome.

        >>> await consumer.commit_async()
        """
        with self._inside():
            await self._settle()
            self._core.acknowledge_if_implied()
            self._core.send(self._core.in_flight.take())

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which the cluster knows this client's metrics (KIP-714).

        >>> print(await consumer.client_instance_id(timeout=5))
        """
        with self._inside():
            core = self._core
            return await core.client_instance_id(core.deadline(timeout))

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Send acknowledgements, release all other records, leave the group.

        >>> await consumer.close(timeout=5)
        """
        if self._guard.closed:
            return
        with self._inside():
            core = self._core
            try:
                await core.close(core.deadline(timeout))
                await self._settle()
            finally:
                self._guard.closed = True
                self._release()

    async def _settle(self) -> None:
        """Take over what nodes answered, and call the callback."""
        problem: BaseException | None = None
        for offsets, error in self._core.settle():
            if self._callback is None:
                continue
            self._in_callback = True
            try:
                result = self._callback(offsets, error)
                if inspect.isawaitable(result):
                    await result
            except Exception as caught:
                problem = problem or caught
            finally:
                self._in_callback = False
        if problem is not None:
            raise callback_error(problem) from problem

    async def __aenter__(self) -> Self:
        """Raises ConfigError if no name in `bootstrap.servers` resolves, as the first call does
        otherwise."""
        await self._core.cluster.bootstrap.resolve()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
