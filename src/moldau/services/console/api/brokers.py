"""Brokers: the list, one broker's settings and log directories."""

from __future__ import annotations

from typing import Any

from moldau.client.admin import ConfigResource, LogDirDescription
from moldau.client.errors import KafkaError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import body_of
from moldau.services.console.api.routing import CLUSTER, api, fields
from moldau.services.console.api.settings import alter_settings, read_settings
from moldau.services.console.backend import Backend, Call
from moldau.services.console.machine.errors import missing

__all__ = ["BrokerHandlers"]

BROKER = CLUSTER + "/brokers/{broker:int}"


class BrokerHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "brokers"
        change = fields("set", set="object", delete="array", validate_only="boolean")
        return [
            api("GET", f"{CLUSTER}/brokers", self.list, "All brokers", tag=tag),
            api("GET", BROKER, self.show, "One broker with its log directories", tag=tag),
            api("GET", f"{BROKER}/settings", self.settings, "Settings of a broker, explained",
                tag=tag),
            api("PATCH", f"{BROKER}/settings", self.alter, "Change settings of a broker", tag=tag,
                body=change),
            api("GET", f"{CLUSTER}/settings", self.defaults,
                "Settings of all brokers: the dynamic default", tag=tag),
            api("PATCH", f"{CLUSTER}/settings", self.alter_defaults,
                "Change settings of all brokers", tag=tag, body=change),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            described = await call.admin.describe_cluster()
            nodes = [node.id for node in described.nodes]
            controller = None if described.controller is None else described.controller.id
            known = call.watcher.snapshot.brokers
            leaders = call.watcher.snapshot.leaders
            return {
                "controller": controller,
                "data": [
                    {
                        "id": node.id,
                        "host": node.host,
                        "port": node.port,
                        "rack": node.rack,
                        "leaders": leaders.get(node.id, 0),
                        **known.get(node.id, {}),
                    }
                    for node in sorted(described.nodes, key=lambda each: each.id)
                ],
                "count": len(nodes),
            }

    async def show(self, request: Request) -> dict[str, Any]:
        broker = request.path["broker"]
        with self._backend.call(request) as call:
            described = await call.admin.describe_cluster()
            node = next((each for each in described.nodes if each.id == broker), None)
            if node is None:
                raise missing("broker", broker)
            folders = await call.admin.describe_log_dirs([broker], check=False)
            error = folders.errors.get(broker)
            return {
                "id": node.id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "controller": described.controller is not None
                and described.controller.id == broker,
                "log_dirs": [
                    _folder(path, each)
                    for path, each in folders.values_by_key.get(broker, {}).items()
                ],
                "error": None if error is None else str(error),
            }

    async def settings(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            await _require(call, request.path["broker"])
            return await read_settings(call, ConfigResource.broker(request.path["broker"]))

    async def alter(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        broker = request.path["broker"]
        async with self._backend.change(
            request, "alter-broker-settings", f"broker {broker}", body.fields
        ) as call:
            await _require(call, broker)
            return await alter_settings(call, ConfigResource.broker(broker), body)

    async def defaults(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            described = await call.admin.describe_cluster()
            own = await read_settings(call, ConfigResource.broker())
            # The default has only what was set; a broker knows all keys and explains them.
            first = min((node.id for node in described.nodes), default=None)
            if first is None:
                return own
            try:
                known = await read_settings(call, ConfigResource.broker(first))
            except KafkaError:
                return own
            return {**known, "set": {each["name"]: each["value"] for each in own["data"]}}

    async def alter_defaults(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        async with self._backend.change(
            request, "alter-broker-settings", "all brokers", body.fields
        ) as call:
            return await alter_settings(call, ConfigResource.broker(), body)


async def _require(call: Call, broker: int) -> None:
    """A client would wait until the broker is there. Raises HttpError."""
    described = await call.admin.describe_cluster()
    if broker not in {each.id for each in described.nodes}:
        raise missing("broker", broker)


def _folder(path: str, folder: LogDirDescription) -> dict[str, Any]:
    replicas = sorted(folder.replica_infos.items(), key=lambda each: -each[1].size)
    return {
        "path": path,
        "error": None if folder.error is None else str(folder.error),
        "total_bytes": folder.total_bytes,
        "usable_bytes": folder.usable_bytes,
        "replicas": len(replicas),
        "bytes": sum(info.size for _, info in replicas),
        "largest": [
            {
                "topic": place.topic,
                "partition": place.partition,
                "bytes": info.size,
                "lag": info.offset_lag,
                "future": info.is_future,
            }
            for place, info in replicas[:20]
        ],
    }
