"""Which fault a request runs into: decided here, from rules and a seeded random number each.

Invariants: a rule's decisions depend only on its own seed and on the sequence of requests
that it applies to, so the same requests meet the same faults again. The number of rules and of
cuts is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, Protocol

__all__ = ["CLIENTS", "HELPER", "RULES_MAX", "Cut", "Cuts", "Rule", "RuleBook", "Who"]

RULES_MAX: Final = 1_000
#: The pattern for every client of the test; its own helper, which looks on, is none of them.
CLIENTS: Final = "*"
#: The client id of that helper; a fault that names it means it.
HELPER: Final = "moldau-testing"

Kind = Literal["slow", "drop", "fail", "disconnect"]


class Chance(Protocol):
    def random(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Who:
    """Who sent a request: another node of the cluster, or a client by its client.id."""

    client_id: str
    node_id: int | None = None

    def is_client(self, pattern: str) -> bool:
        if self.node_id is not None or (pattern == CLIENTS and self.client_id == HELPER):
            return False
        return fnmatchcase(self.client_id, pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A fault and the requests that it is for."""

    rule_id: int
    kind: Kind
    #: API keys; none stands for all.
    apis: tuple[int, ...] = ()
    #: A pattern as in file names.
    client_id: str = CLIENTS
    senders: Literal["clients", "nodes", "all"] = "clients"
    probability: float = 1.0
    #: So many matching requests are spared first.
    after: int = 0
    #: So many are hit at most.
    times: int | None = None
    delay_ms: float = 0.0
    error: int = 0
    #: Whether the request is carried out and only its answer is lost.
    carried_out: bool = False

    def applies(self, api_key: int, who: Who) -> bool:
        if self.apis and api_key not in self.apis:
            return False
        if who.node_id is not None:
            return self.senders != "clients"
        return self.senders != "nodes" and who.is_client(self.client_id)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Rule:
        known = {field.name for field in fields(cls)}
        given = {key: value for key, value in values.items() if key in known}
        return cls(**given | {"apis": tuple(values.get("apis", ()))})


class RuleBook:
    """The rules of one node."""

    def __init__(self, chance_for: Callable[[int], Chance]) -> None:
        """`chance_for` gives a rule's own source of random numbers."""
        self._chance_for = chance_for
        self._rules: dict[int, tuple[Rule, Chance]] = {}
        self._seen: dict[int, int] = {}
        self._hits: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def add(self, rule: Rule) -> None:
        if len(self._rules) >= RULES_MAX:
            raise ValueError(f"{RULES_MAX} faults are set already: remove some first")
        self._rules[rule.rule_id] = (rule, self._chance_for(rule.rule_id))
        self._seen[rule.rule_id] = self._hits[rule.rule_id] = 0

    def remove(self, rule_id: int) -> None:
        """It counts no more; how often it hit stays known."""
        self._rules.pop(rule_id, None)

    def clear(self) -> None:
        self._rules.clear()

    def hits(self, rule_id: int) -> int:
        return self._hits.get(rule_id, 0)

    def decide(self, api_key: int, who: Who) -> list[Rule]:
        """Which rules hit this request, in the order in which they were made."""
        return [
            rule
            for rule, chance in tuple(self._rules.values())
            if rule.applies(api_key, who) and self._hit(rule, chance)
        ]

    def _hit(self, rule: Rule, chance: Chance) -> bool:
        self._seen[rule.rule_id] += 1
        if self._seen[rule.rule_id] <= rule.after:
            return False
        if rule.times is not None and self._hits[rule.rule_id] >= rule.times:
            return False
        # Drawn also where it is certain: to change a probability shifts no other decision.
        if chance.random() >= rule.probability:
            return False
        self._hits[rule.rule_id] += 1
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Nothing gets through between this node and another, or a client; one way or both."""

    #: A node's id, or a pattern of client ids.
    far: int | str
    incoming: bool = True
    outgoing: bool = True

    def is_from(self, who: Who) -> bool:
        if isinstance(self.far, int):
            return who.node_id == self.far
        return who.is_client(self.far)


class Cuts:
    """Where the network is cut, as one node sees it."""

    def __init__(self, cuts: Iterable[Cut] = ()) -> None:
        self._cuts = tuple(cuts)

    def __bool__(self) -> bool:
        return bool(self._cuts)

    def requests_blocked(self, who: Who) -> bool:
        return any(cut.incoming and cut.is_from(who) for cut in self._cuts)

    def responses_blocked(self, who: Who) -> bool:
        return any(cut.outgoing and cut.is_from(who) for cut in self._cuts)
