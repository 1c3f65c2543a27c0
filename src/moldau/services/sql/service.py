"""SqlService: wires the server and runs it. Start reading here."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.http.application import Application, Service
from moldau.http.authentication import authentication_of
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.http.server import HttpServer
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.core import SqlCore
from moldau.services.sql.inserts import InsertHandler
from moldau.services.sql.machine.errors import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_READY,
    KsqlHttpError,
    ksql_error,
)
from moldau.services.sql.machine.frames import DELIMITED, V1, V1_PROTOBUF
from moldau.services.sql.machine.overrides import check_overrides
from moldau.services.sql.queries import QueryHandlers
from moldau.sql.errors import KsqlException
from moldau.streams import KafkaStreams
from moldau.streams.errors import StreamsError

__all__ = ["SqlService"]

logger = logging.getLogger(__name__)

_JSON: Final = ("application/json", V1)
_STREAMED: Final = (DELIMITED, "application/json", V1, V1_PROTOBUF)


_HEALTH_S: Final = 5.0
#: Of a stream of rows, each of which is limited.
_ENDLESS: Final = 1 << 62


class SqlService:
    """The server; made on the loop that it runs on."""

    def __init__(self, config: SqlConfig, core: SqlCore | None = None) -> None:
        """Raises ConfigError."""
        self.config = config
        self.core = core or SqlCore(config)
        self._ready = False
        self._queries = QueryHandlers(self.core, self._check_ready)
        service = Service(
            name="sql",
            title="ksqlDB",
            version=_version(),
            description="SQL over topics.",
            routes=tuple(self._routes()),
            media_type=V1,
            map_error=ksql_error,
            websockets={"/ws/query": self._queries.websocket},
        )
        self.application = Application(
            service, config.http, authentication=authentication_of(config.http)
        )
        self.server = HttpServer(self.application)
        self._cluster_id = ""
        self._statuses: dict[str, Any] = {}

    @property
    def urls(self) -> list[str]:
        return self.server.urls

    async def start(self) -> None:
        """Listen, so that other servers can be given the address; then execute the commands and
        start their queries. Requests are refused with 503 until that is done."""
        limit_s = self.config["ksql.server.start.timeout.ms"] / 1000
        await self.server.start()
        try:
            scheme, address = self._advertised()
            async with asyncio.timeout(limit_s):
                await asyncio.to_thread(self.core.open, address)
                cluster = await asyncio.to_thread(self.core.admin.describe_cluster)
        except BaseException:
            await self.server.stop()
            raise
        self._cluster_id = str(cluster.cluster_id)
        self.core.peers.start(address, scheme)
        self._ready = True

    def _advertised(self) -> tuple[str, str]:
        """Scheme, and host:port by which other servers reach this one."""
        url = self.config["ksql.advertised.listener"] or self.urls[0]
        parts = urlsplit(url)
        host = parts.hostname or ""
        if host in ("0.0.0.0", "::"):
            host = socket.getfqdn()
        return parts.scheme, f"{host}:{parts.port}"

    def _check_ready(self) -> None:
        if not self._ready:
            raise KsqlHttpError(
                503, "KSQL is not yet ready to serve requests.", error_code=NOT_READY
            )

    async def stop(self) -> None:
        await self.server.stop()
        await asyncio.to_thread(self.core.close)

    def _routes(self) -> list[Route]:
        inserts = InsertHandler(self.core)
        # Any, as ksqlDB: `curl -d`, which its tutorials use, sends that of a form.
        post: dict[str, Any] = {"method": "POST", "consumes": (*_JSON, DELIMITED, "*/*")}
        return [
            Route(path="/ksql", handler=self._ksql, produces=_JSON, timeout_ms=0,
                  summary="Execute statements", **post),
            Route(path="/query", handler=self._queries.query,
                  produces=(*_JSON, V1_PROTOBUF), timeout_ms=0,
                  summary="Run a query; the answer is a JSON array", **post),
            Route(path="/query-stream", handler=self._queries.query_stream, produces=_STREAMED,
                  timeout_ms=0, summary="Run a query; the answer has a line per row", **post),
            Route(path="/close-query", handler=self._queries.close_query, produces=_JSON,
                  summary="End a push query", **post),
            Route(path="/inserts-stream", handler=inserts.insert, produces=_STREAMED,
                  timeout_ms=0, summary="Insert rows into a stream", streams_body=True,
                  body_bytes_max=_ENDLESS, **post),
            Route(method="GET", path="/info", handler=self._info, produces=_JSON,
                  summary="Version, cluster and service id", public=True),
            Route(method="GET", path="/healthcheck", handler=self._healthcheck, produces=_JSON,
                  summary="Whether the server can do its work", public=True),
            Route(method="GET", path="/clusterStatus", handler=self._cluster_status,
                  produces=_JSON, summary="The servers of this service id"),
            Route(method="GET", path="/queries/{query}/topology", handler=self._topology,
                  produces=_JSON, summary="The topology of a query, and the rates of its nodes"),
            Route(method="GET", path="/status", handler=self._all_statuses, produces=_JSON,
                  summary="What became of all commands"),
            Route(method="GET", path="/status/{kind}/{entity}/{action}", handler=self._status,
                  produces=_JSON, summary="What became of a command"),
            Route(method="GET", path="/is_valid_property/{name}", handler=self._is_valid,
                  produces=_JSON, summary="Whether a property may be set"),
            Route(method="GET", path="/v1/metadata", handler=self._metadata, produces=_JSON,
                  summary="Version and clusters"),
            Route(method="GET", path="/v1/metadata/id", handler=self._metadata_id, produces=_JSON,
                  summary="Id and clusters"),
            Route(method="POST", path="/heartbeat", handler=self._heartbeat, produces=_JSON,
                  consumes=_JSON, summary="Another server is alive", public=True),
            Route(method="POST", path="/lag", handler=self._lag, produces=_JSON,
                  consumes=_JSON, summary="How far the stores of another server are behind",
                  public=True),
        ]  # fmt: skip

    async def _ksql(self, request: Request) -> Any:
        body = await request.json()
        text = body.get("ksql") if isinstance(body, dict) else None
        if not isinstance(text, str):
            raise KsqlHttpError(400, '"ksql" field must be populated', error_code=BAD_REQUEST)
        properties = body.get("streamsProperties") or {}
        variables = body.get("sessionVariables") or {}
        if not isinstance(properties, dict) or not isinstance(variables, dict):
            raise KsqlHttpError(
                400,
                '"streamsProperties" and "sessionVariables" must be JSON objects',
                error_code=BAD_REQUEST,
            )
        self._check_ready()
        found = await asyncio.to_thread(self.core.execute, text, properties, variables)
        for each in found:
            if each["@type"] == "currentStatus":
                self._statuses[each["commandId"]] = each["commandStatus"]
        return found

    def _info(self, request: Request) -> Any:
        return {
            "KsqlServerInfo": {
                "version": _version(),
                "kafkaClusterId": self._cluster_id,
                "ksqlServiceId": self.config.service_id,
                "serverStatus": "RUNNING",
            }
        }

    async def _healthcheck(self, request: Request) -> Any:
        found = {
            "metastore": self._ready,
            "kafka": await self._reaches_kafka(),
            "commandRunner": self.core.is_following,
        }
        return {
            "isHealthy": all(found.values()),
            "details": {name: {"isHealthy": each} for name, each in found.items()},
            "serverState": "READY" if self._ready else "INITIALIZING",
        }

    async def _reaches_kafka(self) -> bool:
        try:
            async with asyncio.timeout(_HEALTH_S):
                await asyncio.to_thread(self.core.admin.describe_cluster)
        except (KafkaError, TimeoutError):
            return False
        return True

    def _cluster_status(self, request: Request) -> Any:
        peers = self.core.peers
        own = peers.liveness.own
        shown = {}
        for address in sorted(peers.addresses()):
            is_own = address == own
            shown[address] = {
                "hostAlive": peers.is_alive(address),
                "lastStatusUpdateMs": peers.liveness.last_ms(address),
                "activeStandbyPerQuery": self._placed(address),
                "hostStoreLags": peers.own_lags() if is_own else peers.liveness.lags(address),
            }
        return {"clusterStatus": shown}

    def _placed(self, address: str) -> dict[str, Any]:
        """What a server has of each query."""
        found = {}
        for query_id in self.core.host.persistent_ids():
            streams = self.core.host.streams(query_id)
            if streams is None:
                continue
            try:
                everyone = streams.metadata_for_all_streams_clients()
            except StreamsError:
                continue
            for each in everyone:
                if f"{each.host_info.host}:{each.host_info.port}" == address:
                    found[query_id] = {
                        "activeStores": sorted(each.state_store_names),
                        "activePartitions": _partitions(each.topic_partitions),
                        "standByStores": sorted(each.standby_state_store_names),
                        "standByPartitions": _partitions(each.standby_topic_partitions),
                    }
        return found

    def _topology(self, request: Request) -> Any:
        """For pictures: what this server's part of a query processes."""
        query = str(request.path["query"])
        streams = self.core.host.streams(query)
        if streams is None:
            raise KsqlHttpError(404, f"Query with id:{query} does not exist", error_code=NOT_FOUND)
        if not isinstance(streams, KafkaStreams):
            raise KsqlHttpError(404, f"{query} runs on Spark, without nodes", error_code=NOT_FOUND)
        return streams.live_topology()

    def _all_statuses(self, request: Request) -> Any:
        return {"commandStatuses": {name: each["status"] for name, each in self._statuses.items()}}

    def _status(self, request: Request) -> Any:
        name = "{kind}/{entity}/{action}".format(**request.path)
        found = self._statuses.get(name)
        if found is None:
            raise KsqlHttpError(404, "Command not found", error_code=NOT_FOUND)
        return found

    def _is_valid(self, request: Request) -> Any:
        name = str(request.path["name"])
        try:
            check_overrides({name: None}, self.config["ksql.properties.overrides.denylist"])
        except KsqlException as error:
            raise KsqlHttpError(400, str(error), error_code=BAD_REQUEST) from error
        return True

    def _clusters(self) -> dict[str, Any]:
        return {
            "path": [],
            "clusters": {
                "kafka-cluster": self._cluster_id,
                "ksql-cluster": self.config.service_id,
            },
        }

    def _metadata(self, request: Request) -> Any:
        return {"version": _version(), "clusterId": {"id": "", "scope": self._clusters()}}

    def _metadata_id(self, request: Request) -> Any:
        return {"id": "", "scope": self._clusters()}

    async def _heartbeat(self, request: Request) -> Any:
        self.core.peers.heard(_address((await _json_object(request)).get("hostInfo")))
        return {"isOk": True}

    async def _lag(self, request: Request) -> Any:
        body = await _json_object(request)
        lags = body.get("hostStoreLags")
        self.core.peers.reported(
            _address(body.get("ksqlHost")), lags if isinstance(lags, dict) else {}
        )
        return {"isOk": True}


async def _json_object(request: Request) -> dict[str, Any]:
    found = await request.json()
    if not isinstance(found, dict):
        raise KsqlHttpError(400, "The body must be a JSON object", error_code=BAD_REQUEST)
    return found


def _address(info: Any) -> str:
    if not isinstance(info, dict) or not info.get("host") or not isinstance(info.get("port"), int):
        raise KsqlHttpError(400, "No host and port of the server", error_code=BAD_REQUEST)
    return f"{info['host']}:{info['port']}"


def _partitions(found: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partition": each.partition} for each in sorted(found)]


def _version() -> str:
    try:
        return version("moldau")
    except PackageNotFoundError:
        return "0"
