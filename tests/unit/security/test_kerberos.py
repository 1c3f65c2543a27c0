"""sasl.kerberos.principal.to.local.rules: the original's vectors, and rules that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.config import ConfigError
from moldau.security.machine.kerberos import NoMatchingRule, parse_rules, short_name

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "security"
CASES = VECTORS / "kerberos-principal-mapping.json"
KEY = "sasl.kerberos.principal.to.local.rules"


@pytest.mark.skipif(not CASES.exists(), reason=f"{CASES} is not here")
@pytest.mark.parametrize("case", json.loads(CASES.read_text()) if CASES.exists() else [])
def test_names_are_those_of_the_original(case: dict[str, Any]) -> None:
    rules = parse_rules(KEY, case["rules"])
    if "name" in case:
        assert short_name(rules, case["realm"], case["principal"]) == case["name"]
        return
    with pytest.raises(NoMatchingRule) as caught:
        short_name(rules, case["realm"], case["principal"])
    assert str(caught.value) == case["error"]["message"]


@pytest.mark.parametrize("rule", ["", "RULE:[1:$1", "RULE:[1:$1](", "default", "RULE:[1:$1](*a)"])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match=KEY):
        parse_rules(KEY, [rule])


def test_a_result_with_a_realm_is_no_name() -> None:
    rules = parse_rules(KEY, ["RULE:[1:$1@$0]"])
    with pytest.raises(NoMatchingRule, match="Non-simple name"):
        short_name(rules, "REALM", "user@REALM")
