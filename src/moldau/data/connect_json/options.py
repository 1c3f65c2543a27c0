"""The settings of Connect's JsonConverter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from moldau.data.errors import OptionError
from moldau.data.schema import Type

#: How Connect's JSON calls the types.
TYPE_NAMES = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "int8",
    Type.INT16: "int16",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.STRING: "string",
    Type.BYTES: "bytes",
    Type.ARRAY: "array",
    Type.MAP: "map",
    Type.STRUCT: "struct",
}
#: How many schemas a converter remembers.
SCHEMAS_CACHED_MAX = 1000


class DecimalFormat(Enum):
    BASE64 = "BASE64"
    NUMERIC = "NUMERIC"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """The settings of Connect's JsonConverter."""

    schemas_enable: bool = True
    decimal_format: DecimalFormat = DecimalFormat.BASE64
    replace_null_with_default: bool = True

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> JsonOptions:
        """The options that a connector's configuration gives; others are ignored."""
        format_name = config.get("decimal.format", "BASE64")
        try:
            decimal_format = DecimalFormat(format_name.upper())
        except ValueError:
            raise OptionError(
                f"Invalid value {format_name} for configuration decimal.format: String must be "
                "one of (case insensitive): NUMERIC, BASE64"
            ) from None
        return cls(
            schemas_enable=_flag(config, "schemas.enable"),
            decimal_format=decimal_format,
            replace_null_with_default=_flag(config, "replace.null.with.default"),
        )


def _flag(config: Mapping[str, str], key: str) -> bool:
    text = config.get(key, "true").strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"Invalid value {text} for configuration {key}: expected true or false")
    return text == "true"
