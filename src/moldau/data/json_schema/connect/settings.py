"""Settings of the conversion, and the names it gives things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moldau.data.schema import Schema

NAMESPACE = "io.confluent.connect.json"
ONE_OF_NAME = NAMESPACE + ".OneOf"
ENUM_PARAMETER = NAMESPACE + ".Enum"
#: The names that Avro and Protobuf have as well, with `generalized.sum.type.support`.
GENERAL_UNION_PARAMETER = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM_PARAMETER = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION_PREFIX = "connect_union_"
#: Stands for null among the symbols of an enum.
NULL_SYMBOL = "<NULL>"

CONNECT_TYPE = "connect.type"
CONNECT_VERSION = "connect.version"
CONNECT_PARAMETERS = "connect.parameters"
CONNECT_INDEX = "connect.index"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchemaDataConfig:
    """Named after the keys of Confluent's converter, with dots for underscores."""

    object_additional_properties: bool = True
    use_optional_for_nonrequired: bool = False
    decimal_format: Literal["BASE64", "NUMERIC"] = "BASE64"
    generalized_sum_type_support: bool = False
    flatten_singleton_unions: bool = True
    ignore_default_for_nullables: bool = False

    @property
    def enum_parameter(self) -> str:
        general = self.generalized_sum_type_support
        return GENERAL_ENUM_PARAMETER if general else ENUM_PARAMETER


DEFAULT_CONFIG = JsonSchemaDataConfig()


def is_union(schema: Schema) -> bool:
    """Whether a struct stands for alternatives, of which one field is set."""
    return schema.name == ONE_OF_NAME or GENERAL_UNION_PARAMETER in schema.parameters
