"""The functions that Confluent's clients add to CEL: checks of texts, decimals, times, variants.

Names with a dot, such as `decimals.add`, are functions of a namespace, which cel-python does not
have: `cel.py` finds them. Arguments of a wrong type are an error, as where types are declared.
"""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import uuid
from collections.abc import Callable
from decimal import Decimal
from email.utils import parseaddr
from typing import Any, Final
from urllib.parse import urlparse

from celpy import celtypes
from celpy.evaluation import CELEvalError, base_functions, bool_eq, bool_ne, operator_in

from moldau.data.variant import Variant
from moldau.data.variant_making import at_path, variant_of_json
from moldau.serde.rules.cel_values import plain
from moldau.serde.rules.machine import decimals
from moldau.serde.rules.machine.cel_format import formatted
from moldau.serde.rules.machine.fields import DECIMAL_MESSAGE, TIMESTAMP_MESSAGE, VARIANT_MESSAGE

__all__ = ["FUNCTIONS", "moment_text"]

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
#: Microseconds of one, by digits after the second.
_PRECISIONS: Final = {0: 1_000_000, 3: 1_000, 6: 1}
_NANOS: Final = 9
_SECOND_MIN, _SECOND_MAX = -62_135_596_800, 253_402_300_799


def _whole(value: Any, what: str) -> int:
    """CEL's int: neither a bool nor a uint, which are ints in Python."""
    is_other = isinstance(value, bool | celtypes.BoolType | celtypes.UintType)
    if is_other or not isinstance(value, int):
        raise CELEvalError(f"{what} must be int, got {_type_name(value)}")
    return int(value)


