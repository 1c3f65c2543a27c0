"""Schemas made to hurt: huge, deep, cyclic, or small texts that stand for very much.

Each is answered, with 200 or a clear 4xx, in bounded time, and the registry goes on serving.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error

from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

SECONDS_MAX = 20.0
MEMORY_MAX = 400 * 1024 * 1024


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        yield found


def doubled_avro(levels: int, default: bool) -> str:
    kind: Any = {"type": "record", "name": "R0", "fields": [{"name": "f", "type": "int"}]}
    if default:
        kind["fields"][0]["default"] = 0
    for level in range(1, levels):
        fields: list[Any] = [{"name": "a", "type": kind}, {"name": "b", "type": f"R{level - 1}"}]
        if default:
            for each in fields:
                each["default"] = {}
        kind = {"type": "record", "name": f"R{level}", "fields": fields}
    return json.dumps(kind)


def doubled_json(levels: int) -> str:
    definitions: dict[str, Any] = {
        "d0": {"type": "object", "properties": {"x": {"type": "string"}}}
    }
    for level in range(1, levels):
        inner = {"$ref": f"#/definitions/d{level - 1}"}
        definitions[f"d{level}"] = {"allOf": [inner, inner], "properties": {"a": inner, "b": inner}}
    return json.dumps({"$ref": f"#/definitions/d{levels - 1}", "definitions": definitions})


def doubled_proto(levels: int) -> str:
    messages = ["message M0 { int32 x = 1; }"]
    messages += [
        f"message M{level} {{ M{level - 1} a = 1; M{level - 1} b = 2; }}"
        for level in range(1, levels)
    ]
    return 'syntax = "proto3";\n' + "\n".join(reversed(messages))


CASES = {
    "avro: deep": ("AVRO", '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000),
    "avro: brackets": ("AVRO", "[" * 100_000),
    "avro: doubled": ("AVRO", doubled_avro(28, default=False)),
    "avro: doubled defaults": ("AVRO", doubled_avro(28, default=True)),
    "avro: huge enum": (
        "AVRO",
        json.dumps({"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(60_000)]}),
    ),
    "json: deep": ("JSON", '{"properties":{"a":' * 3000 + "{}" + "}}" * 3000),
    "json: cyclic": (
        "JSON",
        '{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},'
        '"b":{"$ref":"#/definitions/a"}}}',
    ),
    "json: itself": ("JSON", '{"$ref":"#"}'),
    "json: doubled": ("JSON", doubled_json(30)),
    "json: elsewhere": ("JSON", '{"$ref":"http://127.0.0.1:1/schema.json"}'),
    "json: file": ("JSON", '{"$ref":"file:///etc/passwd"}'),
    "json: pattern": (
        "JSON",
        '{"type":"string","pattern":"^(a+)+$","patternProperties":{"^(b|b)*$":{}}}',
    ),
    "protobuf: deep": ("PROTOBUF", "message A {" * 2000 + "}" * 2000),
    "protobuf: doubled": ("PROTOBUF", doubled_proto(40)),
    "protobuf: comments": ("PROTOBUF", "/*" * 200_000),
    "protobuf: many fields": (
        "PROTOBUF",
        "message A {" + "".join(f"int32 f{i} = {i};" for i in range(1, 18_000)) + "}",
    ),
    "protobuf: itself": ("PROTOBUF", 'syntax="proto3"; import "a.proto"; message A { A a = 1; }'),
}


def timed(stage: RegistryStage, method: str, path: str, body: Any) -> Any:
    started = time.monotonic()
    answer = stage.client.ask(method, path, body)
    assert time.monotonic() - started < SECONDS_MAX, path
    assert answer.status == 200 or 400 <= answer.status < 500, answer
    if answer.status != 200:
        assert answer.json["message"]
        assert len(answer.raw if hasattr(answer, "raw") else str(answer.json)) < 1_000_000
    return answer


@pytest.mark.parametrize("name", CASES)
def test_hostile_schemas_are_answered_in_bounded_time(stage: RegistryStage, name: str) -> None:
    kind, text = CASES[name]
    body = {"schema": text, "schemaType": kind}
    subject = "hostile-" + name.replace(" ", "-").replace(":", "")
    timed(stage, "POST", f"/subjects/{subject}/versions", body)
    timed(stage, "POST", f"/subjects/{subject}/versions?normalize=true", body)
    path = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
    timed(stage, "POST", path, body)
    timed(stage, "GET", f"/subjects/{subject}/versions/latest?format=resolved", None)
    assert stage.client.ask("GET", "/subjects").status == 200
    assert psutil.Process().memory_info().rss < 4 * MEMORY_MAX


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
def test_references_that_double_are_bounded(stage: RegistryStage, kind: str) -> None:
    """Each refers to the one before by two names: twenty levels are a million paths."""
    for level in range(20):
        references = [
            {
                "name": f"{side}{level - 1}.proto",
                "subject": f"l-{kind}-{level - 1}",
                "version": 1,
            }
            for side in (("a", "b") if level else ())
        ]
        if kind == "AVRO":
            fields = [{"name": "f", "type": f"L{level - 1}" if level else "int"}]
            text = json.dumps({"type": "record", "name": f"L{level}", "fields": fields})
        else:
            imports = "".join(f'import "{each["name"]}"; ' for each in references)
            text = f'syntax = "proto3"; {imports}message L{level} {{ int32 x = 1; }}'
        body = {"schema": text, "schemaType": kind, "references": references}
        answer = timed(stage, "POST", f"/subjects/l-{kind}-{level}/versions", body)
        if answer.status != 200:
            break


def test_a_huge_body_is_refused(stage: RegistryStage) -> None:
    body = {"schema": '"' + "x" * (40 * 1024 * 1024) + '"'}
    # The registry may have answered and closed while this client was still sending.
    with suppress(ConnectionError):
        assert stage.client.ask("POST", "/subjects/huge/versions", body).status == 413
    assert stage.client.ask("GET", "/subjects").status == 200


@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(2, marks=pytest.mark.slow("asks some hundred generated requests")),
        pytest.param(25, marks=pytest.mark.long("the same with more requests")),
    ],
)
def test_no_generated_request_ends_in_a_500(stage: RegistryStage, examples: int) -> None:
    """Each operation of the document, with values that schemathesis makes up."""
    stage.client.ask("POST", "/subjects/known/versions", {"schema": '"string"'})
    document = stage.client.ask("GET", "/openapi.json", headers={"Accept": "*/*"}).json
    known = {
        "subject": st.sampled_from(["known", "known", "none", ":.ctx:known", "a/b", "*"]),
        "version": st.sampled_from(["1", "latest", "-1", "x", "99"]),
        "id": st.sampled_from([1, 2, 0, -1, 2**31]),
        "context": st.sampled_from([".ctx", "ctx", ":.:", "x:y"]),
    }
    asked = 0
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), data=st.data())
        def ask(case: Any, data: Any) -> None:
            nonlocal asked
            for parameter, values in known.items():
                if parameter in (case.path_parameters or {}):
                    case.path_parameters[parameter] = data.draw(values)
            case.headers = {**(case.headers or {}), "Accept": "*/*"}
            answer = case.call(base_url=stage.running.url, session=None, timeout=60)
            case.validate_response(answer, checks=[not_a_server_error])
            asked += 1

        ask()
    assert asked > 60
    assert stage.client.ask("GET", "/subjects").status == 200
