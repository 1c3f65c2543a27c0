"""The names that Confluent's AvroData gives to Connect's attributes in Avro, and its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote_plus

from moldau.data.avro.model import AvroType
from moldau.data.avro.parser import Parser
from moldau.data.errors import OptionError
from moldau.data.schema import Schema, Type

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = "ConnectDefault"
MAP_ENTRY = "MapEntry"
UNION = f"{NAMESPACE}.Union"
ENUM = f"{NAMESPACE}.Enum"
ANYTHING = f"{NAMESPACE}.Anything"
RECORD_DOC = f"{NAMESPACE}.record.doc"
ENUM_DOC = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT = f"{NAMESPACE}.enum.default."
FIELD_DOC = f"{NAMESPACE}.field.doc."
FIELD_DEFAULT = f"{NAMESPACE}.field.default"
INTERNAL_TYPE = "connect.internal.type"
FIXED_SIZE = "connect.fixed.size"
PRECISION_DEFAULT = 64
#: Parameters of this prefix are attributes of the Avro schema itself.
AVRO_PREFIX = "avro"

_ANYTHING_TEXT = f"""{{"type": "record", "name": "{ANYTHING}", "fields": [
  {{"name": "boolean", "type": ["null", "boolean"], "default": null}},
  {{"name": "bytes", "type": ["null", "bytes"], "default": null}},
  {{"name": "double", "type": ["null", "double"], "default": null}},
  {{"name": "float", "type": ["null", "float"], "default": null}},
  {{"name": "int", "type": ["null", "int"], "default": null}},
  {{"name": "long", "type": ["null", "long"], "default": null}},
  {{"name": "string", "type": ["null", "string"], "default": null}},
  {{"name": "array", "type": ["null", {{"type": "array", "items": "Anything"}}], "default": null}},
  {{"name": "map", "type": ["null", {{"type": "array", "items":
    {{"type": "record", "name": "{MAP_ENTRY}", "fields": [
      {{"name": "key", "type": "Anything"}}, {{"name": "value", "type": "Anything"}}]}}}}],
    "default": null}}]}}"""


@cache
def anything() -> AvroType:
    """The Avro schema of values that have no Connect schema."""
    return Parser().parse(_ANYTHING_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroDataOptions:
    """Confluent's settings of the same names, with its defaults."""

    connect_meta_data: bool = True
    enhanced_avro_schema_support: bool = False
    allow_optional_map_keys: bool = False
    flatten_singleton_unions: bool = True
    scrub_invalid_names: bool = False

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> AvroDataOptions:
        """The options that a converter's configuration gives; others are ignored."""
        given = {}
        for name in cls.__slots__:
            text = config.get(name.replace("_", "."))
            if text is not None:
                if text.lower() not in ("true", "false"):
                    raise OptionError(f"{name.replace('_', '.')} is true or false, not {text}")
                given[name] = text.lower() == "true"
        return cls(**given)


_VALID_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID = re.compile(r"[^A-Za-z0-9_]")


def scrubbed(name: str) -> str:
    """One part of a name as Avro allows it: encoded as in a URL, with underscores for the rest."""
    if not name or _VALID_NAME.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    return _INVALID.sub("_", "x" + encoded if encoded[0].isdigit() else encoded)


def is_union(schema: Schema) -> bool:
    return schema.name == UNION


def is_enum(schema: Schema) -> bool:
    return schema.type is Type.STRING and ENUM in schema.parameters


def is_fixed(schema: Schema) -> bool:
    return schema.type is Type.BYTES and schema.name is not None and FIXED_SIZE in schema.parameters
