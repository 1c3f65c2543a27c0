"""Which columns and views a query names that do not exist, and which columns it gives.

Only what is certain is reported: where the columns of one view are not known, names that could be
its own are not looked at. Names are compared as Spark does, in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from moldau.pipelines.machine.sql_tokens import Token
from moldau.pipelines.validation.machine.problems import Problem, near
from moldau.pipelines.validation.machine.queries import (
    Expression,
    Item,
    Query,
    Reference,
    Select,
    View,
)
from moldau.pipelines.validation.machine.types import Doubtful, certain, name_of

__all__ = ["Columns", "Resolver"]

#: Names of columns in order; None if they are not known.
Columns = tuple[str, ...] | None

_FUNCTION_COLUMNS = ("window", "session_window")


@dataclass(slots=True)
class _Scope:
    """What names mean inside a SELECT: the views by their names, and the query around it."""

    views: dict[str, Columns] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    is_known: bool = True
    outer: _Scope | None = None

    def add(self, name: str, columns: Columns) -> None:
        self.views[name.lower()] = columns
        if columns is None:
            self.is_known = False
        else:
            self.names |= {column.lower() for column in columns}

    def has(self, reference: Reference) -> bool:
        """True also if it cannot be known."""
        first = name_of(reference.parts[0]).lower()
        if first in self.names or not self.is_known:
            return True
        if first in self.views and len(reference.parts) > 1:
            columns = self.views[first]
            second = name_of(reference.parts[1]).lower()
            return columns is None or second in {column.lower() for column in columns}
        return self.outer is not None and self.outer.has(reference)

    def all_names(self) -> list[str]:
        """What could have been meant."""
        own = [name for columns in self.views.values() for name in certain(columns or ())]
        return own + (self.outer.all_names() if self.outer is not None else [])


class Resolver:
    """Looks at queries over `views`; `always` are columns that rows may have beside those."""

    def __init__(self, views: Mapping[str, Columns], *, always: Iterable[str] = ()) -> None:
        self._views = {name.lower(): columns for name, columns in views.items()}
        self._shown = list(views)
        self._always = {name.lower() for name in always}
        self.problems: list[Problem] = []
        self._missing: dict[str, Doubtful] = {}
        self._meant: dict[str, Doubtful] = {}

    def result(self, query: Query) -> Columns:
        """The columns of its result; those that its mistakes leave open are doubtful."""
        columns = self.query(query)
        if columns is None:
            return None
        named = tuple(self._missing.get(name.lower(), name) for name in columns)
        return (*named, *(name for name in self._meant.values() if name not in named))

    def query(self, query: Query, outer: _Scope | None = None) -> Columns:
        """The columns of its result."""
        before = dict(self._views)
        for name, columns, inner in query.common:
            found = self.query(inner, outer)
            self._views[name.lower()] = columns or found
        results: list[Columns] = []
        for term in query.selects:
            if isinstance(term, Query):
                results.append(self.query(term, outer))
            elif term is None:
                results.append(None)
            else:
                alone = query.order if len(query.selects) == 1 else []
                results.append(self._select(term, outer, alone))
        self._views = before
        return results[0]

    def expression(self, expression: Expression, columns: Columns) -> None:
        """An expression over rows of these columns."""
        scope = _Scope()
        scope.add("", columns)
        self._check(expression, scope)

    def _select(self, select: Select, outer: _Scope | None, order: Sequence[Expression]) -> Columns:
        scope = _Scope(outer=outer)
        visible = _Scope(outer=outer)
        for view in select.views:
            columns = self._columns(view, outer)
            name = view.alias or (name_of(view.name[-1]) if view.name else "")
            scope.add(name, columns)
            if not view.is_hidden:
                visible.add(name, columns)
        scope.names |= self._functions(select, order)
        visible.names |= self._functions(select, order)
        for token in select.using:
            self._check_name(Reference((token,)), scope)
        for condition in select.conditions:
            self._check(condition, scope)
        named = _Scope(dict(visible.views), set(visible.names), visible.is_known, outer)
        for item in select.items:
            self._check(item.expression, named)
            # Later items, groups and the order may use the names of earlier ones.
            if item.name is not None:
                named.names.add(item.name.lower())
            if item.is_several:
                named.is_known = False
        for expression in (*select.groups, *order):
            self._check(expression, named)
        return _result(select.items, visible)

    def _functions(self, select: Select, order: Sequence[Expression]) -> set[str]:
        """`window(at, '1 minute')` makes a column `window`."""
        expressions = [
            *(item.expression for item in select.items),
            *select.groups,
            *select.conditions,
            *order,
        ]
        called = {one.text.lower() for each in expressions for one in each.functions}
        return {name for name in _FUNCTION_COLUMNS if name in called}

    def _columns(self, view: View, outer: _Scope | None) -> Columns:
        if view.query is not None:
            found = self.query(view.query, outer)
        elif len(view.name) == 1:
            token = view.name[0]
            name = name_of(token)
            if name.lower() not in self._views:
                self._unknown_view(token)
                return None
            found = self._views[name.lower()]
        else:
            # A table of a catalog.
            found = None
        return view.columns or found

    def _unknown_view(self, token: Token) -> None:
        meant = near(name_of(token), self._shown)
        hint = f"did you mean {meant}?" if meant else f"there is {', '.join(self._shown)}"
        self.problems.append(Problem.at(token, f"there is no view {name_of(token)!r}", hint))

    def _check(self, expression: Expression, scope: _Scope) -> None:
        for reference in expression.references:
            self._check_name(reference, scope)
        for query in expression.queries:
            self.query(query, scope)

    def _check_name(self, reference: Reference, scope: _Scope) -> None:
        first = reference.parts[0]
        name = name_of(first)
        if name.lower() in self._always or scope.has(reference):
            return
        if first.kind == "quoted" and not name.isidentifier():
            # A name that Spark makes up: `sum(amount)`.
            return
        in_view = name.lower() in scope.views and len(reference.parts) > 1
        token = reference.parts[1] if in_view else first
        if in_view and name_of(token).lower() in self._always:
            return
        known = certain(scope.views[name.lower()] or ()) if in_view else scope.all_names()
        meant = near(name_of(token), known)
        self._missing[name_of(token).lower()] = Doubtful(name_of(token))
        self._meant |= {one.lower(): Doubtful(one) for one in ([meant] if meant else known)}
        listed = ", ".join(dict.fromkeys(known))
        hint = f"did you mean {meant}?" if meant else f"there is {listed}" if listed else None
        shown = ".".join(name_of(part) for part in reference.parts[: 2 if in_view else 1])
        self.problems.append(Problem.at(token, f"there is no column {shown!r}", hint))


def _result(items: Sequence[Item], scope: _Scope) -> Columns:
    names: list[str] = []
    for item in items:
        if item.is_several:
            return None
        if item.star is None:
            # What Spark makes up can be named, but not by a plain word.
            names.append(item.name or "")
            continue
        if len(item.star) > 1:
            return None
        wanted = [name_of(part).lower() for part in item.star] or list(scope.views)
        excluded = {name.lower() for name in item.excluded}
        for view in wanted:
            columns = scope.views.get(view)
            if columns is None:
                return None
            names += [name for name in columns if name.lower() not in excluded]
    return tuple(names)
