"""Waiting until the metadata image of this node has a change that the controller made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.clock import Clock

Condition = Callable[[MetadataImage], bool]


class ImageWaits:
    """A listener of the metadata, after those that must apply a change before the wait ends."""

    def __init__(self, image: Callable[[], MetadataImage], clock: Clock) -> None:
        self._image = image
        self._clock = clock
        self._waiting: dict[asyncio.Future[bool], Condition] = {}

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for future, condition in tuple(self._waiting.items()):
            if not future.done() and condition(image):
                future.set_result(True)

    async def until(self, condition: Condition, *, timeout_ms: int) -> bool:
        """Whether `condition` has become true of the image in time."""
        if condition(self._image()):
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(
            timeout_ms, lambda: None if future.done() else future.set_result(False)
        )
        self._waiting[future] = condition
        try:
            return await future
        finally:
            alarm.cancel()
            del self._waiting[future]
