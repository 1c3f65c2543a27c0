"""Answers queries over HTTP, and forwards those that another instance has to answer.

Every answer says which instance has the data, which partition it is in, and how far that copy is
behind the end of its changelog (`lag`). A forwarded request is not forwarded again.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

from moldau.client.errors import KafkaError
from moldau.http.application import Application, Service
from moldau.http.authentication import authentication_of
from moldau.http.config import HttpConfig
from moldau.http.keys import http_keys
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import JSON, Parameter, Route
from moldau.http.request import Answer, Request
from moldau.http.server import HttpServer
from moldau.streams.errors import InvalidStateStoreError, UnknownStateStoreError
from moldau.streams.hosts.kafka_streams import KafkaStreams
from moldau.streams.hosts.queries import HostInfo
from moldau.streams.records import ValueAndTimestamp, Windowed

FORWARDED = "x-moldau-forwarded"
ENTRIES_MAX = 1000
_FORWARD_S = 10.0
_SVG = "image/svg+xml"
_START_S = 30.0
_KEYS = http_keys("")
_SERDE = Parameter(name="serde", description="serde of the key: string, long, integer, json, ...")


class QueryServer:
    """Serves the stores of a `KafkaStreams` on its `application.server`, or on `listen`.

    with streams, QueryServer(streams, "127.0.0.1:7070"):
        ...
    """

    def __init__(self, streams: KafkaStreams, listen: str | None = None) -> None:
        self._streams = streams
        address = listen or streams.settings.application_server
        if not address:
            raise InvalidStateStoreError(
                "queries need an address: set application.server, or pass one such as "
                "127.0.0.1:7070"
            )
        self._config = HttpConfig.of(
            _KEYS.parse({"listeners": f"http://{address}"}), default_port=7070
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="streams-queries", daemon=True
        )
        self._server: HttpServer | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return "" if self._server is None else self._server.urls[0]

    def start(self) -> QueryServer:
        """Listen; raises ConfigError if the address is taken."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(_START_S)
        except BaseException:
            self._end_loop()
            raise
        return self

    async def _start(self) -> None:
        application = Application(
            self._service(), self._config, authentication=authentication_of(self._config)
        )
        self._server = HttpServer(application)
        await self._server.start()

    def close(self) -> None:
        """Answer what was asked, and stop."""
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(_START_S)
            self._server = None
        self._end_loop()

    def _end_loop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> QueryServer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Routes.

    def _service(self) -> Service:
        routes = [
            ("/state", self._stores, "the stores of this instance, with their lag", ()),
            ("/topology", self._topology, "the topology as text, and the rates of its nodes", ()),
            ("/topology.svg", self._picture, "the topology, with the rates of its nodes", ()),
            ("/instances", self._instances, "all instances of the application", ()),
            ("/state/{store}/keys/{key}", self._key, "the value of a key", ("as_of", "serde")),
            (
                "/state/{store}/entries",
                self._entries,
                "entries of a key-value store, of all instances",
                ("from", "to", "prefix", "limit", "serde"),
            ),
            (
                "/state/{store}/windows/{key}",
                self._windows,
                "the windows of a key",
                ("from", "to", "serde"),
            ),
            (
                "/state/{store}/sessions/{key}",
                self._sessions,
                "the sessions of a key",
                ("from", "to", "serde"),
            ),
        ]
        return Service(
            name="streams",
            title=f"Stores of {self._streams.settings.application_id}",
            version="1",
            routes=tuple(
                Route(
                    method="GET",
                    path=path,
                    handler=handler,
                    summary=summary,
                    produces=(_SVG if path.endswith(".svg") else JSON,),
                    parameters=tuple(
                        _SERDE if name == "serde" else Parameter(name=name) for name in names
                    ),
                )
                for path, handler, summary, names in routes
            ),
            map_error=_http_error,
            health=lambda: {"state": self._streams.state.name},
        )

    async def _stores(self, request: Request) -> Any:
        lags = await asyncio.to_thread(self._streams.all_local_store_partition_lags)
        return {
            store: {
                str(partition): {"position": lag.current_offset_position, "lag": lag.offset_lag}
                for partition, lag in sorted(partitions.items())
            }
            for store, partitions in sorted(lags.items())
        }

    async def _topology(self, request: Request) -> Any:
        return self._streams.live_topology()

    async def _picture(self, request: Request) -> Answer:
        return Answer(body=self._streams.svg().encode(), media_type=_SVG)

    async def _instances(self, request: Request) -> Any:
        return [
            {
                "host": str(each.host_info),
                "stores": sorted(each.state_store_names),
                "standby_stores": sorted(each.standby_state_store_names),
            }
            for each in self._streams.metadata_for_all_streams_clients()
        ]

    async def _key(self, request: Request) -> Any:
        as_of = request.number("as_of", kind="long")

        def read(store: Any, key: Any) -> Any:
            found = store.get(key) if as_of is None else store.get_as_of(key, as_of)
            if found is None:
                raise HttpError(404, f"store {request.path['store']} has no key {key!r}")
            return _value(found)

        return await self._of_key(request, read)

    async def _windows(self, request: Request) -> Any:
        low, high = _span(request)
        return await self._of_key(
            request,
            lambda store, key: {
                "windows": [
                    {"start": start, **_value(value)}
                    for start, value in store.fetch(key, low, high)
                ]
            },
        )

    async def _sessions(self, request: Request) -> Any:
        low, high = _span(request)
        return await self._of_key(
            request,
            lambda store, key: {
                "sessions": [
                    {"start": session.window.start, "end": session.window.end, **_value(value)}
                    for session, value in store.find_sessions(key, low, high)
                ]
            },
        )

    async def _of_key(self, request: Request, read: Any) -> Any:
        """Answer from the partition of a key, or ask the instance that has it."""
        store = request.path["store"]
        serde = request.text("serde", "string") or "string"
        key = _typed(request.path["key"], serde)
        where = self._streams.query_metadata_for_key(store, key, serde)
        own = self._streams.settings.application_server
        if where.active_host is not None and str(where.active_host) != own:
            return await self._forwarded(request, where.active_host)
        return await asyncio.to_thread(self._local, store, key, where.partition, read)

    def _local(self, store: str, key: Any, partition: int, read: Any) -> Any:
        found = self._streams.store(store, stale=True)
        answer = read(found, key)
        lag = self._streams.all_local_store_partition_lags().get(store, {}).get(partition)
        return {
            "store": store,
            "key": key,
            **answer,
            "partition": partition,
            "host": self._streams.settings.application_server,
            "lag": None if lag is None else lag.offset_lag,
        }

    async def _entries(self, request: Request) -> Any:
        store = request.path["store"]
        limit = min(request.number("limit", ENTRIES_MAX) or ENTRIES_MAX, ENTRIES_MAX)
        entries = await asyncio.to_thread(self._local_entries, request, store, limit)
        if FORWARDED not in request.headers:
            own = self._streams.settings.application_server
            for each in self._streams.streams_metadata_for_store(store):
                if str(each.host_info) != own and len(entries) < limit:
                    answer = await self._forwarded(request, each.host_info)
                    entries += answer["entries"]
        return {"store": store, "entries": entries[:limit]}

    def _local_entries(self, request: Request, store: str, limit: int) -> list[dict[str, Any]]:
        serde = request.text("serde", "string") or "string"
        bounds = [request.text(name) for name in ("from", "to")]
        low, high = (None if text is None else _typed(text, serde) for text in bounds)
        prefix = request.text("prefix")
        found = self._streams.store(store)
        try:
            rows: Iterable[Any]
            if prefix is not None:
                rows = found.prefix_scan(prefix.encode())
            elif low is not None or high is not None:
                rows = found.range(low, high)
            else:
                rows = found.all()
        except AttributeError:
            raise HttpError(400, f"store {store} has no ranges: ask for windows of a key") from None
        except InvalidStateStoreError:
            if FORWARDED in request.headers or self._streams.settings.application_server:
                # Other instances have all of its partitions.
                return []
            raise
        return [{**_key(key), **_value(value)} for key, value in list(rows)[:limit]]

    async def _forwarded(self, request: Request, host: HostInfo) -> Any:
        if FORWARDED in request.headers:
            raise HttpError(
                503, f"the data is moving to {host}: ask again", headers={"Retry-After": "1"}
            )
        path = quote(request.raw_path.decode("latin-1"), safe="/%")
        query = urlencode([(name, each) for name, texts in request.query.items() for each in texts])
        return await asyncio.to_thread(_fetch, host, f"{path}?{query}")


