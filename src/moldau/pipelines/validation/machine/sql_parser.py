"""Reads the queries of SQL steps, without Spark.

Spark's own grammar decides in the end; here is the part of it that pipelines commonly use. A text
that breaks the rules known here is a mistake, unless it uses something that is not known here at
all (a word of `_BEYOND`): then it is not understood, and only Spark can check it.
"""

from __future__ import annotations

from moldau.pipelines.machine.sql_tokens import Token, words_of
from moldau.pipelines.validation.machine.cursor import Cursor, word_set
from moldau.pipelines.validation.machine.problems import NotUnderstood, SyntaxProblem
from moldau.pipelines.validation.machine.queries import (
    Expression,
    Item,
    Query,
    Reference,
    Select,
    View,
)
from moldau.pipelines.validation.machine.sql_expressions import (
    CLAUSES,
    STRICT,
    ExpressionParser,
)
from moldau.pipelines.validation.machine.types import name_of

__all__ = ["parse_expression", "parse_query"]

DEPTH_MAX = 100
#: Statements that change something; a step is a query.
_COMMANDS = word_set("insert update delete create drop alter merge truncate set use grant revoke")
#: Words of Spark's SQL that are not known here.
_BEYOND = word_set(
    "pivot unpivot tablesample match_recognize transform map reduce grouping lateral "
    "cube rollup sets version system_time watermark within changes inline_outer "
    "recursive identifier "
    "asof match_condition nearest bin default error keep format without returning "
    "json_query json_exists"
)
_SIGNS_BEYOND = (":", "?", "$", "|", "@", "#")
_FOLLOWING = word_set(
    "FROM WHERE GROUP HAVING ORDER LIMIT UNION INTERSECT EXCEPT JOIN LEFT RIGHT INNER FULL CROSS ON"
)
_SEVERAL = word_set(
    "inline posexplode posexplode_outer stack json_tuple explode explode_outer "
    "parse_url variant_explode variant_explode_outer"
)


def parse_query(text: str) -> Query:
    """Raises `SyntaxProblem`, or `NotUnderstood`."""
    return _Parser(text).statement()


