"""Which fault a request runs into."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moldau.testing.machine.rules import HELPER, RULES_MAX, Cut, Cuts, Rule, RuleBook, Who

PRODUCE, FETCH = 0, 1
APP = Who("app-1")
OTHER_APP = Who("billing")
HELPER_CLIENT = Who(HELPER)
NODE = Who("moldau-node-2", node_id=2)


def book(*rules: Rule, seed: int = 1) -> RuleBook:
    made = RuleBook(lambda number: Random(f"{seed}/{number}"))
    for rule in rules:
        made.add(rule)
    return made


def rule(number: int = 1, **values: Any) -> Rule:
    return Rule(rule_id=number, **{"kind": "drop", **values})


@pytest.mark.parametrize(
    ("values", "hit"),
    [
        pytest.param({}, [(PRODUCE, APP), (FETCH, APP), (FETCH, OTHER_APP)], id="all clients"),
        pytest.param({"apis": (FETCH,)}, [(FETCH, APP), (FETCH, OTHER_APP)], id="one API"),
        pytest.param({"client_id": "app-*"}, [(PRODUCE, APP), (FETCH, APP)], id="one client"),
        pytest.param({"senders": "nodes"}, [(FETCH, NODE)], id="nodes"),
        pytest.param(
            {"senders": "all", "apis": (FETCH,)},
            [(FETCH, APP), (FETCH, OTHER_APP), (FETCH, NODE)],
            id="everybody",
        ),
    ],
)
def test_a_rule_is_for_certain_requests(values: dict[str, Any], hit: list[tuple[int, Who]]) -> None:
    requests = [
        (PRODUCE, APP),
        (FETCH, APP),
        (FETCH, OTHER_APP),
        (FETCH, NODE),
        (FETCH, HELPER_CLIENT),
    ]
    rules = book(rule(**values))
    assert [each for each in requests if rules.decide(*each)] == hit


@pytest.mark.parametrize(
    ("values", "pattern"),
    [
        pytest.param({}, "xxxxxx", id="always"),
        pytest.param({"times": 2}, "xx....", id="so often"),
        pytest.param({"after": 3}, "...xxx", id="later"),
        pytest.param({"after": 1, "times": 2}, ".xx...", id="later and so often"),
        pytest.param({"probability": 0.0}, "......", id="never"),
    ],
)
def test_a_rule_hits_so_often(values: dict[str, Any], pattern: str) -> None:
    rules = book(rule(**values))
    assert "".join("x" if rules.decide(FETCH, APP) else "." for _ in pattern) == pattern
    assert rules.hits(1) == pattern.count("x")


def drawn(seed: int, *, others: int = 0) -> list[bool]:
    rules = book(rule(probability=0.3), seed=seed)
    found = []
    for _ in range(200):
        for _ in range(others):
            rules.decide(FETCH, NODE)
        found.append(bool(rules.decide(FETCH, APP)))
    return found


def test_chance_is_repeated_by_its_seed_whatever_others_do() -> None:
    assert drawn(1) == drawn(1) == drawn(1, others=3)
    assert drawn(1) != drawn(2)
    assert 30 < sum(drawn(1)) < 90


def test_one_rule_does_not_shift_another() -> None:
    alone = book(rule(1, probability=0.5))
    together = book(rule(1, probability=0.5), rule(2, probability=0.5))
    for _ in range(100):
        wanted = [each.rule_id for each in alone.decide(FETCH, APP)]
        assert [e.rule_id for e in together.decide(FETCH, APP) if e.rule_id == 1] == wanted


def test_a_rule_that_is_removed_hits_no_more_but_its_hits_stay_known() -> None:
    rules = book(rule(1), rule(2))
    rules.decide(FETCH, APP)
    rules.remove(1)
    assert [each.rule_id for each in rules.decide(FETCH, APP)] == [2]
    assert (rules.hits(1), rules.hits(2)) == (1, 2)
    rules.clear()
    assert not rules


def test_the_number_of_rules_is_bounded() -> None:
    rules = book(*(rule(number) for number in range(RULES_MAX)))
    with pytest.raises(ValueError, match="remove some"):
        rules.add(rule(RULES_MAX))


def test_a_rule_survives_its_way_to_the_node() -> None:
    made = rule(apis=(0, 1), kind="slow", delay_ms=5.5, times=3)
    assert Rule.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("cut", "who", "requests", "responses"),
    [
        pytest.param(Cut(far=2), NODE, True, True, id="a node"),
        pytest.param(Cut(far=3), NODE, False, False, id="another node"),
        pytest.param(Cut(far=2, outgoing=False), NODE, True, False, id="only what comes"),
        pytest.param(Cut(far=2, incoming=False), NODE, False, True, id="only what goes"),
        pytest.param(Cut(far="*"), APP, True, True, id="all clients"),
        pytest.param(Cut(far="*"), NODE, False, False, id="nodes are no clients"),
        pytest.param(Cut(far="*"), HELPER_CLIENT, False, False, id="the test's own helper"),
        pytest.param(Cut(far=HELPER), HELPER_CLIENT, True, True, id="the helper, by name"),
        pytest.param(Cut(far="app-*"), OTHER_APP, False, False, id="another client"),
    ],
)
def test_a_cut_holds_back(cut: Cut, who: Who, requests: bool, responses: bool) -> None:
    cuts = Cuts([cut])
    assert cuts.requests_blocked(who) is requests
    assert cuts.responses_blocked(who) is responses
