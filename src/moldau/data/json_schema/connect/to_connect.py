"""From a JSON Schema to a Connect schema."""

from __future__ import annotations

from typing import Any

from moldau.data.builders import checked
from moldau.data.errors import DataError
from moldau.data.json_schema.connect.settings import (
    CONNECT_INDEX,
    CONNECT_PARAMETERS,
    CONNECT_TYPE,
    CONNECT_VERSION,
    DEFAULT_CONFIG,
    GENERAL_UNION_PARAMETER,
    GENERAL_UNION_PREFIX,
    NULL_SYMBOL,
    ONE_OF_NAME,
    JsonSchemaDataConfig,
)
from moldau.data.json_schema.connect.values import KEY_FIELD, VALUE_FIELD, value_to_connect
from moldau.data.json_schema.model import (
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConstSchema,
    Criterion,
    EnumSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    ReferenceSchema,
    SchemaNode,
    StringSchema,
)
from moldau.data.json_schema.schema import JsonSchema
from moldau.data.schema import Field, Schema, Type

#: Of schemas inside of one another, through references too.
DEPTH_MAX = 100
NODES_MAX = 20_000
_NUMBERS = {
    each.value: each
    for each in (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
} | {"bytes": Type.BYTES}


def schema_to_connect(
    schema: JsonSchema, config: JsonSchemaDataConfig = DEFAULT_CONFIG, version: int | None = None
) -> Schema:
    """The Connect schema; DataError for what Connect has no schema for, such as a recursive one.

    Fields are in the order of `connect.index`, and without one in the order of the text.
    """
    return _Reader(config).read(schema.model, version=version)


class _Reader:
    def __init__(self, config: JsonSchemaDataConfig) -> None:
        self._config = config
        self._unions_count = 0
        self._nodes_left = NODES_MAX
        self._reading: list[SchemaNode] = []
        self._read_before: dict[tuple[int, int | None, bool], Schema] = {}

    def read(
        self, node: SchemaNode, *, version: int | None = None, optional: bool = False
    ) -> Schema:
        if isinstance(node, ReferenceSchema):
            node = node.target
        key = (id(node), version, optional)
        # Unions are numbered with this setting, so that each place has a schema of its own.
        known = None if self._config.generalized_sum_type_support else self._read_before.get(key)
        if known is not None:
            return known
        self._nodes_left -= 1
        if len(self._reading) >= DEPTH_MAX or self._nodes_left < 0:
            raise DataError(
                f"The schema is nested more than {DEPTH_MAX} levels deep, "
                f"or has more than {NODES_MAX} parts"
            )
        if any(each is node for each in self._reading):
            name = node.title or "a schema"
            raise DataError(f"Connect has no recursive schemas, and {name} is inside itself")
        self._reading.append(node)
        try:
            found = self._read_before[key] = self._read(node, version, optional=optional)
            return found
        finally:
            self._reading.pop()

    def _read(self, node: SchemaNode, version: int | None, *, optional: bool) -> Schema:
        if isinstance(node, CombinedSchema):
            only = node.subschemas[0] if len(node.subschemas) == 1 else None
            if only is not None and self._config.flatten_singleton_unions:
                return self.read(only)
            if node.criterion is Criterion.ALL:
                return self._read_all_of(node, version, optional=optional)
            others = [each for each in node.subschemas if not isinstance(each, NullSchema)]
            if len(node.subschemas) == 2 and len(others) == 1:
                return self.read(others[0], version=version, optional=True)
        return _described(self._of_type(node), node, version, optional=optional)

    def _of_type(self, node: SchemaNode) -> Schema:
        connect_type = node.unprocessed.get(CONNECT_TYPE)
        match node:
            case BooleanSchema():
                return Schema(type=Type.BOOLEAN)
            case NumberSchema():
                plain = "int64" if node.requires_integer else "float64"
                wanted = plain if connect_type is None else str(connect_type)
                if wanted not in _NUMBERS:
                    raise DataError(f"Unsupported type {wanted:.50}")
                return Schema(type=_NUMBERS[wanted])
            case StringSchema():
                return Schema(type=Type.BYTES if connect_type == "bytes" else Type.STRING)
            case ConstSchema():
                return self._enum([node.value])
            case EnumSchema():
                return self._enum(node.values)
            case CombinedSchema():
                return self._union(node)
            case ArraySchema():
                return self._array(node, is_map=connect_type == "map")
            case ObjectSchema():
                return self._object(node, is_map=connect_type == "map")
        raise DataError(f"Unsupported schema type {type(node).__name__}")

    def _enum(self, values: list[Any]) -> Schema:
        parameter = self._config.enum_parameter
        parameters = {parameter: ""}
        for index, value in enumerate(values):
            symbol = NULL_SYMBOL if value is None else _symbol(value)
            general = self._config.generalized_sum_type_support
            parameters[f"{parameter}.{symbol}"] = str(index) if general else symbol
        return Schema(type=Type.STRING, parameters=parameters)

    def _union(self, node: CombinedSchema) -> Schema:
        name, prefix, parameters = ONE_OF_NAME, ONE_OF_NAME + ".field.", {}
        if self._config.generalized_sum_type_support:
            name, prefix = f"{GENERAL_UNION_PREFIX}{self._unions_count}", GENERAL_UNION_PREFIX
            prefix += "field_"
            parameters = {GENERAL_UNION_PARAMETER: name}
            self._unions_count += 1
        others = [each for each in node.subschemas if not isinstance(each, NullSchema)]
        fields = tuple(
            Field(f"{prefix}{index}", index, self.read(each, optional=True))
            for index, each in enumerate(others)
        )
        return Schema(
            type=Type.STRUCT,
            name=name,
            fields=fields,
            parameters=parameters,
            optional=len(others) < len(node.subschemas),
        )

    def _array(self, node: ArraySchema, *, is_map: bool) -> Schema:
        items = node.all_items
        if items is None:
            raise DataError("Array schema did not specify the items type")
        if is_map and isinstance(items, ObjectSchema):
            key, value = items.properties.get(KEY_FIELD), items.properties.get(VALUE_FIELD)
            if key is None or value is None:
                raise DataError("The items of a map must have a key and a value")
            return Schema(type=Type.MAP, key_schema=self.read(key), value_schema=self.read(value))
        return Schema(type=Type.ARRAY, value_schema=self.read(items))

    def _object(self, node: ObjectSchema, *, is_map: bool) -> Schema:
        if is_map:
            if node.additional_properties is None:
                raise DataError("A map must have a schema for its additionalProperties")
            return Schema(
                type=Type.MAP,
                key_schema=Schema(type=Type.STRING),
                value_schema=self.read(node.additional_properties),
            )
        return self._struct(node.properties, set(node.required_properties))

    def _struct(self, properties: dict[str, SchemaNode], required: set[str]) -> Schema:
        nonrequired = self._config.use_optional_for_nonrequired
        ordered = sorted(
            enumerate(properties.items()),
            key=lambda each: (_index(each[1][1], each[0]), each[0]),
        )
        fields = tuple(
            Field(name, index, self.read(inner, optional=nonrequired and name not in required))
            for index, (_, (name, inner)) in enumerate(ordered)
        )
        return Schema(type=Type.STRUCT, fields=fields)

    def _read_all_of(self, node: CombinedSchema, version: int | None, *, optional: bool) -> Schema:
        """A struct of all properties; else the part that says most about a value."""
        properties: dict[str, SchemaNode] = {}
        required: set[str] = set()
        _collect(node, properties, required, set())
        if properties:
            struct = self._struct(properties, required)
            return struct.as_optional() if optional else struct
        chosen = _chosen_part(node)
        if chosen is None:
            raise DataError("Unsupported criterion allOf: no part of it has a Connect schema")
        return self.read(chosen, version=version, optional=optional)


def _symbol(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _index(node: SchemaNode, position: int) -> int:
    index = node.unprocessed.get(CONNECT_INDEX)
    return index if isinstance(index, int) else position


def _chosen_part(node: CombinedSchema) -> SchemaNode | None:
    """The part of an allOf without properties that Confluent's converter takes."""
    by_type: dict[type[SchemaNode], SchemaNode] = {type(each): each for each in node.subschemas}
    number, text = by_type.get(NumberSchema), by_type.get(StringSchema)
    if CombinedSchema in by_type:
        return by_type[CombinedSchema]
    if ConstSchema in by_type:
        return text or number
    if EnumSchema in by_type:
        return by_type[EnumSchema] if text is not None else number
    if text is not None:
        return number or text
    return by_type.get(ReferenceSchema)


def _collect(
    node: SchemaNode, properties: dict[str, SchemaNode], required: set[str], seen: set[int]
) -> None:
    """The properties of all parts of an allOf, of their references and of allOfs inside it."""
    if isinstance(node, ReferenceSchema):
        node = node.target
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, CombinedSchema) and node.criterion is Criterion.ALL:
        for each in node.subschemas:
            _collect(each, properties, required, seen)
    elif isinstance(node, ObjectSchema):
        properties.update(node.properties)
        required -= node.properties.keys()
        required |= node.properties.keys() & set(node.required_properties)


def _described(schema: Schema, node: SchemaNode, version: int | None, *, optional: bool) -> Schema:
    own_version = node.unprocessed.get(CONNECT_VERSION)
    parameters = node.unprocessed.get(CONNECT_PARAMETERS, {})
    if not isinstance(parameters, dict) or not all(
        isinstance(each, str) for each in parameters.values()
    ):
        raise DataError(f"{CONNECT_PARAMETERS} must be an object of strings")
    named = schema.replace(
        name=schema.name or node.title,
        version=own_version if isinstance(own_version, int) else version,
        doc=node.description,
        parameters={**schema.parameters, **parameters},
        optional=schema.optional or optional,
    )
    if not node.has_default or node.default is None:
        return named
    return checked(named.replace(default=value_to_connect(named, node.default)))
