"""The HTTP connectors against a server that answers as told by the test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from moldau.connect.api import ConnectError, DataError, RetriableError
from moldau.testing.connect import SinkDriver, SourceDriver, config_errors

SINK = "io.confluent.connect.http.HttpSinkConnector"
SOURCE = "com.github.castorm.kafka.connect.http.HttpSourceConnector"


class Target:
    """An HTTP server: what it was asked, and what it answers with."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes, dict[str, str]]] = []
        self.answers: list[tuple[int, Any]] = []
        target = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                target.requests.append((self.command, self.path, body, headers))
                status, answer = target.answers.pop(0) if target.answers else (200, {})
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                if isinstance(answer, dict) and "link" in answer:
                    self.send_header("Link", answer["link"])
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = _handle

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, _, body, _ in self.requests]


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.close()


def sink_for(
    target: Target, path: str = "/in", *, reports: bool = True, **config: str
) -> SinkDriver:
    keys = {name.replace("_", "."): value for name, value in config.items()}
    given = {"http.api.url": target.url + path, "topics": "t", **keys}
    return SinkDriver(SINK, given, reports=reports)


def test_a_request_per_record_with_its_address_and_login(target: Target) -> None:
    config = {
        "auth_type": "BASIC", "connection_user": "u", "connection_password": "p",
        "headers": "X-One:1|X-Two: 2", "request_method": "put",
    }  # fmt: skip
    with sink_for(target, "/${topic}/${key}?x=1", **config) as sink:
        sink.send("t", "hello", key="a/b")
        sink.send("t", {"n": 1}, key=7)
    assert [(method, path, body) for method, path, body, _ in target.requests] == [
        ("PUT", "/t/a%2Fb?x=1", b"hello"),
        ("PUT", "/t/7?x=1", b'{"n":1}'),
    ]
    headers = target.requests[0][3]
    assert headers["authorization"] == "Basic dTpw"
    assert (headers["x-one"], headers["x-two"]) == ("1", "2")


def test_batches(target: Target) -> None:
    config = {"batch_max_size": "2", "batch_json_as_array": "true"}
    with sink_for(target, **config) as sink:
        sink.put([sink.record("t", {"n": number}) for number in range(3)])
    assert [json.loads(body) for body in target.bodies] == [[{"n": 0}, {"n": 1}], [{"n": 2}]]
    target.requests.clear()
    config = {
        "batch_max_size": "5",
        "batch_prefix": "<",
        "batch_suffix": ">",
        "batch_separator": ";",
    }
    with sink_for(target, **config) as sink:
        sink.put([sink.record("t", text) for text in ("a", "b")])
    assert target.bodies == [b"<a;b>"]


def test_a_busy_server_gets_only_what_it_has_not_got(target: Target) -> None:
    target.answers = [(200, {}), (503, {}), (200, {})]
    with sink_for(target, retry_backoff_ms="5") as sink:
        records = [sink.record("t", text) for text in ("a", "b", "c")]
        with pytest.raises(RetriableError, match="503"):
            sink.put(records)
        assert sink.task_context.timeout_ms == 5
        sink.put(records)
    assert target.bodies == [b"a", b"b", b"b", b"c"]


def test_what_the_server_refuses_is_reported_or_fails(target: Target) -> None:
    target.answers = [(200, {}), (422, {"why": "too long"}), (200, {})]
    with sink_for(target) as sink:
        sink.put([sink.record("t", text) for text in ("a", "b", "c")])
        ((record, error),) = sink.errant
        assert record.value == "b"
        assert "422" in str(error)
        assert "too long" in str(error)
    target.answers = [(400, {})]
    with sink_for(target, reports=False) as sink, pytest.raises(ConnectError, match="400"):
        sink.send("t", "x")


def test_batches_by_key(target: Target) -> None:
    config = {"batch_max_size": "2", "batch_key_pattern": "${topic}-${key}"}
    with sink_for(target, **config) as sink:
        sink.put([sink.record("t", f"{key}{n}", key=key) for n in range(3) for key in "ab"])
    assert target.bodies == [b"a0,a1", b"b0,b1", b"a2", b"b2"]


def test_replacements_in_records(target: Target) -> None:
    config = {
        "regex_patterns": r"(?<y>\d+)-(\d+)~secret", "regex_separator": "~",
        "regex_replacements": "$2/${y}~${topic}:${key}",
    }  # fmt: skip
    with sink_for(target, **config) as sink:
        sink.send("t", "2024-05 secret", key="a$1")
    assert target.bodies == [b"05/2024 t:a$1"]
    wrong = {"http.api.url": target.url, "regex.patterns": "a~b", "regex.replacements": "x"}
    assert set(config_errors(SINK, wrong)) == {"regex.replacements"}


