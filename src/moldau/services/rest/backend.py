"""Backend: what every handler of the proxy uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from moldau.http.machine.errors import HttpError
from moldau.http.request import Request
from moldau.services.rest.clients import Clients, ClientSet
from moldau.services.rest.config import RestConfig
from moldau.services.rest.instances import Instances
from moldau.services.rest.machine.formats import (
    PLAIN_FORMATS,
    WITHOUT_SCHEMA,
    EncodedSchema,
    decode_plain,
    encode_plain,
    no_schemas,
)
from moldau.services.rest.machine.links import Links
from moldau.services.rest.machine.resources import Resources
from moldau.services.rest.schema_formats import ResolvedSchema, SchemaFormats

__all__ = ["Backend", "V3Call"]


@dataclass(frozen=True, slots=True)
class Backend:
    """`schemas` is None without a Schema Registry."""

    config: RestConfig
    clients: Clients
    instances: Instances
    schemas: SchemaFormats | None = None

    @asynccontextmanager
    async def v3(self, request: Request) -> AsyncIterator[V3Call]:
        """The clients of the request's user, and resources for its cluster.

        Raises HttpError if the path names another cluster.
        """
        with self.clients.of(request.principal) as clients:
            cluster_id = await clients.cluster_id()
            named = request.path.get("cluster_id", cluster_id)
            if named != cluster_id:
                raise HttpError(404, f"Cluster {named} cannot be found.")
            prefix = "/kafka/v3" if request.raw_path.startswith(b"/kafka/") else "/v3"
            links = Links(
                self.base_url(request) + prefix, self.config["confluent.resource.name.authority"]
            )
            yield V3Call(clients, Resources(links, cluster_id))

    def base_url(self, request: Request) -> str:
        """How clients reach this proxy: as it advertises itself, or as they did."""
        for listener in self.config["advertised.listeners"]:
            if listener.startswith(str(request.scope["scheme"]) + "://"):
                return str(listener).rstrip("/")
        host = self.config["host.name"]
        if host:
            return f"{request.scope['scheme']}://{host}:{request.scope['server'][1]}"
        return request.base_url

    async def encode(
        self, topic: str, format: str | None, data: Mapping[str, Any], *, is_key: bool
    ) -> tuple[bytes | None, EncodedSchema]:
        """`data` has the value under `data`, and what names a schema; without a format the schema
        has it. Raises HttpError."""
        if format in PLAIN_FORMATS:
            return encode_plain(format, data.get("data")), WITHOUT_SCHEMA[format]
        resolved = await self.resolve(topic, format, data, is_key=is_key)
        value = data.get("data")
        return None if value is None else resolved.encode(value), resolved.schema

    async def resolve(
        self, topic: str, format: str | None, data: Mapping[str, Any], *, is_key: bool
    ) -> ResolvedSchema:
        """The schema that `data` names. Raises HttpError."""
        if self.schemas is None:
            raise no_schemas(format or "AVRO")
        return await self.schemas.resolve(topic, format=format, is_key=is_key, data=data)

    async def decode(self, topic: str, format: str, data: bytes | None, *, is_key: bool) -> Any:
        if data is None:
            return None
        if format in PLAIN_FORMATS:
            return decode_plain(format, data)
        if self.schemas is None:
            raise no_schemas(format)
        return await self.schemas.decode(topic, format, data, is_key=is_key)


@dataclass(frozen=True, slots=True)
class V3Call:
    clients: ClientSet
    resources: Resources
