"""The registry's paths against Confluent's OpenAPI documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from moldau.services.registry.api.table import routes
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.machine.parsing import LANGUAGES
from moldau.services.registry.service import RegistryService

DOCUMENTS = Path(__file__).parents[3].parent / "shared" / "vectors" / "openapi"


def nameless(template: str) -> str:
    """What a parameter in the path is called does not matter."""
    return re.sub(r"\{[^}]*\}", "{}", template)


@pytest.fixture(scope="module")
def served() -> dict[tuple[str, str], set[str]]:
    config = RegistryConfig.of({"kafkastore.bootstrap.servers": "127.0.0.1:1"})
    service = RegistryService(config, LANGUAGES)
    return {
        (each.method.lower(), nameless(each.template)): {one.name for one in each.parameters}
        for each in routes(service)
    }


@pytest.mark.parametrize("name", ["schema-registry", "dek-registry"])
def test_every_operation_and_parameter_is_there(
    name: str, served: dict[tuple[str, str], set[str]]
) -> None:
    path = DOCUMENTS / f"{name}.yaml"
    if not path.exists():
        pytest.skip(f"no document {path}")
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    missing = []
    for template, operations in document["paths"].items():
        for method in operations.keys() & {"get", "put", "post", "delete"}:
            given = served.get((method, nameless(template)))
            if given is None:
                missing.append(f"{method} {template}")
                continue
            wanted = {
                each["name"]
                for each in operations[method].get("parameters", ())
                if each["in"] == "query"
            }
            missing += [f"{method} {template} {each}" for each in wanted - given]
    assert missing == []
