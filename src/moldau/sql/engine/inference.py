"""Schemas in a registry: columns that a CREATE statement leaves out, and those that it brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moldau.data.errors import DataError
from moldau.data.schema_language import SchemaError
from moldau.sql.errors import KsqlException
from moldau.sql.planning.formats import Formats
from moldau.sql.ports import SchemaRegistry
from moldau.sql.sources.data_source import DataSource, FormatInfo, KeyFormat, ValueFormat
from moldau.sql.sources.properties import SourceProperties
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.statements import CreateSource, Element
from moldau.sql.types import Column, SqlType

_INFERENCE = "SCHEMA_INFERENCE"


def subject(topic: str, *, is_key: bool) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


class Inference:
    """Reads and registers schemas."""

    def __init__(self, formats: Formats, registry: SchemaRegistry | None) -> None:
        self._formats = formats
        self._registry = registry

    def with_columns(
        self,
        statement: CreateSource,
        properties: SourceProperties,
        key: FormatInfo,
        value: FormatInfo,
    ) -> CreateSource:
        """The statement with the columns that the registry knows."""
        elements = statement.elements
        has_keys = any(each.is_key for each in elements)
        has_values = any(each.constraint is None for each in elements)
        keys = self._columns(properties, key, is_key=True, has_columns=has_keys)
        values = self._columns(properties, value, is_key=False, has_columns=has_values)
        if keys is None and values is None:
            return statement
        headers = [each for each in elements if each.constraint == "HEADERS"]
        key_word = "KEY" if statement.kind == "STREAM" else "PRIMARY KEY"
        key_part = [each for each in elements if each.is_key]
        if keys is not None:
            key_part = [Element(name, kind, key_word) for name, kind in keys]  # type: ignore[arg-type]
        value_part = [each for each in elements if each.constraint is None]
        if values is not None:
            value_part = [Element(name, kind) for name, kind in values]
        return replace(statement, elements=(*headers, *key_part, *value_part))

    def _columns(
        self, properties: SourceProperties, info: FormatInfo, *, is_key: bool, has_columns: bool
    ) -> list[tuple[str, SqlType]] | None:
        """The columns of a registered schema; None where the statement has its own."""
        side = "KEY" if is_key else "VALUE"
        schema_id = properties.get(f"{side}_SCHEMA_ID")
        try:
            inferred = self._formats.of(info).supports(_INFERENCE)
        except KsqlException as error:
            if "does not support the following configs: [schemaId]" not in str(error):
                raise
            inferred = False
        if schema_id is not None:
            if not inferred:
                raise KsqlException(
                    f"{side}_FORMAT should support schema inference when {side}_SCHEMA_ID is "
                    f"provided. Current format is {info.name}."
                )
            if has_columns:
                raise KsqlException(
                    f"Table elements and {side}_SCHEMA_ID cannot both exist for create statement."
                )
        elif has_columns or not inferred:
            return None
        columns = self.columns(properties.topic, schema_id, info, properties, is_key=is_key)
        if not str(properties.get(f"{side}_SCHEMA_FULL_NAME") or "").strip():
            self._check_one_definition(properties.topic, schema_id, is_key=is_key)
        return columns

    def _check_one_definition(self, topic: str, schema_id: int | None, *, is_key: bool) -> None:
        """Of a file with several messages the statement has to say which one it means."""
        kind, text = self._fetched(topic, schema_id, is_key=is_key)
        if kind != "PROTOBUF":
            return
        # The library behind it is an extra, and takes a while to import.
        from moldau.data.protobuf.parser import parse_text

        file = parse_text(text)
        names = [f"{file.package}.{each.name}".lstrip(".") for each in file.types]
        if len(names) > 1:
            side = "Key" if is_key else "Value"
            listed = "\n".join(f"- {each}" for each in names)
            raise KsqlException(
                f"{side} schema has multiple schema definitions. \n\n{listed}\n\nPlease specify a "
                f"schema full name in the WITH clause using {side.upper()}_SCHEMA_FULL_NAME"
            )

    def _fetched(
        self, topic: str | None, schema_id: int | None, *, is_key: bool
    ) -> tuple[str, str]:
        """Type and text of a topic's latest schema, or of the schema with an id."""
        registry = self._registry
        try:
            if registry is None:
                raise LookupError(topic)
            if schema_id is not None:
                return registry.by_id(schema_id)
            _, kind, text = registry.latest(subject(topic or "", is_key=is_key))
            return kind, text
        except LookupError:
            raise _not_found(topic, schema_id, is_key=is_key) from None

    def columns(
        self,
        topic: str | None,
        schema_id: int | None,
        info: FormatInfo,
        properties: SourceProperties,
        *,
        is_key: bool,
    ) -> list[tuple[str, SqlType]]:
        """The columns of a topic's latest schema, or of the schema with an id."""
        self._need_registry(topic or "", info)
        kind, text = self._fetched(topic, schema_id, is_key=is_key)
        found = self._formats.of(info)
        expected = _registry_type(info.name)
        if kind != expected:
            side = "Key" if is_key else "Value"
            raise KsqlException(
                f"{side} schema is not in the expected format. You may want to set "
                f"{side.upper()}_FORMAT to '{kind}'.\n{_source(topic, schema_id)}\n"
                f"expected format: {expected}\nactual format from Schema Registry: {kind}"
            )
        features = properties.value_features
        if is_key:
            features = self._formats.key_features(info, is_single=True)
        try:
            columns = found.columns_of(kind, text, features, is_key=is_key)
        except (KsqlException, DataError, SchemaError) as error:
            side = "key" if is_key else "value"
            raise KsqlException(
                f"Unable to verify if the {side} schema for {_source(topic, schema_id)} is "
                f"compatible with ksqlDB.\nReason: {error}\n\nPlease see "
                "https://github.com/confluentinc/ksql/issues/ to see if this particular reason is "
                "already known.\nIf not, please log a new issue, including this full error "
                f"message.\nSchema:{text}"
            ) from error
        if is_key and len(columns) > 1:
            raise KsqlException(
                f"The key schema for {_source(topic, schema_id)} contains multiple columns, which "
                f"is not supported by ksqlDB at this time.\nSchema:{text}"
            )
        return columns

    def check_schema_id(
        self,
        columns: Sequence[Column],
        schema_id: int | None,
        topic: str,
        info: FormatInfo,
        properties: SourceProperties,
        *,
        is_key: bool,
    ) -> None:
        """The columns of CREATE ... AS SELECT are those of the schema with an id."""
        if schema_id is None:
            return
        side = "KEY" if is_key else "VALUE"
        if not self._formats.of(info).supports(_INFERENCE):
            raise KsqlException(
                f"{side}_FORMAT should support schema inference when {side}_SCHEMA_ID is "
                f"provided. Current format is {info.name}."
            )
        found = self.columns(topic, schema_id, info, properties, is_key=is_key)
        places = list(enumerate(found))
        missing = [
            str(each)
            for place, each in enumerate(columns)
            if (place, (each.name, each.type)) not in places
        ]
        if columns and missing:
            marker = " KEY" if is_key else ""
            shown = ", ".join(f"`{name}` {kind}{marker}" for name, kind in found)
            raise KsqlException(
                f"The following {side.lower()} columns are changed, missing or reordered: "
                f"[{', '.join(missing)}]. Schema from schema registry is [{shown}]"
            )

    def register(
        self,
        topic: str,
        schema: LogicalSchema,
        key: KeyFormat,
        value: ValueFormat,
        *,
        if_missing: bool,
    ) -> None:
        """Register the schemas of a topic's keys and values."""
        self._register(topic, schema.key, key.format, key.features, True, if_missing)
        self._register(topic, schema.value, value.format, value.features, False, if_missing)

    def _register(
        self,
        topic: str,
        columns: Sequence[Column],
        info: FormatInfo,
        features: frozenset[str],
        is_key: bool,
        if_missing: bool,
    ) -> None:
        found = self._formats.of(info)
        if not found.supports(_INFERENCE):
            return
        registry = self._need_registry(topic, info)
        name = subject(topic, is_key=is_key)
        schema_id = dict(info.properties).get("schemaId")
        if if_missing and _exists(registry, name):
            return
        try:
            if schema_id is not None:
                kind, text = registry.by_id(int(schema_id))
            else:
                kind, text = found.schema_text(columns, features)
            registry.register(name, kind, text)
        except (KsqlException, DataError, SchemaError, LookupError) as error:
            raise KsqlException(f"Could not register schema for topic: {error}") from error

    def check_insert(self, source: DataSource) -> None:
        """Keys that INSERT VALUES writes have the registered schema: with the id of another, equal
        keys would be in different partitions."""
        key = source.key_format
        found = self._formats.of(key.format)
        if not found.supports(_INFERENCE) or not source.schema.key:
            return
        try:
            kind, text = self._fetched(source.topic, None, is_key=True)
        except KsqlException:
            raise KsqlException(
                f"Failed to fetch key schema ({subject(source.topic, is_key=True)}). Please check "
                "if schema exists in Schema Registry and/or check connection with Schema Registry."
            ) from None
        try:
            own = found.columns_of(
                *found.schema_text(source.schema.key, key.features), key.features, is_key=True
            )
            theirs = found.columns_of(kind, text, key.features, is_key=True)
        except (KsqlException, DataError, SchemaError):
            # Whether rows can be written with it is for the serde to say.
            return
        if own != theirs:
            existing = ", ".join(f"`{name}` {kind_of}" for name, kind_of in theirs)
            generated = ", ".join(str(each) for each in source.schema.key)
            raise KsqlException(
                f"Cannot INSERT VALUES into data source `{source.name}`. ksqlDB generated schema "
                f"would overwrite existing key schema.\n\tExisting Schema: [{existing}]\n\t"
                f"ksqlDB Generated: [{generated}]"
            )

    def forget(self, topic: str, info: FormatInfo, *, is_key: bool) -> None:
        """Delete the schemas of a topic that was deleted."""
        if self._registry is not None and self._formats.of(info).supports(_INFERENCE):
            self._registry.delete(subject(topic, is_key=is_key))

    def _need_registry(self, topic: str, info: FormatInfo) -> SchemaRegistry:
        if self._registry is None:
            raise KsqlException(
                f"Cannot create topic '{topic}' with format {info.name} without configuring "
                "'ksql.schema.registry.url'"
            )
        return self._registry


