"""The type of an expression over a row, or ksqlDB's error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.config.suggestions import did_you_mean
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.expressions.coercion import common_type
from moldau.sql.ports import (
    AggregateCall,
    Argument,
    Functions,
    IntervalUnitArgument,
    LambdaArgument,
    ScalarCall,
)
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import (
    COMPARISONS,
    Arithmetic,
    Between,
    BooleanLiteral,
    BytesLiteral,
    Cast,
    ColumnRef,
    Comparison,
    DecimalLiteral,
    Dereference,
    DoubleLiteral,
    Expression,
    FunctionCall,
    InList,
    IntegerLiteral,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Literal,
    Logical,
    LongLiteral,
    MakeArray,
    MakeMap,
    MakeStruct,
    Not,
    NullLiteral,
    SearchedCase,
    Signed,
    SimpleCase,
    StringLiteral,
    Subscript,
    TypedLiteral,
)
from moldau.sql.syntax.formatting import text
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values import arithmetic, comparisons, decimals

#: The types of the variables of the lambdas around an expression.
Variables = Mapping[str, SqlType]
_NONE: Variables = {}
_ISSUE = "(see https://github.com/confluentinc/ksql/issues/4239)"


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A scalar function that was chosen, and the variables of each of its lambdas."""

    call: ScalarCall
    lambdas: Mapping[int, Variables]


