"""PROTOBUF and PROTOBUF_NOSR: messages with and without the id of a registered schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.data.protobuf.connect import ProtobufData, ProtobufDataOptions
from moldau.data.protobuf.indexes import decode_path, encode_path
from moldau.data.protobuf.schema import ProtobufLanguage, ProtobufSchema
from moldau.data.schema import Schema, Type
from moldau.sql.errors import KsqlException
from moldau.sql.formats import common, connect_schemas, connect_values, registered
from moldau.sql.formats.common import CallableSerde, Row
from moldau.sql.formats.errors import SerdeError
from moldau.sql.ports import Feature, RowSerde, SchemaRegistry, references_of
from moldau.sql.types import Column, SqlType

_UNWRAP = "unwrapPrimitives"
_NULLABLE = "nullableRepresentation"
_FEATURES = frozenset({common.WRAP_SINGLES, common.SCHEMA_INFERENCE})
_NO_REGISTRY_FEATURES = frozenset({common.WRAP_SINGLES, common.UNWRAP_SINGLES})
_PROPERTIES = frozenset(
    {common.FULL_SCHEMA_NAME, common.SCHEMA_ID, common.SUBJECT_NAME, _UNWRAP, _NULLABLE}
)
_NO_REGISTRY_PROPERTIES = frozenset({_UNWRAP, _NULLABLE})
_DEFAULT_PREFIX = "ConnectDefault"
_MAP_KEYS = (
    "PROTOBUF format only supports MAP types with STRING keys. "
    "See https://github.com/confluentinc/ksql/issues/6177."
)


def _data(
    properties: Mapping[str, str], *, enhanced: bool = False, reads: bool = False
) -> ProtobufData:
    """`reads`: the messages around primitives are those, whoever wrote them."""
    nullable = properties.get(_NULLABLE)
    return ProtobufData(
        ProtobufDataOptions(
            wrapper_for_raw_primitives=properties.get(_UNWRAP, "false").lower() == "true",
            optional_for_nullables=nullable == "optional",
            wrapper_for_nullables=reads or nullable == "wrapper",
            enhanced_protobuf_schema_support=enhanced,
        )
    )


class ProtobufFormat:
    name = "PROTOBUF"

    def __init__(self, properties: Mapping[str, str]) -> None:
        common.check_properties(self.name, properties, _PROPERTIES)
        self._properties = dict(properties)
        name = properties.get(common.FULL_SCHEMA_NAME, "").strip()
        self._full_name = None if not name or name.startswith(_DEFAULT_PREFIX) else name
        schema_id = properties.get(common.SCHEMA_ID)
        self._schema_id = None if schema_id is None else int(schema_id)

    def supports(self, feature: Feature) -> bool:
        return feature in _FEATURES

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return True

    def inheritable_properties(self) -> frozenset[str]:
        return frozenset({common.FULL_SCHEMA_NAME})

    def _schema(self, columns: Sequence[Column], features: frozenset[Feature]) -> Schema:
        schema = connect_schemas.schema_of(columns, features)
        if self._full_name is None or schema.type is not Type.STRUCT:
            return schema
        return schema.replace(name=self._full_name)

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        common.check_features(features, _FEATURES)
        data = _data(self._properties, enhanced=True)
        return self.name, data.from_connect_schema(self._schema(columns, features)).canonical_text

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        common.check_features(features, _FEATURES)
        schema = _connect_schema(
            _data(self._properties, enhanced=True, reads=True),
            ProtobufLanguage().parse(text, references_of(text)),
            self._full_name,
        )
        return connect_schemas.columns_of(
            schema, features, is_key=is_key, keep_case=self._schema_id is not None
        )

    def _registered(self, registry: SchemaRegistry | None) -> tuple[int, str] | None:
        """The schema that a statement names, by its id or its subject."""
        if self._schema_id is not None:
            return self._schema_id, registered.registered_schema(registry, self._schema_id)[1]
        subject = self._properties.get(common.SUBJECT_NAME)
        if subject is None:
            return None
        try:
            if registry is None:
                raise LookupError(subject)
            found, _, text = registry.latest(subject)
            return found, text
        except LookupError as error:
            raise KsqlException(
                "Failed to fetch schema for serialization from Schema Registry using schema "
                f"subject: {subject}"
            ) from error

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        common.check_features(features, _FEATURES)
        kind = common.row_type(columns)
        common.check_map_keys(kind, _MAP_KEYS)
        data = _data(self._properties)
        schema = self._schema(columns, features)
        known = self._registered(registry)
        schema_id = self._schema_id
        to_value: Callable[[Any], Any]
        if known is None:
            proto = data.from_connect_schema(schema)
            to_value = connect_values.to_connect(kind, schema)
        else:
            proto = ProtobufLanguage().parse(known[1], references_of(known[1]))
            schema = _connect_schema(data, proto, self._full_name or proto.name)
            to_value = connect_values.to_registered(kind, schema, "Protobuf")
            if sum(1 for _ in proto.file.messages()) > 1:
                schema_id = known[0]
        encode, indexes = _encoder(data, schema, proto, self._full_name, known is not None)
        ids = registered.IdWriter(
            registry, self.name, proto.canonical_text, is_key=is_key, schema_id=schema_id
        )
        reading = _data(self._properties, reads=True)
        reader = registered.SchemaReader(registry, lambda _, text: _reader(reading, text, kind))

        def write(topic: str, row: Row) -> bytes | None:
            return ids.prefix(topic) + indexes + encode(to_value(row))

        return CallableSerde(
            registered.writing(write), registered.reading(reader.read, single=False), len(columns)
        )


def _named(schema: ProtobufSchema, full_name: str | None) -> str | None:
    return schema.name if full_name is None else full_name


def _connect_schema(data: ProtobufData, schema: ProtobufSchema, full_name: str | None) -> Schema:
    """The Connect schema of one message of a file; of the first one without a name."""
    return data.to_connect_schema(_about(schema, full_name))


def _about(schema: ProtobufSchema, full_name: str | None) -> ProtobufSchema:
    if full_name is None or full_name == schema.name:
        return schema
    return schema.about(full_name)


def _encoder(
    data: ProtobufData,
    schema: Schema,
    proto: ProtobufSchema,
    full_name: str | None,
    is_registered: bool,
) -> tuple[Callable[[Any], bytes], bytes]:
    name = _named(proto, full_name if is_registered else None)
    indexes = encode_path(proto.message_indexes(name))
    if not is_registered:

        def encode(value: Any) -> bytes:
            return bytes(data.from_connect(schema, value)[1].SerializeToString())

        return encode, indexes
    message_class = proto.message_class(name)

    def encode_registered(value: Any) -> bytes:
        return bytes(data.filled(message_class(), schema, value).SerializeToString())

    return encode_registered, indexes


def _reader(data: ProtobufData, text: str, kind: SqlType) -> Callable[[bytes], Any]:
    """Reads whichever message of the file the payload says it is."""
    schema = ProtobufLanguage().parse(text, references_of(text))
    readers: dict[tuple[int, ...], Callable[[bytes], Any]] = {}

    def read(payload: bytes) -> Any:
        path, start = decode_path(payload)
        reader = readers.get(path)
        if reader is None:
            reader = readers[path] = _message_reader(
                data, _about(schema, schema.message_name(path)), kind
            )
        return reader(payload[start:])

    return read


def _message_reader(
    data: ProtobufData, schema: ProtobufSchema, kind: SqlType
) -> Callable[[bytes], Any]:
    message_class = schema.message_class()
    convert = connect_values.from_connect(kind, data.to_connect_schema(schema))

    def read(payload: bytes) -> Any:
        message = message_class()
        try:
            message.ParseFromString(payload)
        except Exception as error:
            raise SerdeError(f"Error deserializing Protobuf message: {error}") from error
        return convert(data.to_connect(schema, message).value)

    return read


class ProtobufNoRegistryFormat:
    name = "PROTOBUF_NOSR"

    def __init__(self, properties: Mapping[str, str]) -> None:
        common.check_properties(self.name, properties, _NO_REGISTRY_PROPERTIES)
        self._properties = dict(properties)

    def supports(self, feature: Feature) -> bool:
        return feature in _NO_REGISTRY_FEATURES

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return True

    def inheritable_properties(self) -> frozenset[str]:
        return _NO_REGISTRY_PROPERTIES

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        raise common.without_registry(self.name)

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        raise common.without_registry(self.name)

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        common.check_features(features, _NO_REGISTRY_FEATURES)
        common.check_map_keys(common.row_type(columns), _MAP_KEYS)
        single = common.single_column(columns, features)
        kind = common.row_type(columns) if single is None else single.type
        data = _data(self._properties)
        schema = connect_schemas.schema_of(columns, features)
        to_value = connect_values.to_connect(kind, schema)
        proto = data.from_connect_schema(schema)
        read = _message_reader(data, proto, kind)

        def write(topic: str, row: Row) -> bytes | None:
            value = to_value(row if single is None else row[0])
            if value is None:
                return None
            return bytes(data.from_connect(schema, value)[1].SerializeToString())

        return CallableSerde(
            registered.writing(write),
            registered.reading(read, single=single is not None),
            len(columns),
        )


def message_schema(columns: Sequence[Column]) -> str:
    """The schema of rows that are written without a registry."""
    schema = connect_schemas.schema_of(columns, frozenset())
    return _data({}).from_connect_schema(schema).canonical_text
