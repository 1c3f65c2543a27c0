"""Publishes changes of the committed metadata, and of its leader, within this node.

Invariant: listeners are called in log order, each with the whole image first; one that fails does
not keep the others from what is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage

Listener = Callable[[MetadataDelta, MetadataImage], None]

logger = logging.getLogger(__name__)


class Publication:
    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._leader_listeners: list[Callable[[], None]] = []

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def add_for_leader(self, callback: Callable[[], None]) -> None:
        self._leader_listeners.append(callback)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for listener in tuple(self._listeners):
            self.publish_to(listener, delta, image)

    def publish_to(self, listener: Listener, delta: MetadataDelta, image: MetadataImage) -> None:
        try:
            listener(delta, image)
        except Exception:
            logger.exception("a metadata listener failed")

    def publish_leader(self) -> None:
        for callback in tuple(self._leader_listeners):
            try:
                callback()
            except Exception:
                logger.exception("a listener for changes of the metadata leader failed")
