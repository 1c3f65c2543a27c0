"""Connectors: states, errors, offsets, forms with validation, pause, restart, delete."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import body_of
from moldau.services.console.api.routing import CLUSTER, api, fields
from moldau.services.console.backend import Backend, Call
from moldau.services.console.machine.errors import bad_request
from moldau.services.console.machine.flows import flow_picture
from moldau.services.console.machine.graph import Node
from moldau.services.console.remote import Remote, managing

__all__ = ["ConnectorHandlers"]

_KEY: Final = "connect.url"
_ONE: Final = f"{CLUSTER}/connectors/{{connector}}"
#: What a button does: the request to the worker.
_ACTIONS: Final = {
    "pause": ("PUT", "/pause"),
    "resume": ("PUT", "/resume"),
    "stop": ("PUT", "/stop"),
    "restart": ("POST", "/restart?includeTasks=true&onlyFailed=false"),
    "restart-failed": ("POST", "/restart?includeTasks=true&onlyFailed=true"),
}


class ConnectorHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "connectors"
        config = fields("config", config="object")
        return [
            api("GET", f"{CLUSTER}/connectors", self.list, "Connectors with their states", tag=tag),
            api("GET", f"{CLUSTER}/connector-plugins", self.plugins, "Plugins", tag=tag),
            api("GET", f"{CLUSTER}/connector-plugins/{{plugin}}", self.plugin,
                "The settings of a plugin", tag=tag),
            api("POST", f"{CLUSTER}/connector-plugins/{{plugin}}/validate", self.validate,
                "Check settings", tag=tag, body=config),
            api("GET", _ONE, self.show, "One connector", tag=tag),
            api("PUT", _ONE, self.create, "Create or change a connector", tag=tag, body=config),
            api("DELETE", _ONE, self.delete, "Delete a connector", tag=tag),
            api("POST", f"{_ONE}/tasks/{{task}}/restart", self.restart_task, "Restart a task",
                tag=tag, body=fields()),
            api("DELETE", f"{_ONE}/offsets", self.reset_offsets, "Forget the offsets", tag=tag),
            api("POST", f"{_ONE}/{{action}}", self.act, "Pause, resume, stop or restart", tag=tag,
                body=fields()),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = await Remote(call, _KEY).ask("GET", "/connectors?expand=status&expand=info")
            return {"data": [_row(name, found[name]) for name in sorted(found)]}

    async def plugins(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = await Remote(call, _KEY).ask("GET", "/connector-plugins?connectorsOnly=true")
            return {"data": sorted(found, key=lambda each: str(each["class"]))}

    async def plugin(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            plugin = _quoted(request.path["plugin"])
            found = await Remote(call, _KEY).ask("GET", f"/connector-plugins/{plugin}/config")
            return {"data": found}

    async def validate(self, request: Request) -> dict[str, Any]:
        config = _texts((await body_of(request)).mapping("config"))
        plugin = request.path["plugin"]
        with self._backend.call(request) as call:
            found = await Remote(call, _KEY).ask(
                "PUT",
                f"/connector-plugins/{_quoted(plugin)}/config/validate",
                {**config, "connector.class": plugin},
            )
            errors = {
                each["value"]["name"]: each["value"]["errors"]
                for each in found["configs"]
                if each["value"]["errors"]
            }
            return {"error_count": found["error_count"], "errors": errors}

    async def show(self, request: Request) -> dict[str, Any]:
        name = _quoted(request.path["connector"])
        with self._backend.call(request) as call:
            connect = Remote(call, _KEY)
            info = await connect.ask("GET", f"/connectors/{name}")
            status = await connect.ask("GET", f"/connectors/{name}/status")
            topics = await connect.ask("GET", f"/connectors/{name}/topics")
            offsets = await connect.ask("GET", f"/connectors/{name}/offsets")
            row = _row(request.path["connector"], {"info": info, "status": status})
            used = next(iter(topics.values()))["topics"]
            return {
                **row,
                "config": info["config"],
                "tasks": status["tasks"],
                "trace": status["connector"].get("trace"),
                "topics": used,
                "offsets": offsets["offsets"],
                "picture": _picture(call, row, info["config"], used),
            }

    async def create(self, request: Request) -> dict[str, Any]:
        name = request.path["connector"]
        config = _texts((await body_of(request)).mapping("config"))
        if not config.get("connector.class"):
            raise bad_request("The setting connector.class is missing.")
        shown = {"connector.class": config["connector.class"], "settings": sorted(config)}
        async with managing(self._backend, request, "create-connector", name, shown) as call:
            await Remote(call, _KEY).ask("PUT", f"/connectors/{_quoted(name)}/config", config)
            return {}

    async def delete(self, request: Request) -> dict[str, Any]:
        name = request.path["connector"]
        async with managing(self._backend, request, "delete-connector", name) as call:
            await Remote(call, _KEY).ask("DELETE", f"/connectors/{_quoted(name)}")
            return {}

    async def act(self, request: Request) -> dict[str, Any]:
        name, action = request.path["connector"], request.path["action"]
        if action not in _ACTIONS:
            raise bad_request(f"A connector can be asked to {', '.join(_ACTIONS)}, not {action}.")
        method, path = _ACTIONS[action]
        async with managing(self._backend, request, f"{action}-connector", name) as call:
            await Remote(call, _KEY).ask(method, f"/connectors/{_quoted(name)}{path}")
            return {}

    async def restart_task(self, request: Request) -> dict[str, Any]:
        name, task = request.path["connector"], request.path["task"]
        async with managing(self._backend, request, "restart-task", f"{name} {task}") as call:
            await Remote(call, _KEY).ask(
                "POST", f"/connectors/{_quoted(name)}/tasks/{_quoted(task)}/restart"
            )
            return {}

    async def reset_offsets(self, request: Request) -> dict[str, Any]:
        """The worker refuses it unless the connector is stopped."""
        name = request.path["connector"]
        async with managing(self._backend, request, "reset-offsets", name) as call:
            found = await Remote(call, _KEY).ask("DELETE", f"/connectors/{_quoted(name)}/offsets")
            return {"message": found.get("message") if isinstance(found, dict) else None}


def _picture(
    call: Call, row: dict[str, Any], config: dict[str, str], topics: list[str]
) -> dict[str, Any]:
    kind = str(row["type"] or "connector")
    state = "failed" if row["failed"] else row["state"].lower()
    own = Node("own", "connector", row["name"], f"{kind}, {state}")
    if kind == "sink":
        # Also those that it is to read: one that has failed has not used any.
        listed = config.get("topics", "").split(",")
        reads, writes = [*topics, *(each.strip() for each in listed if each.strip())], []
    else:
        reads, writes = [], topics
    return flow_picture(own, reads, writes, call.watcher.snapshot.rate_of)


def _row(name: str, found: dict[str, Any]) -> dict[str, Any]:
    status, config = found["status"], found["info"]["config"]
    tasks = status["tasks"]
    traces = [one.get("trace") for one in (status["connector"], *tasks) if one.get("trace")]
    return {
        "name": name,
        "type": found["info"].get("type", status.get("type")),
        "class": config.get("connector.class", ""),
        "state": status["connector"]["state"],
        "worker": status["connector"]["worker_id"],
        "running": sum(each["state"] == "RUNNING" for each in tasks),
        "failed": sum(each["state"] == "FAILED" for each in tasks),
        "task_count": len(tasks),
        # The last line of a Python trace has the error, the first of a Java one.
        "error": _headline(traces[0]) if traces else None,
    }


def _headline(trace: str) -> str:
    lines = [line.strip() for line in trace.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def _texts(config: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in config.items() if value not in (None, "")}


def _quoted(text: str) -> str:
    return quote(text, safe="")
