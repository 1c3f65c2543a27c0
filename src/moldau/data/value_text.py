"""Values read from texts whose type is not known: Connect's Values.parseString.

`5` is an INT8, `[1, 2.5]` an array of FLOAT32, `2019-08-23` a Date, and whatever is not understood
stays the text it is. Inside of arrays and maps texts are quoted.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from moldau.data import builders, json_text, logical, values
from moldau.data.errors import DataError
from moldau.data.schema import INTEGER_BITS, Schema, SchemaAndValue, Type

_NESTING_MAX = 100
_MARKS = frozenset(':,{}[]"')
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"([0-9]+)-([0-9]+)-([0-9]+)")
_TIME = re.compile(r"([0-9]+):([0-9]+):([0-9]+)\.([0-9]+)Z")
_TIMESTAMP = re.compile(_DATE.pattern + "T" + _TIME.pattern)
_NULL = SchemaAndValue(None, None)
_WIDENING = [Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64]


class _NotUnderstood(Exception):
    """An array or map that is none; the whole is a text then."""


def parse_string(text: str | None) -> SchemaAndValue:
    """The value that a text stands for, with a schema that fits it."""
    if text is None:
        return _NULL
    if not text:
        return SchemaAndValue(builders.STRING, text)
    return _Parser(text).parse(depth=0) or _NULL


class _Parser:
    """Reads marks and what is between them, a few at a time.

    `_next` holds a mark or text that has been read but not used yet.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._next: str | None = None

    def parse(self, *, depth: int) -> SchemaAndValue | None:
        """One value; None for null. Depth 0 is the whole text."""
        if depth > _NESTING_MAX:
            raise _NotUnderstood
        if not self._has_next():
            return None
        if depth and self._take('"'):
            return self._quoted()
        for literal, meaning in _LITERALS.items():
            if self._take_literal(literal, depth):
                return meaning
        start = self._mark()
        try:
            if self._take("["):
                return self._array(depth)
            if self._take("{"):
                return self._map(depth)
        except (_NotUnderstood, DataError):
            self._rewind(start)
        token = self._read()
        if not token.strip():
            return SchemaAndValue(builders.STRING, token)
        return self._token(token.strip(), depth)

    def _token(self, token: str, depth: int) -> SchemaAndValue:
        if token[0].isdigit():
            found = self._temporal_of_tokens(token)
            if found is not None:
                return found
        if token[0].isdigit() or token[0] in "+-":
            number = _decimal(token)
            if number is not None:
                return _typed_number(number)
        if depth:
            raise _NotUnderstood
        return SchemaAndValue(builders.STRING, self._text)

    def _quoted(self) -> SchemaAndValue:
        parts = []
        while self._has_next():
            if self._take('"'):
                break
            parts.append(self._read())
        content = "".join(parts)
        return _parse_temporal(content) or SchemaAndValue(builders.STRING, content)

    def _array(self, depth: int) -> SchemaAndValue:
        items: list[SchemaAndValue | None] = []
        merged = _Merged()
        while self._has_next():
            if self._take("]"):
                schema = merged.schema
                if schema is None:
                    return SchemaAndValue(Schema(type=Type.ARRAY), list(map(_bare, items)))
                return SchemaAndValue(
                    builders.array(schema), [_converted(schema, _value(each)) for each in items]
                )
            if self._take(","):
                raise _NotUnderstood
            item = self.parse(depth=depth + 1)
            merged.add(item)
            items.append(item)
            after = self._mark()
            if self._take("]"):
                self._rewind(after)
            elif not self._take(","):
                raise _NotUnderstood
        raise _NotUnderstood

    def _map(self, depth: int) -> SchemaAndValue:
        entries: dict[Any, tuple[SchemaAndValue, SchemaAndValue | None]] = {}
        keys, items = _Merged(), _Merged()
        while self._has_next():
            if self._take("}"):
                return _map_of(keys.schema, items.schema, entries)
            if self._take(","):
                raise _NotUnderstood
            key = self.parse(depth=depth + 1)
            if key is None or isinstance(key.value, (list, dict)) or not self._take(":"):
                raise _NotUnderstood
            item = self.parse(depth=depth + 1)
            entries[key.value] = key, item
            self._take(",")
            keys.add(key)
            items.add(item)
        raise _NotUnderstood

    def _temporal_of_tokens(self, token: str) -> SchemaAndValue | None:
        """A time has colons, which separate tokens: two of them, and what is around."""
        start = self._mark()
        more = []
        for _ in range(4):
            if not self._has_next():
                break
            more.append(self._read())
        if len(more) == 4:
            found = _parse_temporal(token + "".join(more))
            if found is not None:
                return found
        self._rewind(start)
        return _parse_temporal(token)

    def _take_literal(self, literal: str, depth: int) -> bool:
        start = self._mark()
        if self._take(literal) and (depth or not self._has_next()):
            return True
        self._rewind(start)
        return False

    def _take(self, wanted: str) -> bool:
        """Use the next mark or text if it is `wanted`, whatever white space is around it."""
        if self._next is None:
            if not self._has_next():
                return False
            self._next = self._scan()
        while not self._next.strip() and self._position < len(self._text):
            self._next = self._scan()
        if self._next.strip() != wanted:
            return False
        self._next = None
        return True

    def _has_next(self) -> bool:
        return self._next is not None or self._position < len(self._text)

    def _read(self) -> str:
        token, self._next = self._next, None
        return self._scan() if token is None else token

    def _mark(self) -> int:
        return self._position - len(self._next or "")

    def _rewind(self, position: int) -> None:
        self._position = position
        self._next = None

    def _scan(self) -> str:
        """From here to the next mark that is not escaped, or that mark itself."""
        start, end = self._position, self._position
        escaped = False
        while end < len(self._text):
            character = self._text[end]
            if character == "\\":
                escaped = not escaped
            elif character in _MARKS and not escaped:
                end = end if start < end else end + 1
                break
            else:
                escaped = False
            end += 1
        self._position = end
        return self._text[start:end]


