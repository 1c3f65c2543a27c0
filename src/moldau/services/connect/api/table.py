"""All routes of Connect's REST interface."""

from __future__ import annotations

from typing import Any

from moldau.http.machine.routes import Parameter, Route
from moldau.services.connect.api.connectors import ConnectorsApi, forwarded
from moldau.services.connect.api.plugins import PluginsApi
from moldau.services.connect.api.worker import WorkerApi

_JSON = ("application/json",)
_OBJECT: dict[str, Any] = {"type": "object"}
_CONFIG: dict[str, Any] = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
_LIST: dict[str, Any] = {"type": "array"}
_FLAG = {"type": "boolean"}
_CREATE: dict[str, Any] = {
    "type": "object",
    "required": ["name", "config"],
    "properties": {
        "name": {"type": "string"},
        "config": _CONFIG,
        "initial_state": {"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"]},
    },
}
_OFFSETS: dict[str, Any] = {
    "type": "object",
    "required": ["offsets"],
    "properties": {
        "offsets": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["partition"],
                "properties": {"partition": _OBJECT, "offset": {"type": ["object", "null"]}},
            },
        }
    },
}
_ERRORS: dict[int, Any] = {400: None, 404: None, 409: None, 500: None}


def _route(
    method: str,
    path: str,
    handler: Any,
    summary: str,
    *parameters: Parameter,
    body: Any = None,
    status: int = 200,
    answer: Any = None,
    hidden: bool = False,
    errors: dict[int, Any] | None = None,
) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        summary=summary,
        tag="Connect",
        consumes=_JSON if body is not None else (),
        parameters=parameters,
        body=body,
        responses={status: answer, **(_ERRORS if errors is None else errors)},
        hidden=hidden,
        timeout_ms=90_000,
    )


def routes(
    connectors: ConnectorsApi, plugins: PluginsApi, worker: WorkerApi, *, admin: bool
) -> tuple[Route, ...]:
    """`admin` says whether /admin is among them."""
    return (
        *_worker_routes(worker),
        *(admin_routes(worker) if admin else ()),
        *_connector_routes(connectors),
        *_state_routes(connectors),
        *_offset_routes(connectors),
        *_plugin_routes(plugins),
    )


def _worker_routes(worker: WorkerApi) -> list[Route]:
    return [
        _route("GET", "/", worker.root, "The worker and its Kafka cluster", answer=_OBJECT),
        _route(
            "GET",
            "/health",
            worker.health,
            "Whether the worker can do its work",
            answer=_OBJECT,
            errors={500: None, 503: None},
        ),
        Route(
            method="GET",
            path="/metrics",
            handler=worker.metrics,
            summary="Counters of requests and tasks, as Prometheus reads them",
            tag="Connect",
            produces=("text/plain",),
            responses={200: {"type": "string"}},
        ),
        _route(
            "GET", "/pipelines", worker.pipelines, "Pipelines of the cluster on Spark", answer=_LIST
        ),
        _route(
            "POST",
            "/connectors/{connector}/tasks",
            worker.put_tasks,
            "Task configurations, from another worker",
            body=_LIST,
            status=204,
            hidden=True,
        ),
        _route(
            "PUT",
            "/connectors/{connector}/fence",
            worker.put_fence,
            "Fence tasks, from another worker",
            status=204,
            hidden=True,
        ),
    ]


def admin_routes(worker: WorkerApi) -> list[Route]:
    return [
        _route("GET", "/admin/loggers", worker.loggers, "Levels of loggers", answer=_OBJECT),
        _route("GET", "/admin/loggers/{logger}", worker.logger, "A logger", answer=_OBJECT),
        _route(
            "PUT",
            "/admin/loggers/{logger}",
            worker.set_logger,
            "Set a logger's level",
            Parameter(name="scope", description="worker (default) or cluster"),
            body={"type": "object", "properties": {"level": {"type": "string"}}},
            answer=_LIST,
            errors={**_ERRORS, 204: None},
        ),
    ]


