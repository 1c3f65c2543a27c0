"""Expressions and types, by recursive descent. Each method reads one rule of the grammar."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

from moldau.sql.errors import TOO_LARGE, KsqlException
from moldau.sql.syntax.cursor import Cursor, unquote
from moldau.sql.syntax.expressions import (
    Arithmetic,
    Between,
    Cast,
    ColumnRef,
    Comparison,
    DecimalLiteral,
    Dereference,
    Expression,
    FunctionCall,
    InList,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Logical,
    MakeArray,
    MakeMap,
    MakeStruct,
    Not,
    Position,
    SearchedCase,
    Signed,
    SimpleCase,
    Subscript,
    When,
)
from moldau.sql.syntax.type_parser import NUMBERS, LiteralParser, TypeParser, TypeResolver

T = TypeVar("T")
UNITS = {
    name: plural
    for plural in ("DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS")
    for name in (plural, plural[:-1])
}
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
#: Each level takes some nine calls, and Python allows a thousand.
_NESTING_MAX = 80


class ExpressionParser:
    """Reads expressions and types at a cursor."""

    def __init__(self, cursor: Cursor, resolve_type: TypeResolver) -> None:
        self._at = cursor
        self._literals = LiteralParser(cursor)
        self._types = TypeParser(cursor, resolve_type)
        self._lambda_arguments: set[str] = set()
        self._depth = 0
        #: Aliases that may qualify a column; None where anything may.
        self.sources: set[str] | None = None

    # Boolean expressions.

    def expression(self) -> Expression:
        self._depth += 1
        if self._depth > _NESTING_MAX:
            raise KsqlException(TOO_LARGE)
        left = self._and()
        while self._at.kind == "OR":
            position = self._at.position
            self._at.next()
            left = Logical("OR", left, self._and(), position=position)
        self._depth -= 1
        return left

    def _and(self) -> Expression:
        left = self._not()
        while self._at.kind == "AND":
            position = self._at.position
            self._at.next()
            left = Logical("AND", left, self._not(), position=position)
        return left

    def _not(self) -> Expression:
        if self._at.kind == "NOT":
            position = self._at.position
            self._at.next()
            return Not(self._not(), position=position)
        return self._predicated()

    def _predicated(self) -> Expression:
        value = self.value_expression()
        at = self._at
        position = at.position
        if at.kind in _COMPARISONS:
            operator = at.next().kind
            return Comparison(operator, value, self.value_expression(), position=position)
        if at.kind == "IS":
            return self._is(value, position)
        negated = at.kind == "NOT" and at.ahead() in ("BETWEEN", "IN", "LIKE")
        if negated:
            at.next()
        found: Expression | None = None
        if at.accept("BETWEEN"):
            low = self.value_expression()
            at.expect("AND")
            found = Between(value, low, self.value_expression(), position=position)
        elif at.accept("IN"):
            at.expect("(")
            if at.kind == ")":
                at.no_viable()
            found = InList(value, self._list(self.expression, ")"), position=position)
        elif at.accept("LIKE"):
            found = self._like(value, position)
        if found is None:
            return value
        return Not(found, position=position) if negated else found

    def _is(self, value: Expression, position: Position) -> Expression:
        at = self._at
        at.next()
        negated = at.accept("NOT")
        if at.accept("NULL"):
            return IsNull(value, negated, position=position)
        at.expect("DISTINCT")
        at.expect("FROM")
        right = self.value_expression()
        found = Comparison("IS DISTINCT FROM", value, right, position=position)
        return Not(found, position=position) if negated else found

    def _like(self, value: Expression, position: Position) -> Expression:
        pattern = self.value_expression()
        escape = None
        if self._at.accept("ESCAPE"):
            where = self._at.position
            escape = unquote(self._at.expect("STRING").text)
            if len(escape) != 1:
                raise KsqlException(f"{where}: Expected single character escape but got: {escape}")
        return Like(value, pattern, escape, position=position)

    # Values, from the loosest operator to the tightest.

    def value_expression(self) -> Expression:
        left = self._sum()
        while self._at.kind == "||":
            position = self._at.position
            self._at.next()
            left = FunctionCall("CONCAT", (left, self._sum()), position=position)
        return left

    def _sum(self) -> Expression:
        left = self._product()
        while self._at.kind in ("+", "-"):
            position = self._at.position
            operator = self._at.next().kind
            left = Arithmetic(operator, left, self._product(), position=position)
        return left

    def _product(self) -> Expression:
        left = self._signed()
        while self._at.kind in ("*", "/", "%"):
            position = self._at.position
            operator = self._at.next().kind
            left = Arithmetic(operator, left, self._signed(), position=position)
        return left

    def _signed(self) -> Expression:
        at = self._at
        if at.kind in ("+", "-") and not (at.kind == "-" and at.ahead() in NUMBERS):
            position = at.position
            sign = at.next().kind
            self._depth += 1
            value = self._signed()
            self._depth -= 1
            return Signed(sign, value, position=position)
        return self.primary()

    def primary(self) -> Expression:
        """A primary expression with the subscripts and dereferences after it."""
        position = self._at.position
        found = self._primary_start(position)
        at = self._at
        while True:
            if at.kind == "[":
                at.next()
                index = self.value_expression()
                at.expect("]")
                found = Subscript(found, index, position=position)
            elif at.kind == "->" and at.ahead() != "*":
                at.next()
                found = Dereference(found, at.identifier(), position=position)
            else:
                return found

    def _primary_start(self, position: Position) -> Expression:
        at = self._at
        kind = at.kind
        if kind in NUMBERS or kind == "-" or kind in ("NULL", "TRUE", "FALSE", "STRING"):
            return self._literals.literal()
        match kind:
            case "CASE":
                return self._case(position)
            case "CAST":
                at.next()
                at.expect("(")
                value = self.expression()
                at.expect("AS")
                to = self._types.type()
                at.expect(")")
                return Cast(value, to, position=position)
            case "(":
                at.next()
                inner = self.expression()
                at.expect(")")
                return inner
        if kind in ("ARRAY", "MAP", "STRUCT"):
            made = self._constructor(kind, position)
            if made is not None:
                return made
        return self._named(position)

    def _constructor(self, kind: str, position: Position) -> Expression | None:
        at = self._at
        if kind == "ARRAY" and at.accept("ARRAY", "["):
            return MakeArray(self._list(self.expression, "]"), position=position)
        if kind == "MAP" and at.accept("MAP", "("):
            keys: list[Expression] = []
            values: list[Expression] = []
            while at.kind != ")":
                if keys:
                    at.expect(",", ")")
                keys.append(self.expression())
                at.expect(":=")
                values.append(self.expression())
            at.expect(")")
            return MakeMap(tuple(keys), tuple(values), position=position)
        if kind == "STRUCT" and at.accept("STRUCT", "("):
            names: list[str] = []
            values = []
            while at.kind != ")":
                if names:
                    at.expect(",", ")")
                names.append(at.identifier())
                at.expect(":=")
                values.append(self.expression())
            at.expect(")")
            return MakeStruct(tuple(names), tuple(values), position=position)
        return None

    def _named(self, position: Position) -> Expression:
        """A column, a function call or DECIMAL '1.0': all of them start with a name."""
        at = self._at
        if at.kind == "DECIMAL" and at.ahead() == "STRING":
            at.next()
            return DecimalLiteral(Decimal(unquote(at.next().text)), position=position)
        if at.kind == "REPLACE" or at.at_identifier():
            name = at.identifier()
        else:
            at.no_viable()
        if at.kind == "STRING":
            raise KsqlException(f"Unknown type: {name}, location:{position}")
        if at.accept("("):
            return FunctionCall(name, self._arguments(), position=position)
        if at.kind == "." and at.ahead() != "*":
            at.next()
            column = at.identifier()
            if self.sources is not None and name not in self.sources:
                raise KsqlException(f"'{name}' is not a valid stream/table name or alias.")
            return ColumnRef(column, name, position=position)
        if name in self._lambda_arguments:
            return LambdaVariable(name, position=position)
        return ColumnRef(name, position=position)

    def _arguments(self) -> tuple[Expression, ...]:
        at = self._at
        if at.accept("*", ")"):
            return ()
        return self._list(self._argument, ")")

    def _argument(self) -> Expression:
        at = self._at
        # Units that may be names, such as SECOND, are columns here.
        if at.kind in UNITS and not at.at_identifier() and at.ahead() in (",", ")"):
            position = at.position
            return IntervalUnit(UNITS[at.next().kind], position=position)
        if self._at_lambda():
            return self._lambda()
        return self.expression()

    def _at_lambda(self) -> bool:
        at = self._at
        if at.kind == "(":
            closed = at.matching()
            return closed > 0 and at.ahead(closed + 1) == "=>"
        return at.ahead() == "=>" and at.at_identifier()

    def _lambda(self) -> Expression:
        at = self._at
        position = at.position
        names = self._list(at.identifier, ")") if at.accept("(") else (at.identifier(),)
        at.expect("=>")
        if len(set(names)) < len(names):
            raise KsqlException(f"Lambda arguments have duplicates: [{', '.join(names)}]")
        before = set(self._lambda_arguments)
        self._lambda_arguments.update(names)
        body = self.expression()
        self._lambda_arguments = before
        return Lambda(names, body, position=position)

    def _list(self, item: Callable[[], T], end: str) -> tuple[T, ...]:
        """Items between commas, to the closing bracket; there may be none."""
        at = self._at
        items: list[T] = []
        if at.accept(end):
            return ()
        items.append(item())
        while at.kind != end:
            at.expect(",") if at.kind == "," else self._end_of_list(end)
            items.append(item())
        at.next()
        return tuple(items)

    def _end_of_list(self, end: str) -> None:
        self._at.expect(",", end)

    def _case(self, position: Position) -> Expression:
        at = self._at
        at.next()
        operand = None if at.kind == "WHEN" else self.value_expression()
        whens = []
        while at.kind == "WHEN":
            where = at.position
            at.next()
            condition = self.expression()
            at.expect("THEN")
            whens.append(When(condition, self.expression(), position=where))
        if not whens:
            at.expect("WHEN")
        default = self.expression() if at.accept("ELSE") else None
        at.expect("END")
        if operand is not None:
            return SimpleCase(operand, tuple(whens), default, position=position)
        return SearchedCase(tuple(whens), default, position=position)
