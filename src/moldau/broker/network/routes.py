"""Which APIs a listener serves: the table that the dispatcher and ApiVersions both read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import Reply
from moldau.wire.apis import Api
from moldau.wire.message import Message

#: Takes and returns messages; may be `async def`.
GenericHandler: TypeAlias = Callable[[RequestContext, Any], Message | Awaitable[Message]]
#: Takes the frame and the position of the body in it, returns complete response frames. It must be
#: done with the frame, a view of the shared receive buffer, when it returns; if it has to wait, it
#: returns an awaitable. (An `async def` raw handler gets its own copy of the frame.)
RawHandler: TypeAlias = Callable[[RequestContext, memoryview, int], Reply | Awaitable[Reply]]


class Route:
    """How one API is answered, and in which versions."""

    __slots__ = ("handle", "max_version", "min_version", "pipelined", "prompt", "raw")

    def __init__(
        self,
        handle: GenericHandler | RawHandler,
        raw: bool = False,
        min_version: int | None = None,
        max_version: int | None = None,
        pipelined: bool = False,
        prompt: bool = False,
    ) -> None:
        """Versions left out are the API's own. While a `pipelined` request waits for its response,
        the connection's next one of the same kind is handled too. The coroutine of a `prompt` one
        mostly ends without a wait, and is begun without a task (`eager.py`)."""
        self.handle = handle
        self.raw = raw
        self.pipelined = pipelined
        self.prompt = prompt
        self.min_version = min_version
        self.max_version = max_version

    def versions(self, api: Api) -> range:
        """The versions that are answered."""
        low = api.min_version if self.min_version is None else self.min_version
        high = api.max_version if self.max_version is None else self.max_version
        return range(low, high + 1)
