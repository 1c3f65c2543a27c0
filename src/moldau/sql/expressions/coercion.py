"""The common type of lists that users write: ARRAY[...], MAP(...), IN (...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

from moldau.sql.errors import KsqlException
from moldau.sql.syntax.expressions import (
    BooleanLiteral,
    Cast,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    IntegerLiteral,
    Literal,
    LongLiteral,
    MakeArray,
    MakeMap,
    MakeStruct,
    NullLiteral,
    StringLiteral,
    TypedLiteral,
)
from moldau.sql.syntax.formatting import text
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    BaseType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
    is_numeric,
)
from moldau.sql.values import coercion, decimals
from moldau.sql.values.arithmetic import base_name

#: The type of an item; None for NULL.
TypeOf = Callable[[Expression], SqlType | None]


def coerced(
    type_of: TypeOf, items: Sequence[Expression]
) -> tuple[SqlType | None, list[Expression]]:
    """The common type and the items as expressions of that type."""
    common = common_type(type_of, items)
    if common is None:
        return None, list(items)
    return common, [_converted(each, type_of(each), common) for each in items]


def common_type(type_of: TypeOf, items: Sequence[Expression]) -> SqlType | None:
    """The type that all items can have; None if all of them are NULL."""
    common: SqlType | None = None
    for item in items:
        common = _widened(type_of, item, type_of(item), common)
    return common


def _widened(
    type_of: TypeOf,
    item: Expression,
    source: SqlType | None,
    target: SqlType | None,
) -> SqlType | None:
    if target is None:
        return source
    if source is None:
        return target
    if isinstance(item, MakeArray | MakeMap | MakeStruct):
        return _structured(type_of, item, source, target)
    if isinstance(item, StringLiteral):
        if is_numeric(target):
            return _number_in_text(item.value, target)
        if target is BOOLEAN:
            try:
                coercion.coercer(STRING, BOOLEAN, lax=True)(item.value)
            except KsqlException:
                raise _invalid(item.value, target) from None
            return target
    lax = isinstance(item, Literal)
    found = coercion.common_type(source, target, lax=lax)
    if found is None:
        found = coercion.common_type(target, source, lax=lax)
    if found is None:
        raise _impossible(item, source, target)
    return found


def _structured(
    type_of: TypeOf,
    item: MakeArray | MakeMap | MakeStruct,
    source: SqlType,
    target: SqlType,
) -> SqlType | None:
    try:
        match item, target:
            case MakeArray(items), ArrayType(inner):
                found = _inside(type_of, inner, items)
                return None if found is None else ArrayType(found)
            case MakeMap(keys, values), MapType(key, value):
                new_key = _inside(type_of, key, keys)
                new_value = _inside(type_of, value, values)
                if new_key is None or new_value is None:
                    return None
                return MapType(new_key, new_value)
            case MakeStruct(names, values), StructType(fields):
                return _struct(type_of, dict(zip(names, values, strict=True)), fields)
    except _InvalidCoercion as error:
        raise _impossible(item, source, target) from error
    raise _impossible(item, source, target)


def _inside(type_of: TypeOf, inner: SqlType, items: Sequence[Expression]) -> SqlType | None:
    common: SqlType | None = inner
    for item in items:
        common = _widened(type_of, item, type_of(item), common)
    return common


def _struct(
    type_of: TypeOf,
    values: dict[str, Expression],
    fields: tuple[tuple[str, SqlType], ...],
) -> SqlType:
    known = dict(fields)
    found: dict[str, SqlType] = {}
    for name in dict.fromkeys([*values, *known]):
        kind = known.get(name)
        if name in values:
            kind = _widened(type_of, values[name], type_of(values[name]), kind)
        found[name] = STRING if kind is None else kind
    return StructType(tuple(found.items()))


def _number_in_text(value: str, target: SqlType) -> SqlType:
    """The type of a number that stands in quotes beside other numbers."""
    try:
        number = Decimal(value.strip())
    except InvalidOperation:
        raise _invalid(value, target) from None
    source: SqlType
    if not any(each in value for each in ".eE") and abs(number) < 2**31:
        source = INTEGER
    elif not any(each in value for each in ".eE") and abs(number) < 2**63:
        source = BIGINT
    else:
        source = decimals.type_of(number)
    if target is DOUBLE:
        return DOUBLE
    if isinstance(source, DecimalType) or isinstance(target, DecimalType):
        return decimals.widen(source, target)
    return target if source is INTEGER else source


def _invalid(value: str, target: SqlType) -> KsqlException:
    return KsqlException(f'invalid input syntax for type {base_name(target)}: "{value}".')


class _InvalidCoercion(KsqlException):
    """Two types have no common one."""


def _impossible(item: Expression, source: SqlType, target: SqlType) -> KsqlException:
    return _InvalidCoercion(
        f"operator does not exist: {target} = {source} ({text(item)})\n"
        "Hint: You might need to add explicit type casts."
    )


def _converted(item: Expression, source: SqlType | None, target: SqlType) -> Expression:
    if source is None or source == target:
        return item
    if isinstance(item, Literal) and not isinstance(item, NullLiteral):
        value = coercion.coercer(source, target, lax=True)(item.value)  # type: ignore[attr-defined]
        return literal_of(value, target)
    return Cast(item, target)


def literal_of(value: object, kind: SqlType) -> Expression:
    """A constant of a type."""
    if isinstance(kind, DecimalType):
        return DecimalLiteral(value)  # type: ignore[arg-type]
    if kind in (DATE, TIME, TIMESTAMP):
        return TypedLiteral(value, kind)  # type: ignore[arg-type]
    match kind:
        case BaseType.BOOLEAN:
            return BooleanLiteral(value)  # type: ignore[arg-type]
        case BaseType.INTEGER:
            return IntegerLiteral(value)  # type: ignore[arg-type]
        case BaseType.BIGINT:
            return LongLiteral(value)  # type: ignore[arg-type]
        case BaseType.DOUBLE:
            return DoubleLiteral(value)  # type: ignore[arg-type]
        case BaseType.STRING:
            return StringLiteral(value)  # type: ignore[arg-type]
    raise KsqlException(f"No literals of type {kind}")
