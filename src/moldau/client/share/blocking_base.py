"""The hand-written part of the share consumer for threads.

tools/generate_twins.py generates the rest.

By hand: the constructor, the end of the thread, and the callback, which is not awaited here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from moldau.client.callbacks import BlockingCalls
from moldau.client.consumer.guard import ThreadGuard
from moldau.client.environment import ENVIRONMENT
from moldau.client.share.core import ShareCore
from moldau.client.share.face import ShareFace, callback_error
from moldau.client.share.settings import ShareSettings
from moldau.client.type_parameters import K, V

if TYPE_CHECKING:
    from moldau.client.config.keywords import ShareConsumerKeywords

__all__ = ["BlockingShareConsumer"]


class BlockingShareConsumer(ShareFace[K, V]):
    """Reads topics as a member of a share group, and acknowledges each record.

    One thread at a time may use it; only `wakeup` may come from another. Settings are Kafka's, as
    a mapping or as keyword arguments with underscores. Timeouts are seconds; without one
    `default.api.timeout.ms` is the limit.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[ShareConsumerKeywords]
    ) -> None:
        checked = ShareSettings.of(config, settings)
        self._guard = ThreadGuard()
        self._thread = ENVIRONMENT.get().thread(checked.client_id)
        self._calls = BlockingCalls(self._thread)
        try:
            self._core = ShareCore(checked, self._thread.soon)
            self._thread.call(self._core.cluster.bootstrap.resolve())
        except BaseException:
            self._thread.stop()
            raise
        name = f"ShareConsumer {checked.client_id!r}"
        self._thread.ended_with(self, name, self._core.abandon)

    @abstractmethod
    def unsubscribe(self) -> None:
        """Generated."""

    def _give_up_subscription(self) -> None:
        self.unsubscribe()

    def _release(self) -> None:
        self._thread.stop()

    def _settle(self) -> None:
        """Take over what nodes answered, and call the callback."""
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

    @abstractmethod
    def close(self) -> None:
        """Generated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
