"""/, /health and /admin/loggers: the worker itself. And what workers send each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from moldau import __version__
from moldau.connect.api import NotFoundError
from moldau.connect.machine.config_state import SessionKey, logger_record
from moldau.connect.runtime.clients import worker_client
from moldau.http.machine.errors import HttpError
from moldau.http.metrics import CONTENT_TYPE, Metrics
from moldau.http.request import Answer, Request
from moldau.services.connect import logger_levels, task_metrics
from moldau.services.connect.api.connectors import object_body
from moldau.services.connect.forwarding import is_signed
from moldau.services.connect.machine.errors import BadRequest
from moldau.services.connect.operations import Operations
from moldau.services.connect.pipelines import pipelines_in

_HEALTH_S = 10.0


class WorkerApi:
    """`fence` makes older generations of a source's tasks end."""

    def __init__(
        self,
        operations: Operations,
        *,
        cluster_id: Callable[[], str | None],
        is_ready: Callable[[], bool],
        fence: Callable[[str], Any],
        metrics: Metrics,
    ) -> None:
        self._do = operations
        self._cluster_id = cluster_id
        self._is_ready = is_ready
        self._fence = fence
        self._metrics = metrics

    def root(self, request: Request) -> Any:
        return {
            "version": __version__,
            "commit": "unknown",
            "kafka_cluster_id": self._cluster_id(),
        }

    async def health(self, request: Request) -> Answer:
        if not self._is_ready():
            return Answer(
                status=503,
                body={"status": "starting", "message": "Worker is still starting up."},
            )
        try:
            async with asyncio.timeout(_HEALTH_S):
                await self._do.herder.flush()
        except TimeoutError:
            return Answer(
                status=500,
                body={
                    "status": "unhealthy",
                    "message": "Worker was unable to handle this request and may be unable to "
                    "handle other requests.",
                },
            )
        return Answer(
            body={
                "status": "healthy",
                "message": "Worker has completed startup and is ready to handle requests.",
            }
        )

    def metrics(self, request: Request) -> Answer:
        text = self._metrics.render() + task_metrics.render(self._do.herder.worker)
        return Answer(body=text.encode(), media_type=CONTENT_TYPE)

    async def pipelines(self, request: Request) -> Any:
        client = worker_client(self._do.config.settings, "admin")
        return await asyncio.to_thread(pipelines_in, client)

    def loggers(self, request: Request) -> Any:
        return logger_levels.all_levels()

    def logger(self, request: Request) -> Any:
        name = request.path["logger"]
        found = logger_levels.level_of(name)
        if found is None:
            raise NotFoundError(f"Logger {name} not found.")
        return found

    async def set_logger(self, request: Request) -> Answer:
        body = await object_body(request)
        level, name = body.get("level"), request.path["logger"]
        if level is None:
            raise BadRequest("Desired 'level' parameter was not specified in request.")
        if not isinstance(level, str) or not logger_levels.is_level(level):
            raise NotFoundError(f"invalid log level '{level}'.")
        if (request.text("scope") or "worker").lower() == "cluster":
            await self._do.herder.write([logger_record(name, level.upper())])
            return Answer(status=204)
        return Answer(body=logger_levels.set_level(name, level))

    # Internal requests.

    async def put_tasks(self, request: Request) -> Answer:
        await self._check_signature(request)
        body = await request.json()
        if not isinstance(body, list) or not all(isinstance(each, dict) for each in body):
            raise BadRequest("Task configurations must be a list of objects")
        configs = [{str(k): str(v) for k, v in each.items()} for each in body]
        await self._do.write_tasks(request.path["connector"], configs)
        return Answer(status=204)

    async def put_fence(self, request: Request) -> Answer:
        await self._check_signature(request)
        await self._fence(request.path["connector"])
        return Answer(status=204)

    async def _check_signature(self, request: Request) -> None:
        key: SessionKey | None = self._do.herder.configs.state.session_key
        values = self._do.config.values
        if values.get("connect.protocol", "").lower() != "sessioned":
            return
        if "x-connect-authorization" not in request.headers:
            raise BadRequest("Internal request missing required signature")
        if key is None:
            raise HttpError(
                503, "This worker is still starting up and has not been able to read a session key"
            )
        allowed = tuple(values["inter.worker.verification.algorithms"])
        if not is_signed(key, allowed, request.headers, await request.body()):
            raise HttpError(
                403,
                "Internal request contained invalid signature.",
            )
