"""Reads SQL expressions: which columns, functions and queries they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.pipelines.machine.sql_tokens import Token
from moldau.pipelines.validation.machine.cursor import Cursor, word_set
from moldau.pipelines.validation.machine.problems import NotUnderstood
from moldau.pipelines.validation.machine.queries import Expression, Query, Reference
from moldau.pipelines.validation.machine.sql_calls import CallParser
from moldau.pipelines.validation.machine.types import name_of, take_type

__all__ = ["CLAUSES", "STRICT", "ExpressionParser"]

#: Words that begin a clause, so that no expression goes on behind them.
CLAUSES: Final = word_set(
    "from where group having order limit union intersect except minus setminus on using "
    "join select qualify sort cluster distribute when then else end as and or"
)
#: Words that cannot be an alias without AS either.
STRICT: Final = word_set(
    "left right inner full cross natural semi anti outer lateral window offset is in "
    "between like ilike rlike regexp not asc desc nulls over filter div collate escape "
    "tablesample pivot unpivot with within"
)
_OPERATORS: Final = (
    *("<=>", ">>>", "<>", "!=", "!<", "!>", "==", "<=", ">=", "||", "<<", ">>"),
    *("=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^"),
)
_CONSTANTS: Final = word_set(
    "null true false current_date current_timestamp current_time current_user user "
    "session_user localtimestamp"
)
_UNITS: Final = frozenset(
    f"{unit}{plural}"
    for unit in [
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    ]
    for plural in ("", "s")
)
_DEPTH_MAX: Final = 100


class ExpressionParser:
    """Takes expressions from a cursor; `query` takes a query."""

    def __init__(self, cursor: Cursor, query: Callable[[], Query]) -> None:
        self._cursor = cursor
        self._query = query
        self._found = Expression()
        self._bound: list[str] = []
        self._depth = 0
        self._calls = CallParser(cursor, self)

    def expression(self) -> Expression:
        before, self._found = self._found, Expression()
        self._whole()
        found, self._found = self._found, before
        return found

    def ordering(self) -> list[Expression]:
        """Expressions with ASC, DESC and NULLS FIRST, separated by commas; or ALL."""
        found = []
        if self._cursor.skip("all"):
            self._direction()
            return []
        while True:
            found.append(self.expression())
            self._direction()
            if not self._cursor.skip_sign(","):
                return found

    def _direction(self) -> None:
        cursor = self._cursor
        cursor.skip("asc") or cursor.skip("desc")
        if cursor.skip("nulls") and not (cursor.skip("first") or cursor.skip("last")):
            cursor.fail_expecting("FIRST or LAST", ("FIRST", "LAST"))

    # What calls of functions need.

    def note_function(self, name: Token) -> None:
        self._found.functions.append(name)

    def take_query(self) -> None:
        self._found.queries.append(self._query())

    def take_whole(self) -> None:
        self._whole()

    def take_operand(self) -> None:
        self._operand()

    def take_ordered(self) -> None:
        """Expressions in an order, inside another expression."""
        while True:
            self._whole()
            self._direction()
            if not self._cursor.skip_sign(","):
                return

    # Operators. Which binds closer does not matter here.

    def _whole(self, *, without_and: bool = False) -> None:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise NotUnderstood("expressions in expressions")
        self._operand()
        while self._operator(without_and=without_and):
            pass
        self._depth -= 1

    def _operator(self, *, without_and: bool) -> bool:
        """An operator with what follows it; False if there is none."""
        cursor = self._cursor
        for signs in _OPERATORS:
            if cursor.is_sign(signs) and not (signs == "-" and cursor.is_sign("->")):
                cursor.skip_sign(signs)
                self._operand()
                return True
        if not without_and and (cursor.skip("and") or cursor.skip("or")):
            self._operand()
            return True
        if cursor.skip("or") or cursor.skip("div"):
            self._operand()
            return True
        if cursor.skip("is"):
            self._after_is()
            return True
        negated = cursor.says("not") and cursor.ahead(1).kind == "word"
        if negated:
            cursor.take()
        if cursor.skip("between"):
            self._whole(without_and=True)
            cursor.expect("and")
            self._operand()
        elif cursor.skip("in"):
            self._in_brackets()
        elif cursor.says_one_of(("like", "ilike", "rlike", "regexp")):
            self._like()
        elif negated:
            cursor.fail_expecting("BETWEEN, IN or LIKE after NOT")
        elif cursor.skip("collate"):
            cursor.take()
            while cursor.skip_sign("."):
                cursor.take()
        else:
            return False
        return True

    def _after_is(self) -> None:
        cursor = self._cursor
        cursor.skip("not") or cursor.skip_sign("!")
        if cursor.skip("distinct"):
            cursor.expect("from")
            self._operand()
        elif not cursor.says_one_of(("null", "true", "false", "unknown", "normalized")):
            cursor.fail_expecting("NULL, TRUE or FALSE after IS", ("NULL", "TRUE", "FALSE"))
        else:
            cursor.take()

    def _like(self) -> None:
        cursor = self._cursor
        cursor.take()
        if cursor.says_one_of(("any", "some", "all")):
            cursor.take()
            self._in_brackets()
            return
        self._operand()
        if cursor.skip("escape"):
            cursor.take()

    def _in_brackets(self) -> None:
        """`(1, 2)` or `(SELECT ...)`."""
        cursor = self._cursor
        cursor.expect_sign("(")
        if cursor.says_one_of(("select", "with")):
            self.take_query()
        else:
            self._list()
        cursor.expect_sign(")")

    def _list(self) -> None:
        while True:
            self._whole()
            if not self._cursor.skip_sign(","):
                return

    # Operands

    def _operand(self) -> None:
        cursor = self._cursor
        while cursor.is_sign("-") or cursor.is_sign("+") or cursor.is_sign("~"):
            cursor.take()
        while cursor.skip("not") or cursor.skip_sign("!"):
            pass
        while cursor.is_sign("-") or cursor.is_sign("+") or cursor.is_sign("~"):
            cursor.take()
        self._primary()
        while True:
            if cursor.skip_sign("["):
                self._whole()
                cursor.expect_sign("]")
            elif cursor.skip_sign("::"):
                take_type(cursor)
            elif (cursor.is_sign(".") and cursor.ahead(1).kind in ("word", "quoted")) or (
                cursor.is_sign(".") and cursor.is_sign("*", 1)
            ):
                cursor.take()
                cursor.take()
            else:
                return

    def _primary(self) -> None:
        cursor = self._cursor
        token = cursor.next
        word = token.text.lower() if token.kind == "word" else ""
        if token.kind in ("number", "text") or (
            cursor.is_sign(".") and cursor.ahead(1).text[0:1].isdigit()
        ):
            self._literal()
        elif cursor.is_sign("("):
            self._brackets()
        elif word == "case":
            self._case()
        elif word == "interval" and not cursor.is_sign("(", 1) and self._is_interval():
            self._interval()
        elif word == "exists" and cursor.is_sign("(", 1):
            cursor.take()
            self._in_brackets()
        elif word and cursor.ahead(1).kind == "text":
            # DATE '2026-01-01', X'1F', r'\\d'.
            cursor.take()
            cursor.take()
        elif word in CLAUSES or token.kind not in ("word", "quoted"):
            cursor.fail_expecting("an expression")
        else:
            self._named()

    def _literal(self) -> None:
        cursor = self._cursor
        if cursor.take().kind == "text":
            while cursor.next.kind == "text":
                cursor.take()
        elif cursor.next.kind == "number":
            # `.5`
            cursor.take()

    def _brackets(self) -> None:
        cursor = self._cursor
        names = self._parameters()
        if names is not None:
            self._lambda(names)
            return
        cursor.expect_sign("(")
        if cursor.says_one_of(("select", "with")):
            self.take_query()
        elif cursor.is_sign(")"):
            cursor.fail_expecting("an expression")
        else:
            while True:
                self._calls.argument()
                if not cursor.skip_sign(","):
                    break
        cursor.expect_sign(")")

    def _parameters(self) -> list[str] | None:
        """Of `(x, y) -> ...`, taken up to the arrow; None if it is something else."""
        cursor, names, index = self._cursor, [], 1
        while cursor.ahead(index).kind in ("word", "quoted"):
            names.append(name_of(cursor.ahead(index)))
            index += 1
            if not cursor.is_sign(",", index):
                break
            index += 1
        if not names or not cursor.is_sign(")", index) or not cursor.is_sign("->", index + 1):
            return None
        cursor.back_to(cursor.position + index + 3)
        return names

    def _lambda(self, names: list[str]) -> None:
        self._bound += names
        self._whole()
        del self._bound[-len(names) :]

    def _case(self) -> None:
        cursor = self._cursor
        cursor.take()
        if not cursor.says("when"):
            self._whole()
        if not cursor.says("when"):
            cursor.fail_expecting("WHEN", ("WHEN",))
        while cursor.skip("when"):
            self._whole()
            cursor.expect("then")
            self._whole()
        if cursor.skip("else"):
            self._whole()
        cursor.expect("end")

    def _is_interval(self) -> bool:
        after = self._cursor.ahead(1)
        return (
            after.kind in ("number", "text")
            or after.text in ("-", "+")
            or (after.kind in ("word", "quoted") and self._cursor.ahead(2).text.lower() in _UNITS)
        )

    def _interval(self) -> None:
        """`INTERVAL 1 DAY 2 HOURS`, `INTERVAL '1-2' YEAR TO MONTH`."""
        cursor = self._cursor
        cursor.take()
        while True:
            while cursor.is_sign("-") or cursor.is_sign("+"):
                cursor.take()
            self._primary()
            if cursor.says_one_of(_UNITS):
                cursor.take()
            if cursor.skip("to"):
                cursor.take()
            negative = cursor.is_sign("-") and cursor.ahead(1).kind in ("number", "text")
            at = cursor.ahead(2 if negative else 1)
            is_more = negative or cursor.next.kind in ("number", "text")
            if not (is_more and at.text.lower() in _UNITS):
                return

    # Names

    def _named(self) -> None:
        """A column, a function's call, a lambda with one parameter or a constant."""
        cursor = self._cursor
        token = cursor.take()
        if cursor.is_sign("->"):
            cursor.skip_sign("->")
            self._lambda([name_of(token)])
            return
        parts = [token]
        while cursor.is_sign(".") and cursor.ahead(1).kind in ("word", "quoted"):
            cursor.take()
            parts.append(cursor.take())
        if cursor.is_sign("("):
            self._calls.call(parts)
            return
        name = name_of(token)
        if token.kind == "word" and name.lower() in _CONSTANTS:
            return
        if name.lower() in (one.lower() for one in self._bound):
            return
        self._found.references.append(Reference(tuple(parts)))
