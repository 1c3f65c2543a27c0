"""Which route a path leads to."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route, RouteTable


def route(method: str, path: str) -> Route:
    return Route(method=method, path=path, handler=lambda request: None)


TABLE = RouteTable(
    [
        route("GET", "/"),
        route("GET", "/subjects"),
        route("GET", "/subjects/{subject}/versions"),
        route("POST", "/subjects/{subject}/versions"),
        route("GET", "/subjects/{subject}/versions/{version:int}"),
        route("GET", "/topics/-/configs"),
        route("GET", "/topics/{topic}/configs"),
        route("POST", "/topics/{topic}/configs:alter"),
        route("GET", "/topics/{topic}"),
    ]
)


@pytest.mark.parametrize(
    ("path", "template", "parameters"),
    [
        ("/", "/", {}),
        ("/subjects", "/subjects", {}),
        ("/subjects/", "/subjects", {}),
        ("/subjects/a/versions", "/subjects/{subject}/versions", {"subject": "a"}),
        ("/subjects/a%2Fb/versions", "/subjects/{subject}/versions", {"subject": "a/b"}),
        ("/subjects/%C3%A4%20%25/versions", "/subjects/{subject}/versions", {"subject": "ä %"}),
        ("/subjects/%3A.ctx%3Aa/versions", "/subjects/{subject}/versions", {"subject": ":.ctx:a"}),
        ("/subjects/:.ctx:a/versions", "/subjects/{subject}/versions", {"subject": ":.ctx:a"}),
        ("/subjects/a+b/versions", "/subjects/{subject}/versions", {"subject": "a+b"}),
        (
            "/subjects/a/versions/-1",
            "/subjects/{subject}/versions/{version}",
            {"subject": "a", "version": -1},
        ),
        ("/topics/-/configs", "/topics/-/configs", {}),
        ("/topics/-", "/topics/{topic}", {"topic": "-"}),
        ("/topics/t/configs", "/topics/{topic}/configs", {"topic": "t"}),
    ],
)
def test_a_path_leads_to_its_route(path: str, template: str, parameters: dict[str, Any]) -> None:
    match = TABLE.match("GET", path.encode())
    assert (match.route.template, match.parameters) == (template, parameters)


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/subjects/a/b/versions",
        "/subjects//versions",
        "/subjects/a/versions/x",
        "/subjects/a/versions/2147483648",
        "/subjects/a/versions/" + "9" * 5000,
        "/subjects/a/versions/%D9%A3",
        "/" * 100_000,
        "/subjects/" * 10_000,
    ],
)
def test_what_is_not_found(path: str) -> None:
    with pytest.raises(HttpError) as caught:
        TABLE.match("GET", path.encode())
    assert caught.value.body == {"error_code": 404, "message": "HTTP 404 Not Found"}


def test_another_method_is_answered_with_those_there_are() -> None:
    with pytest.raises(HttpError) as caught:
        TABLE.match("DELETE", b"/subjects/a/versions")
    assert caught.value.status == 405
    assert caught.value.headers == {"Allow": "GET,HEAD,OPTIONS,POST"}


def test_bytes_that_are_no_utf8_are_a_bad_request() -> None:
    with pytest.raises(HttpError, match="UTF-8") as caught:
        TABLE.match("GET", b"/subjects/%FF/versions")
    assert caught.value.status == 400


def test_two_routes_for_one_path_are_refused() -> None:
    with pytest.raises(ValueError, match="two routes for GET /a/"):
        RouteTable([route("GET", "/a/{x}"), route("GET", "/a/{y}")])


def test_only_so_many_paths_are_remembered() -> None:
    """And each leads where it led before."""
    table = RouteTable([route("GET", "/subjects/{subject}")])
    for _ in range(2):
        for number in range(5000):
            found = table.match("GET", b"/subjects/s%d" % number)
            assert found.parameters == {"subject": f"s{number}"}
        assert len(table._found) <= 4096
    table.match("GET", b"/subjects/" + b"s" * 5000)
    assert all(len(path) <= 256 for _, path in table._found)