@pytest.mark.parametrize("mode", ["header", "url"])
def test_tokens_are_had_and_renewed(target: Target, mode: str) -> None:
    config = {
        "auth.type": "oauth2", "oauth2.token.url": f"{target.url}/token?x=1",
        "oauth2.client.id": "me", "oauth2.client.secret": "s", "oauth2.client.scope": "write",
        "oauth2.token.property": "id", "oauth2.client.headers": "X-A:1",
        "oauth2.client.auth.mode": mode, "http.api.url": f"{target.url}/in", "topics": "t",
    }  # fmt: skip
    target.answers = [(200, {"id": "one"}), (200, {}), (401, {}), (200, {"id": "two"})]
    with SinkDriver(SINK, config) as sink:
        sink.send("t", "x")
        sink.send("t", "y")
    asked = [(path, headers.get("authorization")) for _, path, _, headers in target.requests]
    login = "Basic bWU6cw==" if mode == "header" else None
    assert asked == [
        ("/token?x=1", login), ("/in", "Bearer one"), ("/in", "Bearer one"),
        ("/token?x=1", login), ("/in", "Bearer two"),
    ]  # fmt: skip
    assert b"grant_type=client_credentials&scope=write" in target.bodies[0]
    assert (b"client_id=me&client_secret=s" in target.bodies[0]) == (mode == "url")
    del config["oauth2.token.url"]
    assert set(config_errors(SINK, config)) == {"oauth2.token.url"}


def test_which_answers_are_repeated(target: Target) -> None:
    target.answers = [(404, {}), (404, {}), (503, {})]
    config = {"retry_on_status_codes": "404,410-", "max_retries": "1", "retry_backoff_ms": "1"}
    with sink_for(target, **config) as sink:
        records = [sink.record("t", "a")]
        with pytest.raises(RetriableError, match="404"):
            sink.put(records)
        sink.put(records)
        assert "tried 2 times" in str(sink.errant[0][1])
        with pytest.raises(RetriableError, match="503"):
            sink.send("t", "b")
    with sink_for(target, retry_on_status_codes="429") as sink:
        target.answers = [(503, {})]
        sink.send("t", "c")
        assert "503" in str(sink.errant[0][1])
    wrong = {"http.api.url": target.url, "retry.on.status.codes": "4xx"}
    assert set(config_errors(SINK, wrong)) == {"retry.on.status.codes"}


def test_records_without_a_value(target: Target) -> None:
    with sink_for(target, "/items/${key}", behavior_on_null_values="delete") as sink:
        sink.send("t", "x", key="1")
        sink.send("t", None, key="1")
    assert [(method, path) for method, path, *_ in target.requests] == [
        ("POST", "/items/1"),
        ("DELETE", "/items/1"),
    ]
    failing = sink_for(target, behavior_on_null_values="fail", reports=False)
    with failing as sink, pytest.raises(DataError, match="no value"):
        sink.send("t", None)


def test_a_source_asks_on_from_its_offset(target: Target) -> None:
    target.answers = [
        (200, {"data": {"items": [{"id": 1, "k": "a"}, {"id": 2, "k": "b"}]}}),
        (503, {}),
        (200, {"data": {"items": [{"id": 3, "k": "c"}]}}),
        (200, {"data": {}}),
    ]
    config = {
        "http.request.url": target.url + "/events?after=${offset}",
        "http.offset.initial": "0",
        "http.response.list.pointer": "/data/items",
        "http.response.record.key.pointer": "/k",
        "http.response.record.offset.pointer": "/id",
        "http.timer.interval.millis": "1",
        "kafka.topic": "events",
    }
    with SourceDriver(SOURCE, config) as source:
        found = source.poll()
        assert [(each.key, json.loads(each.value)["id"]) for each in found] == [("a", 1), ("b", 2)]
        source.commit()
        with pytest.raises(RetriableError):
            source.poll()
        source.restart()
        assert [each.key for each in source.poll()] == ["c"]
        assert source.poll() == []
    assert [path for _, path, *_ in target.requests] == [
        "/events?after=0",
        "/events?after=2",
        "/events?after=2",
        "/events?after=3",
    ]


def test_a_source_follows_pages(target: Target) -> None:
    config = {
        "http.request.url": f"{target.url}/items?size=2", "kafka.topic": "t",
        "http.response.list.pointer": "/items", "http.timer.interval.millis": "60000",
        "http.response.next.page.pointer": "/next",
    }  # fmt: skip
    target.answers += [
        (200, {"items": [1, 2], "next": "/items?size=2&page=2"}),
        (200, {"items": [3], "link": f'<{target.url}/items?page=3>; rel="next", </x>; rel=last'}),
        (500, {}),
        (200, {"items": [4]}),
    ]
    with SourceDriver(SOURCE, config) as source:
        records = source.poll_until(3)
        assert [each.value for each in records] == ["1", "2", "3"]
        assert records[-1].source_offset == {"offset": "", "page": "/items?size=2&page=2"}
        with pytest.raises(RetriableError):
            source.poll()
        (last,) = source.poll_until(1)
        assert (last.value, last.source_offset) == ("4", {"offset": ""})
    assert [path for _, path, _, _ in target.requests] == [
        "/items?size=2", "/items?size=2&page=2", "/items?page=3", "/items?page=3",
    ]  # fmt: skip
    target.answers = [(200, {"items": [1], "next": "http://elsewhere/items"})]
    with (
        SourceDriver(SOURCE, config) as source,
        pytest.raises(ConnectError, match="another server"),
    ):
        source.poll()


def test_wrong_addresses_are_named() -> None:
    assert set(config_errors(SINK, {"http.api.url": "ftp://x"})) == {"http.api.url"}