def _exists(registry: SchemaRegistry, name: str) -> bool:
    try:
        registry.latest(name)
    except LookupError:
        return False
    return True


def _registry_type(name: str) -> str:
    return {"JSON_SR": "JSON"}.get(name, name)


def _source(topic: str | None, schema_id: int | None) -> str:
    parts = [] if topic is None else [f"topic: {topic}"]
    if schema_id is not None:
        parts.append(f"schema id: {schema_id}")
    return ", ".join(parts)


def _not_found(topic: str | None, schema_id: int | None, *, is_key: bool) -> KsqlException:
    what = "keys" if is_key else "values"
    shown_id = "" if schema_id is None else f"Schema Id: {schema_id}\n"
    return KsqlException(
        f"Schema for message {what} on topic '{topic}' does not exist in the Schema Registry.\n"
        f"Subject: {subject(topic or '', is_key=is_key)}\n{shown_id}Possible causes include:\n"
        "- The topic itself does not exist\n\t-> Use SHOW TOPICS; to check\n"
        "- Messages on the topic are not serialized using a format Schema Registry supports\n"
        f"\t-> Use PRINT '{topic}' FROM BEGINNING; to verify\n"
        "- Messages on the topic have not been serialized using a Confluent Schema Registry "
        "supported serializer\n"
        "- The schema is registered on a different instance of the Schema Registry\n"
        "- You do not have permissions to access the Schema Registry."
    )
