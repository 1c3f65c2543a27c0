"""Statements as text, the way ksqlDB writes them into errors and its command topic."""

from __future__ import annotations

from dataclasses import replace

from moldau.sql.syntax.expressions import Literal
from moldau.sql.syntax.formatting import name_text, statement_text, string_text, text
from moldau.sql.syntax.statements import (
    AllColumns,
    CreateAsSelect,
    CreateSource,
    Element,
    InsertInto,
    JoinedSource,
    OrderItem,
    Properties,
    Query,
    Relation,
    SelectItem,
    SingleColumn,
    Statement,
    StructAll,
    Window,
    Within,
)

_JOINS = {"INNER": "INNER", "LEFT": "LEFT OUTER", "RIGHT": "RIGHT OUTER", "OUTER": "FULL OUTER"}


def formatted(statement: Statement) -> str | None:
    """The text of a statement; None for kinds that are never rewritten."""
    match statement:
        case Query():
            return query_text(statement)
        case CreateAsSelect():
            return _create_as_select(statement)
        case InsertInto():
            return f"INSERT INTO {name_text(statement.target)} {query_text(statement.query)}"
        case CreateSource():
            return _create_source(statement)
    return None


def query_text(query: Query) -> str:
    """A query, clause by clause."""
    items = [_item(each) for each in query.select]
    selected = f" {items[0]}" if len(items) == 1 else "\n  " + ",\n  ".join(items)
    source = _relation(query.source) + "".join(_join(each) for each in query.joins)
    lines = [f"SELECT{selected}", f"FROM {source}"]
    if query.window is not None:
        lines.append(f"WINDOW {_window(query.window)}")
    if query.where is not None:
        lines.append(f"WHERE {statement_text(query.where)}")
    if query.group_by is not None:
        lines.append(f"GROUP BY {', '.join(statement_text(each) for each in query.group_by)}")
    if query.partition_by is not None:
        shown = ", ".join(statement_text(each) for each in query.partition_by)
        lines.append(f"PARTITION BY {shown}")
    if query.having is not None:
        lines.append(f"HAVING {statement_text(query.having)}")
    for each in query.unions:
        lines.append(f"UNION ALL {query_text(replace(each, emit=None))}")
    if query.order_by:
        lines.append(f"ORDER BY {', '.join(_ordering(each) for each in query.order_by)}")
    if query.emit is not None:
        lines.append(f"EMIT {query.emit}")
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")
    if query.offset is not None:
        lines.append(f"OFFSET {query.offset}")
    return "\n".join(lines)


def _item(item: SelectItem) -> str:
    match item:
        case SingleColumn(expression, alias):
            shown = "" if alias is None else f" {name_text(alias)}"
            return statement_text(expression) + shown
        case AllColumns(source):
            return "*" if source is None else f"{name_text(source)}.*"
        case StructAll(base):
            return f"{text(base)}->*"
    return ""


def _ordering(item: OrderItem) -> str:
    nulls = "" if item.nulls_last is None else f" NULLS {'LAST' if item.nulls_last else 'FIRST'}"
    return f"{statement_text(item.expression)}{' DESC' * item.descending}{nulls}"


def _relation(relation: Relation) -> str:
    if relation.query is not None:
        return f"({query_text(relation.query)}) {name_text(relation.alias)}"
    return f"{name_text(relation.name)} {name_text(relation.alias)}"


def _join(join: JoinedSource) -> str:
    within = "" if join.within is None else _within(join.within)
    relation = _relation(join.relation)
    criteria = statement_text(join.criteria)
    return f"\n{_JOINS[join.kind]} JOIN {relation}{within} ON ({criteria})"


def _within(within: Within) -> str:
    size = str(within.before)
    if within.before != within.after:
        size = f"({within.before}, {within.after})"
    grace = "" if within.grace is None else f" GRACE PERIOD {within.grace}"
    return f" WITHIN {size}{grace}"


def _window(window: Window) -> str:
    parts = [f"{'' if window.kind == 'SESSION' else 'SIZE '}{window.size}"]
    if window.advance is not None:
        parts.append(f"ADVANCE BY {window.advance}")
    if window.retention is not None:
        parts.append(f"RETENTION {window.retention}")
    if window.grace is not None:
        parts.append(f"GRACE PERIOD {window.grace}")
    return f"{window.kind} ( {' , '.join(parts)} ) "


def _create(kind: str, *, or_replace: bool, source: bool, if_not_exists: bool, name: str) -> str:
    words = ["CREATE"]
    words += ["OR REPLACE"] * or_replace + ["SOURCE"] * source + [kind]
    words += ["IF NOT EXISTS"] * if_not_exists + [name_text(name)]
    return " ".join(words)


def _create_as_select(statement: CreateAsSelect) -> str:
    start = _create(
        statement.kind,
        or_replace=statement.or_replace,
        source=False,
        if_not_exists=statement.if_not_exists,
        name=statement.name,
    )
    return f"{start}{_properties(statement.properties)} AS {query_text(statement.query)}"


def _create_source(statement: CreateSource) -> str:
    start = _create(
        statement.kind,
        or_replace=statement.or_replace,
        source=statement.is_source,
        if_not_exists=statement.if_not_exists,
        name=statement.name,
    )
    elements = ", ".join(_element(each) for each in statement.elements)
    shown = f" ({elements})" if elements else ""
    return f"{start}{shown}{_properties(statement.properties)};"


def _element(element: Element) -> str:
    constraint = f" {element.constraint}" if element.constraint else ""
    if element.constraint == "HEADERS" and element.header:
        constraint = f" HEADER('{element.header}')"
    return f"{name_text(element.name)} {element.type}{constraint}"


def _properties(properties: Properties) -> str:
    if not properties:
        return ""
    shown = ", ".join(f"{name.upper()}={_value(properties[name])}" for name in sorted(properties))
    return f" WITH ({shown})"


def _value(literal: Literal) -> str:
    value = literal.value  # type: ignore[attr-defined]
    return string_text(value) if isinstance(value, str) else text(literal)
