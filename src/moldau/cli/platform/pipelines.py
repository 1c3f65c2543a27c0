"""Pipelines and their Spark as a part of the platform.

`moldau pipelines start` starts the control loop, and the loop starts Spark, when there is a
pipeline to run: until then neither costs anything. What is here owns their directory, so that both
end with `moldau up` in whatever way it ends, keeps the loop running once it has run, and stops both
in order. The next `moldau up` continues what ran.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, Final

from moldau.cli.brokers.start_with_spark import look
from moldau.cli.nodes.machine import supervision
from moldau.cli.platform.folder import PlatformFolder
from moldau.pipelines.control.folder import ControlFolder, Lock
from moldau.spark.runtime.server import ConnectServer

__all__ = ["Pipelines"]

_LOOK_S: Final = 1.0
_LOOP_S_MAX: Final = 60.0
_NOTHING: Final = supervision.Seen(loop=None, spark=None, wanted=False)


class Pipelines:
    """The control loop and the Spark server of one platform."""

    def __init__(
        self, folder: PlatformFolder, lock: Lock, *, bootstrap_servers: str, at_once: bool
    ) -> None:
        self._server = ConnectServer(folder.spark)
        self._folder = ControlFolder(folder.spark)
        self._platform = folder
        self._lock = lock
        self._bootstrap_servers = bootstrap_servers
        self._at_once = at_once or bool(folder.fixed.get("pipelines"))
        self._broker_up = asyncio.Event()
        self._seen = _NOTHING
        self._since_ms = int(time.time() * 1000)
        self._problem: str | None = None

    def on_broker_up(self) -> None:
        self._broker_up.set()

    async def keep(self, say: Callable[[str], None]) -> None:
        """Start the loop if it ran before, and keep it running once it has run."""
        await self._broker_up.wait()
        if self._at_once:
            await self._start(say)
        await self._until(lambda seen: seen.loop is not None)
        self._platform.fix({"pipelines": True})
        await asyncio.to_thread(self._folder.set_keep_server, True)
        say(f"Pipelines are kept running by process {self._seen.loop}; Spark starts with them.")
        seen = await self._until(lambda seen: seen.spark is not None or seen.loop is None)
        if seen.spark is not None:
            say(f"Spark is up (process {seen.spark}).")
        machine = supervision.Supervisor(
            random.SystemRandom(), await self._look(), now_ms=_monotonic_ms()
        )
        while True:
            await asyncio.sleep(_LOOK_S)
            for effect in machine.step(await self._look(), _monotonic_ms()):
                match effect:
                    case supervision.Say(text):
                        say(text)
                    case supervision.StartLoop():
                        await self._start(say)
                    case _:
                        pass

    async def _until(self, is_so: Callable[[supervision.Seen], bool]) -> supervision.Seen:
        """Nothing reports what other programs start."""
        while not is_so(seen := await self._look()):  # noqa: ASYNC110 - see above
            await asyncio.sleep(_LOOK_S)
        return seen

    async def _start(self, say: Callable[[str], None]) -> None:
        from moldau.pipelines import daemon
        from moldau.pipelines.errors import PipelineError

        try:
            await asyncio.to_thread(
                daemon.ensure_running,
                self._folder.path,
                self._bootstrap_servers,
                keep_server=True,
                timeout=_LOOP_S_MAX,
            )
            self._problem = None
        except (PipelineError, OSError) as error:
            self._problem = " ".join(str(error).split())
            say(f"The control loop of pipelines cannot be started: {self._problem}.")

    async def _look(self) -> supervision.Seen:
        seen = await asyncio.to_thread(look, self._server, self._folder)
        if (seen.loop, seen.spark) != (self._seen.loop, self._seen.spark):
            self._since_ms = int(time.time() * 1000)
        self._seen = seen
        return seen

    def status(self) -> dict[str, Any]:
        """As the fields of a service; Spark's user interface is its address."""
        loop, spark = self._seen.loop, self._seen.spark
        state = "up" if loop is not None and spark is not None else "starting" if loop else "idle"
        return {
            "name": "pipelines",
            "title": "Pipelines, Spark",
            "address": "",
            "state": state,
            "pid": spark or loop,
            "sinceMs": self._since_ms,
            "restarts": 0,
            "problem": self._problem if loop is None else None,
            "nextMs": None,
        }

    async def stop(self, killing: asyncio.Event, say: Callable[[str], None]) -> bool:
        """Queries end in order, then Spark; False if they had to be killed."""
        from moldau.cli.pipelines.spark import stop_all
        from moldau.pipelines import daemon
        from moldau.pipelines.errors import PipelineError
        from moldau.spark.runtime.errors import SparkRuntimeError

        stopping = asyncio.ensure_future(asyncio.to_thread(stop_all, self._server))
        kill = asyncio.ensure_future(killing.wait())
        in_order = True
        try:
            await asyncio.wait([stopping, kill], return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                await asyncio.to_thread(self._server.kill)
                await asyncio.to_thread(daemon.kill, self._folder.path)
                in_order = False
            await stopping
        except (SparkRuntimeError, PipelineError) as error:
            say(str(error))
            in_order = False
        finally:
            kill.cancel()
            self._folder.disown(self._lock)
        return in_order


def _monotonic_ms() -> int:
    return int(time.monotonic() * 1000)
