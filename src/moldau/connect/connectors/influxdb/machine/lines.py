"""InfluxDB's line protocol: measurement,tag=value field=value time."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from moldau.data.errors import DataError

_NAME = str.maketrans({",": "\\,", " ": "\\ ", "=": "\\=", "\n": "\\n"})
_MEASUREMENT = str.maketrans({",": "\\,", " ": "\\ ", "\n": "\\n"})
_TEXT = str.maketrans({'"': '\\"', "\\": "\\\\"})


def line(
    measurement: str, fields: Mapping[str, Any], tags: Collection[str], time_ns: int | None
) -> str:
    """The line of a point; DataError if it has no fields."""
    tagged = [
        f"{name.translate(_NAME)}={str(fields[name]).translate(_NAME)}"
        for name in sorted(tags)
        if fields.get(name) not in (None, "")
    ]
    values = [
        f"{name.translate(_NAME)}={_value(name, value)}"
        for name, value in fields.items()
        if name not in tags and value is not None
    ]
    if not values:
        raise DataError(f"a point of {measurement} has no fields besides its tags")
    head = ",".join([measurement.translate(_MEASUREMENT), *tagged])
    return " ".join([head, ",".join(values), *([] if time_ns is None else [str(time_ns)])])


def _value(name: str, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value}i"
        case float() | Decimal():
            return str(value)
        case str():
            return f'"{value.translate(_TEXT)}"'
        case datetime.datetime() | datetime.date() | datetime.time():
            return f'"{value.isoformat()}"'
    raise DataError(f"field {name} is a {type(value).__name__}, which a point cannot have")
