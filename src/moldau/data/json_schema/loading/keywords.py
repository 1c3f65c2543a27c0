"""Reads the values of keywords, with an error that says where and what a wrong one is."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from moldau.data.json_schema.documents import Place
from moldau.data.json_schema.model import Number
from moldau.data.schema_language import SchemaError

_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
#: Regular expressions that Java has and Python has not.
_JAVA_ONLY = re.compile(r"\\[pPhHRXQG]|&&|\(\?<[a-zA-Z]|[*+?}]\+|\(\?>|\(\?[a-z]+\)")
_PATTERN_LENGTH_MAX = 10_000


def wrong(place: Place, wanted: str, value: Any) -> SchemaError:
    return SchemaError(f"{place.name}: expected {wanted}, found {kind_of(value)}")


def kind_of(value: Any) -> str:
    if value is None:
        return "null"
    return _KINDS.get(type(value), "a number")


def text(place: Place, keyword: str) -> str | None:
    value = place.value.get(keyword)
    if value is None and keyword not in place.value:
        return None
    if not isinstance(value, str):
        raise wrong(place.child(keyword), "a string", value)
    return value


def flag(place: Place, keyword: str) -> bool | None:
    value = place.value.get(keyword)
    if value is None and keyword not in place.value:
        return None
    if not isinstance(value, bool):
        raise wrong(place.child(keyword), "a boolean", value)
    return value


def number(place: Place, keyword: str) -> Number | None:
    value = place.value.get(keyword)
    if value is None and keyword not in place.value:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise wrong(place.child(keyword), "a number", value)
    return value


def integer(place: Place, keyword: str) -> int | None:
    value = number(place, keyword)
    if value is None:
        return None
    if value != int(value):
        raise SchemaError(f"{place.child(keyword).name}: expected an integer, found {value}")
    return int(value)


def multiple_of(place: Place) -> Number | None:
    value = number(place, "multipleOf")
    if value == 0:
        raise SchemaError(f"{place.child('multipleOf').name}: multipleOf should not be 0")
    return value


def pattern(place: Place, keyword: str = "pattern") -> str | None:
    value = text(place, keyword)
    if value is not None:
        check_pattern(value, place.child(keyword))
    return value


def check_pattern(value: str, place: Place) -> None:
    """Refuse what is no regular expression; what only Java's library reads is left alone."""
    if len(value) > _PATTERN_LENGTH_MAX:
        raise SchemaError(f"{place.name}: a pattern has more than {_PATTERN_LENGTH_MAX} characters")
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        if not _JAVA_ONLY.search(value):
            raise SchemaError(
                f"{place.name}: {value[:100]!r} is no regular expression: {error}"
            ) from None


def objects(place: Place, keyword: str) -> dict[str, Place]:
    """The members of a keyword whose value is an object."""
    if keyword not in place.value:
        return {}
    inner = place.child(keyword)
    if not isinstance(inner.value, dict):
        raise wrong(inner, "an object", inner.value)
    return {name: inner.child(name) for name in inner.value}


def array(place: Place, keyword: str) -> list[Place]:
    """The elements of a keyword whose value is an array."""
    if keyword not in place.value:
        return []
    inner = place.child(keyword)
    if not isinstance(inner.value, list):
        raise wrong(inner, "an array", inner.value)
    return [inner.child(index) for index in range(len(inner.value))]


def texts(place: Place, keyword: str) -> list[str]:
    found = []
    for each in array(place, keyword):
        if not isinstance(each.value, str):
            raise wrong(each, "a string", each.value)
        found.append(each.value)
    return found
