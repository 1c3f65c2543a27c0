"""API v3: configurations of topics, of brokers and of all brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from moldau.client import AlterConfigOp, ConfigResource
from moldau.client.admin import AsyncAdmin, ConfigEntry
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.services.rest.backend import Backend, V3Call
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import bad_request
from moldau.services.rest.v3.routing import CLUSTER, object_body, v3

__all__ = ["ConfigHandlers"]


class ConfigHandlers:
    """See the module. The three kinds differ only in what they are of."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        topics, brokers = f"{CLUSTER}/topics", f"{CLUSTER}/brokers"
        found: list[Route] = []
        for base, kind, what in (
            (f"{topics}/{{topic_name}}/configs", "Topic", "of a topic"),
            (f"{brokers}/{{broker_id:int}}/configs", "Broker", "of a broker"),
            (f"{CLUSTER}/broker-configs", "Cluster", "of all brokers"),
        ):
            tag, data = "config", f"{kind}ConfigData"
            one = f"{base}/{{name}}"
            found += [
                v3("GET", base, self._list, f"List configurations {what}", tag=tag,
                   answer=f"{data}List"),
                v3("POST", f"{base}:alter", self._alter, f"Change configurations {what}", tag=tag,
                   body="AlterConfigBatchRequestData"),
                v3("GET", one, self._show, f"Show a configuration {what}", tag=tag, answer=data),
                v3("PUT", one, self._update, f"Set a configuration {what}", tag=tag,
                   body="UpdateConfigRequestData"),
                v3("DELETE", one, self._reset, f"Reset a configuration {what}", tag=tag),
            ]  # fmt: skip
        return [
            *found,
            v3("GET", f"{topics}/-/configs", self._of_topics, "List configurations of all topics",
               tag="config", answer="TopicConfigDataList"),
            v3("GET", f"{brokers}/-/configs", self._of_brokers,
               "List configurations of each broker", tag="config", answer="BrokerConfigDataList"),
            v3("POST", f"{topics}/-/configs:alter", self._alter_topics,
               "Change configurations of several topics", tag="config",
               body="AlterTopicsConfigBatchRequestData"),
        ]  # fmt: skip

    @asynccontextmanager
    async def _call(self, request: Request) -> AsyncIterator[V3Call]:
        """Raises HttpError for a broker that there is not, which the client would wait for."""
        async with self._backend.v3(request) as call:
            broker_id = request.path.get("broker_id")
            if broker_id is not None:
                nodes = (await call.clients.admin.describe_cluster()).nodes
                if all(each.id != broker_id for each in nodes):
                    raise HttpError(404, f"Broker {broker_id} cannot be found.")
            yield call

    # One thing.

    async def _list(self, request: Request) -> Any:
        async with self._call(request) as call:
            entries = await _described(call.clients.admin, _resource(request))
            if _is_cluster(request):
                entries = _cluster_wide(entries)
            data = [_shown(call, request, entries[name]) for name in sorted(entries)]
            return call.resources.collection(_kind(request), data, _base(call, request))

    async def _show(self, request: Request) -> Any:
        async with self._call(request) as call:
            return _shown(call, request, await _entry(call, request))

    async def _update(self, request: Request) -> Answer:
        body = await object_body(request)
        value = bodies.text(body, "value")
        name = request.path["name"]
        async with self._call(request) as call:
            if not _is_cluster(request):
                await _entry(call, request)
            change = AlterConfigOp.delete(name) if value is None else AlterConfigOp.set(name, value)
            await call.clients.admin.incremental_alter_configs({_resource(request): [change]})
            return Answer(status=204)

    async def _reset(self, request: Request) -> Answer:
        async with self._call(request) as call:
            if not _is_cluster(request):
                await _entry(call, request)
            change = AlterConfigOp.delete(request.path["name"])
            await call.clients.admin.incremental_alter_configs({_resource(request): [change]})
            return Answer(status=204)

    async def _alter(self, request: Request) -> Answer:
        body = await object_body(request)
        changes = _changes(body)
        validate_only = bodies.boolean(body, "validate_only")
        async with self._call(request) as call:
            resource = _resource(request)
            if not _is_cluster(request):
                known = await _described(call.clients.admin, resource)
                for each in changes:
                    if each.name not in known:
                        raise _not_found(call, request, each.name)
            if changes:
                await call.clients.admin.incremental_alter_configs(
                    {resource: changes}, validate_only=validate_only
                )
            return Answer(status=204)

    # Several.

    async def _of_topics(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            names = sorted(await call.clients.admin.list_topics(list_internal=True))
            resources = [ConfigResource.topic(name) for name in names]
            found = await call.clients.admin.describe_configs(
                resources, include_synonyms=True, check=False
            )
            data = [
                call.resources.topic_config(each.name, entry)
                for each in resources
                for _, entry in sorted(found.values_by_key.get(each, {}).items())
            ]
            url = call.resources.url("topics", "-", "configs")
            return call.resources.collection("KafkaTopicConfig", data, url)

    async def _of_brokers(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            nodes = sorted((await call.clients.admin.describe_cluster()).nodes)
            resources = [ConfigResource.broker(node.id) for node in nodes]
            found = await call.clients.admin.describe_configs(resources, include_synonyms=True)
            data = [
                call.resources.broker_config(int(each.name), entry)
                for each in resources
                for _, entry in sorted(found[each].items())
            ]
            url = call.resources.url("brokers", "-", "configs")
            return call.resources.collection("KafkaBrokerConfig", data, url)

    async def _alter_topics(self, request: Request) -> Answer:
        body = await object_body(request)
        validate_only = bodies.boolean(body, "validate_only")
        changes: dict[ConfigResource, list[AlterConfigOp]] = {}
        for each in bodies.items(body, "data") or ():
            bodies.required(each, "topic_name")
            name = bodies.text(each, "topic_name") or ""
            resource = ConfigResource.topic(name)
            changes.setdefault(resource, []).extend(_changes({"data": [each]}))
        async with self._backend.v3(request) as call:
            if changes:
                await call.clients.admin.incremental_alter_configs(
                    changes, validate_only=validate_only
                )
            return Answer(status=204)


def _is_cluster(request: Request) -> bool:
    return "topic_name" not in request.path and "broker_id" not in request.path


def _resource(request: Request) -> ConfigResource:
    if "topic_name" in request.path:
        return ConfigResource.topic(request.path["topic_name"])
    return ConfigResource.broker(request.path.get("broker_id"))


def _kind(request: Request) -> str:
    if "topic_name" in request.path:
        return "KafkaTopicConfig"
    return "KafkaClusterConfig" if _is_cluster(request) else "KafkaBrokerConfig"


def _base(call: V3Call, request: Request) -> str:
    if "topic_name" in request.path:
        return call.resources.url("topics", request.path["topic_name"], "configs")
    if _is_cluster(request):
        return call.resources.url("broker-configs")
    return call.resources.url("brokers", request.path["broker_id"], "configs")


def _shown(call: V3Call, request: Request, entry: ConfigEntry) -> dict[str, Any]:
    if "topic_name" in request.path:
        return call.resources.topic_config(request.path["topic_name"], entry)
    if _is_cluster(request):
        return call.resources.cluster_config(entry)
    return call.resources.broker_config(request.path["broker_id"], entry)


async def _described(admin: AsyncAdmin, resource: ConfigResource) -> dict[str, ConfigEntry]:
    found = await admin.describe_configs([resource], include_synonyms=True)
    return found[resource]


async def _entry(call: V3Call, request: Request) -> ConfigEntry:
    """Raises HttpError."""
    entries = await _described(call.clients.admin, _resource(request))
    entry = entries.get(request.path["name"])
    if entry is None:
        raise _not_found(call, request, request.path["name"])
    return entry


def _not_found(call: V3Call, request: Request, name: str) -> HttpError:
    cluster_id = call.resources.cluster_id
    if "topic_name" in request.path:
        where = f"TOPIC {request.path['topic_name']}"
    elif _is_cluster(request):
        where = "BROKER "
    else:
        where = f"BROKER {request.path['broker_id']}"
    return HttpError(404, f"Config {name} cannot be found for {where} in cluster {cluster_id}.")


def _cluster_wide(entries: dict[str, ConfigEntry]) -> dict[str, ConfigEntry]:
    """Brokers answer for the default of all brokers with what is set there."""
    return {name: each for name, each in entries.items() if not each.is_default}


def _changes(body: Mapping[str, Any]) -> list[AlterConfigOp]:
    """Raises HttpError."""
    data = bodies.items(body, "data")
    if data is None:
        bodies.required(body, "data")
    changes: dict[str, AlterConfigOp] = {}
    for each in data or ():
        bodies.required(each, "name")
        name = bodies.text(each, "name") or ""
        value = bodies.text(each, "value")
        operation = (bodies.text(each, "operation") or "SET").upper()
        if operation not in ("SET", "DELETE", "APPEND", "SUBTRACT"):
            raise bad_request(f"operation {operation} is neither SET nor DELETE.")
        if operation == "DELETE":
            changes[name] = AlterConfigOp.delete(name)
        elif value is None:
            raise bad_request(f"{operation} of {name} needs a value.")
        else:
            make = getattr(AlterConfigOp, operation.lower())
            changes[name] = make(name, value)
    return list(changes.values())
