"""/connectors: listing, creating, changing, states, tasks, topics, offsets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from moldau.connect.api import NotFoundError
from moldau.connect.machine.ids import TargetState
from moldau.http.machine.errors import HttpError
from moldau.http.request import Answer, Request
from moldau.services.connect.forwarding import forward
from moldau.services.connect.herder import as_texts
from moldau.services.connect.machine.errors import BadRequest, RequestTarget
from moldau.services.connect.offsets import Pairs
from moldau.services.connect.operations import Operations

Handler = Callable[[Request], Awaitable[Any]]
_INITIAL = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


def forwarded(handler: Handler) -> Handler:
    """Ask the worker that can do it, if this one cannot."""

    async def handle(request: Request) -> Any:
        try:
            return await handler(request)
        except RequestTarget as target:
            return await forward(request, target)

    return handle


async def object_body(request: Request) -> dict[str, Any]:
    body = await request.json()
    if not isinstance(body, dict):
        raise HttpError(400, "The body of the request must be a JSON object")
    return body


def known_only(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """A field that nobody reads is most often a mistake: 400."""
    for name in body:
        if name not in names:
            raise HttpError(400, f'Unrecognized field "{name}": known are {", ".join(names)}')
    return body


async def config_body(request: Request) -> dict[str, str | None]:
    return checked_config(await object_body(request))


def checked_config(body: Any) -> dict[str, str | None]:
    if not isinstance(body, dict):
        raise HttpError(400, "The configuration must be a JSON object of texts")
    for key, value in body.items():
        if isinstance(value, dict | list):
            raise HttpError(400, f"The setting {key} must be a text, not {value!r}")
    return as_texts(body)


class ConnectorsApi:
    def __init__(self, operations: Operations) -> None:
        self._do = operations

    def list_connectors(self, request: Request) -> Any:
        wanted = request.query.get("expand")
        if wanted is None:
            return self._do.connectors()
        found: dict[str, dict[str, Any]] = {}
        for name in self._do.connectors():
            parts: dict[str, Any] = {}
            try:
                if "status" in wanted:
                    parts["status"] = self._do.status(name)
                if "info" in wanted:
                    parts["info"] = self._do.info(name)
            except NotFoundError:
                continue
            found[name] = parts
        return found

    async def create(self, request: Request) -> Answer:
        body = known_only(await object_body(request), "name", "config", "initial_state")
        name = body.get("name")
        if name is not None and not isinstance(name, str):
            raise HttpError(400, "The name of a connector must be a text")
        name = (name or "").strip()
        config = _named(name, checked_config(body.get("config") or {}))
        _, info = await self._do.put_config(
            name, config, replace=False, initial=_initial(body.get("initial_state"))
        )
        return Answer(status=201, body=info, headers=_location(request, name))

    def get(self, request: Request) -> Any:
        return self._do.info(request.path["connector"])

    def get_config(self, request: Request) -> Any:
        return self._do.connector_config(request.path["connector"])

    async def put_config(self, request: Request) -> Answer:
        name = request.path["connector"]
        config = _named(name, await config_body(request))
        created, info = await self._do.put_config(name, config, replace=True)
        if not created:
            return Answer(body=info)
        return Answer(status=201, body=info, headers=_location(request, name))

    async def patch_config(self, request: Request) -> Any:
        return await self._do.patch_config(request.path["connector"], await config_body(request))

    async def delete(self, request: Request) -> Answer:
        await self._do.delete(request.path["connector"])
        return Answer(status=204)

    # States.

    def status(self, request: Request) -> Any:
        return self._do.status(request.path["connector"])

    async def restart(self, request: Request) -> Answer:
        shown = await self._do.restart(
            request.path["connector"],
            include_tasks=request.flag("includeTasks"),
            only_failed=request.flag("onlyFailed"),
        )
        return Answer(status=204) if shown is None else Answer(status=202, body=shown)

    async def pause(self, request: Request) -> Answer:
        await self._do.set_target(request.path["connector"], TargetState.PAUSED)
        return Answer(status=202, body=b"")

    async def resume(self, request: Request) -> Answer:
        await self._do.set_target(request.path["connector"], TargetState.STARTED)
        return Answer(status=202, body=b"")

    async def stop(self, request: Request) -> Answer:
        await self._do.stop(request.path["connector"])
        return Answer(status=204)

    # Tasks.

    def tasks(self, request: Request) -> Any:
        return self._do.task_infos(request.path["connector"])

    def task_status(self, request: Request) -> Any:
        return self._do.task_status(request.path["connector"], request.path["task"])

    async def restart_task(self, request: Request) -> Answer:
        await self._do.restart_task(request.path["connector"], request.path["task"])
        return Answer(status=204)

    # Topics.

    def topics(self, request: Request) -> Any:
        return self._do.topics(request.path["connector"])

    def reset_topics(self, request: Request) -> Answer:
        self._do.reset_topics(request.path["connector"])
        return Answer(status=202, body=b"")

    # Offsets.

    async def offsets(self, request: Request) -> Any:
        return await self._do.offsets(request.path["connector"])

    async def alter_offsets(self, request: Request) -> Any:
        body = known_only(await object_body(request), "offsets")
        pairs = _pairs(body.get("offsets"))
        return {"message": await self._do.modify_offsets(request.path["connector"], pairs)}

    async def reset_offsets(self, request: Request) -> Any:
        return {"message": await self._do.modify_offsets(request.path["connector"], None)}


def _location(request: Request, name: str) -> dict[str, str]:
    return {"Location": f"{request.base_url}/connectors/{quote(name, '')}"}


def _named(name: str, config: dict[str, str | None]) -> dict[str, str | None]:
    included = config.get("name")
    if included is not None and included != name:
        raise BadRequest(
            f"Connector name configuration ({included}) doesn't match connector name in the URL "
            f"({name})"
        )
    return {**config, "name": name}


def _initial(text: Any) -> TargetState | None:
    if text is None:
        return None
    found = _INITIAL.get(str(text).upper())
    if found is None:
        raise BadRequest(f"initial_state must be one of {', '.join(_INITIAL)}, not {text}")
    return found


def _pairs(nodes: Any) -> Pairs:
    if not isinstance(nodes, list) or not nodes:
        raise BadRequest("Partitions / offsets need to be provided for an alter offsets request")
    found: Pairs = []
    for node in nodes:
        if not isinstance(node, dict):
            raise BadRequest("Each entry of offsets must have a partition and an offset")
        offset = known_only(node, "partition", "offset").get("offset")
        if offset is not None and not isinstance(offset, dict):
            raise BadRequest("An offset must be a map or null")
        found.append((node.get("partition"), offset))  # type: ignore[arg-type]
    return found
