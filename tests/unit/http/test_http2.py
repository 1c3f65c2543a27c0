"""HTTP/2 over real connections: answers as over HTTP/1.1, and the limits."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import httpx
import pytest
from h2.errors import ErrorCodes

from moldau.http.application import Application, Service
from moldau.http.authentication import authentication_of
from moldau.http.config import HttpConfig
from moldau.http.http2 import RESETS_MAX
from moldau.http.keys import HTTP_KEYS
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.http.server import HttpServer
from moldau.testing import wait_until
from moldau.testing.certificates import make_certificates
from support.http_service import Running, running

running_streams: set[object] = set()


async def echo(request: Request) -> Any:
    return {"length": len(await request.body()), "version": request.scope["http_version"]}


async def endless(request: Request) -> Answer:
    await request.body()

    async def chunks() -> Any:
        mark = object()
        running_streams.add(mark)
        try:
            yield b"first\n"
            await asyncio.sleep(600)
        finally:
            running_streams.discard(mark)

    return Answer(chunks=chunks(), media_type="text/plain")


async def unread(request: Request) -> Any:
    return "not looked at"


ROUTES = (
    Route(method="POST", path="/echo", handler=echo, consumes=("*/*",)),
    Route(method="POST", path="/endless", handler=endless, consumes=("*/*",),
          produces=("text/plain",), timeout_ms=0),
    Route(method="GET", path="/large", handler=lambda r: "x" * 500_000),
    Route(method="POST", path="/unread", handler=unread),
    Route(method="GET", path="/n/{name}", handler=lambda r: r.path["name"] + (r.text("q") or "")),
)  # fmt: skip


def make(**properties: str) -> HttpServer:
    keys = {name.replace("_", "."): value for name, value in properties.items()}
    values = HTTP_KEYS.parse({"listeners": "http://127.0.0.1:0", **keys})
    config = HttpConfig.of(values, default_port=0)
    service = Service(name="example", title="Example", version="7", routes=ROUTES)
    return HttpServer(Application(service, config, authentication=authentication_of(config)))


class Client:
    """A connection whose frames are sent by hand."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self._socket.sendall(self.h2.data_to_send())

    def request(self, path: str, method: str = "POST", *extra: tuple[str, str]) -> int:
        stream_id = self.h2.get_next_available_stream_id()
        headers = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x")]
        self.h2.send_headers(stream_id, [*headers, *extra], end_stream=method == "GET")
        self.flush()
        return stream_id

    def wait_for(self, kind: type[Any]) -> Any:
        while True:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("closed")
            found = [each for each in self.h2.receive_data(data) if isinstance(each, kind)]
            self.flush()
            if found:
                return found[0]

    def is_closed(self) -> bool:
        try:
            while self._socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[Running]:
    with running(lambda: make(max_request_body_size="1000000")) as service:
        yield service


def test_requests_and_answers(plain: Running) -> None:
    with httpx.Client(http1=False, http2=True, base_url=plain.url) as client:
        answer = client.post("/echo", content=b"x" * 300_000)
        assert answer.http_version == "HTTP/2"
        # More than a window, in both directions.
        assert answer.json() == {"length": 300_000, "version": "2"}
        assert len(client.get("/large").content) == 500_002
        assert client.get("/n/a%2Fb?q=%C3%BC").json() == "a/b\u00fc"
        missing = client.get("/nothing")
        assert (missing.status_code, missing.json()["error_code"]) == (404, 404)
        too_large = client.post("/echo", content=b"x" * 1_000_001)
        assert too_large.status_code == 413
        assert client.post("/unread", content=b"x" * 200_000).json() == "not looked at"
        # The connection is still good.
        assert client.post("/echo", content=b"").json()["length"] == 0


def test_http1_goes_on_beside_it(plain: Running) -> None:
    assert httpx.post(plain.url + "/echo", content=b"PRI * HTTP/2.0").json()["version"] == "1.1"
    # Byte by byte, also where the first ones could be HTTP/2's.
    host, _, port = plain.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        for each in b"PROPFIND /large HTTP/1.1\r\nHost: x\r\n\r\n":
            connection.sendall(bytes([each]))
        assert connection.recv(100).startswith(b"HTTP/1.1 405")


