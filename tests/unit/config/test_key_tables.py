"""Our key tables against the reference data, where it is at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.config import documentation
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.key_texts import DOCUMENTATION
from moldau.broker.config.resource_keys import (
    CLIENT_METRICS_KEYS,
    CONNECTION_QUOTA_NAMES,
    DYNAMIC_ONLY_KEYS,
    GROUP_KEYS,
    USER_QUOTA_NAMES,
)
from moldau.broker.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS
from moldau.config import ConfigDef, ConfigKey

REFERENCE = Path(__file__).parents[4] / "shared" / "reference" / "configs"


def reference(name: str) -> Any:
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"no reference data at {path}: tables cannot be compared with Kafka's")
    return json.loads(path.read_text())


def as_reference(key: ConfigKey, *, dynamic: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"name": key.name, "type": key.type.name.lower()}
    if key.required:
        row["required"] = True
    else:
        row["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
    if key.validator is not None and key.validator.allowed:
        row["valid"] = key.validator.allowed
    row["importance"] = key.importance.name.lower()
    if key.internal:
        row["internal"] = True
    if dynamic:
        row["dynamic"] = key.dynamic.value
    return row


@pytest.mark.parametrize(
    ("file", "section", "keys", "dynamic"),
    [
        ("broker.json", "configs", BROKER_KEYS, True),
        ("topic.json", "configs", TOPIC_KEYS, False),
        ("broker.json", "groupConfigs", GROUP_KEYS, False),
    ],
)
def test_tables_equal_the_reference(
    file: str, section: str, keys: ConfigDef, dynamic: bool
) -> None:
    expected = reference(file)[section]
    for row in expected:
        row.pop("brokerDefaultFrom", None)
    # Confluent's keys are not Kafka's.
    ours = [key for key in keys.values() if not key.name.startswith("confluent.")]
    assert [as_reference(key, dynamic=dynamic) for key in ours] == expected


def test_topic_defaults_come_from_the_reference_s_broker_keys() -> None:
    rows = reference("topic.json")["configs"]
    expected = {row["name"]: row["brokerDefaultFrom"] for row in rows if "brokerDefaultFrom" in row}
    assert {name: synonyms[0] for name, synonyms in TOPIC_SYNONYMS.items()} == expected


def test_client_metrics_and_quota_names_equal_the_reference() -> None:
    broker = reference("broker.json")
    expected = {row["name"]: row["default"] for row in broker["clientMetricsConfigs"]}
    ours = {name: key.default for name, key in CLIENT_METRICS_KEYS.items()}
    assert {n: list(d) if isinstance(d, tuple) else d for n, d in ours.items()} == expected
    quotas = {row["name"]: float(row["default"]) for row in broker["dynamicQuotaConfigs"]}
    assert quotas == {**USER_QUOTA_NAMES, **CONNECTION_QUOTA_NAMES}


@pytest.mark.parametrize("keys", [BROKER_KEYS, TOPIC_KEYS, GROUP_KEYS, CLIENT_METRICS_KEYS])
def test_every_default_passes_its_own_check(keys: ConfigDef) -> None:
    for key in keys.values():
        if not key.required and key.default is not None:
            text = key.render(key.default)
            assert text is not None
            assert key.parse(text) == key.default, key


def test_every_synonym_is_a_broker_key() -> None:
    assert {name for names in TOPIC_SYNONYMS.values() for name in names} <= BROKER_KEYS.keys()


def test_documentation_is_of_existing_keys_and_covers_all_that_are_shown() -> None:
    known = {*BROKER_KEYS, *TOPIC_KEYS, *GROUP_KEYS, *CLIENT_METRICS_KEYS, *DYNAMIC_ONLY_KEYS}
    assert DOCUMENTATION.keys() <= known
    assert TOPIC_KEYS.keys() <= DOCUMENTATION.keys()
    shown = (*(name for name, key in BROKER_KEYS.items() if not key.internal), *GROUP_KEYS)
    assert [name for name in shown if not documentation(name)] == []
    assert documentation("listener.name.x.ssl.keystore.location") == documentation(
        "ssl.keystore.location"
    )
    assert documentation("no.such.key") is None


@pytest.mark.parametrize("name", ["num.io.threads", "preallocate", "log.preallocate"])
def test_documentation_says_what_has_no_effect(name: str) -> None:
    assert "No effect here: " in (documentation(name) or "")
