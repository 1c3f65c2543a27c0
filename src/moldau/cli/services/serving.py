"""Runs a service in the foreground until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlsplit

from moldau.cli.support.failures import Failure, listen_problem
from moldau.cli.support.output import print_now
from moldau.client.errors import KafkaError
from moldau.collecting import collecting_rarely
from moldau.config.errors import ConfigError

__all__ = ["Runnable", "serve"]


class Runnable(Protocol):
    """A service, made on the loop that serves."""

    @property
    def urls(self) -> list[str]: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def serve(
    make: Callable[[], Runnable],
    ready_text: Callable[[Runnable], str],
    *,
    failures: tuple[type[Exception], ...] = (),
) -> int:
    """`failures` are the service's own exceptions that a user can do something about."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("moldau.http.access").setLevel(logging.WARNING)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(make, ready_text))
    except Exception as error:
        if isinstance(error, (ConfigError, KafkaError, *failures)):
            raise Failure(_message(error)) from None
        raise
    return 0


def _message(error: Exception) -> str:
    """Of a port that is taken, with who has it."""
    if isinstance(error, ConfigError) and error.key == "listeners" and error.value:
        address = urlsplit(error.value)
        problem = listen_problem(address.hostname or "", address.port or 0)
        if problem is not None:
            return f"The listener {error.value} cannot be opened: {problem}"
    return str(error)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(make: Callable[[], Runnable], ready_text: Callable[[Runnable], str]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    service = make()
    starting = asyncio.ensure_future(service.start())
    waiting = asyncio.ensure_future(stopped.wait())
    await asyncio.wait((starting, waiting), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
    else:
        starting.result()
        print_now(ready_text(service))
        with collecting_rarely():
            await waiting
    waiting.cancel()
    await service.stop()
