"""The curl commands of Confluent's documentation of its registry, with the answers shown there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")

TYPE = "Content-Type: application/vnd.schemaregistry.v1+json"
STRING = '{"schema": "{\\"type\\": \\"string\\"}"}'


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        yield found


def curl(stage: RegistryStage, *words: str) -> tuple[int, Any]:
    """Status and body."""
    path, *options = words
    done = subprocess.run(
        ["curl", "-s", "-w", "\n%{http_code}", *options, f"{stage.running.url}{path}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body) if body else None


def post(path: str, body: str) -> tuple[str, ...]:
    return (path, "-X", "POST", "-H", TYPE, "--data", body)


def put(path: str, body: str) -> tuple[str, ...]:
    return (path, "-X", "PUT", "-H", TYPE, "--data", body)


def delete(path: str) -> tuple[str, ...]:
    return (path, "-X", "DELETE")


def test_the_tour(stage: RegistryStage) -> None:
    """In the order of "Schema Registry API Usage Examples"."""

    def ask(*words: str) -> tuple[int, Any]:
        return curl(stage, *words)

    # Register a new version of a schema under the subject "Kafka-key", then "Kafka-value".
    status, first = ask(*post("/subjects/Kafka-key/versions", STRING))
    assert (status, first["id"]) == (200, 1)
    status, second = ask(*post("/subjects/Kafka-value/versions", STRING))
    assert (status, second["id"]) == (200, 1)
    assert ask("/subjects") == (200, ["Kafka-key", "Kafka-value"])
    assert ask("/schemas/ids/1")[1]["schema"] == '"string"'
    assert ask("/subjects/Kafka-value/versions") == (200, [1])
    status, version = ask("/subjects/Kafka-value/versions/1")
    assert status == 200
    assert {key: version[key] for key in ("subject", "version", "id", "schema")} == {
        "subject": "Kafka-value",
        "version": 1,
        "id": 1,
        "schema": '"string"',
    }
    assert ask(*delete("/subjects/Kafka-value/versions/1")) == (200, 1)
    assert ask(*post("/subjects/Kafka-value/versions", STRING))[0] == 200
    assert ask(*delete("/subjects/Kafka-value/versions/latest")) == (200, 2)
    assert ask(*post("/subjects/Kafka-value/versions", STRING))[0] == 200
    assert ask("/subjects/Kafka-value/versions/latest")[1]["version"] == 3
    assert ask("/subjects/Kafka-value/versions/latest/schema") == (200, "string")
    assert ask(*delete("/subjects/Kafka-value")) == (200, [3])
    status, found = ask(*post("/subjects/Kafka-key", STRING))
    assert (status, found["subject"], found["id"], found["version"]) == (200, "Kafka-key", 1, 1)
    compatible = {"is_compatible": True}
    latest = "/compatibility/subjects/Kafka-key/versions/latest"
    assert ask(*post(latest, STRING)) == (200, compatible)
    assert ask("/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert ask(*put("/config", '{"compatibility": "NONE"}')) == (200, {"compatibility": "NONE"})
    backward = {"compatibility": "BACKWARD"}
    assert ask(*put("/config/Kafka-value", json.dumps(backward))) == (200, backward)
    assert ask("/config/Kafka-value") == (200, {"compatibilityLevel": "BACKWARD"})
    assert ask("/mode") == (200, {"mode": "READWRITE"})
    assert ask("/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])


@pytest.mark.parametrize(
    ("words", "status", "code", "message"),
    [
        (("/subjects/none/versions",), 404, 40401, "Subject 'none' not found."),
        (("/subjects/Kafka-key/versions/99",), 404, 40402, "Version 99 not found."),
        (("/schemas/ids/99999",), 404, 40403, "Schema 99999 not found"),
        (
            ("/subjects/Kafka-key/versions/zero",),
            422,
            42202,
            "The specified version 'zero' is not a valid version id.",
        ),
        (put("/config", '{"compatibility": "LOUD"}'), 422, 42203, "Invalid compatibility level."),
        (post("/subjects/Kafka-key/versions", '{"schema": "{"}'), 422, 42201, "Invalid schema"),
        (post("/subjects/Kafka-key", '{"schema": "\\"int\\""}'), 404, 40403, "Schema not found"),
    ],
)
def test_errors(
    stage: RegistryStage, words: tuple[str, ...], status: int, code: int, message: str
) -> None:
    curl(stage, *post("/subjects/Kafka-key/versions", STRING))
    found, body = curl(stage, *words)
    assert (found, body["error_code"]) == (status, code)
    assert message in body["message"]
