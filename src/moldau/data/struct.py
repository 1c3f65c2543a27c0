"""Values of structs, and whether a value fits a schema.

A value is a plain Python object: int, float, bool, str, bytes, list, dict, `Struct`, or that of a
logical type (`logical.py`). Integers must fit their type and a bool is no number, as in Connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.data.errors import DataError
from moldau.data.logical import PYTHON_TYPES
from moldau.data.schema import INTEGER_BITS, Field, Schema, Type, same_value

_CLASSES: dict[Type, tuple[type, ...]] = {
    Type.INT8: (int,),
    Type.INT16: (int,),
    Type.INT32: (int,),
    Type.INT64: (int,),
    Type.FLOAT32: (float,),
    Type.FLOAT64: (float,),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.ARRAY: (list, tuple),
    Type.MAP: (dict,),
}
_RANGES = {each: range(-(1 << bits - 1), 1 << bits - 1) for each, bits in INTEGER_BITS.items()}


class Struct:
    """A value for each field of a struct's schema, None where nothing was put."""

    __slots__ = ("_values", "schema")

    def __init__(self, schema: Schema, values: Mapping[str, Any] | None = None) -> None:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        self.schema = schema
        self._values: list[Any] = [None] * len(schema.fields)
        for name, value in (values or {}).items():
            self.put(name, value)

    @classmethod
    def unchecked(cls, schema: Schema, values: list[Any]) -> Struct:
        """A struct of values by index that are known to fit, for converters; it keeps the list."""
        struct = cls.__new__(cls)
        struct.schema = schema
        struct._values = values
        return struct

    def get(self, name: str) -> Any:
        """The value of a field, or the default if there is none."""
        field = self._field(name)
        value = self._values[field.index]
        return field.schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        return self._values[self._field(name).index]

    def put(self, name: str, value: Any) -> Struct:
        """Set a field to a value that fits its schema; returns the struct itself."""
        field = self._field(name)
        try:
            _check(field.schema, value)
        except _Misfit as misfit:
            raise DataError(misfit.at(f"$.{name}")) from None
        self._values[field.index] = value
        return self

    __getitem__ = get

    def __setitem__(self, name: str, value: Any) -> None:
        self.put(name, value)

    def validate(self) -> None:
        """Raise DataError unless each field has a value that fits, is optional or has a default."""
        validate_value(self.schema, self)

    def is_of(self, schema: Schema) -> bool:
        """Whether it is a struct of the schema, or one that can be the schema's default.

        A default cannot have the schema it belongs to: that would have to hold itself.
        """
        if self.schema == schema:
            return True
        return schema.default is not None and self.schema == schema.replace(default=None)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values by index, without defaults."""
        return tuple(self._values)

    def items(self) -> Iterator[tuple[Field, Any]]:
        """Each field with its value, without defaults."""
        return zip(self.schema.fields, self._values, strict=True)

    def as_dict(self) -> dict[str, Any]:
        """The values by name, defaults put in, structs inside of it as dicts too."""
        return {field.name: as_plain(self.get(field.name)) for field in self.schema.fields}

    def _field(self, name: str) -> Field:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name of {self.schema}")
        return field

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return self.schema == other.schema and all(map(same_value, self._values, other._values))

    def __hash__(self) -> int:
        """For maps with structs as keys, which must not be changed then."""
        return hash((self.schema, _frozen(self._values)))

    def __repr__(self) -> str:
        put = [f"{field.name}={value}" for field, value in self.items() if value is not None]
        return f"Struct{{{','.join(put)}}}"


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return frozenset((key, _frozen(each)) for key, each in value.items())
    return value


def as_plain(value: Any) -> Any:
    """The value with dicts in place of structs."""
    if isinstance(value, Struct):
        return value.as_dict()
    if isinstance(value, (list, tuple)):
        return [as_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: as_plain(each) for key, each in value.items()}
    return value


def validate_value(schema: Schema, value: Any) -> None:
    """Raise DataError, saying where, unless `value` is one of the schema's."""
    try:
        _check(schema, value)
    except _Misfit as misfit:
        raise DataError(misfit.at("$")) from None


class _Misfit(Exception):
    """What is wrong, without where: the way to it is put together on the way out.

    So a value that fits, as nearly all do, costs no texts.
    """

    def __init__(self, before: str, after: str) -> None:
        super().__init__(before, after)
        self._before = before
        self._after = after
        self._steps: list[str] = []

    def within(self, step: str) -> None:
        self._steps.append(step)

    def at(self, start: str) -> str:
        return self._before + start + "".join(reversed(self._steps)) + self._after


def _check(schema: Schema, value: Any) -> None:
    if value is None:
        if not schema.optional:
            raise _Misfit(
                "Invalid value: null used for required ", f", schema type: {schema.type.name}"
            )
        return
    kind = schema.type
    logical = PYTHON_TYPES.get(schema.name or "")
    if logical is not None:
        if not isinstance(value, logical):
            raise _wrong_type(schema, value)
    elif kind is Type.STRUCT:
        _check_struct(schema, value)
    elif not isinstance(value, _CLASSES[kind]) or (kind in _RANGES and isinstance(value, bool)):
        raise _wrong_type(schema, value)
    elif kind in _RANGES:
        if value not in _RANGES[kind]:
            raise _Misfit(f"Invalid value: {value} at ", f" does not fit {kind.name}")
    elif kind is Type.ARRAY:
        _check_array(schema, value)
    elif kind is Type.MAP:
        _check_map(schema, value)


def _check_array(schema: Schema, value: Any) -> None:
    items = schema.items
    index = 0
    try:
        for item in value:
            _check(items, item)
            index += 1
    except _Misfit as misfit:
        misfit.within(f"[{index}]")
        raise


def _check_map(schema: Schema, value: Any) -> None:
    keys, items = schema.keys, schema.items
    key = None
    try:
        for key, item in value.items():
            _check(keys, key)
            _check(items, item)
    except _Misfit as misfit:
        misfit.within(f"[{key!r}]")
        raise


def _check_struct(schema: Schema, value: Any) -> None:
    if not isinstance(value, Struct):
        raise _wrong_type(schema, value)
    if not value.is_of(schema):
        raise _Misfit("Struct schemas do not match at ", f": {value.schema} is not {schema}")
    for field, item in value.items():
        wanted = field.schema
        if item is None and (wanted.optional or wanted.default is not None):
            continue
        try:
            _check(wanted, item)
        except _Misfit as misfit:
            misfit.within(f".{field.name}")
            raise


def _wrong_type(schema: Schema, value: Any) -> _Misfit:
    named = f' "{schema.name}"' if schema.name else ""
    return _Misfit(
        f"Invalid value for schema{named} with type {schema.type.name}: {type(value).__name__} at ",
        "",
    )
