"""Python source for expressions. A query's expressions become one function each, compiled once.

What raises an error stands for NULL, as in ksqlDB. So operators do not check for NULL: Python
raises a TypeError there, and the function around the expression returns NULL. Where ksqlDB limits
an error to a part of the expression (the argument of a function, a cast, an element of an array),
that part becomes a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.expressions.coercion import coerced
from moldau.sql.expressions.types_of import ExpressionTypes, Variables
from moldau.sql.syntax.expressions import (
    Arithmetic,
    Between,
    Cast,
    ColumnRef,
    Comparison,
    Dereference,
    Expression,
    FunctionCall,
    InList,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Literal,
    Logical,
    MakeArray,
    MakeMap,
    MakeStruct,
    Not,
    NullLiteral,
    SearchedCase,
    Signed,
    StringLiteral,
    Subscript,
)
from moldau.sql.syntax.formatting import text
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    DecimalType,
    SqlType,
    StructType,
)
from moldau.sql.values import arithmetic, casts, comparisons, like

_LIMITS = {INTEGER: (-(2**31), 2**31 - 1), BIGINT: (-(2**63), 2**63 - 1)}
_PYTHON_OPERATORS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
#: Types whose values Python compares as ksqlDB does.
_COMPARABLE = frozenset({INTEGER, BIGINT, DOUBLE})


@dataclass(frozen=True, slots=True)
class Code:
    """Python source of an expression, and what is known about its value."""

    source: str
    type: SqlType | None
    raises: bool = True
    nullable: bool = True


def array_item(array: list[Any] | None, index: int) -> Any:
    """ARRAY[index]: the first item is 1, the last is -1."""
    if array is None:
        return None
    place = index - 1 if index >= 0 else len(array) + index
    return array[place] if 0 <= place < len(array) else None


def truth(value: bool | None) -> bool:
    """A condition that must not be NULL."""
    if value is None:
        raise TypeError("a condition is NULL")
    return value


class CodeGenerator:
    """Writes Python source for expressions over a row called `r`.

    `names` holds the objects that the source refers to.
    """

    def __init__(self, types: ExpressionTypes) -> None:
        self.types = types
        self.names: dict[str, Any] = {}
        self._temporaries = 0
        self._variables: dict[str, str] = {}

    def constant(self, value: object) -> str:
        """A name for an object."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def guarded(self, code: Code) -> Code:
        """The same, but NULL where it raises an error."""
        if not code.raises:
            return code
        guard = self.constant(_guard)
        return Code(f"{guard}(lambda: {code.source})", code.type, raises=False)

    def code(self, node: Expression, variables: Variables) -> Code:
        match node:
            case ColumnRef(name):
                index = self.types.schema.value_index.get(name)
                if index is None:
                    raise KsqlException(f"Field not found: `{name}`")
                return Code(f"r[{index}]", self.types.of(node), raises=False)
            case Literal():
                return self._literal(node)
            case Arithmetic():
                return self._arithmetic(node, variables)
            case Signed():
                return self._signed(node, variables)
            case Comparison():
                return self._comparison(node, variables)
            case Logical():
                return self._logical(node, variables)
            case Not(value):
                inner = self._condition(value, variables)
                return Code(f"(not {inner.source})", BOOLEAN, inner.raises, nullable=False)
            case IsNull(value, negated):
                inner = self.code(value, variables)
                check = "is not" if negated else "is"
                return Code(f"({inner.source} {check} None)", BOOLEAN, inner.raises, False)
            case Between(value, low, high):
                both = Logical("AND", Comparison(">=", value, low), Comparison("<=", value, high))
                return self.code(both, variables)
            case FunctionCall():
                return self._function(node, variables)
            case Cast():
                return self._cast(node, variables)
            case LambdaVariable(name):
                return Code(self._variables[name], variables.get(name), raises=False)
            case SearchedCase():
                return self._case(node, variables)
        return self._structured(node, variables)

    # Constants.

    def _literal(self, node: Literal) -> Code:
        kind = self.types.of(node)
        value = node.value  # type: ignore[attr-defined]
        if isinstance(node, NullLiteral):
            return Code("None", None, raises=False)
        if isinstance(value, bool | int | str):
            source = repr(value) if not isinstance(value, int) or value >= 0 else f"({value})"
            return Code(source, kind, raises=False, nullable=False)
        return Code(self._value(value), kind, raises=False, nullable=False)

    def _value(self, value: object) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    # Operators.

    def _arithmetic(self, node: Arithmetic, variables: Variables) -> Code:
        left, right = self.code(node.left, variables), self.code(node.right, variables)
        result = self.types.of(node, variables)
        operator = node.operator
        if result is None:
            raise KsqlException(f"Unsupported arithmetic: {text(node)}")
        if operator in "+-*" and result in _LIMITS:
            low, high = _LIMITS[result]
            name = self._temporary()
            wrap = self.constant(casts.wrap_int if result is INTEGER else casts.wrap_long)
            total = f"({name} := {left.source} {operator} {right.source})"
            source = f"({name} if {low} <= {total} <= {high} else {wrap}({name}))"
            return Code(source, result, nullable=False)
        plain = {left.type, right.type} <= _COMPARABLE or result is STRING
        if operator in "+-*" and plain:
            return Code(f"({left.source} {operator} {right.source})", result, nullable=False)
        evaluate = self.constant(arithmetic.binary(operator, left.type, right.type).evaluate)
        return Code(f"{evaluate}({left.source}, {right.source})", result, nullable=False)

    def _signed(self, node: Signed, variables: Variables) -> Code:
        value = self.code(node.value, variables)
        if value.type is None or not (
            isinstance(value.type, DecimalType) or value.type in _COMPARABLE
        ):
            raise KsqlException(f"Sign on unsupported type: {value.type}")
        if node.sign == "+":
            return value
        negate = self.constant(arithmetic.negate(value.type))
        return Code(f"{negate}({value.source})", value.type, nullable=False)

    def _comparison(self, node: Comparison, variables: Variables) -> Code:
        self.types.of(node, variables)
        left, right = self.code(node.left, variables), self.code(node.right, variables)
        raises = left.raises or right.raises
        operator = _PYTHON_OPERATORS.get(node.operator)
        same = left.type == right.type or {left.type, right.type} <= _COMPARABLE
        if operator is None or not same or left.type is None:
            compare = comparisons.compare(left.type, node.operator, right.type)
            source = f"{self.constant(compare)}({left.source}, {right.source})"
            parses = left.type is STRING or right.type is STRING
            return Code(source, BOOLEAN, raises or parses, nullable=False)
        checks = []
        one, other = left.source, right.source
        if left.nullable:
            one = self._temporary()
            checks.append(f"({one} := {left.source}) is not None")
        if right.nullable:
            other = self._temporary()
            checks.append(f"({other} := {right.source}) is not None")
        if operator == "!=" and DOUBLE in (left.type, right.type):
            # NaN is not unequal to anything, either.
            one, other = self._named(one, checks), self._named(other, checks)
            checks.append(f"({one} < {other} or {one} > {other})")
        else:
            checks.append(f"{one} {operator} {other}")
        return Code(f"({' and '.join(checks)})", BOOLEAN, raises, nullable=False)

    def _named(self, source: str, checks: list[str]) -> str:
        if source.isidentifier():
            return source
        name = self._temporary()
        checks.append(f"({name} := {source}) is not None")
        return name

    def _condition(self, node: Expression, variables: Variables) -> Code:
        """A boolean that raises an error where it is NULL."""
        code = self.code(node, variables)
        if not code.nullable:
            return code
        return Code(f"{self.constant(truth)}({code.source})", BOOLEAN, nullable=False)

    def _logical(self, node: Logical, variables: Variables) -> Code:
        parts: list[Expression] = []
        pending: list[Expression] = [node]
        while pending:
            each = pending.pop()
            if isinstance(each, Logical) and each.operator == node.operator:
                pending += [each.right, each.left]
            else:
                parts.append(each)
        codes = [self._condition(each, variables) for each in parts]
        word = " and " if node.operator == "AND" else " or "
        source = f"({word.join(each.source for each in codes)})"
        return Code(source, BOOLEAN, any(each.raises for each in codes), nullable=False)

    def _case(self, node: SearchedCase, variables: Variables) -> Code:
        kind = self.types.of(node, variables)
        parts = []
        for when in node.whens:
            condition = self._condition(when.condition, variables)
            result = self.code(when.result, variables)
            parts.append(f"{result.source} if {condition.source} else")
        default = Code("None", None)
        if node.default is not None:
            default = self.code(node.default, variables)
        return Code(f"({' '.join([*parts, default.source])})", kind)

    def _cast(self, node: Cast, variables: Variables) -> Code:
        value = self.code(node.value, variables)
        if value.type is None:
            return Code("None", node.type, raises=False)
        if value.type == node.type:
            return self.guarded(value)
        convert = self.constant(casts.cast(value.type, node.type))
        return self.guarded(Code(f"{convert}({value.source})", node.type))

    # Functions.

    def _function(self, node: FunctionCall, variables: Variables) -> Code:
        resolved = self.types.scalar(node, variables)
        call = resolved.call
        arguments = []
        for index, argument in enumerate(node.arguments):
            if isinstance(argument, Lambda):
                arguments.append(self._lambda(argument, resolved.lambdas[index]))
                continue
            if isinstance(argument, IntervalUnit):
                arguments.append(repr(argument.name))
                continue
            code = self.code(argument, variables)
            wanted = call.parameters[index] if index < len(call.parameters) else None
            if wanted is not None and code.type is not None and wanted != code.type:
                convert = self.constant(casts.cast(code.type, wanted))
                code = self.guarded(Code(f"{convert}({code.source})", wanted))
            elif isinstance(argument, FunctionCall | Dereference):
                code = self.guarded(code)
            arguments.append(code.source)
        evaluate = self.constant(call.evaluate)
        return Code(f"{evaluate}({', '.join(arguments)})", call.result)

    def _lambda(self, node: Lambda, variables: Variables) -> str:
        before = dict(self._variables)
        names = []
        for name in node.arguments:
            self._temporaries += 1
            self._variables[name] = f"v{self._temporaries}"
            names.append(self._variables[name])
        body = self.code(node.body, variables)
        self._variables = before
        return f"(lambda {', '.join(names)}: {body.source})"

    # Predicates and structures.

    def _structured(self, node: Expression, variables: Variables) -> Code:
        match node:
            case InList():
                return self._in(node, variables)
            case Like():
                return self._like(node, variables)
            case Dereference(base, field):
                return self._dereference(self.code(base, variables), field, node, variables)
            case Subscript(base, index):
                return self._subscript(node, base, index, variables)
            case MakeArray(items):
                items_of = self._coerced(items, variables)
                parts = [self.guarded(self.code(each, variables)).source for each in items_of]
                kind = self.types.of(node, variables)
                return Code(f"[{', '.join(parts)}]", kind, raises=False, nullable=False)
            case MakeMap(keys, values):
                return self._map(node, keys, values, variables)
            case MakeStruct(_, values):
                parts = [self.guarded(self.code(each, variables)).source for each in values]
                shown = ", ".join(parts) + ("," if len(parts) == 1 else "")
                kind = self.types.of(node, variables)
                return Code(f"({shown})", kind, raises=False, nullable=False)
        raise KsqlException(f"not yet implemented: {text(node)}")

    def _coerced(self, items: Sequence[Expression], variables: Variables) -> list[Expression]:
        return coerced(lambda each: self.types.of(each, variables), items)[1]

    def _in(self, node: InList, variables: Variables) -> Code:
        items = [each for each in node.items if not isinstance(each, NullLiteral)]
        value, *others = self._coerced([node.value, *items], variables)
        wanted = self.code(value, variables)
        codes = [self.code(each, variables) for each in others]
        raises = any(each.raises for each in [wanted, *codes])
        if not codes:
            return Code("False", BOOLEAN, raises=False, nullable=False)
        name = self._temporary()
        shown = ", ".join(each.source for each in codes) + ","
        source = f"(({name} := {wanted.source}) is not None and {name} in ({shown}))"
        return Code(source, BOOLEAN, raises, nullable=False)

    def _like(self, node: Like, variables: Variables) -> Code:
        value = self.code(node.value, variables)
        if isinstance(node.pattern, StringLiteral):
            match = self.constant(like.matcher(node.pattern.value, node.escape))
            return Code(f"{match}({value.source})", BOOLEAN, nullable=False)
        pattern = self.code(node.pattern, variables)
        matches = self.constant(like.like)
        source = f"{matches}({value.source}, {pattern.source}, {node.escape!r})"
        return Code(source, BOOLEAN, nullable=False)

    def _dereference(self, base: Code, field: str, node: Expression, variables: Variables) -> Code:
        kind = self.types.of(node, variables)
        if not isinstance(base.type, StructType):
            raise KsqlException(f"Expected STRUCT type, got: {base.type}")
        place = [name for name, _ in base.type.fields].index(field)
        name = self._temporary()
        source = f"(None if ({name} := {base.source}) is None else {name}[{place}])"
        return Code(source, kind, base.raises)

    def _subscript(
        self, node: Expression, base: Expression, index: Expression, variables: Variables
    ) -> Code:
        kind = self.types.of(node, variables)
        container, place = self.code(base, variables), self.code(index, variables)
        if isinstance(container.type, ArrayType):
            get = self.constant(array_item)
            return Code(f"{get}({container.source}, {place.source})", kind)
        name = self._temporary()
        source = f"(None if ({name} := {container.source}) is None else {name}.get({place.source}))"
        return Code(source, kind, container.raises or place.raises)

    def _map(
        self,
        node: Expression,
        keys: tuple[Expression, ...],
        values: tuple[Expression, ...],
        variables: Variables,
    ) -> Code:
        key_items = self._coerced(keys, variables)
        value_items = self._coerced(values, variables)
        pairs = [
            f"{self.guarded(self.code(key, variables)).source}: "
            f"{self.guarded(self.code(value, variables)).source}"
            for key, value in zip(key_items, value_items, strict=True)
        ]
        kind = self.types.of(node, variables)
        return Code(f"{{{', '.join(pairs)}}}", kind, raises=False, nullable=False)


def _guard(thunk: Callable[[], Any]) -> Any:
    try:
        return thunk()
    except Exception:  # whatever a function raises stands for NULL
        return None
