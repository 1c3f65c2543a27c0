"""Protobuf messages in CEL: as maps of their fields, and back.

A field that is not set reads as its default (a wrapper as null), and `has` says that it is not set.
A map that an expression returns is the whole new message: fields that it does not name are gone,
null clears a field, and what was passed on unchanged is copied as it was.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from celpy import celtypes
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from moldau.data.variant import Variant
from moldau.serde.rules.machine.decimals import unscaled_bytes
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.fields import (
    DECIMAL_MESSAGE,
    TIMESTAMP_MESSAGE,
    UNSIGNED_TYPES,
    VARIANT_MESSAGE,
    is_map_field,
    is_repeated,
)

__all__ = [
    "MessageMap",
    "cel_of_field",
    "cel_of_message",
    "cel_of_scalar",
    "message_of",
    "value_message",
]

_DURATION: Final = "google.protobuf.Duration"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ["String", "Bytes", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double", "Bool"]
)
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
#: The largest number of 32 bits, with what is rounded to it.
_FLOAT_MAX: Final = 3.4028234663852886e38 * (1 + 1e-6)


class _SourcedTimestamp(celtypes.TimestampType):
    """With the message that it was: a datetime has no nanoseconds."""

    message: Message


class _SourcedDuration(celtypes.DurationType):
    message: Message


class MessageMap(celtypes.MapType):
    """A message's fields; the members of a oneof that are not set are left out."""

    def __init__(self, message: Message) -> None:
        super().__init__()
        self.message = message
        for field in message.DESCRIPTOR.fields:
            if field.containing_oneof is None or message.HasField(field.name):
                self[field.name] = _field(message, field)

    def __getitem__(self, name: Any) -> Any:
        field = self.message.DESCRIPTOR.fields_by_name[name]
        if field.has_presence and not self.message.HasField(field.name):
            return _default(field)
        return super().__getitem__(name)

    def has(self, name: str) -> bool:
        """As Protobuf sees it: a field without presence is set if it is not its default."""
        field = self.message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            return False
        if is_repeated(field):
            return len(getattr(self.message, name)) > 0
        if field.has_presence:
            return bool(self.message.HasField(name))
        return bool(getattr(self.message, name) != field.default_value)


def cel_of_message(message: Message) -> Any:
    name = message.DESCRIPTOR.full_name
    any_message: Any = message
    if name in _WRAPPERS:
        field = message.DESCRIPTOR.fields_by_name["value"]
        return cel_of_scalar(any_message.value, field)
    if name in (TIMESTAMP_MESSAGE, _DURATION):
        duration = _SourcedDuration(seconds=any_message.seconds, nanos=any_message.nanos)
        if name == _DURATION:
            duration.message = message
            return duration
        moment = _SourcedTimestamp(_EPOCH + duration)
        moment.message = message
        return moment
    return MessageMap(message)


def cel_of_scalar(value: Any, field: Any) -> Any:
    """One value of a field, whether it is repeated or not."""
    if isinstance(value, Message):
        return cel_of_message(value)
    if field.type in UNSIGNED_TYPES:
        return celtypes.UintType(value)
    make = _SCALARS.get(type(value))
    return value if make is None else make(value)


_SCALARS: Final[Mapping[type, Callable[[Any], Any]]] = {
    bool: celtypes.BoolType,
    int: celtypes.IntType,
    float: celtypes.DoubleType,
    str: celtypes.StringType,
    bytes: celtypes.BytesType,
}


def cel_of_field(value: Any, field: Any) -> Any:
    """All of a field's value."""
    if is_map_field(field):
        key, inner = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return celtypes.MapType(
            {cel_of_scalar(each, key): cel_of_scalar(value[each], inner) for each in value}
        )
    if is_repeated(field):
        return celtypes.ListType([cel_of_scalar(each, field) for each in value])
    return cel_of_scalar(value, field)


def _field(message: Message, field: Any) -> Any:
    if field.message_type is not None and field.has_presence and not message.HasField(field.name):
        return None
    return cel_of_field(getattr(message, field.name), field)


def _default(field: Any) -> Any:
    if field.message_type is None:
        return cel_of_scalar(field.default_value, field)
    if field.message_type.full_name in _WRAPPERS:
        return None
    return cel_of_message(message_factory.GetMessageClass(field.message_type)())


# Back.


def message_of(result: Any, like: Message) -> Message:
    """The message that an expression's map is. Raises RuleError."""
    if not isinstance(result, Mapping):
        raise RuleError(f"the expression makes a {type(result).__name__} of a message")
    made = type(like)()
    try:
        _fill(made, result)
    except (TypeError, ValueError) as error:
        raise RuleError(f"the expression does not make a message: {error}") from None
    return made


def value_message(value: Any, field: Any) -> Message:
    """A decimal or timestamp, as a rule on its field returns it. Raises RuleError."""
    made = message_factory.GetMessageClass(field.message_type)()
    try:
        _set_message(made, field, value)
    except (TypeError, ValueError) as error:
        raise RuleError(str(error)) from None
    return made