class ExpressionTypes:
    """Types of expressions over the value columns of a schema. None is the type of NULL."""

    def __init__(self, schema: LogicalSchema, functions: Functions) -> None:
        self.schema = schema
        self.functions = functions

    def of(self, node: Expression, variables: Variables = _NONE) -> SqlType | None:
        match node:
            case ColumnRef(name):
                column = self.schema.find_value(name)
                if column is None:
                    raise KsqlException(f"Unknown column {text(node)}.")
                return column.type
            case Literal():
                return literal_type(node)
            case FunctionCall():
                return self._function(node, variables)
            case Arithmetic(operator, left, right):
                return self._arithmetic(node, operator, left, right, variables)
            case Comparison():
                return self._comparison(node, variables)
            case Logical(_, left, right):
                self.of(left, variables)
                return self.of(right, variables)
            case Not() | Between() | Like() | IsNull() | InList():
                return BOOLEAN
            case Cast(_, kind):
                return kind
            case Signed(_, value) | Lambda(_, value):
                return self.of(value, variables)
            case LambdaVariable(name):
                return variables.get(name)
            case IntervalUnit():
                return None
            case SearchedCase():
                return self._case(node, variables)
        return self._structured(node, variables)

    def _arithmetic(
        self,
        node: Expression,
        operator: str,
        left: Expression,
        right: Expression,
        variables: Variables,
    ) -> SqlType:
        types = self.of(left, variables), self.of(right, variables)
        try:
            return arithmetic.result_type(operator, *types)
        except KsqlException as error:
            shown = text(node)
            raise KsqlStatementException(
                "Error processing expression.",
                shown,
                f"Error processing expression: {shown}. {error}",
            ) from error

    def _comparison(self, node: Comparison, variables: Variables) -> SqlType:
        left, right = self.of(node.left, variables), self.of(node.right, variables)
        if not comparisons.is_valid(left, node.operator, right):
            kind = COMPARISONS[node.operator]
            raise KsqlStatementException(
                f"Cannot compare {left} to {right} with {kind}.",
                text(node),
                f"Cannot compare {text(node.left)} ({left}) to {text(node.right)} ({right}) "
                f"with {kind}.",
            )
        return BOOLEAN

    def _case(self, node: SearchedCase, variables: Variables) -> SqlType:
        result: SqlType | None = None
        for when in node.whens:
            operand = self.of(when.condition, variables)
            if operand is not BOOLEAN:
                raise KsqlException(
                    "WHEN operand type should be boolean.\n"
                    f"Type for '{text(when.condition)}' is {operand}"
                )
            found = self.of(when.result, variables)
            if found is None:
                continue
            if result is not None and found != result:
                raise KsqlException(
                    "Invalid Case expression. Type for all 'THEN' clauses should be the same.\n"
                    f"THEN expression '{text(when)}' has type: {found}.\n"
                    f"Previous THEN expression(s) type: {result}."
                )
            result = found
        default = None if node.default is None else self.of(node.default, variables)
        if result is not None and default is not None and result != default:
            raise KsqlException(
                "Invalid Case expression. Type for the default clause should be the same as for "
                f"'THEN' clauses.\nTHEN type: {result}.\nDEFAULT type: {default}."
            )
        found = result if result is not None else default
        if found is None:
            raise KsqlException("Invalid Case expression. All case branches have NULL type")
        return found

    def _structured(self, node: Expression, variables: Variables) -> SqlType:
        match node:
            case Dereference(base, field):
                found = self.of(base, variables)
                if not isinstance(found, StructType):
                    raise KsqlException(f"Expected STRUCT type, got: {found}")
                for name, kind in found.fields:
                    if name == field:
                        return kind
                raise KsqlException(f"Could not find field '{field}' in '{text(base)}'.")
            case Subscript(base, index):
                found = self.of(base, variables)
                if isinstance(found, MapType):
                    return found.value
                if isinstance(found, ArrayType):
                    return found.item
                hint = ""
                if isinstance(found, StructType):
                    use = text(Dereference(base, text(index)))
                    hint = f" Use the dereference operator for STRUCTS: {use}"
                raise KsqlException(
                    f"Subscript expression ({text(node)}) do not apply to {found}.{hint}"
                )
            case MakeArray(items):
                if not items:
                    raise KsqlException(
                        "Array constructor cannot be empty. Please supply at least one element "
                        f"{_ISSUE}."
                    )
                return ArrayType(self._common("an array", "elements", items, variables))
            case MakeMap(keys, values):
                if not keys:
                    raise KsqlException(
                        "Map constructor cannot be empty. Please supply at least one key value "
                        f"pair {_ISSUE}."
                    )
                key = self._common("a map", "keys", keys, variables)
                return MapType(key, self._common("a map", "values", values, variables))
            case MakeStruct(names, values):
                kinds = [self.of(each, variables) or STRING for each in values]
                return _struct(list(zip(names, kinds, strict=True)))
            case SimpleCase():
                raise KsqlException("Simple CASE expressions are not supported here.")
        raise KsqlException(f"Unsupported expression: {text(node)}")

    def _common(
        self, what: str, parts: str, items: Sequence[Expression], variables: Variables
    ) -> SqlType:
        found = common_type(lambda each: self.of(each, variables), items)
        if found is None:
            part = parts[:-1] if parts != "elements" else "value"
            raise KsqlException(
                f"Cannot construct {what} with all NULL {parts} {_ISSUE}. As a workaround, you "
                f"may cast a NULL {part} to the desired type."
            )
        return found

    # Functions.

    def _function(self, node: FunctionCall, variables: Variables) -> SqlType:
        kind = self.functions.kind(node.name)
        if kind == "aggregate":
            return self.aggregate(node, variables).result
        if kind == "table":
            return self.table(node, variables).result
        return self.scalar(node, variables).call.result

    def scalar(self, node: FunctionCall, variables: Variables = _NONE) -> ResolvedCall:
        """The signature of a scalar function that fits."""
        if self.functions.kind(node.name) is None:
            raise unknown_function(node.name, self.functions)
        lambdas: dict[int, Variables] = {}

        def resolve(index: int, inputs: tuple[SqlType, ...]) -> SqlType:
            found = node.arguments[index]
            if not isinstance(found, Lambda):
                raise KsqlException(f"Error while processing lambda function {text(found)}")
            if len(found.arguments) != len(inputs):
                shown = ", ".join(found.arguments)
                raise KsqlException(
                    f"Was expecting {len(inputs)} arguments but found {len(found.arguments)}, "
                    f"[{shown}]. Check your lambda statement."
                )
            inner = {**variables, **dict(zip(found.arguments, inputs, strict=True))}
            lambdas[index] = inner
            result = self.of(found.body, inner)
            return STRING if result is None else result

        arguments = [self._argument(each, variables) for each in node.arguments]
        return ResolvedCall(self.functions.scalar(node.name, arguments, resolve), lambdas)

    def _argument(self, node: Expression, variables: Variables) -> Argument:
        if isinstance(node, Lambda):
            return LambdaArgument(len(node.arguments))
        if isinstance(node, IntervalUnit):
            return IntervalUnitArgument(node.name)
        return self.of(node, variables)

    def table(self, node: FunctionCall, variables: Variables = _NONE) -> ScalarCall:
        """The signature of a table function that fits."""
        arguments: list[Argument] = [self._argument(each, variables) for each in node.arguments]
        return self.functions.table(node.name, arguments or [BIGINT])

    def aggregate(self, node: FunctionCall, variables: Variables = _NONE) -> AggregateCall:
        """The aggregate function with its initial arguments, which must be literals."""
        arguments: list[Argument] = [self._argument(each, variables) for each in node.arguments]
        arguments = arguments or [BIGINT]
        count = self.functions.init_argument_count(node.name, arguments)
        literals = []
        for index in range(len(node.arguments) - count, len(node.arguments)):
            literal = node.arguments[index]
            if not isinstance(literal, Literal):
                raise KsqlException(
                    f"Parameter {index + 1} passed to function {node.name} must be a literal "
                    f"constant, but was expression: '{text(literal)}'"
                )
            literals.append(literal.value)  # type: ignore[attr-defined]
        return self.functions.aggregate(node.name, arguments, literals)


def unknown_function(name: str, functions: Functions) -> KsqlException:
    hint = did_you_mean(name.upper(), functions.names())
    return KsqlException(f"Can't find any functions with the name '{name}'{hint and '.' + hint}")


def literal_type(node: Literal) -> SqlType | None:
    """The type of a constant."""
    match node:
        case NullLiteral():
            return None
        case BooleanLiteral():
            return BOOLEAN
        case IntegerLiteral():
            return INTEGER
        case LongLiteral():
            return BIGINT
        case DoubleLiteral():
            return DOUBLE
        case StringLiteral():
            return STRING
        case BytesLiteral():
            return BYTES
        case DecimalLiteral(value):
            return decimals.type_of(value)
        case TypedLiteral(_, kind):
            return kind
    raise KsqlException(f"Unknown literal: {node!r}")


def _struct(fields: list[tuple[str, SqlType]]) -> StructType:
    seen: dict[str, SqlType] = {}
    for name, kind in fields:
        if name in seen:
            raise KsqlException(
                f"Duplicate field names found in STRUCT: '`{name}` {seen[name]}' and "
                f"'`{name}` {kind}'"
            )
        seen[name] = kind
    return StructType(tuple(fields))
