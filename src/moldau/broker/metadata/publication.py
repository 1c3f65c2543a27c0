"""Publishes changes of the committed metadata, and of its leader, within this node.

Invariant: listeners are called in log order, each with the whole image first; one that fails does
not keep the others from what is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.broker.faults import contained
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage

Listener = Callable[[MetadataDelta, MetadataImage], None]


class Publication:
    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._leader_listeners: list[Callable[[], None]] = []
        #: How often a listener has failed.
        self.failure_count = 0

    def add(self, *listeners: Listener) -> None:
        self._listeners.extend(listeners)

    def add_for_leader(self, callback: Callable[[], None]) -> None:
        self._leader_listeners.append(callback)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.publish_to(tuple(self._listeners), delta, image)

    def publish_to(
        self, listeners: Iterable[Listener], delta: MetadataDelta, image: MetadataImage
    ) -> None:
        for listener in listeners:
            name = getattr(listener, "__qualname__", repr(listener))
            if not contained(f"the metadata listener {name}", listener, delta, image):
                self.failure_count += 1

    def publish_leader(self) -> None:
        for callback in tuple(self._leader_listeners):
            contained("a listener for changes of the metadata leader", callback)
