"""The one form of options that mean the same.

Custom options get their full names, options are sorted by name, and what is set piece by piece
(`(o).a = 1` and `(o).b = 2`) becomes one message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import reduce
from itertools import groupby

from moldau.data.protobuf.model import (
    Aggregate,
    Field,
    Group,
    Items,
    Label,
    Message,
    Option,
    Value,
)
from moldau.data.protobuf.types import Scope, TypeTable

_HEXADECIMAL = re.compile(r"(-?)0[xX]([0-9a-fA-F]{1,16})")
_OCTAL = re.compile(r"(-?)0([0-7]{1,22})")
#: Numbers with a larger exponent stay as they are written: their digits would fill the memory.
_EXPONENT_MAX = 400


def normal_options(options: Sequence[Option], table: TypeTable, scope: Scope) -> tuple[Option, ...]:
    qualified = sorted(
        (_qualified(option, table, scope) for option in options), key=lambda option: option.name
    )
    result: list[Option] = []
    for name, group in groupby(qualified, key=lambda option: option.name):
        same_name = list(group)
        extension = table.extension("." + name, scope)
        if extension is None or extension.field.label is Label.REPEATED:
            result += same_name
            continue
        merger = _Merger(table)
        home = Scope(extension.package, extension.scope)
        result.append(
            reduce(lambda one, two: merger.option(extension.field, home, one, two), same_name)
        )
    return tuple(result)


def _qualified(option: Option, table: TypeTable, scope: Scope) -> Option:
    extension = table.extension(option.name, scope) if option.custom else None
    if extension is None:
        return option
    return Option(extension.full_name, as_value(option.value), custom=True)


def as_value(value: Value | Option) -> Value:
    """A path (`.a.b = 1`) as the message that it sets (`{a: {b: 1}}`)."""
    if not isinstance(value, Option):
        return value
    name = f"[{value.name}]" if value.custom else value.name
    inner = as_value(value.value)
    for part in reversed(name.split(".") if not value.custom else [name]):
        inner = Aggregate(((part, inner),))
    return inner


class _Merger:
    """Puts two settings of one option together."""

    def __init__(self, table: TypeTable) -> None:
        self._table = table

    def option(self, field: Field | Group, scope: Scope, one: Option, two: Option) -> Option:
        first, second = as_value(one.value), as_value(two.value)
        if isinstance(first, Aggregate) and isinstance(second, Aggregate):
            second = self._aggregates(self._message(field, scope), first, second)
        return Option(two.name, second, two.custom)

    def _aggregates(
        self, home: tuple[Message, Scope] | None, one: Aggregate, two: Aggregate
    ) -> Aggregate:
        merged = dict(one.fields)
        for name, value in two.fields:
            if name in merged:
                field = _field(home[0], name) if home else None
                value = self._values(field, home[1] if home else None, merged[name], value)
            merged[name] = value
        return Aggregate(tuple(merged.items()))

    def _values(
        self, field: Field | Group | None, scope: Scope | None, one: Value, two: Value
    ) -> Value:
        if field is not None and scope is not None and field.label is not Label.REPEATED:
            message = self._message(field, scope)
            if isinstance(one, Aggregate) and isinstance(two, Aggregate) and message:
                return self._aggregates(message, one, two)
            return two
        values = dict.fromkeys(
            each
            for value in (one, two)
            for each in (value.values if isinstance(value, Items) else (value,))
        )
        return Items(tuple(values))

    def _message(self, field: Field | Group, scope: Scope) -> tuple[Message, Scope] | None:
        """The message that is the type of a field, and the scope of its own fields."""
        if isinstance(field, Group):
            return field.body, scope.inside(field.name)
        found = self._table.type(field.type, scope)
        if found is None or not isinstance(found.declared, Message):
            return None
        return found.declared, Scope(found.package, tuple(found.local_name.split(".")))


def _field(message: Message, name: str) -> Field | None:
    fields = (*message.fields, *(field for oneof in message.oneofs for field in oneof.fields))
    return next((field for field in fields if field.name == name), None)


def is_empty_list(value: Value) -> bool:
    return isinstance(value, Items) and not value.values


def format_number(text: str) -> str:
    """A number in its plain decimal form; as it is written where that has no sense (`-inf`)."""
    for pattern, base in ((_HEXADECIMAL, 16), (_OCTAL, 8)):
        if match := pattern.fullmatch(text):
            return f"{match[1]}{int(match[2], base)}"
    try:
        number = Decimal(text.removesuffix("f").removesuffix("F"))
    except InvalidOperation:
        return text
    if (
        not number.is_finite()
        or abs(number.adjusted()) > _EXPONENT_MAX
        or len(text) > _EXPONENT_MAX
    ):
        return text
    # Confluent rounds to three decimals. That would change a default of 3.14159.
    shown = format(number, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