def _fill(made: Message, values: Mapping[Any, Any]) -> None:
    """A oneof has one member, and a field one name of its two: more are refused."""
    descriptor = made.DESCRIPTOR
    named: dict[str, str] = {}
    for key, value in values.items():
        name = str(key)
        field = descriptor.fields_by_name.get(name)
        if field is None:
            field = descriptor.fields_by_camelcase_name.get(name)
        if field is None:
            continue
        if field.name in named:
            raise ValueError(f"field {field.full_name} is named twice")
        if value is None or isinstance(value, celtypes.NullType):
            made.ClearField(field.name)
            continue
        named[field.name] = name
        oneof = field.containing_oneof
        if oneof is not None:
            if oneof.full_name in named:
                raise ValueError(f"more than one member of {oneof.full_name}")
            named[oneof.full_name] = name
        _set_field(made, field, value)


def _set_field(made: Message, field: Any, value: Any) -> None:
    if is_map_field(field):
        _set_map(getattr(made, field.name), field, value)
    elif is_repeated(field):
        _set_repeated(getattr(made, field.name), field, value)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        target = getattr(made, field.name)
        target.SetInParent()
        _set_message(target, field, value)
    else:
        setattr(made, field.name, _scalar(field, value))


def _set_map(target: Any, field: Any, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"map field {field.name} takes no {_said(value)}")
    inner = field.message_type.fields_by_name["value"]
    for key, each in value.items():
        if each is None:
            raise ValueError(f"map field {field.name} takes no null")
        if inner.type == FieldDescriptor.TYPE_MESSAGE:
            _set_message(target[key], inner, each)
        else:
            target[key] = _scalar(inner, each)


def _set_repeated(target: Any, field: Any, value: Any) -> None:
    if not isinstance(value, list | tuple):
        raise ValueError(f"repeated field {field.name} takes no {_said(value)}")
    for each in value:
        if each is None:
            raise ValueError(f"repeated field {field.name} takes no null")
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            _set_message(target.add(), field, each)
        else:
            target.append(_scalar(field, each))


def _set_message(target: Any, field: Any, value: Any) -> None:
    name = field.message_type.full_name
    source = value if isinstance(value, Message) else getattr(value, "message", None)
    if isinstance(source, Message) and source.DESCRIPTOR.full_name == name:
        target.MergeFromString(source.SerializeToString())
        return
    match value:
        case Decimal() if name == DECIMAL_MESSAGE:
            target.value, target.precision, target.scale = unscaled_bytes(value)
        case datetime.datetime() if name == TIMESTAMP_MESSAGE:
            moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
            target.seconds, micros = divmod(_micros(moment - _EPOCH), 1_000_000)
            target.nanos = micros * 1000
        case Variant() if name == VARIANT_MESSAGE:
            target.metadata, target.value = value.metadata, value.value
        case _ if name in _WRAPPERS:
            target.value = _scalar(field.message_type.fields_by_name["value"], value)
        case datetime.timedelta() if name == _DURATION:
            micros = _micros(value)
            sign = -1 if micros < 0 else 1
            # Both parts have the sign of the whole.
            target.seconds = sign * (abs(micros) // 1_000_000)
            target.nanos = sign * (abs(micros) % 1_000_000) * 1000
        case Mapping():
            _fill(target, value)
        case _:
            raise ValueError(f"field {field.name}, a {name}, takes no {_said(value)}")


def _micros(span: datetime.timedelta) -> int:
    return span // datetime.timedelta(microseconds=1)


def _scalar(field: Any, value: Any) -> Any:
    """A field takes values of its own kind; whole numbers also as 2.0, enums by name."""
    is_boolean = isinstance(value, bool | celtypes.BoolType)
    match field.type:
        case FieldDescriptor.TYPE_BYTES:
            if isinstance(value, bytes | bytearray | memoryview):
                return bytes(value)
        case FieldDescriptor.TYPE_STRING:
            if isinstance(value, str):
                return str(value)
        case FieldDescriptor.TYPE_BOOL:
            if is_boolean:
                return bool(value)
        case FieldDescriptor.TYPE_FLOAT | FieldDescriptor.TYPE_DOUBLE:
            if isinstance(value, int | float | Decimal) and not is_boolean:
                return _floating(field, value)
        case _:
            if isinstance(value, int | float | Decimal) and not is_boolean:
                return _integer(field, value)
            if field.type == FieldDescriptor.TYPE_ENUM and isinstance(value, str):
                return str(value)
    raise ValueError(f"field {field.name} takes no {_said(value)}")


def _floating(field: Any, value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    limit = _FLOAT_MAX if field.type == FieldDescriptor.TYPE_FLOAT else math.inf
    was_finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if was_finite and (not math.isfinite(number) or abs(number) > limit):
        raise ValueError(f"{value} is out of range for field {field.name}")
    return number


def _integer(field: Any, value: Any) -> int:
    # Of a decimal such as 1e100000000 the digits are not built.
    if isinstance(value, Decimal) and (not value.is_finite() or value.adjusted() > 20):
        raise ValueError(f"{value} is out of range for field {field.name}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is out of range for field {field.name}")
    number = int(value)
    if number != value:
        raise ValueError(f"{value} is no whole number for field {field.name}")
    return number


def _said(value: Any) -> str:
    return type(value).__name__.removesuffix("Type").lower()
