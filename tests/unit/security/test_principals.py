"""ssl.principal.mapping.rules, against what Kafka answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.security.machine.principals import InvalidRule, NoMatchingRule, PrincipalMapper

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "security"
CASES: list[dict[str, Any]] = (
    json.loads((VECTORS / "ssl-principal-mapping.json").read_text()) if VECTORS.is_dir() else []
)


@pytest.mark.skipif(not CASES, reason="Kafka's answers are not on this machine")
def test_names_and_errors_are_those_of_kafka() -> None:
    assert len(CASES) > 50
    for case in CASES:
        error = case.get("error")
        if error is None:
            assert PrincipalMapper(case["rules"]).name_of(case["dn"]) == case["name"], case
            continue
        kind = NoMatchingRule if error["class"] == "NoMatchingRule" else InvalidRule
        with pytest.raises(kind) as raised:
            PrincipalMapper(case["rules"]).name_of(case["dn"])
        assert str(raised.value) == error["message"]


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        pytest.param(r"RULE:^CN=(.*?),.*$/$1@$4/", "duke@$4", id="a group that does not exist"),
        pytest.param(r"RULE:^CN=(.*?),.*$/$12/", "duke2", id="one digit where two are no group"),
        pytest.param(r"RULE:^CN=(.*?),.*$/\$1/", "$1", id="an escaped dollar"),
        pytest.param(r"RULE:^CN=(.*?),.*$/a\/b/", "a/b", id="an escaped slash"),
        pytest.param(" DEFAULT ", "CN=duke,OU=x", id="spaces around a rule"),
    ],
)
def test_replacements_are_java_s(rules: str, name: str) -> None:
    assert PrincipalMapper(rules).name_of("CN=duke,OU=x") == name


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRule, match="not a regular expression"):
        PrincipalMapper("RULE:^CN=(.*$/$1/")