def _bytes(value: Any, function: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise CELEvalError(f"{function}: expected bytes, got {_type_name(value)}")
    return bytes(value)


def _text(value: Any, function: str) -> str:
    if not isinstance(value, str):
        raise CELEvalError(f"{function}: expected a string, got {_type_name(value)}")
    return str(value)


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    return type(value).__name__.removesuffix("Type").lower()


def _message(value: Any, name: str) -> Any:
    """The message of that name which a value is, or is a map of; None if it is not."""
    for found in (value, getattr(value, "message", None)):
        if getattr(getattr(found, "DESCRIPTOR", None), "full_name", None) == name:
            return found
    return None


# Texts.


def _formatted(text: Any, values: Any) -> Any:
    """`'%s has %d'.format([name, count])`."""
    if not isinstance(text, celtypes.StringType) or not isinstance(values, celtypes.ListType):
        raise CELEvalError("format takes a list of values")
    return celtypes.StringType(formatted(str(text), [plain(each) for each in values]))


def _text_check(check: Callable[[str], bool]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if not isinstance(value, celtypes.StringType):
            raise CELEvalError("invalid argument, expected string")
        return celtypes.BoolType(check(str(value)))

    return run


def _is_hostname(text: str) -> bool:
    name = text.removesuffix(".")
    parts = name.split(".")
    if not name or len(text) > 253 or parts[-1].isdigit():
        return False
    return all(
        0 < len(part) <= 63
        and part.isascii()
        and part.replace("-", "").isalnum()
        and not (part.startswith("-") or part.endswith("-"))
        for part in parts
    )


def _is_email(text: str) -> bool:
    local, at, host = text.rpartition("@")
    return (
        parseaddr(text)[1] == text
        and len(text) <= 254
        and bool(at)
        and "@" not in local
        and 0 < len(local) <= 64
        and _is_hostname(host)
    )


def _address_check(version: int) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if not isinstance(value, celtypes.StringType | celtypes.BytesType):
            raise CELEvalError("invalid argument, expected string or bytes")
        plain = bytes(value) if isinstance(value, celtypes.BytesType) else str(value)
        try:
            return celtypes.BoolType(ipaddress.ip_address(plain).version == version)
        except ValueError:
            return celtypes.BoolType(False)

    return run


def _is_uri(text: str) -> bool:
    found = urlparse(text)
    return bool(found.scheme and found.netloc and found.path)


def _is_uri_reference(text: str) -> bool:
    found = urlparse(text)
    return not (not (found.scheme and found.path) and found.fragment)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


# Decimals.


def _known_decimal(value: Any) -> Decimal | None:
    """The decimal that a value is already: a number or text is none."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise CELEvalError(f"decimal: not a finite number '{value}'")
        return value
    message = _message(value, DECIMAL_MESSAGE)
    if message is None:
        return None
    return decimals.decimal_of_bytes(bytes(message.value), int(message.scale))


def _decimal(*values: Any) -> Decimal:
    """`decimal(anything)` or `decimal(bytes, scale)`."""
    if len(values) == 2:
        scale = _scale(values[1], "decimal(bytes, scale)")
        return decimals.decimal_of_bytes(_bytes(values[0], "decimal"), scale)
    if len(values) != 1:
        raise CELEvalError(f"decimal: expected 1 or 2 args, got {len(values)}")
    (value,) = values
    known = _known_decimal(value)
    if known is not None:
        return known
    match value:
        case bool() | celtypes.BoolType():
            raise CELEvalError("decimal: cannot convert bool to Decimal")
        case int():
            return Decimal(int(value))
        case float():
            return decimals.decimal_of_text(repr(float(value)))
        case str():
            return decimals.decimal_of_text(str(value))
        case bytes():
            raise CELEvalError("decimal: bytes need a scale: use decimal(bytes, scale)")
    raise CELEvalError(f"decimal: cannot convert {_type_name(value)} to Decimal")


def _scale(value: Any, function: str) -> int:
    scale = _whole(value, f"{function}: scale")
    if not _INT_MIN <= scale <= _INT_MAX:
        raise CELEvalError(f"{function}: scale out of int range: {scale}")
    return scale


def _of_one(compute: Callable[[Decimal], Any]) -> Callable[[Any], Any]:
    return lambda value: compute(_decimal(value))


def _of_two(compute: Callable[[Decimal, Decimal], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, other: compute(_decimal(one), _decimal(other))


def _comparison(holds: Callable[[Decimal, Decimal], bool]) -> Callable[[Any, Any], Any]:
    return _of_two(lambda one, other: celtypes.BoolType(holds(one, other)))


def _round(value: Any, scale: Any = 0) -> Decimal:
    number, digits = _decimal(value), _scale(scale, "decimals.round")
    return decimals.rounded("decimals.round", number, digits, decimal.ROUND_HALF_UP)


def _truncate(value: Any, scale: Any = 0) -> Decimal:
    return decimals.truncated(_decimal(value), _scale(scale, "decimals.trunc"))


def _sign(number: Decimal) -> Any:
    return celtypes.IntType((number > 0) - (number < 0))


_DECIMALS: Final[dict[str, Callable[..., Any]]] = {
    "eq": _comparison(lambda one, other: one == other),
    "lt": _comparison(lambda one, other: one < other),
    "le": _comparison(lambda one, other: one <= other),
    "gt": _comparison(lambda one, other: one > other),
    "ge": _comparison(lambda one, other: one >= other),
    "add": _of_two(decimals.added),
    "sub": _of_two(decimals.subtracted),
    "mul": _of_two(decimals.multiplied),
    "div": _of_two(decimals.divided),
    "mod": _of_two(decimals.remainder),
    "greatest": _of_two(max),
    "least": _of_two(min),
    "sqrt": _of_one(decimals.square_root),
    "neg": _of_one(Decimal.copy_negate),
    "abs": _of_one(Decimal.copy_abs),
    "sign": _of_one(_sign),
    "round": _round,
    "trunc": _truncate,
    "floor": _of_one(
        lambda number: decimals.rounded("decimals.floor", number, 0, decimal.ROUND_FLOOR)
    ),
    "ceil": _of_one(
        lambda number: decimals.rounded("decimals.ceil", number, 0, decimal.ROUND_CEILING)
    ),
}


# CEL's own functions and operators, which also take decimals.


def _string(value: Any) -> Any:
    known = _known_decimal(value)
    if known is not None:
        return celtypes.StringType(decimals.plain_text(known))
    match value:
        case celtypes.TimestampType():
            return celtypes.StringType(moment_text(value))
        case bool() | celtypes.BoolType():
            return celtypes.StringType("true" if value else "false")
        case bytes():
            return celtypes.StringType(bytes(value).decode())
        case str() | int() | float() | celtypes.DurationType():
            return celtypes.StringType(str(value))
    raise CELEvalError(f"found no matching overload for 'string' applied to ({_type_name(value)})")


def _double(value: Any) -> Any:
    known = _known_decimal(value)
    if known is not None:
        return celtypes.DoubleType(float(known))
    if isinstance(value, bool | celtypes.BoolType | bytes):
        raise CELEvalError(
            f"found no matching overload for 'double' applied to ({_type_name(value)})"
        )
    return celtypes.DoubleType(value)


def _has_decimal(value: Any) -> bool:
    if _known_decimal(value) is not None:
        return True
    if isinstance(value, list | tuple):
        return any(map(_has_decimal, value))
    return isinstance(value, dict) and any(map(_has_decimal, value.values()))


def _equal(one: Any, other: Any) -> bool:
    """Decimals by their numbers, whatever their scale."""
    first, second = _known_decimal(one), _known_decimal(other)
    if first is not None or second is not None:
        return first is not None and second is not None and first == second
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            key in other and _equal(each, other[key]) for key, each in one.items()
        )
    return bool(bool_eq(one, other))


def _operator_eq(one: Any, other: Any) -> Any:
    if _has_decimal(one) or _has_decimal(other):
        return celtypes.BoolType(_equal(one, other))
    return bool_eq(one, other)


def _operator_ne(one: Any, other: Any) -> Any:
    if _has_decimal(one) or _has_decimal(other):
        return celtypes.BoolType(not _equal(one, other))
    return bool_ne(one, other)


def _operator_in(item: Any, container: Any) -> Any:
    is_container = isinstance(container, dict | list | tuple)
    if is_container and (_has_decimal(item) or _has_decimal(container)):
        return celtypes.BoolType(any(_equal(item, each) for each in container))
    return operator_in(item, container)


# Times.


def _timestamp(*values: Any) -> Any:
    """Beside CEL's own: seconds since 1970, or a number with its precision (0, 3, 6 or 9)."""
    if len(values) == 2:
        number = _whole(values[0], "timestamp: epoch value")
        return _from_epoch(number, _whole(values[1], "timestamp: precision"))
    if len(values) != 1:
        return base_functions["timestamp"](*values)
    (value,) = values
    message = _message(value, TIMESTAMP_MESSAGE)
    if message is not None:
        return _moment(int(message.seconds) * 1_000_000 + int(message.nanos) // 1_000)
    match value:
        case None | bool() | celtypes.BoolType() | celtypes.UintType():
            raise CELEvalError(f"timestamp: cannot convert {_type_name(value)} to Timestamp")
        case celtypes.TimestampType():
            return value
        case datetime.datetime():
            if value.tzinfo is None:
                raise CELEvalError("timestamp: a time without a zone cannot be converted")
            return celtypes.TimestampType(value)
        case int():
            return _from_epoch(int(value), 0)
    return base_functions["timestamp"](value)


def _from_epoch(number: int, precision: int) -> Any:
    if precision == _NANOS:
        return _moment(number // 1_000)
    if precision not in _PRECISIONS:
        raise CELEvalError(
            f"timestamp: unknown precision {precision}; expected 0 (seconds), 3 (millis), "
            "6 (micros) or 9 (nanos)"
        )
    return _moment(number * _PRECISIONS[precision])


def _moment(micros: int) -> Any:
    try:
        return celtypes.TimestampType(_EPOCH + datetime.timedelta(microseconds=micros))
    except OverflowError:
        raise CELEvalError(f"timestamp: epoch value out of range: {micros} us") from None


def moment_text(moment: datetime.datetime) -> str:
    """UTC, with no, 3 or 6 digits of a second."""
    given = moment.astimezone(datetime.UTC)
    timespec = "milliseconds" if given.microsecond % 1000 == 0 else "microseconds"
    text = given.isoformat(timespec=timespec if given.microsecond else "seconds")
    # `given` may be of a class of CEL's, to which `replace(tzinfo=None)` gives its zone back.
    return text.removesuffix("+00:00") + "Z"


# Variants. CEL's null stands for what is not there, a variant of type NULL for JSON's null.


def _variant(*values: Any) -> Variant | None:
    """`variant(anything)` or `variant(value, metadata)`."""
    if len(values) == 2:
        value, metadata = (_bytes(each, "variant") for each in values)
        if not metadata:
            raise CELEvalError("variant(value, metadata): metadata is empty")
        return Variant(value, metadata)
    if len(values) != 1:
        raise CELEvalError(f"variant: expected 1 or 2 args, got {len(values)}")
    return _as_variant(values[0], "variant")


def _as_variant(value: Any, function: str) -> Variant | None:
    if value is None or isinstance(value, Variant):
        return value
    message = _message(value, VARIANT_MESSAGE)
    if message is not None:
        return _unless_empty(bytes(message.value), bytes(message.metadata))
    # Avro's record of that logical type.
    if isinstance(value, dict) and ("metadata" in value or "value" in value):
        for name in ("value", "metadata"):
            if name not in value or value[name] is None:
                raise CELEvalError(f"{function}: a map without '{name}' is no Variant")
        found = (_bytes(value[name], function) for name in ("value", "metadata"))
        return _unless_empty(*found)
    if isinstance(value, str):
        raise CELEvalError(f"{function}: a string is no Variant; use variants.parseJson")
    raise CELEvalError(f"{function}: expected Variant, got {_type_name(value)}")


def _unless_empty(value: bytes, metadata: bytes) -> Variant | None:
    return Variant(value, metadata) if metadata else None


def _parse_json(text: Any) -> Variant:
    return variant_of_json(_text(text, "variants.parseJson"))


def _try_parse_json(text: Any) -> Variant | None:
    try:
        return variant_of_json(_text(text, "variants.tryParseJson"))
    except ValueError:
        return None


_LABELS: Final = {
    "BYTE": "int",
    "SHORT": "int",
    "INT": "int",
    "LONG": "int",
    "FLOAT": "double",
    "BINARY": "bytes",
}


def _label(variant: Variant) -> str:
    name = variant.type
    for several in ("DECIMAL", "TIMESTAMP"):
        if name.startswith(several):
            return several.lower()
    return _LABELS.get(name, name.lower())


def _variant_type(value: Any) -> Any:
    variant = _as_variant(value, "variants.type")
    return None if variant is None else celtypes.StringType(_label(variant))


def _is_null(value: Any) -> Any:
    try:
        variant = _as_variant(value, "variants.isNull")
        found = variant is not None and variant.type == "NULL"
    except (CELEvalError, ValueError):
        found = False
    return celtypes.BoolType(found)


def _path(value: Any, path: Any) -> Variant | None:
    text = _text(path, "variants.path")
    variant = _as_variant(value, "variants.path")
    return None if variant is None else at_path(variant, text)


def _field(value: Any, key: Any) -> Variant | None:
    text = _text(key, "variants.field")
    variant = _as_variant(value, "variants.field")
    return None if variant is None or variant.type != "OBJECT" else variant.field(text)


def _index(value: Any, index: Any) -> Variant | None:
    number = _whole(index, "variants.index: index")
    variant = _as_variant(value, "variants.index")
    return None if variant is None or variant.type != "ARRAY" else variant.element(number)


_EXTRACTED: Final[dict[str, Callable[[Any], Any]]] = {
    "string": celtypes.StringType,
    "int": celtypes.IntType,
    "double": celtypes.DoubleType,
    "boolean": celtypes.BoolType,
    "decimal": lambda value: value,
    "bytes": celtypes.BytesType,
}
_NOT_EXTRACTED: Final = ("object", "array", "null", "date", "time", "uuid")


def _extracted(value: Any, type: Any, *, strict: bool) -> Any:
    """The value if it is of the type; otherwise an error, or null."""
    function = "variants.as" if strict else "variants.tryAs"
    wanted = _text(type, function)
    variant = _as_variant(value, function)
    if variant is None:
        return None
    if wanted in _NOT_EXTRACTED:
        raise CELEvalError(f"{function}: type '{wanted}' is not supported for extraction")
    reason = f"variant is not {wanted}-typed (type={variant.type})"
    if wanted not in _EXTRACTED and wanted != "timestamp":
        reason = f"unknown type '{wanted}'"
    elif _label(variant) == wanted:
        if wanted != "timestamp":
            return _EXTRACTED[wanted](variant.scalar())
        micros = variant.scalar() // (1_000 if "NANOS" in variant.type else 1)
        if _SECOND_MIN <= micros // 1_000_000 <= _SECOND_MAX:
            return _moment(micros)
        reason = f"timestamp {variant.scalar()} is outside of years 1 to 9999"
    if strict:
        raise CELEvalError(f"{function}: {reason}")
    return None


def _to_json(value: Any) -> Any:
    variant = _as_variant(value, "variants.toJson")
    return None if variant is None else celtypes.StringType(variant.to_json())


_VARIANTS: Final[dict[str, Callable[..., Any]]] = {
    "parseJson": _parse_json,
    "tryParseJson": _try_parse_json,
    "type": _variant_type,
    "isNull": _is_null,
    "path": _path,
    "field": _field,
    "index": _index,
    "as": lambda value, type: _extracted(value, type, strict=True),
    "tryAs": lambda value, type: _extracted(value, type, strict=False),
    "toJson": _to_json,
}


def _said(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """With errors of values as CEL's, so that the reason is not lost."""

    def call(*values: Any) -> Any:
        try:
            return function(*values)
        except ValueError as error:
            text = str(error)
            raise CELEvalError(text if text.startswith(name) else f"{name}: {text}") from None

    return call


_PLAIN: Final[dict[str, Callable[..., Any]]] = {
    "format": _formatted,
    "isEmail": _text_check(_is_email),
    "isHostname": _text_check(_is_hostname),
    "isIpv4": _address_check(4),
    "isIpv6": _address_check(6),
    "isUri": _text_check(_is_uri),
    "isUriRef": _text_check(_is_uri_reference),
    "isUuid": _text_check(_is_uuid),
    "decimal": _decimal,
    "string": _string,
    "double": _double,
    "timestamp": _timestamp,
    "variant": _variant,
    **{f"decimals.{name}": function for name, function in _DECIMALS.items()},
    **{f"variants.{name}": function for name, function in _VARIANTS.items()},
}
FUNCTIONS: Final[dict[str, Any]] = {
    **{name: _said(name, function) for name, function in _PLAIN.items()},
    "_==_": _operator_eq,
    "_!=_": _operator_ne,
    "_in_": _operator_in,
}