def _connector_routes(api: ConnectorsApi) -> list[Route]:
    one = "/connectors/{connector}"
    return [
        _route(
            "GET",
            "/connectors",
            api.list_connectors,
            "The names of all connectors, or more about them",
            Parameter(name="expand", description="status, info; may be repeated"),
            answer={},
        ),
        _route(
            "POST",
            "/connectors",
            forwarded(api.create),
            "Create a connector",
            body=_CREATE,
            status=201,
            answer=_OBJECT,
        ),
        _route("GET", one, api.get, "A connector", answer=_OBJECT),
        _route("DELETE", one, forwarded(api.delete), "Delete a connector", status=204),
        _route("GET", f"{one}/config", api.get_config, "Its configuration", answer=_OBJECT),
        _route(
            "PUT",
            f"{one}/config",
            forwarded(api.put_config),
            "Create or change a connector",
            body=_CONFIG,
            answer=_OBJECT,
            errors={**_ERRORS, 201: _OBJECT},
        ),
        _route(
            "PATCH",
            f"{one}/config",
            forwarded(api.patch_config),
            "Change some settings; null removes one",
            body=_CONFIG,
            answer=_OBJECT,
        ),
        _route("GET", f"{one}/tasks", api.tasks, "Its tasks", answer=_LIST),
        _route("GET", f"{one}/topics", api.topics, "The topics it uses", answer=_OBJECT,
               errors={403: None}),
        _route("PUT", f"{one}/topics/reset", api.reset_topics, "Forget the topics", status=202,
               errors={403: None}),
    ]  # fmt: skip


def _state_routes(api: ConnectorsApi) -> list[Route]:
    one = "/connectors/{connector}"
    task = one + "/tasks/{task:int}"
    return [
        _route("GET", f"{one}/status", api.status, "Its state", answer=_OBJECT),
        _route(
            "POST",
            f"{one}/restart",
            forwarded(api.restart),
            "Restart the connector",
            Parameter(name="includeTasks", schema=_FLAG, description="also its tasks"),
            Parameter(name="onlyFailed", schema=_FLAG, description="only what has failed"),
            status=204,
            errors={**_ERRORS, 202: _OBJECT},
        ),
        _route("PUT", f"{one}/pause", api.pause, "Pause it and its tasks", status=202),
        _route("PUT", f"{one}/resume", api.resume, "Resume it", status=202),
        _route("PUT", f"{one}/stop", forwarded(api.stop), "Stop it and end its tasks", status=204),
        _route("GET", f"{task}/status", api.task_status, "A task's state", answer=_OBJECT),
        _route(
            "POST", f"{task}/restart", forwarded(api.restart_task), "Restart a task", status=204
        ),
    ]


def _offset_routes(api: ConnectorsApi) -> list[Route]:
    path = "/connectors/{connector}/offsets"
    return [
        _route("GET", path, api.offsets, "Its offsets", answer=_OBJECT),
        _route(
            "PATCH",
            path,
            forwarded(api.alter_offsets),
            "Set offsets of a stopped connector",
            body=_OFFSETS,
            answer=_OBJECT,
        ),
        _route(
            "DELETE",
            path,
            forwarded(api.reset_offsets),
            "Forget the offsets of a stopped connector",
            answer=_OBJECT,
        ),
    ]


def _plugin_routes(api: PluginsApi) -> list[Route]:
    return [
        _route(
            "GET",
            "/connector-plugins",
            api.list_plugins,
            "Installed plug-ins",
            Parameter(name="connectorsOnly", schema=_FLAG, description="true if it is not given"),
            answer=_LIST,
        ),
        _route(
            "GET",
            "/connector-plugins/{plugin}/config",
            api.config,
            "The settings of a plug-in",
            Parameter(name="version", description="latest if it is not given"),
            answer=_LIST,
        ),
        _route(
            "PUT",
            "/connector-plugins/{plugin}/config/validate",
            api.validate,
            "Check a configuration",
            body=_CONFIG,
            answer=_OBJECT,
        ),
    ]
