"""/connector-plugins: what there is, its settings, and whether a configuration is right."""

from __future__ import annotations

from typing import Any

from moldau.http.request import Request
from moldau.services.connect.api.connectors import config_body
from moldau.services.connect.machine.errors import BadRequest
from moldau.services.connect.operations import Operations


class PluginsApi:
    def __init__(self, operations: Operations) -> None:
        self._do = operations

    def list_plugins(self, request: Request) -> Any:
        only = request.flag("connectorsOnly", default=True)
        return [
            {"class": each.class_name, "type": each.kind.value, "version": each.version}
            for each in self._do.plugin_list(connectors_only=only)
        ]

    def config(self, request: Request) -> Any:
        return self._do.plugin_config(request.path["plugin"], request.text("version"))

    async def validate(self, request: Request) -> Any:
        name = request.path["plugin"]
        config = await config_body(request)
        included = config.get("connector.class")
        if included is not None and not _same(included, name):
            raise BadRequest(
                f"Included connector type {included} does not match request type {name}"
            )
        return (await self._do.validate(config)).as_json()


def _same(included: str, requested: str) -> bool:
    """Whether two names mean one class; the one of the request may be shorter, as in Kafka."""
    return _short(included).endswith(_short(requested))


def _short(name: str) -> str:
    return name.removesuffix("Connector")
