"""Requests that no page sends: whatever the path, the query and the body are, the answer is not an
error of the server, and says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from support.console import Console, console_of
from support.processes import BrokerProcess

NAMES = ("nothing", "ü/%00 {x}", "-1", "x" * 300)
WRONG: tuple[Any, ...] = (None, -1, 2**70, True, "x" * 300, [None], {"a": None})
SECONDS_MAX = 8.0
KINDS = {"string": "nothing", "integer": 1, "boolean": True, "array": [{}], "object": {}}


@pytest.fixture(scope="module")
def console(broker: BrokerProcess) -> Iterator[Console]:
    """With little patience: what is not there must not be waited for."""
    quick = {
        "admin_default_api_timeout_ms": "10000",
        "admin_request_timeout_ms": "5000",
        "producer_max_block_ms": "1000",
    }
    with console_of(broker.bootstrap, **quick) as found:
        yield found


@pytest.fixture(scope="module")
def routes(console: Console) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and the fields of the body."""
    found = []
    for path, methods in console.client.get("/openapi.json").json()["paths"].items():
        for method, route in methods.items():
            if not path.startswith("/api/clusters/") or method not in (
                "get",
                "post",
                "put",
                "patch",
                "delete",
            ):
                continue
            body = route.get("requestBody", {}).get("content", {}).get("application/json", {})
            found.append((method.upper(), path, body.get("schema", {}).get("properties", {})))
    assert len(found) > 60
    return found


def path_of(path: str, name: str) -> str:
    filled = path.replace("{cluster}", "default")
    while "{" in filled:
        start, end = filled.index("{"), filled.index("}")
        what = filled[start + 1 : end]
        value = "0" if what in ("partition", "offset", "broker") else quote(name, safe="")
        filled = filled[:start] + value.replace("{", "%7B").replace("}", "%7D") + filled[end + 1 :]
    return filled


def ask(console: Console, method: str, path: str, **how: Any) -> httpx.Response:
    """At most the beginning of an answer that does not end."""
    with console.client.stream(method, path, **how) as answer:
        if answer.status_code >= 400 or "ndjson" not in answer.headers.get("content-type", ""):
            answer.read()
        return answer


def wrong(answer: httpx.Response, what: object) -> list[str]:
    seconds = answer.elapsed.total_seconds()
    if answer.status_code >= 500 or seconds > SECONDS_MAX:
        return [f"{what}: {answer.status_code} after {seconds:.1f} s, {answer.text[:300]}"]
    if answer.status_code >= 400:
        assert answer.json()["message"], what
    return []


def test_odd_names(console: Console, routes: list[tuple[str, str, dict[str, Any]]]) -> None:
    problems: list[str] = []
    for method, path, fields in routes:
        body = {name: KINDS.get(each.get("type", ""), 1) for name, each in fields.items()}
        for name in NAMES:
            how = {} if method in ("GET", "DELETE") else {"json": body}
            problems += wrong(
                ask(console, method, path_of(path, name), **how), (method, path, name)
            )
    assert problems == [], "\n".join(problems)


def test_odd_bodies(console: Console, routes: list[tuple[str, str, dict[str, Any]]]) -> None:
    problems: list[str] = []
    for method, path, fields in routes:
        if method in ("GET", "DELETE"):
            continue
        where = path_of(path, "nothing")
        for text in (b"", b"[]", b"\xff", b'{"a": NaN}'):
            how: dict[str, Any] = {"content": text, "headers": {"Content-Type": "application/json"}}
            problems += wrong(ask(console, method, where, **how), (method, path, text))
        whole = {name: KINDS.get(each.get("type", ""), 1) for name, each in fields.items()}
        for name in fields:
            for value in WRONG:
                body = {**whole, name: value}
                problems += wrong(ask(console, method, where, json=body), (method, path, body))
    assert problems == [], "\n".join(problems)


@pytest.mark.parametrize(
    "query",
    ["page=-1&limit=-5&offset=-1&timestamp=-9&throttle=-1", "page=x&drain=x", "partitions=,",
     "size=99999999999999999999", "sort=-&search=%00&around=nothing&kind=no&format=xml"],
)  # fmt: skip
def test_odd_queries(
    console: Console, routes: list[tuple[str, str, dict[str, Any]]], query: str
) -> None:
    problems: list[str] = []
    for method, path, _ in routes:
        if method == "GET" and "{topic}/export" not in path:
            problems += wrong(
                ask(console, method, f"{path_of(path, 'nothing')}?{query}"), (path, query)
            )
    problems += wrong(
        ask(console, "GET", f"/api/clusters/default/topics/nothing/export?{query}"), query
    )
    assert problems == [], "\n".join(problems)


def test_pages_of_odd_paths(console: Console) -> None:
    for path in ("/clusters/default/topics/%E0%A4%A", "/clusters/x/y/z", "/static/..%2fpages.py",
                 "/static/pages/..%2f..%2fpages.py", "/clusters//topics", "/%00"):  # fmt: skip
        answer = console.client.get(path)
        assert answer.status_code < 500, path
        assert b"page_table" not in answer.content
    head = console.client.head("/")
    assert head.status_code in (200, 405)
    assert "default-src 'none'" in console.client.get("/").headers["content-security-policy"]
