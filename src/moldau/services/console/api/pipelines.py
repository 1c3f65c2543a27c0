"""Pipelines: states, errors, logs, start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.pipelines.api import PipelineInfo, Pipelines
from moldau.pipelines.errors import PipelineError, UnknownPipeline
from moldau.pipelines.registry import TOPIC
from moldau.services.console.api.routing import CLUSTER, api, fields
from moldau.services.console.backend import Backend, Call
from moldau.services.console.lists import topic_names
from moldau.services.console.machine.errors import missing
from moldau.services.console.machine.flows import flow_picture
from moldau.services.console.machine.graph import Node
from moldau.services.console.remote import managing

__all__ = ["PipelineHandlers", "pipelines_of"]

T = TypeVar("T")
_ONE: Final = f"{CLUSTER}/pipelines/{{pipeline}}"
_LINES: Final = 200


class PipelineHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "pipelines"
        return [
            api("GET", f"{CLUSTER}/pipelines", self.list, "Pipelines with their states", tag=tag),
            api("GET", _ONE, self.show, "One pipeline, with the end of its log", tag=tag),
            api("POST", f"{_ONE}/start", self.start, "Start it", tag=tag, body=fields()),
            api("POST", f"{_ONE}/stop", self.stop, "Stop it", tag=tag, body=fields()),
            api("POST", f"{_ONE}/restart", self.restart, "Start it again", tag=tag, body=fields()),
        ]

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = []
            # To read the registry makes its topic where there is none.
            if TOPIC in await topic_names(call):
                found = await pipelines_of(self._backend, call, lambda known: known.list())
            return {"data": [_row(each) for each in found], "managed": self._is_managed()}

    async def show(self, request: Request) -> dict[str, Any]:
        name = request.path["pipeline"]

        def read(known: Pipelines) -> dict[str, Any]:
            info = known.show(name)
            try:
                lines = list(known.logs(name, lines=_LINES))
            except PipelineError as error:
                lines = [str(error)]
            return {**_row(info), "definition": dict(info.definition), "log": lines}

        with self._backend.call(request) as call:
            if TOPIC not in await topic_names(call):
                raise missing("pipeline", name)
            found = await pipelines_of(self._backend, call, read)
            return {**found, "managed": self._is_managed(), "picture": _picture(call, found)}

    async def start(self, request: Request) -> dict[str, Any]:
        return await self._act(request, "start", lambda known, name: known.start(name, wait=False))

    async def stop(self, request: Request) -> dict[str, Any]:
        return await self._act(request, "stop", lambda known, name: known.stop(name, wait=False))

    async def restart(self, request: Request) -> dict[str, Any]:
        return await self._act(
            request, "restart", lambda known, name: known.restart(name, wait=False)
        )

    async def _act(
        self, request: Request, action: str, act: Callable[[Pipelines, str], PipelineInfo]
    ) -> dict[str, Any]:
        name = request.path["pipeline"]
        async with managing(self._backend, request, f"{action}-pipeline", name) as call:
            if not self._is_managed():
                raise HttpError(
                    409,
                    "This console does not know the directory of the pipelines: set platform.data, "
                    "or run it with `moldau up`.",
                )
            return _row(await pipelines_of(self._backend, call, lambda known: act(known, name)))

    def _is_managed(self) -> bool:
        return bool(self._backend.config["platform.data"])


async def pipelines_of(backend: Backend, call: Call, read: Callable[[Pipelines], T]) -> T:
    """What `read` finds. Raises HttpError."""
    settings = call.clients.settings("admin")
    servers = str(settings.pop("bootstrap.servers"))
    data = backend.config["platform.data"]
    # Without the directory there is no heartbeat of the loop to read, only the registry.
    folder = Path(data) / "spark" if data else Path("/nonexistent/moldau-spark")

    def run() -> T:
        with Pipelines(servers, folder=folder, config=settings) as known:
            return read(known)

    try:
        return await asyncio.to_thread(run)
    except UnknownPipeline as error:
        raise HttpError(404, str(error)) from None
    except PipelineError as error:
        raise HttpError(409, str(error)) from None


def _picture(call: Call, row: dict[str, Any]) -> dict[str, Any]:
    progress = row["progress"] or {}
    rate = progress.get("processed_rows_per_second") if row["state"] == "running" else None
    own = Node("own", "pipeline", row["name"], f"pipeline, {row['state']}", rate=rate)
    return flow_picture(own, row["reads"], row["writes"], call.watcher.snapshot.rate_of)


def _row(info: PipelineInfo) -> dict[str, Any]:
    error = info.last_error
    progress = info.progress
    return {
        "name": info.name,
        "state": str(info.state),
        "desired": str(info.desired),
        "since_ms": info.since_ms,
        "restarts": info.restarts,
        "activity": info.activity,
        "error": str(error) if error else None,
        "hint": error.hint if error else None,
        "detail": error.detail if error else None,
        "stale": info.stale,
        "progress": asdict(progress) if progress else None,
        "application": (info.definition.get("application") or {}).get("kind"),
        "instances": info.instances,
        "instances_running": info.instances_running,
        "reads": topics_of(info.definition, "source", "sources"),
        "writes": topics_of(info.definition, "sink", "sinks", "dead_letter"),
    }


def topics_of(definition: Any, *names: str) -> list[str]:
    """The topics under some fields of a definition."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("topic"), str):
                found.append(value["topic"])
            if isinstance(value.get("topics"), list):
                found.extend(str(each) for each in value["topics"])
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    for name in names:
        value = definition.get(name)
        if name == "dead_letter" and isinstance(value, str):
            found.append(value)
        walk(value)
    return list(dict.fromkeys(found))