def parse_expression(text: str) -> Expression:
    """As `parse_query`, for a single expression (`key: upper(id)`)."""
    return _Parser(text).single_expression()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._cursor = Cursor(text)
        self._depth = 0
        self._expressions = ExpressionParser(self._cursor, self.query)

    def statement(self) -> Query:
        try:
            first = self._cursor.next
            if first.text.lower() in _COMMANDS:
                self._cursor.fail(
                    f"{first.text.upper()} is not a query; a SQL step is a SELECT", first
                )
            query = self.query()
            while self._cursor.skip_sign(";"):
                pass
            if self._cursor.next.kind != "end":
                self._cursor.fail_expecting("the end of the statement", _FOLLOWING)
            return query
        except SyntaxProblem:
            self._fail_if_beyond()
            raise

    def single_expression(self) -> Expression:
        try:
            found = self._expressions.expression()
            if self._cursor.next.kind != "end":
                self._cursor.fail_expecting("the end of the expression")
            return found
        except SyntaxProblem:
            self._fail_if_beyond()
            raise

    def _fail_if_beyond(self) -> None:
        for token in words_of(self._text):
            known = token.kind != "word" or token.text.lower() not in _BEYOND
            if not known or (token.kind == "sign" and token.text in _SIGNS_BEYOND):
                raise NotUnderstood(token.text)

    # Queries

    def query(self) -> Query:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise NotUnderstood("queries in queries")
        query = Query()
        if self._cursor.skip("with"):
            self._common(query)
        query.selects.append(self._term())
        while self._cursor.says_one_of(("union", "intersect", "except", "minus", "setminus")):
            self._cursor.take()
            self._cursor.skip("all") or self._cursor.skip("distinct")
            query.selects.append(self._term())
        self._end_of(query)
        self._depth -= 1
        return query

    def _common(self, query: Query) -> None:
        while True:
            name = self._name("the name of a common table")
            columns = self._column_list()
            self._cursor.skip("as")
            self._cursor.expect_sign("(")
            query.common.append((name_of(name), columns, self.query()))
            self._cursor.expect_sign(")")
            if not self._cursor.skip_sign(","):
                return

    def _term(self) -> Select | Query | None:
        cursor = self._cursor
        if cursor.skip_sign("("):
            inner = self.query()
            cursor.expect_sign(")")
            return inner
        if cursor.says_one_of(("values", "table", "from")):
            raise NotUnderstood(cursor.next.text)
        if not cursor.skip("select"):
            cursor.alias = None
            cursor.fail_expecting("SELECT", ("SELECT", "WITH", "VALUES", "TABLE", "FROM"))
        return self._select()

    def _end_of(self, query: Query) -> None:
        cursor = self._cursor
        while True:
            if cursor.says_one_of(("order", "sort", "cluster", "distribute")):
                cursor.take()
                cursor.expect("by")
                query.order += self._expressions.ordering()
            elif cursor.skip("limit"):
                if not cursor.skip("all"):
                    query.order.append(self._expressions.expression())
            elif cursor.skip("offset"):
                query.order.append(self._expressions.expression())
            elif cursor.says("window") and cursor.ahead(2).says("as"):
                raise NotUnderstood("window")
            else:
                return

    # A SELECT

    def _select(self) -> Select:
        cursor = self._cursor
        select = Select()
        cursor.skip("distinct") or cursor.skip("all")
        while True:
            select.items.append(self._item())
            if not cursor.skip_sign(","):
                break
        if cursor.skip("from"):
            self._from(select)
        if cursor.skip("where"):
            select.conditions.append(self._expressions.expression())
        if cursor.skip("group"):
            cursor.expect("by")
            select.groups += self._expressions.ordering()
            if cursor.says("with"):
                raise NotUnderstood("with")
        for word in ("having", "qualify"):
            if cursor.skip(word):
                select.groups.append(self._expressions.expression())
        return select

    def _item(self) -> Item:
        cursor = self._cursor
        star = self._star()
        if star is not None:
            item = Item(Expression(), star=star)
            if cursor.says("except") and cursor.is_sign("(", 1):
                cursor.take()
                item.excluded = self._column_list()
            if cursor.says("replace"):
                raise NotUnderstood("replace")
            return item
        start = cursor.next
        first = cursor.position
        expression = self._expressions.expression()
        item = Item(expression)
        if cursor.is_sign(".") or self._ends_with_star(first):
            item.is_several = True
        if cursor.skip("as") and cursor.is_sign("("):
            self._column_list()
            item.is_several = True
        elif cursor.ahead(-1).says("as"):
            item.name = name_of(self._name("a name after AS"))
        elif self._is_alias():
            cursor.alias = cursor.take()
            item.name = name_of(cursor.alias)
        elif [one.parts[0] for one in expression.references] == [start]:
            parts = expression.references[0].parts
            is_alone = cursor.position - first == 2 * len(parts) - 1
            item.name = name_of(parts[-1]) if is_alone else None
        if item.name is None and start.text.lower() in _SEVERAL:
            item.is_several = True
        elif item.name is None and start.text.lower() in ("window", "session_window"):
            item.name = start.text.lower()
        return item

    def _ends_with_star(self, first: int) -> bool:
        """`address.*`, where `address` is an expression."""
        cursor = self._cursor
        return cursor.position - first > 1 and cursor.ahead(-1).text == "*"

    def _star(self) -> tuple[Token, ...] | None:
        """`*` or `a.b.*`, taken; else None and nothing is."""
        cursor, start = self._cursor, self._cursor.position
        parts: list[Token] = []
        while cursor.next.kind in ("word", "quoted") and cursor.is_sign(".", 1):
            parts.append(cursor.take())
            cursor.take()
        if cursor.skip_sign("*"):
            return tuple(parts)
        cursor.back_to(start)
        return None

    # FROM

    def _from(self, select: Select) -> None:
        cursor = self._cursor
        select.views.append(self._view())
        while True:
            if cursor.skip_sign(","):
                select.views.append(self._view())
            elif (kind := self._join()) is not None:
                view = self._view()
                view.is_hidden = kind in ("semi", "anti")
                select.views.append(view)
                if cursor.skip("on"):
                    select.conditions.append(self._expressions.expression())
                elif cursor.skip("using"):
                    cursor.expect_sign("(")
                    while True:
                        select.using.append(self._name("the name of a column"))
                        if not cursor.skip_sign(","):
                            break
                    cursor.expect_sign(")")
            else:
                return

    def _join(self) -> str | None:
        """The kind of the join that begins here, taken; else None."""
        cursor = self._cursor
        words = ("natural", "inner", "left", "right", "full", "cross", "outer", "semi", "anti")
        count = 0
        while cursor.ahead(count).kind == "word" and cursor.ahead(count).text.lower() in words:
            count += 1
        if not cursor.ahead(count).says("join"):
            if count:
                cursor.back_to(cursor.position + count)
                cursor.alias = None
                cursor.fail_expecting("JOIN", ("JOIN",))
            return None
        kinds = [cursor.take().text.lower() for _ in range(count)]
        cursor.take()
        return kinds[-1] if kinds else "inner"

    def _view(self) -> View:
        cursor = self._cursor
        view = View()
        if cursor.says_one_of(("lateral", "values", "table")):
            raise NotUnderstood(cursor.next.text)
        if cursor.skip_sign("("):
            if cursor.says_one_of(("select", "with")):
                view.query = self.query()
                cursor.expect_sign(")")
            else:
                raise NotUnderstood("(")
        else:
            name = [self._name("the name of a view")]
            while cursor.skip_sign("."):
                name.append(self._name("a name after '.'"))
            if cursor.is_sign("("):
                raise NotUnderstood(name[0].text)
            view.name = tuple(name)
        if cursor.skip("as"):
            view.alias = name_of(self._name("a name after AS"))
        elif self._is_alias():
            cursor.alias = cursor.take()
            view.alias = name_of(cursor.alias)
        if view.alias is not None and cursor.is_sign("("):
            view.columns = self._column_list()
        return view

    # Names

    def _is_alias(self) -> bool:
        token = self._cursor.next
        if token.kind == "quoted":
            return True
        return token.kind == "word" and token.text.lower() not in CLAUSES | STRICT

    def _name(self, what: str) -> Token:
        token = self._cursor.next
        is_word = token.kind == "word" and token.text.lower() not in CLAUSES
        if token.kind != "quoted" and not is_word:
            self._cursor.fail_expecting(what)
        return self._cursor.take()

    def _column_list(self) -> tuple[str, ...]:
        """`(a, b)` if there is one."""
        if not self._cursor.skip_sign("("):
            return ()
        names = []
        while True:
            names.append(name_of(self._name("the name of a column")))
            if not self._cursor.skip_sign(","):
                break
        self._cursor.expect_sign(")")
        return tuple(names)


def plain_reference(name: str) -> Reference:
    """A column that is named outside of SQL."""
    return Reference((Token("quoted", f"`{name}`", 0, len(name), 0),))
