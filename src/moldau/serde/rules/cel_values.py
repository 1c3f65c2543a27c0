"""Values of Python as cel-python's, and back."""

from __future__ import annotations

import datetime
import uuid
from typing import Any, Final

from celpy import celtypes
from google.protobuf.message import Message

from moldau.data.variant import Variant
from moldau.serde.rules.cel_messages import cel_of_message

__all__ = ["cel_of", "plain"]

_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()


def cel_of(value: Any) -> Any:
    match value:
        case None:
            return None
        case bool():
            return celtypes.BoolType(value)
        case int():
            return celtypes.IntType(value)
        case float():
            return celtypes.DoubleType(value)
        case str():
            return celtypes.StringType(value)
        case bytes():
            return celtypes.BytesType(value)
        case dict():
            return celtypes.MapType(
                {celtypes.StringType(key): cel_of(each) for key, each in value.items()}
            )
        case list():
            return celtypes.ListType([cel_of(each) for each in value])
        case tuple():
            # A value of a union with the name of its branch.
            return cel_of(value[1])
        case datetime.datetime():
            return celtypes.TimestampType(value)
        case datetime.timedelta():
            return celtypes.DurationType(value)
        case datetime.date():
            return celtypes.IntType(value.toordinal() - _EPOCH_DAY)
        case uuid.UUID():
            return celtypes.StringType(str(value))
        case Message():
            return cel_of_message(value)
        case _:
            return value


def plain(value: Any) -> Any:
    """Without cel-python's types, which are subclasses with other habits."""
    match value:
        case celtypes.BoolType():
            return bool(value)
        case celtypes.IntType() | celtypes.UintType():
            return int(value)
        case celtypes.DoubleType():
            return float(value)
        case celtypes.StringType():
            return str(value)
        case celtypes.BytesType():
            return bytes(value)
        case celtypes.MapType():
            return {str(key): plain(each) for key, each in value.items()}
        case celtypes.ListType():
            return [plain(each) for each in value]
        case celtypes.TimestampType():
            return datetime.datetime.fromisoformat(value.isoformat())
        case celtypes.DurationType():
            return datetime.timedelta(value.days, value.seconds, value.microseconds)
        case Variant():
            # Avro's record of that logical type.
            return {"metadata": value.metadata, "value": value.value}
        case _:
            return value