_LITERALS = {
    "null": None,
    "true": SchemaAndValue(builders.BOOLEAN, True),
    "false": SchemaAndValue(builders.BOOLEAN, False),
}


def _value(item: SchemaAndValue | None) -> Any:
    return None if item is None else item.value


def _bare(item: SchemaAndValue | None) -> Any:
    """A value that keeps no schema: a float is a double then, the one that looks the same."""
    if item is not None and item.schema is not None and item.schema.type is Type.FLOAT32:
        return json_text.shortest_float32(item.value)
    return _value(item)


def _map_of(
    keys: Schema | None,
    items: Schema | None,
    entries: dict[Any, tuple[SchemaAndValue, SchemaAndValue | None]],
) -> SchemaAndValue:
    pairs = entries.values()
    if keys is None:
        bare = {_bare(key): _bare(each) for key, each in pairs}
        return SchemaAndValue(Schema(type=Type.MAP), bare)
    converted = {
        _converted(keys, key.value): _bare(each)
        if items is None
        else _converted(items, _value(each))
        for key, each in pairs
    }
    return SchemaAndValue(Schema(type=Type.MAP, key_schema=keys, value_schema=items), converted)


class _Merged:
    """The schema that all of several values fit, as long as there is one."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._possible = True

    def add(self, latest: SchemaAndValue | None) -> None:
        if latest is None or latest.schema is None or not self._possible:
            return
        before = self.schema
        self.schema = latest.schema if before is None else _wider(before, latest.schema)
        self._possible = self.schema is not None


def _wider(one: Schema, other: Schema) -> Schema | None:
    if one.type is other.type:
        return other
    if one.type not in _WIDENING or other.type not in _WIDENING:
        return None
    return one if _WIDENING.index(one.type) > _WIDENING.index(other.type) else other


def _converted(schema: Schema, value: Any) -> Any:
    """The value as one of the schema that it was merged into."""
    if value is None:
        raise DataError("Unable to convert a null value to a schema that requires a value")
    if schema.name in (logical.DATE_NAME, logical.TIME_NAME, logical.TIMESTAMP_NAME):
        return values.convert_temporal(schema, value)
    if schema.name == logical.DECIMAL_NAME:
        return values.convert_decimal(value, logical.scale_of(schema))
    convert = _CONVERTERS.get(schema.type)
    return value if convert is None else convert(value)


_CONVERTERS: dict[Type, Callable[[Any], Any]] = {
    **{each: partial(values.convert_integer, each) for each in INTEGER_BITS},
    Type.FLOAT32: partial(values.convert_float, Type.FLOAT32),
    Type.FLOAT64: partial(values.convert_float, Type.FLOAT64),
    Type.STRING: values.to_text,
}


def _decimal(token: str) -> Decimal | None:
    if not _NUMBER.fullmatch(token):
        return None
    try:
        number = Decimal(token)
    except InvalidOperation:
        return None
    # Java takes no exponent of more than 32 bits.
    return number if abs(number.adjusted()) < 2**31 else None


def _typed_number(number: Decimal) -> SchemaAndValue:
    """The smallest type that holds the number; decimals only beyond doubles and longs."""
    exact = number.adjusted() < 19 and number == number.to_integral_value()
    if exact or not number:
        whole = int(number) if number else 0
        for kind, bits in INTEGER_BITS.items():
            if -(1 << bits - 1) <= whole < 1 << bits - 1:
                return SchemaAndValue(Schema(type=kind), whole)
    exponent = number.as_tuple().exponent
    scale = -exponent if isinstance(exponent, int) else 0
    double = float(number)
    single = json_text.to_float32(double)
    if scale and abs(single) != float("inf"):
        return SchemaAndValue(builders.FLOAT32, single)
    if scale and abs(double) != float("inf"):
        return SchemaAndValue(builders.FLOAT64, double)
    return SchemaAndValue(logical.decimal(scale), number)


def _parse_temporal(token: str) -> SchemaAndValue | None:
    """A date, time or timestamp; the length says which, and numbers may run over as in Java."""
    text = token.replace("\\:", ":")
    try:
        match len(text):
            case 13 if found := _TIME.match(text):
                return SchemaAndValue(logical.TIME, logical.time_from_ms(_clock_ms(found.groups())))
            case 24 if found := _TIMESTAMP.match(text):
                day = _day(found.groups()[:3])
                since_epoch = day * logical.DAY_MS + _clock_ms(found.groups()[3:])
                return SchemaAndValue(logical.TIMESTAMP, logical.timestamp_from_ms(since_epoch))
            case 10 if found := _DATE.match(text):
                return SchemaAndValue(logical.DATE, logical.date_from_days(_day(found.groups())))
    except (DataError, ValueError, OverflowError):
        return None
    return None


def _day(numbers: tuple[str | Any, ...]) -> int:
    year, month, day = map(int, numbers)
    more_years, month = divmod(month - 1, 12)
    first = datetime.date(year + more_years, month + 1, 1)
    return logical.date_to_days(first) + day - 1


def _clock_ms(numbers: tuple[str | Any, ...]) -> int:
    hour, minute, second, millisecond = map(int, numbers)
    return ((hour * 60 + minute) * 60 + second) * 1000 + millisecond
