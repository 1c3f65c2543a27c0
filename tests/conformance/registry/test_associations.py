"""Associations of topics with subjects: by Confluent's client, and by requests as it sends them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    Schema,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry import avro as confluent_avro
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client import KafkaError
from moldau.serde import AvroSerializer
from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
TEXT = '"string"'


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        yield found


@pytest.fixture(scope="module")
def http(stage: RegistryStage) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stage.running.url) as client:
        yield client


def request(name: str, *associations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "resourceName": name,
        "resourceNamespace": "lkc",
        "resourceId": f"id-{name}",
        "associations": list(associations),
        **fields,
    }


def strong(kind: str, schema: str = TEXT) -> dict[str, Any]:
    return {"associationType": kind, "schema": {"schema": schema}}


def weak(subject: str, kind: str = "value") -> dict[str, Any]:
    return {"associationType": kind, "subject": subject, "lifecycle": "WEAK"}


def register(http: httpx.Client, subject: str, schema: str = TEXT) -> None:
    path = f"/subjects/{subject}/versions"
    answer = http.post(path, json={"schema": schema})
    assert answer.status_code == 200, answer.text


def test_confluents_client_creates_lists_and_deletes(stage: RegistryStage) -> None:
    client = SchemaRegistryClient({"url": stage.running.url})
    client.register_schema("shared-value", Schema(RECORD, "AVRO"))

    created = client.create_association(
        AssociationCreateOrUpdateRequest(
            resource_name="orders",
            resource_namespace="lkc",
            resource_id="id-orders",
            resource_type="topic",
            associations=[
                AssociationCreateOrUpdateInfo(
                    subject="shared-value", association_type="value", lifecycle="WEAK"
                )
            ],
        )
    )
    listed = client.get_associations_by_resource_name("orders", "lkc")
    client.delete_associations("id-orders")

    assert [each.subject for each in created.associations or []] == ["shared-value"]
    assert [(each.subject, each.association_type, each.resource_id) for each in listed] == [
        ("shared-value", "value", "id-orders")
    ]
    assert client.get_associations_by_resource_name("orders", "lkc") == []


def test_a_topic_owns_the_schemas_it_is_created_with(http: httpx.Client) -> None:
    body = request("owned", strong("key"), strong("value", RECORD))

    created = http.post("/associations", json=body)
    again = http.post("/associations", json=body)

    assert created.status_code == 200, created.text
    infos = created.json()["associations"]
    assert [each["subject"] for each in infos] == [":.lkc:owned-key", ":.lkc:owned-value"]
    assert {each["lifecycle"] for each in infos} == {"STRONG"}
    ids = [each["schema"]["id"] for each in infos]
    assert len(set(ids)) == 2
    for id, text in zip(ids, (TEXT, RECORD), strict=True):
        found = http.get(f"/schemas/ids/{id}", params={"subject": ":.lkc:"}).json()
        assert json.loads(found["schema"]) == json.loads(text)
    # What is there already is not an error, and not written again.
    assert (again.status_code, again.json().get("associations")) == (200, None)
    listed = http.get("/associations/subjects/:.lkc:owned-value").json()
    assert [each["resourceId"] for each in listed] == ["id-owned"]
    assert listed[0]["createTs"] == listed[0]["updateTs"] > 0


def test_a_frozen_association_goes_only_with_its_topic(http: httpx.Client) -> None:
    http.post("/associations", json=request("frozen", strong("value")))
    subject = ":.lkc:frozen-value"

    kept = http.delete("/associations/resources/id-frozen")
    tried = http.delete(
        "/associations/resources/id-frozen", params={"cascadeLifecycle": "true", "dryRun": "true"}
    )
    still = http.get("/associations/resources/id-frozen").json()
    gone = http.delete("/associations/resources/id-frozen", params={"cascadeLifecycle": "true"})

    assert (kept.status_code, kept.json()["error_code"]) == (409, 40908)
    assert (tried.status_code, len(still)) == (204, 1)
    assert gone.status_code == 204
    assert http.get(f"/subjects/{subject}/versions", params={"deleted": "true"}).status_code == 404
    missing = http.delete("/associations/resources/id-frozen")
    assert (missing.status_code, missing.json()["error_code"]) == (404, 40410)


def test_what_is_associated_is_not_deleted_and_what_is_owned_not_referred_to(
    http: httpx.Client,
) -> None:
    register(http, "kept-value")
    http.post("/associations", json=request("kept", weak("kept-value")))
    http.post("/associations", json=request("private", strong("value", RECORD)))
    reference = {"name": "R", "subject": ":.lkc:private-value", "version": 1}

    by_subject = http.delete("/subjects/kept-value")
    by_version = http.delete("/subjects/kept-value/versions/1")
    referring = http.post(
        "/subjects/referring/versions", json={"schema": '"R"', "references": [reference]}
    )

    assert (by_subject.status_code, by_subject.json()["error_code"]) == (409, 40904)
    assert (by_version.status_code, by_version.json()["error_code"]) == (409, 40904)
    assert (referring.status_code, referring.json()["error_code"]) == (422, 42205)


@pytest.mark.parametrize(
    ("body", "status", "code", "words"),
    [
        pytest.param({}, 422, 42212, "resourceName", id="no name"),
        pytest.param(request("a/b", weak("s")), 422, 42212, "illegal character '/'", id="name"),
        pytest.param(request("t"), 422, 42212, "'associations'", id="none"),
        pytest.param(request("t", weak("s"), resourceId=""), 422, 42212, "resourceId", id="no id"),
        pytest.param(
            request("t", weak("s"), resourceType="table"), 422, 42212, "must be 'topic'", id="type"
        ),
        pytest.param(
            request("t", weak("s", "header")), 422, 42212, "'key' or 'value'", id="association type"
        ),
        pytest.param(
            request("t", weak("s"), weak("r")), 422, 42212, "may only appear once", id="twice"
        ),
        pytest.param(
            request("t", {**weak("s"), "frozen": True}), 422, 42212, "frozen=true", id="frozen"
        ),
        pytest.param(
            request("t", {**strong("value"), "lifecycle": "WEAK"}),
            422, 42212, "cannot be WEAK when schema", id="weak with a schema",
        ),
        pytest.param(
            request("t", {**strong("value"), "subject": "other"}),
            422, 42212, "must use subject ':.lkc:t-value'", id="frozen elsewhere",
        ),
        pytest.param(
            request("t", weak(":.lkc:t-value")), 422, 42212, "cannot use subject", id="weak at home"
        ),
        pytest.param(
            request("t", {"lifecycle": "WEAK"}), 422, 42212, "must be provided", id="no subject"
        ),
        pytest.param(
            request("t", weak("nothing-there")), 409, 40907, "No active", id="no schemas"
        ),
        pytest.param(request("t", {"lifecycle": "LOOSE"}), 400, 400, "LOOSE", id="lifecycle"),
        pytest.param(request("t", "x"), 400, 400, "array of objects", id="no object"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_bad_requests(
    http: httpx.Client, body: dict[str, Any], status: int, code: int, words: str
) -> None:
    answer = http.post("/associations", json=body)

    assert (answer.status_code, answer.json()["error_code"]) == (status, code), answer.text
    assert words in answer.json()["message"]


def test_an_update_keeps_what_it_does_not_name(http: httpx.Client) -> None:
    register(http, "updated-value")
    register(http, "other-value")
    path = "/associations/resources/id-updated"
    http.put(path, json=request("updated", weak("updated-value")))

    same = http.put(path, json=request("updated", {"associationType": "value"}))
    moved = http.put(path, json=request("updated", weak("other-value")))
    owned = http.put(path, json=request("updated", strong("key")))
    elsewhere = http.put(path, json=request("updated", weak("s"), resourceId="another"))

    assert same.status_code == 200
    assert (moved.status_code, "cannot be changed" in moved.json()["message"]) == (422, True)
    assert (owned.status_code, "existing topic" in owned.json()["message"]) == (422, True)
    assert (elsewhere.status_code, "path parameter" in elsewhere.json()["message"]) == (422, True)


def test_several_resources_at_once(http: httpx.Client) -> None:
    register(http, "batch-value")
    operations = {
        "requests": [
            request("one", {"opType": "CREATE", **strong("value")}),
            request("two", {"opType": "UPSERT", **weak("batch-value")}),
            request("bad", {"opType": "UPSERT", **weak("not-there")}),
            request("two", {"opType": "DELETE", "associationType": "value"}),
        ]
    }

    done = http.post("/associations:batchMutate", json=operations)
    found = http.post(
        "/associations:batchGet",
        params={"includeSchemas": "true"},
        json={
            "requests": [
                {"resourceId": "id-one"},
                {"resourceName": "two", "resourceNamespace": "lkc"},
                {},
            ]
        },
    )

    assert done.status_code == found.status_code == 207
    one, two, bad, deleted = done.json()["results"]
    assert one["result"]["associations"][0]["schema"]["version"] == 1
    assert two["result"]["associations"][0]["subject"] == "batch-value"
    assert bad["error"]["error_code"] == 40907
    assert "associations" not in deleted["result"]
    first, second, third = found.json()["results"]
    assert first["result"]["resourceName"] == "one"
    assert first["result"]["associations"][0]["schema"]["schema"] == TEXT
    assert "associations" not in second["result"]
    assert "either resourceId or resourceName" in third["error"]["message"]


def test_schemas_are_listed_by_their_associations(http: httpx.Client) -> None:
    register(http, "listed-weak")
    register(http, "listed-alone")
    http.post("/associations", json=request("listed", weak("listed-weak")))

    def subjects(**parameters: str) -> list[str]:
        found = http.get("/schemas", params={"subjectPrefix": "listed", **parameters}).json()
        return [each["subject"] for each in found]

    assert subjects() == ["listed-alone", "listed-weak"]
    assert subjects(lifecycle="WEAK") == ["listed-weak"]
    assert subjects(lifecycle="NONE") == ["listed-alone"]
    assert subjects(associationType="key") == []


def test_associations_are_there_again_after_a_restart(
    stage: RegistryStage, http: httpx.Client
) -> None:
    http.post("/associations", json=request("lasting", strong("value", RECORD)))
    before = http.get("/associations/resources/lkc/lasting").json()

    servers = stage.registry.service.config.clients["bootstrap.servers"]
    with registry_on(servers, leader_eligibility="false") as other:
        after = httpx.get(f"{other.running.url}/associations/resources/lkc/lasting").json()

    assert after == before


@pytest.mark.parametrize("fallback", ["TOPIC", "NONE"])
def test_serializers_use_the_subject_that_is_associated(
    stage: RegistryStage, http: httpx.Client, fallback: str
) -> None:
    register(http, "of-others", RECORD)
    name = f"sent-{fallback.lower()}"
    http.post("/associations", json=request(name, weak("of-others")))
    client = SchemaRegistryClient({"url": stage.running.url})
    strategy = {
        "subject.name.strategy.type": "ASSOCIATED",
        "subject.name.strategy.conf": {"subject.name.strategy.fallback.type": fallback},
    }
    theirs = confluent_avro.AvroSerializer(
        client, RECORD, conf={"auto.register.schemas": False, **strategy}
    )
    ours = AvroSerializer(
        RECORD,
        registry=stage.running.url,
        config={
            "auto.register.schemas": False,
            "subject.name.strategy": "AssociatedNameStrategy",
            "subject.name.strategy.fallback.type": fallback,
        },
    )

    context = SerializationContext(name, MessageField.VALUE)
    assert ours.serialize(name, {"a": 1}) == theirs({"a": 1}, context)
    with pytest.raises(KafkaError, match="not found" if fallback == "TOPIC" else "no subject"):
        ours.serialize("not-associated", {"a": 1})
