"""Whatever is sent, the registry answers with a clear refusal and goes on."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.testing import Broker
from support.registry.client import RestClient
from support.registry.stage import RegistryStage, registry_on

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**40,
    1.5,
    "",
    "x",
    "\x00",
    "\ud83d\ude00" * 10,
    "\\ud800",
    [],
    [None],
    [[]],
    ["a", 1],
    {},
    {"a": None},
    {"name": 1, "subject": [], "version": {}},
]
FIELDS = ("schema", "schemaType", "references", "metadata", "ruleSet", "id", "version")
PATHS = (
    ("POST", "/subjects/bad/versions"),
    ("POST", "/subjects/bad"),
    ("POST", "/compatibility/subjects/bad/versions/latest?verbose=true"),
    ("POST", "/compatibility/subjects/bad/versions"),
    ("PUT", "/config"),
    ("PUT", "/config/bad"),
    ("PUT", "/mode/bad"),
)


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        yield found


@pytest.fixture
def client(stage: RegistryStage) -> RestClient:
    stage.reset()
    return stage.client


def check(client: RestClient, method: str, path: str, raw: bytes | None) -> int:
    response = client.ask(method, path, raw=raw)
    assert response.status < 500, (method, path, raw, response.text)
    if response.status >= 400 and response.body:
        assert {"error_code", "message"} <= response.json.keys()
    return response.status


def test_fields_of_wrong_types(client: RestClient) -> None:
    names = (*FIELDS, "compatibility", "normalize", "alias", "defaultMetadata", "mode")
    for method, path in PATHS:
        for name in names:
            for odd in ODD:
                body = {"schema": '"string"', name: odd}
                check(client, method, path, json.dumps(body).encode())


def test_nested_fields_of_wrong_types(client: RestClient) -> None:
    shapes: list[dict[str, Any]] = []
    for odd in ODD:
        shapes += [
            {"references": [odd]},
            {"references": [{"name": odd, "subject": odd, "version": odd}]},
            {"metadata": {"tags": odd, "properties": odd, "sensitive": odd}},
            {"metadata": {"tags": {"a": odd}, "properties": {"a": odd}}},
            {"ruleSet": {"domainRules": odd}},
            {"ruleSet": {"domainRules": [odd], "enableAt": odd}},
            {"ruleSet": {"domainRules": [{"name": odd, "kind": odd, "mode": odd, "type": odd}]}},
            {"ruleSet": {"migrationRules": [{"name": "a", "type": "b", "params": odd}]}},
        ]
    for shape in shapes:
        body = {"schema": '"string"', **shape}
        check(client, "POST", "/subjects/bad/versions", json.dumps(body).encode())


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_texts_that_are_no_schemas(client: RestClient, kind: str) -> None:
    texts = [
        "",
        " ",
        "{",
        "[",
        "null",
        "1",
        '"',
        '{"type":"record"}',
        '{"type":"enum","name":"E","symbols":[1]}',
        '{"type":"array"}',
        '{"$ref":"#"}',
        '{"$ref":"#/definitions/none"}',
        '{"$ref":"http://127.0.0.1:1/x.json"}',
        '{"$ref":"file:///etc/passwd"}',
        '{"type":"object","properties":7}',
        'import "file:///etc/passwd";',
        'syntax = "proto3"; message M { M m = 1; }',
        'syntax = "proto9";',
        "message M { string a = 0; }",
        "\x00",
        "[" * 5_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "message A {" * 500 + "}" * 500,
        '{"type":"array","items":' * 900 + '"string"' + "}" * 900,
    ]
    for text in texts:
        body = json.dumps({"schema": text, "schemaType": kind}).encode()
        started = time.monotonic()
        for _, path in PATHS[:4]:
            check(client, "POST", path, body)
        assert time.monotonic() - started < 30


def test_random_bytes(client: RestClient) -> None:
    source = random.Random(7)
    for _ in range(150):
        method, path = source.choice(PATHS)
        body = bytearray(json.dumps({"schema": '"string"', "compatibility": "FULL"}).encode())
        for _ in range(source.randrange(1, 4)):
            body[source.randrange(len(body))] = source.randrange(256)
        check(client, method, path, bytes(body))


@pytest.mark.parametrize("raw", [b"", b"[]", b"1", b'"x"', b"null", b"\xff\xfe", b"[" * 100_000])
def test_bodies_that_are_no_objects(client: RestClient, raw: bytes) -> None:
    for method, path in PATHS:
        assert check(client, method, path, raw) in (400, 422)


def test_odd_paths(client: RestClient) -> None:
    names = ("%00", "%ff", "a%2Fb", "%F0%9F%98%80", ":", "::", ":.:", ":*:", ":.x", "a" * 2_000)
    for name in names:
        for method, path, raw in (
            ("GET", f"/subjects/{name}/versions", None),
            ("GET", f"/subjects/{name}/versions/latest", None),
            ("POST", f"/subjects/{name}/versions", b'{"schema":"\\"string\\""}'),
            ("GET", f"/config/{name}?defaultToGlobal=true", None),
            ("PUT", f"/mode/{name}", b'{"mode":"READWRITE"}'),
            ("GET", f"/contexts/{name}/subjects", None),
            ("GET", f"/subjects?subjectPrefix={name}", None),
            ("GET", f"/schemas/guids/{name}", None),
            ("DELETE", f"/subjects/{name}?permanent=true", None),
            ("DELETE", f"/contexts/{name}", None),
        ):
            check(client, method, path, raw)
    for query in ("offset=x", "limit=-5", "offset=-1", "limit=99999999999", "deleted=maybe"):
        for path in ("/subjects", "/schemas", "/contexts"):
            check(client, "GET", f"{path}?{query}", None)


def test_a_long_chain_of_references_is_bounded(client: RestClient) -> None:
    client.register("r0", '{"type":"record","name":"R0","fields":[]}')
    for number in range(1, 60):
        text = json.dumps(
            {
                "type": "record",
                "name": f"R{number}",
                "fields": [{"name": "a", "type": f"R{number - 1}"}],
            }
        )
        reference = {"name": f"R{number - 1}", "subject": f"r{number - 1}", "version": 1}
        response = client.register(f"r{number}", text, references=[reference])
        assert response.status in (200, 422), response.text
