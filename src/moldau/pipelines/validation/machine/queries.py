"""What a SQL query says, as far as names are concerned: see `sql_parser.py`."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.pipelines.machine.sql_tokens import Token

__all__ = ["Expression", "Item", "Query", "Reference", "Select", "View"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A column as it is written: `amount`, `o.amount`, `address.city`."""

    parts: tuple[Token, ...]


@dataclass(slots=True)
class Expression:
    """The names in an expression, without those of its own (parameters of lambdas)."""

    references: list[Reference] = field(default_factory=list)
    functions: list[Token] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)


@dataclass(slots=True)
class Item:
    """Of a SELECT's list. `name` is the result's column, None if Spark makes a name up."""

    expression: Expression
    name: str | None = None
    #: `*` or `orders.*`; the words before the star.
    star: tuple[Token, ...] | None = None
    #: `* EXCEPT (a, b)`.
    excluded: tuple[str, ...] = ()
    #: It may be several columns, whose names are not known here: `inline(...)`, `address.*`.
    is_several: bool = False


@dataclass(slots=True)
class View:
    """What a SELECT reads: a name, or a query in brackets; of functions nothing is known."""

    name: tuple[Token, ...] = ()
    query: Query | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()
    #: The columns of a semi or anti join's right side are not seen outside of its ON.
    is_hidden: bool = False


@dataclass(slots=True)
class Select:
    items: list[Item] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    #: WHERE and ON, which do not see the names of the list.
    conditions: list[Expression] = field(default_factory=list)
    #: GROUP BY, HAVING, QUALIFY.
    groups: list[Expression] = field(default_factory=list)
    using: list[Token] = field(default_factory=list)


@dataclass(slots=True)
class Query:
    """One or more SELECTs with UNION and the like between them, the result's order, and its own
    views (WITH)."""

    common: list[tuple[str, tuple[str, ...], Query]] = field(default_factory=list)
    #: None for what is in brackets or has no SELECT (VALUES).
    selects: list[Select | Query | None] = field(default_factory=list)
    order: list[Expression] = field(default_factory=list)
