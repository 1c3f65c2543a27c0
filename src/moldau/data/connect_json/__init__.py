"""Values as JSON, with and without their schema: what Connect's JsonConverter writes and reads.

With `schemas_enable` a message is `{"schema": ..., "payload": ...}`. Reading is as lenient as
Connect's: a text where a number should be is 0, a number that is too large is cut.
"""

from __future__ import annotations

from moldau.data.connect_json.converter import (
    JsonConverter,
    schema_from_json,
    schema_to_json,
)
from moldau.data.connect_json.options import DecimalFormat, JsonOptions

__all__ = [
    "DecimalFormat",
    "JsonConverter",
    "JsonOptions",
    "schema_from_json",
    "schema_to_json",
]
