"""Expressions. Two are equal where they mean the same; where they stand does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from moldau.sql.types import SqlType


class Position(NamedTuple):
    """Where something stands in the text: lines and columns count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"Line: {self.line}, Col: {self.column}"

    @property
    def prefix(self) -> str:
        return f"{self}: "


@dataclass(frozen=True, slots=True)
class Expression:
    """The base of all expressions."""

    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def prefix(self) -> str:
        """The position as the start of an error message."""
        return "" if self.position is None else self.position.prefix


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """The base of all literals."""


@dataclass(frozen=True, slots=True)
class NullLiteral(Literal):
    value: None = None


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Literal):
    value: bool


@dataclass(frozen=True, slots=True)
class IntegerLiteral(Literal):
    value: int


@dataclass(frozen=True, slots=True)
class LongLiteral(Literal):
    value: int


@dataclass(frozen=True, slots=True)
class DoubleLiteral(Literal):
    value: float


@dataclass(frozen=True, slots=True)
class DecimalLiteral(Literal):
    value: Decimal


@dataclass(frozen=True, slots=True)
class StringLiteral(Literal):
    value: str


@dataclass(frozen=True, slots=True)
class BytesLiteral(Literal):
    value: bytes


@dataclass(frozen=True, slots=True)
class TypedLiteral(Literal):
    """A date, time or timestamp as a constant: what a string literal was coerced to."""

    value: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class ColumnRef(Expression):
    """A column, with the alias of its source where that is known."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expression):
    name: str


@dataclass(frozen=True, slots=True)
class IntervalUnit(Expression):
    """SECONDS and the like, as an argument of a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    arguments: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """One of + - * / %."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Signed(Expression):
    """A sign: + or -."""

    sign: str
    value: Expression


#: ksqlDB's names of comparisons, which its messages use.
COMPARISONS = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
}


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """One of `COMPARISONS`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    """AND or OR."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    value: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    value: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expression):
    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class InList(Expression):
    value: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like(Expression):
    value: Expression
    pattern: Expression
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class When(Expression):
    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class SearchedCase(Expression):
    whens: tuple[When, ...]
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class SimpleCase(Expression):
    operand: Expression
    whens: tuple[When, ...]
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    value: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Dereference(Expression):
    base: Expression
    field: str


@dataclass(frozen=True, slots=True)
class MakeArray(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MakeMap(Expression):
    keys: tuple[Expression, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MakeStruct(Expression):
    names: tuple[str, ...]
    values: tuple[Expression, ...]


_LEAVES = frozenset({"position", "name", "source", "operator", "sign", "type", "names", "negated"})
_PARTS: dict[type[Expression], tuple[str, ...]] = {}


def _parts(kind: type[Expression]) -> tuple[str, ...]:
    """The fields of a kind of expression that may hold expressions."""
    found = _PARTS.get(kind)
    if found is None:
        found = tuple(each.name for each in fields(kind) if each.name not in _LEAVES)
        _PARTS[kind] = found
    return found


def children(expression: Expression) -> Iterator[Expression]:
    """The expressions directly inside."""
    for name in _parts(type(expression)):
        part = getattr(expression, name)
        if isinstance(part, Expression):
            yield part
        elif isinstance(part, tuple):
            yield from (each for each in part if isinstance(each, Expression))


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside, from the outside in."""
    yield expression
    for child in children(expression):
        yield from walk(child)


E = TypeVar("E", bound=Expression)
Rewriter = Callable[[Expression], Expression | None]


def rewrite(expression: Expression, change: Rewriter) -> Expression:
    """The expression with parts replaced: where `change` returns something, its parts are done."""
    changed = change(expression)
    if changed is not None:
        return changed
    updates: dict[str, Any] = {}
    for name in _parts(type(expression)):
        part = getattr(expression, name)
        if isinstance(part, Expression):
            new = rewrite(part, change)
            if new is not part:
                updates[name] = new
        elif isinstance(part, tuple) and part and isinstance(part[0], Expression):
            items = tuple(rewrite(each, change) for each in part)
            if any(new is not old for new, old in zip(items, part, strict=True)):
                updates[name] = items
    return replace(expression, **updates) if updates else expression


def columns(expression: Expression) -> list[ColumnRef]:
    """The columns that are used, in order."""
    return [each for each in walk(expression) if isinstance(each, ColumnRef)]
