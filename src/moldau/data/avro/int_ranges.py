"""Ints of more than 32 bits, found before they are encoded.

fastavro writes them as it writes longs, and no other reader can read that. Values of unions it
checks itself, to find their branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from moldau.data.avro.model import Array, AvroType, Map, Primitive, Record
from moldau.data.errors import DataError

Check: TypeAlias = Callable[[Any], None]


def int_check(schema: AvroType) -> Check | None:
    """What raises DataError for a value with such an int; None if there is no int to look at."""
    return _Checks().of(schema)


class _Checks:
    def __init__(self) -> None:
        self._records: dict[int, Check | None] = {}
        self._open: set[int] = set()

    def of(self, schema: AvroType) -> Check | None:
        match schema:
            case Primitive(kind="int"):
                return _check_int
            case Array():
                return _each(self.of(schema.items))
            case Map():
                return _each_value(self.of(schema.values))
            case Record():
                return self._record(schema)
            case _:
                return None

    def _record(self, schema: Record) -> Check | None:
        key = id(schema)
        if key in self._open:
            return lambda value: self._later(key, value)
        if key not in self._records:
            self._open.add(key)
            pairs = [(each.name, self.of(each.type)) for each in schema.fields]
            self._open.discard(key)
            checks = [(name, check) for name, check in pairs if check is not None]
            self._records[key] = _fields(checks) if checks else None
        return self._records[key]

    def _later(self, key: int, value: Any) -> None:
        """For a record inside of itself, whose check is not there yet when it is needed."""
        check = self._records[key]
        if check is not None:
            check(value)


def _check_int(value: Any) -> None:
    if isinstance(value, int) and not -0x80000000 <= value <= 0x7FFFFFFF:
        raise DataError(f"{value} does not fit Avro's int, which has 32 bits: use a long")


def _each(check: Check | None) -> Check | None:
    if check is None:
        return None

    def check_all(value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for each in value:
                check(each)

    return check_all


def _each_value(check: Check | None) -> Check | None:
    if check is None:
        return None

    def check_all(value: Any) -> None:
        if isinstance(value, dict):
            for each in value.values():
                check(each)

    return check_all


def _fields(checks: list[tuple[str, Check]]) -> Check:
    def check_fields(value: Any) -> None:
        if isinstance(value, dict):
            for name, check in checks:
                check(value.get(name))

    return check_fields