def test_a_stream_that_is_reset_ends_its_handler(plain: Running) -> None:
    client = Client(plain.url)
    stream_id = client.request("/endless")
    client.h2.end_stream(stream_id)
    client.flush()
    client.wait_for(h2.events.DataReceived)
    assert len(running_streams) == 1
    client.h2.reset_stream(stream_id)
    client.flush()
    wait_until(lambda: not running_streams)
    client.close()


def test_a_connection_that_is_closed_ends_its_handlers(plain: Running) -> None:
    client = Client(plain.url)
    for _ in range(3):
        client.h2.end_stream(client.request("/endless"))
    client.flush()
    wait_until(lambda: len(running_streams) == 3)
    client.close()
    wait_until(lambda: not running_streams)


def test_headers_are_limited(plain: Running) -> None:
    client = Client(plain.url)
    client.request("/large", "GET", ("x-wide", "x" * 9000))
    headers = dict(client.wait_for(h2.events.ResponseReceived).headers)
    assert headers[":status"] == "431"
    # Far above the limit nothing is answered: the connection ends.
    client.request("/large", "GET", ("x-wide", "x" * 60_000))
    assert client.is_closed()


def test_who_only_resets_is_closed(plain: Running) -> None:
    client = Client(plain.url)

    def reset_many() -> None:
        for _ in range(RESETS_MAX * 20):
            client.h2.reset_stream(client.request("/endless"))
            client.flush()
        assert client.is_closed()
        raise ConnectionError

    with pytest.raises((ConnectionError, BrokenPipeError)):
        reset_many()
    wait_until(lambda: not running_streams)


def test_bodies_that_are_not_read_do_not_fill_memory(plain: Running) -> None:
    """The window of a stream closes when its handler does not read."""
    client = Client(plain.url)
    stream_id = client.request("/endless")
    sent = 0
    while client.h2.local_flow_control_window(stream_id) > 0:
        size = min(client.h2.local_flow_control_window(stream_id), 16_384)
        client.h2.send_data(stream_id, b"x" * size)
        sent += size
    client.flush()
    assert sent <= 65_535
    client.close()


def test_a_connection_without_requests_is_closed() -> None:
    with running(lambda: make(idle_timeout_ms="200")) as service:
        client = Client(service.url)
        event = client.wait_for(h2.events.ConnectionTerminated)
        assert event.error_code == ErrorCodes.NO_ERROR
        assert client.is_closed()


def test_connections_are_limited() -> None:
    with running(lambda: make(server_connection_limit="1")) as service:
        first = Client(service.url)
        first.wait_for(h2.events.RemoteSettingsChanged)
        second = Client(service.url)
        assert second.is_closed()
        first.close()


def test_a_stop_ends_streams() -> None:
    with running(lambda: make(shutdown_graceful_ms="100")) as service:
        client = Client(service.url)
        client.h2.end_stream(client.request("/endless"))
        client.flush()
        client.wait_for(h2.events.DataReceived)
    assert client.is_closed()
    assert not running_streams


def test_tls_negotiates_it(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    settings = {
        "listeners": "https://127.0.0.1:0",
        "ssl_keystore_location": str(certificates.node_store),
        "ssl_keystore_type": "PEM",
    }
    with running(lambda: make(**settings)) as service:
        context = ssl.create_default_context(cafile=certificates.ca)
        for http2, version in ((True, "HTTP/2"), (False, "HTTP/1.1")):
            with httpx.Client(http2=http2, verify=context) as client:
                answer = client.post(service.url + "/echo", content=b"abc")
                assert (answer.http_version, answer.json()["length"]) == (version, 3)


def test_what_breaks_the_protocol_closes_only_its_connection(plain: Running) -> None:
    client = Client(plain.url)
    # A frame of 16 MB is not waited for.
    client._socket.sendall(b"\xff" * 200_000)
    assert client.is_closed()
    with httpx.Client(http1=False, http2=True) as other:
        assert other.get(plain.url + "/n/a").status_code == 200
    assert json.loads(httpx.get(plain.url + "/n/b").content) == "b"
