"""Literals and types."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from moldau.sql.errors import KsqlException, ParsingException
from moldau.sql.syntax.cursor import Cursor, unquote
from moldau.sql.syntax.expressions import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    IntegerLiteral,
    Literal,
    LongLiteral,
    NullLiteral,
    Position,
    StringLiteral,
)
from moldau.sql.types import (
    STRING,
    ArrayType,
    BaseType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)

NUMBERS = frozenset({"INTEGER_VALUE", "DECIMAL_VALUE", "FLOATING_POINT_VALUE"})
_BASE_TYPES: dict[str, SqlType] = {
    **{each.value: each for each in BaseType},
    "INT": BaseType.INTEGER,
    "VARCHAR": STRING,
}
#: Finds the type that CREATE TYPE gave a name; None if there is none.
TypeResolver = Callable[[str], SqlType | None]


class LiteralParser:
    """Reads constants at a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self._at = cursor

    def literal(self) -> Literal:
        at = self._at
        position = at.position
        match at.kind:
            case "NULL":
                at.next()
                return NullLiteral(position=position)
            case "TRUE" | "FALSE":
                return BooleanLiteral(at.next().kind == "TRUE", position=position)
            case "STRING":
                return StringLiteral(unquote(at.next().text), position=position)
        return self.number()

    def number(self) -> Literal:
        at = self._at
        position = at.position
        sign = "-" if at.accept("-") else ""
        if at.kind not in NUMBERS:
            at.no_viable()
        token = at.next()
        text = sign + token.text
        if token.kind == "DECIMAL_VALUE":
            return DecimalLiteral(Decimal(text), position=position)
        if token.kind == "FLOATING_POINT_VALUE":
            value = float(text)
            if math.isinf(value):
                raise _number_error(f"Number overflows DOUBLE: {text}", position)
            return DoubleLiteral(value, position=position)
        whole = int(text)
        if -(2**31) <= whole < 2**31:
            return IntegerLiteral(whole, position=position)
        if not -(2**63) <= whole < 2**63:
            raise _number_error(f"Invalid numeric literal: {text}", position)
        return LongLiteral(whole, position=position)

    def integer(self, command: str) -> int:
        """A number that must be a whole one of 32 bits."""
        found = self.number()
        if not isinstance(found, IntegerLiteral):
            raise KsqlException(f"Value must be integer for command: {command}")
        return found.value


def _number_error(message: str, position: Position) -> ParsingException:
    # ksqlDB counts columns of literals from 2.
    return ParsingException(message, position.line, position.column + 1)


class TypeParser:
    """Reads types at a cursor."""

    def __init__(self, cursor: Cursor, resolve_type: TypeResolver) -> None:
        self._at = cursor
        self._resolve_type = resolve_type
        self._literals = LiteralParser(cursor)

    def type(self) -> SqlType:
        at = self._at
        if at.accept("ARRAY", "<"):
            item = self.type()
            at.expect(">")
            found: SqlType = ArrayType(item)
        elif at.accept("MAP", "<"):
            key = self.type()
            at.expect(",")
            value = self.type()
            at.expect(">")
            found = MapType(key, value)
        elif at.accept("STRUCT", "<"):
            found = self._struct_type()
        elif at.kind in ("DECIMAL", "IDENTIFIER") and at.token.text.upper() in ("DECIMAL", "DEC"):
            at.next()
            at.expect("(")
            precision = self._literals.integer("DECIMAL")
            at.expect(",")
            found = DecimalType(precision, self._literals.integer("DECIMAL"))
            at.expect(")")
        else:
            found = self._base_type()
        while at.accept("ARRAY"):
            found = ArrayType(found)
        return found

    def _struct_type(self) -> SqlType:
        at = self._at
        fields: dict[str, SqlType] = {}
        if at.accept("<>"):
            return StructType(())
        while at.kind != ">":
            if fields:
                at.expect(",", ">")
            name = at.identifier()
            kind = self.type()
            if name in fields:
                raise KsqlException(
                    f"Duplicate field names found in STRUCT: '`{name}` {fields[name]}' and "
                    f"'`{name}` {kind}'"
                )
            fields[name] = kind
        at.expect(">")
        return StructType(tuple(fields.items()))

    def _base_type(self) -> SqlType:
        at = self._at
        name = at.identifier()
        if at.accept("("):
            at.expect("'STRING'", "INTEGER_VALUE")
            while at.kind != ")":
                at.expect(",", ")")
                at.expect("'STRING'", "INTEGER_VALUE")
            at.expect(")")
        found = _BASE_TYPES.get(name) or self._resolve_type(name)
        if found is None:
            raise KsqlException(f"Cannot resolve unknown type: {name}")
        return found