def _fetch(host: HostInfo, path: str) -> Any:
    connection = http.client.HTTPConnection(host.host, host.port, timeout=_FORWARD_S)
    try:
        connection.request("GET", path, headers={FORWARDED: "1"})
        response = connection.getresponse()
        body = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise HttpError(503, f"the instance at {host} does not answer: {error}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise HttpError(response.status, body.get("message"))
    return body


def _http_error(error: Exception) -> HttpError | None:
    if isinstance(error, InvalidStateStoreError):
        return HttpError(404 if isinstance(error, UnknownStateStoreError) else 503, str(error))
    if isinstance(error, KafkaError):
        return HttpError(503, str(error))
    return None


def _span(request: Request) -> tuple[int, int]:
    low = request.number("from", 0, kind="long")
    high = request.number("to", 2**62, kind="long")
    return low or 0, 2**62 if high is None else high


def _typed(text: str, serde: str) -> Any:
    """A key of the path as the serde takes it."""
    try:
        match serde:
            case "short" | "integer" | "int" | "long":
                return int(text)
            case "float" | "double":
                return float(text)
            case "json" | "boolean":
                return json.loads(text)
            case "bytes":
                return bytes.fromhex(text)
            case _:
                return text
    except ValueError:
        raise HttpError(400, f"the key {text!r} is no {serde}") from None


def _plain(value: Any) -> Any:
    """What JSON can express."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return value.hex() if isinstance(value, bytes) else str(value)
    return value


def _key(key: Any) -> dict[str, Any]:
    if isinstance(key, Windowed):
        return {"key": _plain(key.key), "start": key.window.start, "end": key.window.end}
    return {"key": _plain(key)}


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, ValueAndTimestamp) or (
        isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int)
    ):
        return {"value": _plain(value[0]), "timestamp": value[1]}
    return {"value": _plain(value)}
