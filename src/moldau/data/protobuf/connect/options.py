"""The settings of Confluent's ProtobufConverter, and the names it writes into Connect schemas."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.data.errors import OptionError
from moldau.data.schema import Schema, Type

NAMESPACE = "io.confluent.connect.protobuf"
ENUM = f"{NAMESPACE}.Enum"
UNION = f"{NAMESPACE}.Union"
#: The number of a field.
TAG = f"{NAMESPACE}.Tag"
#: The scalar of the language where Connect's type does not tell.
TYPE = f"{NAMESPACE}.Type"
#: Marks a field of a union that is a wrapper: all fields of a union are optional.
WRAPPER = f"{NAMESPACE}.Wrapper"
GENERALIZED_ENUM = "org.apache.kafka.connect.data.Enum"
GENERALIZED_UNION = "org.apache.kafka.connect.data.Union"
VARIANT = "org.apache.kafka.connect.data.Variant"
CONNECT_TYPE = "connect.type"

DECIMAL_TYPE = "confluent.type.Decimal"
VARIANT_TYPE = "confluent.type.Variant"
DATE_TYPE = "google.type.Date"
TIME_TYPE = "google.type.TimeOfDay"
TIMESTAMP_TYPE = "google.protobuf.Timestamp"

#: The wrappers and what is in them.
WRAPPERS = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}
WRAPPERS_FILE = "google/protobuf/wrappers.proto"
#: Where the messages are declared that fields of Connect's types have.
FILES = {
    DECIMAL_TYPE: "confluent/type/decimal.proto",
    VARIANT_TYPE: "confluent/type/variant.proto",
    DATE_TYPE: "google/type/date.proto",
    TIME_TYPE: "google/type/timeofday.proto",
    TIMESTAMP_TYPE: "google/protobuf/timestamp.proto",
    **dict.fromkeys(WRAPPERS, WRAPPERS_FILE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufDataOptions:
    """The settings, each named as its key with underscores for dots."""

    generalized_sum_type_support: bool = False
    ignore_default_for_nullables: bool = False
    enhanced_protobuf_schema_support: bool = False
    scrub_invalid_names: bool = False
    int_for_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True
    generate_struct_for_nulls: bool = False
    generate_index_for_unions: bool = True
    flatten_unions: bool = False

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> ProtobufDataOptions:
        """The options that a configuration gives; other keys are ignored."""
        chosen: dict[str, bool] = {}
        for each in dataclasses.fields(cls):
            key = each.name.replace("_", ".")
            if key not in config:
                continue
            text = config[key].strip().lower()
            if text not in ("true", "false"):
                raise OptionError(
                    f"Invalid value {config[key]} for configuration {key}: expected true or false"
                )
            chosen[each.name] = text == "true"
        return cls(**chosen)

    @property
    def enum_parameter(self) -> str:
        return GENERALIZED_ENUM if self.generalized_sum_type_support else ENUM


def is_union(schema: Schema) -> bool:
    """Whether a struct stands for a oneof."""
    return (schema.name or "").startswith(UNION) or GENERALIZED_UNION in schema.parameters


def enum_name(schema: Schema) -> str | None:
    """The name of the enum that a string or number stands for."""
    parameters = schema.parameters
    if schema.type is Type.STRING and GENERALIZED_ENUM in parameters:
        return parameters[GENERALIZED_ENUM]
    if schema.type in (Type.STRING, Type.INT32):
        return parameters.get(ENUM)
    return None
