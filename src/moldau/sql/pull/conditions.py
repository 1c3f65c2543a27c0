"""WHERE as alternatives, each of which says which keys and windows to look up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.sql.syntax.expressions import (
    Between,
    Comparison,
    Expression,
    InList,
    Logical,
    Not,
    rewrite,
)

#: More alternatives than this are not looked up one by one.
ALTERNATIVES_MAX = 1000


def alternatives(where: Expression) -> list[Expression]:
    """The disjunctive normal form: the condition holds where one of these does."""
    return _disjuncts(_without_not(_plain(where), negated=False))


def _plain(where: Expression) -> Expression:
    """BETWEEN and IN as comparisons."""

    def plain(node: Expression) -> Expression | None:
        if isinstance(node, Between):
            low = Comparison(">=", node.value, node.low)
            return Logical("AND", low, Comparison("<=", node.value, node.high))
        if isinstance(node, InList) and node.items:
            found: Expression | None = None
            for item in reversed(node.items):
                equal = Comparison("=", node.value, item, position=node.position)
                found = equal if found is None else Logical("OR", equal, found)
            return found
        return None

    return rewrite(where, plain)


def _without_not(node: Expression, *, negated: bool) -> Expression:
    if isinstance(node, Not):
        return _without_not(node.value, negated=not negated)
    if isinstance(node, Logical):
        operator = node.operator
        if negated:
            operator = "OR" if operator == "AND" else "AND"
        return replace(
            node,
            operator=operator,
            left=_without_not(node.left, negated=negated),
            right=_without_not(node.right, negated=negated),
        )
    return Not(node, position=node.position) if negated else node


def _disjuncts(node: Expression) -> list[Expression]:
    if not isinstance(node, Logical):
        return [node]
    left, right = _disjuncts(node.left), _disjuncts(node.right)
    if node.operator == "OR":
        return left + right
    if len(left) * len(right) > ALTERNATIVES_MAX:
        return [node]
    return [Logical("AND", one, other) for one in left for other in right]


def conjuncts(node: Expression) -> list[Expression]:
    """The conditions that an alternative combines by AND."""
    if isinstance(node, Logical) and node.operator == "AND":
        return conjuncts(node.left) + conjuncts(node.right)
    return [node]


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of window starts or ends, both ends included; None is open."""

    low: int | None = None
    high: int | None = None

    def contains(self, time: int) -> bool:
        above = self.low is None or time >= self.low
        return above and (self.high is None or time <= self.high)
