"""Which rules run, in which order, and what follows them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.serde.rules.machine.rule_sets import (
    Mode,
    Rule,
    RuleSet,
    matches,
    overrides_of,
    rules_to_run,
)


def rules(*modes: str, **more: Any) -> dict[str, Any]:
    made = [{"name": f"{at}-{mode}", "mode": mode, "type": "CEL"} for at, mode in enumerate(modes)]
    return {"domainRules": made, "migrationRules": made, **more}


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("WRITE", ["0-WRITE", "2-WRITEREAD"]),
        ("READ", ["2-WRITEREAD", "1-READ"]),
        ("UPGRADE", ["3-UPGRADE", "5-UPDOWN"]),
        ("DOWNGRADE", ["5-UPDOWN", "4-DOWNGRADE"]),
    ],
)
def test_modes_and_order(mode: Mode, names: list[str]) -> None:
    body = rules("WRITE", "READ", "WRITEREAD", "UPGRADE", "DOWNGRADE", "UPDOWN")
    assert [each.name for each in rules_to_run(RuleSet.from_json(body), mode)] == names


@pytest.mark.parametrize(
    ("where", "run"), [(None, 1), ("ALL", 1), ("CLIENT", 1), ("GATEWAY", 0), ("NONE", 0)]
)
def test_rules_for_other_places_do_not_run(where: str | None, run: int) -> None:
    found = RuleSet.from_json(rules("WRITE", enableAt=where))
    assert len(rules_to_run(found, "WRITE")) == run


def test_a_disabled_rule_does_not_run() -> None:
    body = {"domainRules": [{"name": "x", "mode": "WRITE", "type": "CEL", "disabled": True}]}
    assert rules_to_run(RuleSet.from_json(body), "WRITE") == ()


@pytest.mark.parametrize(
    ("given", "mode", "action"),
    [
        ({}, "WRITE", "ERROR"),
        ({"onFailure": "NONE"}, "READ", "NONE"),
        ({"onFailure": "DLQ,NONE", "mode": "WRITEREAD"}, "WRITE", "DLQ"),
        ({"onFailure": "DLQ,NONE", "mode": "WRITEREAD"}, "READ", "NONE"),
        ({"onFailure": "ERROR,DLQ", "mode": "UPDOWN"}, "DOWNGRADE", "DLQ"),
    ],
)
def test_what_follows_a_failure(given: dict[str, Any], mode: Mode, action: str) -> None:
    assert Rule.from_json(given).action(mode, failed=True) == action
    assert Rule.from_json({}).action(mode, failed=False) == "NONE"


@pytest.mark.parametrize(
    ("name", "pattern", "matched"),
    [
        ("alice.bob.eve", "a*.bob.eve", True),
        ("alice.bob.eve", "a*.bob.e*", True),
        ("alice.bob.eve", "a*", False),
        ("alice.bob.eve", "a**", True),
        ("alice.bob.eve", "alice.bob*", False),
        ("alice.bob.eve", "alice.bob**", True),
        ("alice.bob.eve", "alice.?ob.eve", True),
        ("alice.bob.eve", "**.eve", True),
        ("a+b", "a+b", True),
        ("aab", "a+b", False),
        ("a*b", r"a\*b", True),
        ("axb", r"a\*b", False),
    ],
)
def test_patterns_of_tags(name: str, pattern: str, matched: bool) -> None:
    assert matches(name, pattern) is matched


def test_a_client_overrides_rules_by_their_type() -> None:
    overrides = overrides_of(
        {
            "rule.executors.CEL.disabled": "true",
            "rule.executors.encrypt.onFailure": "NONE",
            "rule.executors.encrypt.onSuccess": None,
            "rule.executors._default_.param.secret": "x",
            "rule.executors.jsonata.disabled": False,
        }
    )
    rules = [
        {"name": "a", "mode": "WRITE", "type": "CEL"},
        {"name": "b", "mode": "WRITE", "type": "ENCRYPT", "onFailure": "ERROR"},
        {"name": "c", "mode": "WRITE", "type": "JSONATA", "disabled": True},
        {"name": "d", "mode": "WRITE", "type": "CEL_FIELD", "onFailure": "DLQ"},
    ]
    found = rules_to_run(RuleSet.from_json({"domainRules": rules}), "WRITE", "domain", overrides)
    assert [(each.name, each.action("WRITE", failed=True)) for each in found] == [
        ("b", "NONE"),
        ("c", "ERROR"),
        ("d", "DLQ"),
    ]
    assert found[0].action("WRITE", failed=False) == "NONE"
