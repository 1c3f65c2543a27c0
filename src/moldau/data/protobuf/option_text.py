"""Options in protobuf's text format, by which they are put into descriptors."""

from __future__ import annotations

from collections.abc import Callable

from moldau.data.protobuf.descriptor_values import escaped
from moldau.data.protobuf.model import Aggregate, Items, Option, Text, Value, Word
from moldau.data.protobuf.normal_options import as_value

#: Finds the full name of an extension.
Qualify = Callable[[str], str]


def is_standard(option: Option) -> bool:
    """Whether the language defines the option: no part of its name is an extension."""
    value = option.value
    while isinstance(value, Option):
        if value.custom:
            return False
        value = value.value
    return not option.custom


def standard_text(option: Option) -> str:
    return _fields_text(_as_field(option), lambda name: name)


def custom_text(option: Option, qualify: Qualify) -> str:
    return _fields_text(_as_field(option), qualify)


def _as_field(option: Option) -> Aggregate:
    """The option as a field of the message that holds the options."""
    field = as_value(option)
    if not isinstance(field, Aggregate):
        raise TypeError("an option always has a name")
    return field


def _fields_text(value: Aggregate, qualify: Qualify) -> str:
    return " ".join(_field_text(name, each, qualify) for name, each in value.fields)


def _field_text(name: str, value: Value, qualify: Qualify) -> str:
    if name.startswith("[") and "/" not in name:
        name = f"[{qualify(name[1:-1])}]"
    match value:
        case Items(values):
            return " ".join(_field_text(name, each, qualify) for each in values)
        case Aggregate():
            return f"{name} {{ {_fields_text(value, qualify)} }}"
        case Text(data):
            return f'{name}: "{escaped(data)}"'
        case Word(_, text):
            return f"{name}: {text}"
