"""A distributed Connect worker as one instance of a hosted application.

Spark places the workers and starts them again; the workers' own group decides which of them runs a
connector or a task, as it does for workers in processes of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.services.connect.app import ConnectWorker
from moldau.spark.hosting.context import HostedContext

__all__ = ["PROGRAM", "run", "settings_of"]

#: What the control loop starts.
PROGRAM: Final = "moldau.services.connect.on_spark:run"
_LISTENERS: Final = "listeners"
_DEFAULT_LISTENER: Final = "http://127.0.0.1:8083"


def run(context: HostedContext) -> None:
    """Serve until the instance is to stop."""
    asyncio.run(_serve(context))


async def _serve(context: HostedContext) -> None:
    config = WorkerConfig.of(settings_of(context.settings, context.instance), distributed=True)
    worker = ConnectWorker(config, distributed=True, connectors=[])
    try:
        await worker.start()
        context.report(state="RUNNING", urls=list(worker.urls))
        await asyncio.to_thread(context.stopping.wait)
    finally:
        await worker.stop()


def settings_of(settings: Mapping[str, Any], instance: int) -> dict[str, str]:
    """Of one worker: it listens on a port of its own, from the first one's on."""
    own = {name: str(value) for name, value in settings.items()}
    listeners = own.get(_LISTENERS, _DEFAULT_LISTENER).split(",")
    own[_LISTENERS] = ",".join(_shifted(each.strip(), instance) for each in listeners)
    return own


def _shifted(listener: str, instance: int) -> str:
    head, _, port = listener.rpartition(":")
    return f"{head}:{int(port) + instance}" if int(port) else listener
