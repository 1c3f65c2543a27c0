"""Content negotiation, in tables."""

from __future__ import annotations

import pytest

from moldau.http.machine.media_types import negotiate, parse_media_type, select_consumed

VENDOR = "application/vnd.schemaregistry.v1+json"
REGISTRY = (VENDOR, "application/vnd.schemaregistry+json; qs=0.9", "application/json; qs=0.5")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        pytest.param(None, VENDOR, id="no header"),
        pytest.param("", VENDOR, id="empty header"),
        pytest.param("*/*", VENDOR, id="anything"),
        pytest.param("application/*", VENDOR, id="any application type"),
        pytest.param("application/json", "application/json", id="plain JSON"),
        pytest.param("text/html", None, id="nothing fits"),
        pytest.param("text/html, */*;q=0.1", VENDOR, id="a browser"),
        pytest.param(
            "application/vnd.schemaregistry.v1+json;q=0.5, application/json",
            "application/json",
            id="the client's weight goes first",
        ),
        pytest.param(
            "application/json, application/vnd.schemaregistry+json",
            "application/vnd.schemaregistry+json",
            id="then that of the service",
        ),
        pytest.param(
            "*/*, application/vnd.schemaregistry.v1+json;q=0",
            "application/vnd.schemaregistry+json",
            id="q=0 refuses",
        ),
        pytest.param("*/*;q=0", None, id="everything refused"),
        pytest.param("APPLICATION/JSON", "application/json", id="case makes no difference"),
        pytest.param("application/json; charset=utf-8", "application/json", id="parameters"),
        pytest.param("application/json;q=2", None, id="a weight that is none"),
        pytest.param("nonsense", None, id="no media type"),
        pytest.param(",".join(["application/json"] * 101), None, id="too many"),
    ],
)
def test_negotiation(accept: str | None, chosen: str | None) -> None:
    assert negotiate(accept, REGISTRY) == chosen


@pytest.mark.parametrize(
    ("given", "selected"),
    [
        pytest.param(None, "application/vnd.kafka.json.v2+json", id="no header is the first"),
        pytest.param("application/vnd.kafka.v2+json", "application/vnd.kafka.v2+json", id="exact"),
        pytest.param(
            "application/vnd.kafka.v2+json; charset=UTF-8",
            "application/vnd.kafka.v2+json",
            id="UTF-8",
        ),
        pytest.param("application/vnd.kafka.v2+json; charset=latin-1", None, id="not UTF-8"),
        pytest.param("application/x-www-form-urlencoded", None, id="what curl sends"),
        pytest.param("application/*", None, id="a range is no type"),
        pytest.param("rubbish", None, id="no type"),
    ],
)
def test_consumed_types(given: str | None, selected: str | None) -> None:
    consumes = ("application/vnd.kafka.json.v2+json", "application/vnd.kafka.v2+json")
    assert select_consumed(given, consumes) == selected


@pytest.mark.parametrize("text", ["", "/", "a/", "/b", "*/json", "a b/c", "a/b;q=x", "é/x"])
def test_what_is_no_media_type(text: str) -> None:
    assert parse_media_type(text) is None
