"""Compiled expressions: projections, predicates and single values over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from moldau.sql.errors import KsqlException, KsqlStatementException, QueryFailed
from moldau.sql.expressions.codegen import Code, CodeGenerator
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.ports import Functions
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import Expression
from moldau.sql.syntax.formatting import text
from moldau.sql.types import BOOLEAN, SqlType

Row = tuple[Any, ...]
#: Receives what could not be computed: the message, the error, the row.
OnError = Callable[[str, Exception, Row], None]


class Select(NamedTuple):
    """A column of a projection."""

    alias: str
    expression: Expression


class CompiledValue(NamedTuple):
    """An expression's type, and the function that computes it from a row; NULL on errors."""

    type: SqlType
    evaluate: Callable[[Row], Any]


class Compiler:
    """Compiles expressions over rows of one schema."""

    def __init__(self, schema: LogicalSchema, functions: Functions, on_error: OnError) -> None:
        self._schema = schema
        self._types = ExpressionTypes(schema, functions)
        self._on_error = on_error

    def _code(self, generator: CodeGenerator, what: str, node: Expression) -> Code:
        try:
            code = generator.code(node, {})
            kind = self._types.of(node)
            if kind is None:
                raise KsqlException("NULL expression not supported")
        except KsqlException as error:
            detail = error.raw_unlogged if isinstance(error, KsqlStatementException) else str(error)
            shown = text(node)
            raise KsqlStatementException(
                f"Invalid {what}: {error}.",
                shown,
                f"Invalid {what}: {detail}. expression: {shown}, schema:{self._schema}",
            ) from error
        return Code(code.source, kind, code.raises, code.nullable)

    def type_of(self, node: Expression, what: str = "Select") -> SqlType:
        """The type of an expression that compiles."""
        found = self._code(CodeGenerator(self._types), what, node).type
        if found is None:
            raise KsqlException("NULL expression not supported")
        return found

    def projection(
        self, selects: Sequence[Select], what: str = "Select"
    ) -> tuple[list[tuple[str, SqlType]], Callable[[Row], Row]]:
        """The columns of a new row, and the function that makes it."""
        generator = CodeGenerator(self._types)
        columns: list[tuple[str, SqlType]] = []
        lines: list[str] = []
        parts: list[str] = []
        for index, select in enumerate(selects):
            code = self._code(generator, what, select.expression)
            if code.type is not None:
                columns.append((select.alias, code.type))
            if not code.raises:
                parts.append(code.source)
                continue
            parts.append(f"c{index}")
            lines += [
                "    try:",
                f"        c{index} = {code.source}",
                "    except Exception as error:",
                f"        c{index} = failed({index}, error, r)",
            ]
        shown = ", ".join(parts) + ("," if len(parts) == 1 else "")
        lines = ["def compute(r):", *lines, f"    return ({shown})"]
        on_error = self._on_error

        def failed(index: int, error: Exception, row: Row) -> None:
            select = selects[index]
            on_error(
                f"Error computing expression {text(select.expression)} for column "
                f"{select.alias} with index {index}",
                error,
                row,
            )

        compute: Callable[[Row], Row] = _function(lines, {**generator.names, "failed": failed})
        return columns, compute

    def predicate(self, node: Expression) -> Callable[[Row], bool]:
        """Whether a condition holds; an error counts as false."""
        generator = CodeGenerator(self._types)
        code = self._code(generator, "Predicate", node)
        if code.type is not BOOLEAN:
            raise KsqlException(f"Filter expression must resolve to boolean: {text(node)}")
        on_error, shown = self._on_error, text(node)

        def failed(error: Exception, row: Row) -> bool:
            on_error(f"Error evaluating predicate {shown}", error, row)
            return False

        if code.raises:
            lines = _guarded_lines(code.source)
        else:
            lines = ["def compute(r):", f"    return {code.source}"]
        compute: Callable[[Row], bool]
        compute = _function(lines, {**generator.names, "failed": failed})
        if code.nullable:
            return lambda row: compute(row) is True
        return compute

    def value(self, node: Expression, what: str, message: str) -> CompiledValue:
        """One value, NULL where it cannot be computed."""
        generator = CodeGenerator(self._types)
        code = self._code(generator, what, node)
        on_error = self._on_error

        def failed(error: Exception, row: Row) -> None:
            on_error(message, error, row)

        lines = _guarded_lines(code.source)
        evaluate = _function(lines, {**generator.names, "failed": failed})
        if code.type is None:
            raise KsqlException("NULL expression not supported")
        return CompiledValue(code.type, evaluate)

    def raising(self, node: Expression, what: str) -> CompiledValue:
        """One value; errors are raised."""
        generator = CodeGenerator(self._types)
        code = self._code(generator, what, node)
        lines = ["def compute(r):", f"    return {code.source}"]
        if code.type is None:
            raise KsqlException("NULL expression not supported")
        return CompiledValue(code.type, _function(lines, generator.names))


def _guarded_lines(source: str) -> list[str]:
    return [
        "def compute(r):",
        "    try:",
        f"        return {source}",
        "    except Exception as error:",
        "        return failed(error, r)",
    ]


def _function(lines: list[str], names: dict[str, Any]) -> Any:
    scope = dict(names)
    try:
        exec(compile("\n".join(lines), "<sql>", "exec"), scope)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise KsqlException(
            "Error processing statement: Statement is too large to compile. "
            "This may be caused by having too many nested expressions in the statement."
        ) from error
    return scope["compute"]


def ignore_errors(message: str, error: Exception, row: Row) -> None:
    """For callers that do not log what cannot be computed."""
    if isinstance(error, QueryFailed):
        raise error
