"""Runs an HTTP service of Moldau in a test: on a free port, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Running", "running"]


class Runnable(Protocol):
    """An `HttpServer`, or a service that has one."""

    @property
    def urls(self) -> list[str]: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass
class Running:
    """A service that runs; `call` awaits something on its loop."""

    service: Any
    url: str
    loop: asyncio.AbstractEventLoop

    def call(self, make: Callable[[], Awaitable[Any]], timeout: float = 30) -> Any:
        async def awaited() -> Any:
            return await make()

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result(timeout)


@contextmanager
def running(make: Callable[[], Runnable]) -> Iterator[Running]:
    """`make` is called on the loop that the service runs on."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> Any:
        service = make()
        await service.start()
        return service

    try:
        service = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
        try:
            yield Running(service, service.urls[0], loop)
        finally:
            asyncio.run_coroutine_threadsafe(service.stop(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
