"""A service over real connections: errors, limits, authentication, TLS with reload, stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moldau.http.application import Application, Service
from moldau.http.authentication import authentication_of
from moldau.http.config import HttpConfig
from moldau.http.keys import HTTP_KEYS
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.http.server import HttpServer
from moldau.testing import wait_until
from moldau.testing.certificates import make_certificates
from support.http_service import Running, running

VENDOR = "application/vnd.example.v1+json"


async def echo(request: Request) -> Any:
    return {"body": await request.json(), "type": request.consumed_type}


async def wait(request: Request) -> Any:
    ending = asyncio.ensure_future(request.stopping.wait())
    await asyncio.wait([ending], timeout=float(request.text("s") or 10))
    ending.cancel()
    return {"stopped": request.stopping.is_set()}


async def stubborn(request: Request) -> Any:
    await asyncio.sleep(60)


async def counted(request: Request) -> Answer:
    async def chunks() -> Any:
        for number in range(3):
            yield b"%d\n" % number

    return Answer(chunks=chunks(), media_type="text/plain")


def fail(request: Request) -> Any:
    kind = request.text("kind")
    if kind == "own":
        raise KeyError("mine")
    if kind == "late":
        raise TimeoutError("of another service")
    if kind == "http":
        raise HttpError(422, "no such level", error_code=42203)
    raise RuntimeError("a bug")


ROUTES = (
    Route(
        method="GET",
        path="/who",
        handler=lambda r: str(r.principal),
        produces=(VENDOR, "application/json;qs=0.5"),
    ),
    Route(
        method="POST",
        path="/echo",
        handler=echo,
        consumes=(VENDOR, "application/json"),
        produces=(VENDOR,),
    ),
    Route(method="GET", path="/wait", handler=wait),
    Route(method="GET", path="/stubborn", handler=stubborn),
    Route(method="GET", path="/chunks", handler=counted, produces=("text/plain",)),
    Route(method="GET", path="/fail", handler=fail),
    Route(method="GET", path="/base", handler=lambda r: r.base_url),
    Route(method="GET", path="/large", handler=lambda r: "x" * 5000),
    Route(method="GET", path="/open", handler=lambda r: str(r.principal)),
    Route(method="GET", path="/n/{name}", handler=lambda r: r.path["name"]),
    Route(method="DELETE", path="/n/{name}", handler=lambda r: Answer(status=204)),
)


def own_error(error: Exception) -> HttpError | None:
    if isinstance(error, TimeoutError):
        return HttpError(500, str(error), error_code=50003)
    return (
        HttpError(404, "it is not here", error_code=40401) if isinstance(error, KeyError) else None
    )


def make(**properties: str) -> HttpServer:
    keys = {name.replace("_", "."): value for name, value in properties.items()}
    values = HTTP_KEYS.parse({"listeners": "http://127.0.0.1:0", **keys})
    config = HttpConfig.of(values, default_port=0)
    service = Service(
        name="example", title="Example <1>", version="7", routes=ROUTES, map_error=own_error
    )
    return HttpServer(Application(service, config, authentication=authentication_of(config)))


@pytest.fixture(scope="module")
def plain() -> Iterator[Running]:
    with running(make) as found:
        yield found


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "code"),
    [
        ("GET", "/none", {}, b"", 404, 404),
        ("PUT", "/who", {}, b"", 405, 405),
        ("GET", "/who", {"Accept": "text/html"}, b"", 406, 406),
        ("POST", "/echo", {"Content-Type": "text/plain"}, b"{}", 415, 415),
        ("POST", "/echo", {"Content-Type": "application/json"}, b"{", 400, 400),
        ("POST", "/echo", {"Content-Type": "application/json"}, b"", 400, 400),
        ("POST", "/echo", {"Content-Type": "application/json"}, b"\xff", 400, 400),
        ("POST", "/echo", {"Content-Type": "application/json"}, b'"\\ud800"', 400, 400),
        ("POST", "/echo", {"Content-Type": "application/json"}, b"NaN", 400, 400),
        ("POST", "/echo", {"Content-Type": "application/json"}, b"[" * 200_000, 400, 400),
        ("POST", "/echo", {"Content-Type": "application/json"}, b"1" * 10_000, 400, 400),
        ("GET", "/fail?kind=own", {}, b"", 404, 40401),
        ("GET", "/fail?kind=http", {}, b"", 422, 42203),
        ("GET", "/fail?kind=late", {}, b"", 500, 50003),
        ("GET", "/fail", {}, b"", 500, 500),
        ("GET", "/fail?kind=%FF", {}, b"", 400, 400),
    ],
)
def test_every_error_has_confluents_body(
    plain: Running,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    status: int,
    code: int,
) -> None:
    answer = httpx.request(method, plain.url + path, headers=headers, content=body)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert set(answer.json()) == {"error_code", "message"}
    assert "json" in answer.headers["content-type"]


def test_negotiated_types_and_allow(plain: Running) -> None:
    assert httpx.get(plain.url + "/who").headers["content-type"] == VENDOR
    asked = httpx.get(plain.url + "/who", headers={"Accept": "application/json"})
    assert asked.headers["content-type"] == "application/json"
    refused = httpx.put(plain.url + "/who")
    assert refused.headers["allow"] == "GET,HEAD,OPTIONS"
    assert httpx.options(plain.url + "/who").headers["allow"] == "GET,HEAD,OPTIONS"
    head = httpx.head(plain.url + "/who")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "16")


def test_names_with_slashes_and_umlauts(plain: Running) -> None:
    assert httpx.get(plain.url + "/n/a%2Fb%20%C3%BC").json() == "a/b ü"
    deleted = httpx.delete(plain.url + "/n/x")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert httpx.get(plain.url + "/chunks").text == "0\n1\n2\n"


def test_answers_are_compressed_for_clients_that_want_it(plain: Running) -> None:
    def ask(accepted: str, path: str = "/large") -> httpx.Response:
        return httpx.get(plain.url + path, headers={"Accept-Encoding": accepted})

    packed = ask("br, gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < 1000
    assert packed.json() == "x" * 5000
    for accepted in ("identity", "gzip;q=0", ""):
        assert "content-encoding" not in ask(accepted).headers
    # Small ones are not worth it, and what streams must not wait for the compressor.
    for path in ("/who", "/chunks"):
        assert "content-encoding" not in ask("gzip", path).headers


def test_links_are_those_of_a_load_balancer_that_says_so(plain: Running) -> None:
    def base(**headers: str) -> str:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        found: str = httpx.get(plain.url + "/base", headers=names).json()
        return found

    assert base() == plain.url
    assert base(Host="example.org") == "http://example.org"
    forwarded = base(X_Forwarded_Proto="https", X_Forwarded_Host="kafka.example.org:8443")
    assert forwarded == "https://kafka.example.org:8443"
    assert base(X_Forwarded_Proto="javascript", X_Forwarded_Host='"><script>') == plain.url


def test_documents_of_a_service(plain: Running) -> None:
    document = httpx.get(plain.url + "/openapi.json").json()
    assert document["info"]["title"] == "Example <1>"
    served = {(path, method) for path, found in document["paths"].items() for method in found}
    assert {("/n/{name}", "get"), ("/n/{name}", "delete"), ("/health", "get")} <= served
    page = httpx.get(plain.url + "/docs")
    assert "Example &lt;1&gt;" in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert httpx.get(plain.url + "/health").json() == {"status": "ok"}
    httpx.get(plain.url + "/n/counted")
    metrics = httpx.get(plain.url + "/metrics").text
    assert (
        'moldau_example_http_requests_total{method="GET",path="/n/{name}",status="200"}' in metrics
    )
    assert "moldau_example_http_requests_in_flight 1" in metrics


def test_bodies_headers_and_numbers_of_requests_are_limited() -> None:
    with running(
        lambda: make(
            max_request_body_size="1000", requests_in_flight_max="1", max_request_header_size="2000"
        )
    ) as service:
        json_type = {"Content-Type": "application/json"}
        large = json.dumps("x" * 1000).encode()
        answer = httpx.post(service.url + "/echo", content=large, headers=json_type)
        assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
        chunked = httpx.post(
            service.url + "/echo", content=iter([b'"', b"x" * 600, b"x" * 600]), headers=json_type
        )
        assert chunked.status_code == 413
        wide = httpx.get(service.url + "/who", headers={"X-Wide": "x" * 3000})
        assert (wide.status_code, wide.json()["error_code"]) == (431, 431)
        with busy(service.url + "/wait?s=30", service):
            answer = httpx.get(service.url + "/who")
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
            assert httpx.get(service.url + "/health").status_code == 200


def test_the_bodies_of_all_requests_together_are_limited() -> None:
    with running(lambda: make(request_bytes_in_flight_max="1000")) as service:
        kind = {"Content-Type": "application/json"}
        fits, large = json.dumps("x" * 900).encode(), json.dumps("x" * 1100).encode()
        for content, status in ((fits, 200), (large, 429), (fits, 200)):
            answer = httpx.post(service.url + "/echo", content=content, headers=kind)
            assert answer.status_code == status


@contextlib.contextmanager
def busy(url: str, service: Running) -> Iterator[list[httpx.Response]]:
    """One request that waits."""
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(httpx.get(url, timeout=60)))
    thread.start()
    wait_until(lambda: service.service.application.in_flight == 1)
    yield answers
    if not service.service.application.stopping.is_set():
        service.loop.call_soon_threadsafe(service.service.application.stopping.set)
    thread.join(30)


def test_a_request_that_takes_too_long_is_ended() -> None:
    with running(lambda: make(request_timeout_ms="200")) as service:
        answer = httpx.get(service.url + "/stubborn")
        assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(
                b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: 10\r\n\r\n{"
            )
            assert raw.recv(1000).startswith(b"HTTP/1.1 408")


def test_headers_that_never_end_close_the_connection() -> None:
    with running(lambda: make(idle_timeout_ms="300")) as service:
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(b"GET /who HTTP/1.1\r\nHost: x\r\n")
            began = time.monotonic()
            assert raw.recv(1000) == b""
            assert time.monotonic() - began < 5
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(b"nonsense\r\n\r\n")
            assert raw.recv(1000).startswith(b"HTTP/1.1 400")


def test_an_offer_of_http_2_is_answered_as_http_1(plain: Running) -> None:
    host, port = plain.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
            b"Content-Type: application/json\r\nContent-Length: 8\r\n\r\n"
        )
        raw.sendall(b'{"a": 1}')
        assert raw.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_stop_lets_requests_finish_and_cancels_those_that_do_not() -> None:
    with running(lambda: make(shutdown_graceful_ms="300")) as service:
        with busy(service.url + "/wait?s=30", service) as answers:
            service.call(service.service.stop)
        assert answers[0].json() == {"stopped": True}
    with running(lambda: make(shutdown_graceful_ms="300")) as service:
        cancelled: list[httpx.Response] = []

        def ask() -> None:
            cancelled.append(httpx.get(service.url + "/stubborn", timeout=60))

        thread = threading.Thread(target=ask)
        thread.start()
        wait_until(lambda: service.service.application.in_flight == 1)
        began = time.monotonic()
        service.call(service.service.stop)
        assert time.monotonic() - began < 10
        thread.join(30)
        assert cancelled[0].status_code == 503
        assert cancelled[0].json()["message"] == "The service is stopping."


def test_basic_authentication_with_roles(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(
        "# comment\nalice: secret,admin\nbob: MD5:9f9d51bc70ef21ca5c14f307980a29d8,guest\n"
    )
    with running(
        lambda: make(
            authentication_method="BASIC",
            authentication_users_file=str(users),
            authentication_roles="admin",
            authentication_skip_paths="/open",
        )
    ) as service:
        url = service.url + "/who"
        refused = httpx.get(url)
        assert (refused.status_code, refused.json()["error_code"]) == (401, 401)
        assert refused.headers["www-authenticate"] == 'Basic realm="moldau"'
        assert httpx.get(url, auth=("alice", "secret")).json() == "User:alice"
        assert httpx.get(url, auth=("alice", "wrong")).status_code == 401
        assert httpx.get(url, auth=("", "")).status_code == 401
        assert httpx.get(url, headers={"Authorization": "Basic !!"}).status_code == 401
        assert httpx.get(url, auth=("bob", "bob")).status_code == 403
        assert httpx.get(service.url + "/open").json() == "User:ANONYMOUS"
        assert httpx.get(service.url + "/health").status_code == 200
        users.write_text("alice: changed,admin\n")
        assert httpx.get(url, auth=("alice", "changed")).json() == "User:alice"


def test_bearer_tokens(tmp_path: Path) -> None:
    jwt = pytest.importorskip("jwt")
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [{**public, "kid": "1", "use": "sig"}]}))

    def token(**claims: Any) -> str:
        made: str = jwt.encode(
            {"sub": "carol", "exp": time.time() + 60, "iat": time.time(), **claims},
            key,
            algorithm="RS256",
            headers={"kid": "1"},
        )
        return made

    with running(
        lambda: make(authentication_method="BEARER", oauthbearer_jwks_endpoint_url=str(keys))
    ) as service:

        def ask(text: str) -> httpx.Response:
            return httpx.get(service.url + "/who", headers={"Authorization": f"Bearer {text}"})

        assert ask(token()).json() == "User:carol"
        assert ask(token(exp=1)).status_code == 401
        assert ask(token()[:-3]).status_code == 401
        assert httpx.get(service.url + "/who").headers["www-authenticate"] == "Bearer"


def test_client_certificates_and_a_certificate_that_is_replaced(tmp_path: Path) -> None:
    first, second = make_certificates(tmp_path / "1"), make_certificates(tmp_path / "2")
    store = tmp_path / "node.pem"
    shutil.copy(first.node_store, store)
    with running(
        lambda: make(
            listeners="https://127.0.0.1:0,http://127.0.0.1:0",
            ssl_keystore_type="PEM",
            ssl_keystore_location=str(store),
            ssl_truststore_type="PEM",
            ssl_truststore_location=str(first.ca),
            ssl_client_authentication="REQUESTED",
            ssl_principal_mapping_rules="RULE:^CN=(.*)$/$1/U",
        )
    ) as service:
        secure, other = service.service.urls
        assert (secure[:8], other[:7]) == ("https://", "http://")
        trusting = ssl.create_default_context(cafile=str(first.ca))
        assert httpx.get(secure + "/who", verify=trusting).json() == "User:ANONYMOUS"
        known = ssl.create_default_context(cafile=str(first.ca))
        known.load_cert_chain(first.client_store)
        assert httpx.get(secure + "/who", verify=known).json() == "User:CLIENT"
        with httpx.Client(verify=trusting) as kept:
            assert kept.get(secure + "/who").status_code == 200
            shutil.copy(second.node_store, tmp_path / "next.pem")
            os.replace(tmp_path / "next.pem", store)
            renewed = ssl.create_default_context(cafile=str(second.ca))

            def accepted() -> bool:
                try:
                    return httpx.get(secure + "/who", verify=renewed).status_code == 200
                except httpx.ConnectError:
                    return False

            wait_until(accepted, timeout=20)
            # A connection that exists goes on.
            assert kept.get(secure + "/who").status_code == 200


def test_basic_credentials_are_in_no_repr() -> None:
    from moldau.http.request import Principal

    assert "secret" not in repr(Principal("a", "basic", "secret"))
