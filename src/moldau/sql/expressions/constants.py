"""Expressions without columns: values of INSERT, keys of pull queries."""

from __future__ import annotations

from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.expressions.compiled import Compiler, ignore_errors
from moldau.sql.ports import Functions
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import Expression, NullLiteral, columns
from moldau.sql.syntax.formatting import text
from moldau.sql.types import DATE, STRING, TIME, TIMESTAMP, SqlType
from moldau.sql.values import coercion, texts
from moldau.sql.values.arithmetic import base_name

_FORMATS: dict[SqlType, str] = {
    TIMESTAMP: ". Timestamp format must be yyyy-mm-ddThh:mm:ss[.S]",
    TIME: ". Time format must be hh:mm:ss[.S]",
    DATE: ". Date format must be yyyy-mm-dd",
}


def constant(
    expression: Expression, wanted: SqlType, name: str, functions: Functions, what: str
) -> Any:
    """The value of an expression without columns, as a value of a type."""
    if isinstance(expression, NullLiteral):
        return None
    if columns(expression):
        raise KsqlException(f"Unsupported column reference in {what}: {text(expression)}")
    compiled = Compiler(LogicalSchema(), functions, ignore_errors).raising(expression, what)
    try:
        value = compiled.evaluate(())
    except KsqlException:
        raise
    except Exception as error:
        raise KsqlException(f"Could not evaluate {text(expression)}: {error}") from error
    try:
        return coercion.coercer(compiled.type, wanted)(value)
    except KsqlException as error:
        hint = _FORMATS.get(wanted, "") if compiled.type is STRING else ""
        shown = texts.text_of(compiled.type)(value)
        raise KsqlException(
            f"Expected type {wanted} for field `{name}` but got "
            f"{base_name(compiled.type)}({shown}){hint}"
        ) from error
