"""The parameter `format` on every endpoint that has it, and which fields an answer has."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

INNER = json.dumps({"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]})
OUTER = json.dumps({"type": "record", "name": "Outer", "fields": [{"name": "i", "type": "Inner"}]})
PROTO = """\
syntax = "proto2";
import "google/protobuf/descriptor.proto";
message Order {
  optional int32 id = 1;
  extensions 100 to 200;
}
extend Order {
  optional int32 more = 100;
}
"""


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        reference = {"name": "Inner", "subject": "inner", "version": 1}
        schemas: dict[str, dict[str, Any]] = {
            "inner": {"schema": INNER},
            "avro": {"schema": OUTER, "references": [reference]},
            "json": {"schema": '{"type": "object"}', "schemaType": "JSON"},
            "proto": {"schema": PROTO, "schemaType": "PROTOBUF"},
        }
        for subject, body in schemas.items():
            body["metadata"] = {"properties": {"owner": "ada"}}
            answer = found.client.ask("POST", f"/subjects/{subject}/versions", body)
            assert answer.status == 200, answer.json
        yield found


def everywhere(stage: RegistryStage, subject: str, form: str | None) -> set[str]:
    """The schema as all endpoints show it."""
    more = "?" if form is None else f"?format={form}&"
    version = stage.client.get(f"/subjects/{subject}/versions/1").json
    body = {
        name: version[name] for name in ("schema", "references", "schemaType") if name in version
    }
    found = [
        stage.client.get(f"/subjects/{subject}/versions/1{more}").json,
        stage.client.get(f"/subjects/{subject}/metadata{more}key=owner&value=ada").json,
        stage.client.get(f"/schemas/ids/{version['id']}{more}").json,
        stage.client.get(f"/schemas/guids/{version['guid']}{more}").json,
        stage.client.ask("POST", f"/subjects/{subject}{more}", body).json,
        stage.client.ask("POST", f"/subjects/{subject}/versions{more}", body).json,
    ]
    assert {each["guid"] for each in found} == {version["guid"]}
    texts = [
        stage.client.get(f"/subjects/{subject}/versions/1/schema{more}").body.decode(),
        stage.client.get(f"/schemas/ids/{version['id']}/schema{more}").body.decode(),
    ]
    return {each["schema"] for each in found} | set(texts)


@pytest.mark.parametrize("subject", ["avro", "json", "proto"])
@pytest.mark.parametrize("form", ["", "%20", "default", "DEFAULT", "unknown"])
def test_what_is_not_known_is_the_canonical_text(
    stage: RegistryStage, subject: str, form: str
) -> None:
    assert everywhere(stage, subject, form) == everywhere(stage, subject, None)


@pytest.mark.parametrize(
    ("subject", "form"),
    [("avro", "serialized"), ("json", "resolved"), ("json", "serialized"), ("proto", "resolved")],
)
def test_forms_of_other_languages_are_not_known(
    stage: RegistryStage, subject: str, form: str
) -> None:
    assert everywhere(stage, subject, form) == everywhere(stage, subject, None)


@pytest.mark.parametrize("form", ["resolved", "RESOLVED"])
def test_avro_with_its_references(stage: RegistryStage, form: str) -> None:
    (text,) = everywhere(stage, "avro", form)
    assert json.loads(text)["fields"][0]["type"] == json.loads(INNER)


@pytest.mark.parametrize("form", ["serialized", "Serialized"])
def test_protobuf_as_a_descriptor(stage: RegistryStage, form: str) -> None:
    (text,) = everywhere(stage, "proto", form)
    found = FileDescriptorProto.FromString(base64.b64decode(text))
    assert [each.name for each in found.message_type] == ["Order"]
    assert [each.name for each in found.extension] == ["more"]


@pytest.mark.parametrize("form", ["ignore_extensions", "IGNORE_EXTENSIONS"])
def test_protobuf_without_extensions(stage: RegistryStage, form: str) -> None:
    (text,) = everywhere(stage, "proto", form)
    assert "message Order" in text
    assert "exten" not in text


def fields(answer: Any) -> set[str]:
    return set(answer.json) & {"subject", "version", "id"}


def test_a_schema_by_its_id_has_a_subject_only_if_one_is_asked_for(stage: RegistryStage) -> None:
    """It may have several."""
    id = stage.client.get("/subjects/json/versions/1").json["id"]
    assert fields(stage.client.get(f"/schemas/ids/{id}")) == set()
    assert fields(stage.client.get(f"/schemas/ids/{id}?fetchMaxId=true")) == set()
    for path in (f"/schemas/ids/{id}?subject=json", f"/contexts/./schemas/ids/{id}"):
        assert fields(stage.client.get(path)) == {"subject", "version"}
