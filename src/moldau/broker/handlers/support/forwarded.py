"""What a broker's handlers need for requests that the active controller decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.message import Message

#: Has the active controller answer.
Forward: TypeAlias = Callable[[RequestContext, Message], Awaitable[Message]]
#: Waits until a condition is true of this node's metadata and its partitions are open, bounded.
Settled: TypeAlias = Callable[[Callable[[MetadataImage], bool], int], Awaitable[object]]

#: How long a response about new partitions waits until this broker has them.
SETTLED_MS_MAX: Final = 1_000
