"""CREATE, ALTER and DROP of sources and types."""

from __future__ import annotations

from dataclasses import replace

from moldau.sql.engine.inference import Inference
from moldau.sql.engine.ports import Topics
from moldau.sql.engine.results import Done
from moldau.sql.engine.settings import (
    DEFAULT_KEY_FORMAT,
    DEFAULT_VALUE_FORMAT,
    HEADERS_ENABLED,
    WRAP_SINGLE_VALUES,
    Settings,
)
from moldau.sql.errors import KsqlException
from moldau.sql.planning.formats import Formats
from moldau.sql.ports import SchemaRegistry
from moldau.sql.sources.data_source import DataSource, KeyFormat, ValueFormat
from moldau.sql.sources.metastore import MetaStore, already_exists
from moldau.sql.sources.properties import (
    SourceProperties,
    check_cleanup_policy,
    check_retention,
)
from moldau.sql.sources.schema import (
    SYSTEM_COLUMNS,
    DuplicateColumnException,
    LogicalSchema,
)
from moldau.sql.sources.timestamps import check_timestamp_column
from moldau.sql.syntax.statements import (
    AlterSource,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    Element,
)
from moldau.sql.topology.serdes import Serdes
from moldau.sql.types import Column, Namespace


def schema_of(elements: tuple[Element, ...]) -> LogicalSchema:
    """The columns of a CREATE statement."""
    if not elements:
        raise KsqlException("No columns supplied.")
    columns = []
    for each in elements:
        if each.name in SYSTEM_COLUMNS:
            raise KsqlException(
                f"'{each.name}' is a reserved column name. "
                "You cannot use it as a name for a column."
            )
        namespace = Namespace.VALUE
        if each.is_key:
            namespace = Namespace.KEY
        elif each.constraint == "HEADERS":
            namespace = Namespace.HEADERS
        columns.append(Column(each.name, each.type, namespace, each.header or None))
    return LogicalSchema(columns)


class Ddl:
    """Changes the metastore."""

    def __init__(
        self,
        metastore: MetaStore,
        formats: Formats,
        registry: SchemaRegistry | None,
        topics: Topics,
    ) -> None:
        self._metastore = metastore
        self._formats = formats
        self._topics = topics
        self._inference = Inference(formats, registry)
        self._serdes = Serdes(formats, registry)

    def create_source(
        self, statement: CreateSource, settings: Settings, sql: str
    ) -> DataSource | Done:
        """The source that a CREATE statement makes; a message where there is one already."""
        if not settings.flag(HEADERS_ENABLED) and any(
            each.constraint == "HEADERS" for each in statement.elements
        ):
            raise KsqlException(
                f"Cannot create {statement.kind} because schema with headers columns is disabled."
            )
        properties = SourceProperties(statement.properties, is_query=False)
        key_name = properties.format_name(is_key=True) or settings.text(DEFAULT_KEY_FORMAT)
        value_name = properties.format_name(is_key=False) or settings.text(DEFAULT_VALUE_FORMAT)
        if not value_name:
            raise KsqlException(
                "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either "
                "provide one or set a default via the "
                "'ksql.persistence.default.format.value' config."
            )
        name = statement.name
        key = properties.format_info(key_name, is_key=True, source=name)
        value = properties.format_info(value_name, is_key=False, source=name)
        statement = self._inference.with_columns(statement, properties, key, value)
        schema = schema_of(statement.elements)
        key_format = KeyFormat(
            key,
            self._formats.key_features(key, is_single=len(schema.key) == 1),
            properties.window,
        )
        value_format = ValueFormat(
            value,
            self._formats.value_features(
                value,
                is_single=len(schema.value) == 1,
                explicit=properties.value_features,
                wrap_default=settings.optional_flag(WRAP_SINGLE_VALUES),
            ),
        )
        self._inference.register(
            properties.topic, schema, key_format, value_format, if_missing=True
        )
        self._ensure_topic(statement, properties)
        source = DataSource(
            name=name,
            kind=statement.kind,
            schema=schema,
            topic=properties.topic,
            key_format=key_format,
            value_format=value_format,
            timestamp=properties.timestamp,
            is_source=statement.is_source,
            sql=sql,
        )
        return self._checked(statement, source)

    def _checked(self, statement: CreateSource, source: DataSource) -> DataSource | Done:
        check_timestamp_column(source.schema, source.timestamp)
        kind, name = source.kind.lower(), source.name
        before = self._metastore.source(name)
        if before is not None and not statement.or_replace and not statement.if_not_exists:
            raise already_exists(kind, name, before.kind)
        if source.kind == "TABLE" and not source.schema.key:
            raise KsqlException("Tables require a PRIMARY KEY. Please define the PRIMARY KEY.")
        is_source = source.is_source or (before is not None and before.is_source)
        if statement.or_replace and is_source:
            raise KsqlException(
                f"Cannot add {kind} '{name}': CREATE OR REPLACE is not supported on source {kind}s."
            )
        if source.key_format.window is not None and not source.schema.key:
            raise KsqlException("Windowed sources require a key column.")
        self._serdes.plain_key(source.key_format, source.schema)
        self._serdes.value(source.value_format.format, source.schema, source.value_format.features)
        if before is not None and not statement.or_replace:
            return Done(
                f"Cannot add {kind} `{name}`: A {before.kind.lower()} with the same name already "
                "exists."
            )
        return source

    def _ensure_topic(self, statement: CreateSource, properties: SourceProperties) -> None:
        topic = properties.topic
        check_cleanup_policy(properties)
        policy = "compact" if statement.kind == "TABLE" else "delete"
        retention_ms = properties.get("RETENTION_MS")
        check_retention(policy, retention_ms)
        existing = self._topics.partitions(topic)
        partitions = properties.get("PARTITIONS") or existing
        if partitions is None:
            partitions = self._topics.default_partitions
        if partitions is None:
            raise KsqlException(
                f"Topic '{topic}' does not exist. If you want to create a new topic for the "
                "stream/table please re-run the statement providing the required 'PARTITIONS' "
                "configuration in the WITH clause (and optionally 'REPLICAS')."
            )
        config = {"cleanup.policy": policy}
        if retention_ms is not None:
            config["retention.ms"] = str(retention_ms)
        self._topics.create(topic, partitions, properties.get("REPLICAS") or -1, config)

    def drop(self, statement: DropSource) -> Done:
        kind, name = statement.kind, statement.name
        source = self._metastore.source(name)
        if source is None:
            if statement.if_exists:
                return Done(f"Source `{name}` does not exist.")
            hint = self._metastore.hint(name, kind)
            raise KsqlException(f"{kind.capitalize()} {name} does not exist.{hint}")
        if source.kind != kind:
            raise KsqlException(
                f"Incompatible data source type is {source.kind.lower()}, but statement was DROP "
                f"{kind.lower()}"
            )
        if source.is_source and statement.delete_topic:
            raise KsqlException(f"Cannot delete topic for read-only source: {name}")
        others = sorted(
            each.name
            for each in self._metastore.sources.values()
            if each.topic == source.topic and each.name != name
        )
        if statement.delete_topic and others:
            raise KsqlException(
                f"Refusing to delete topic. Found other data sources ({', '.join(others)}) using "
                f"topic {source.topic}"
            )
        self._metastore.delete(name)
        if statement.delete_topic:
            self._topics.delete(source.topic)
            self._inference.forget(source.topic, source.key_format.format, is_key=True)
            self._inference.forget(source.topic, source.value_format.format, is_key=False)
        return Done(f"Source `{name}` (topic: {source.topic}) was dropped.")

    def alter(self, statement: AlterSource, sql: str) -> Done:
        kind, name = statement.kind, statement.name
        source = self._metastore.source(name)
        if source is not None and source.is_source:
            raise KsqlException(
                f"Cannot alter {kind.lower()} '{name}': ALTER operations are not supported on "
                f"source {kind.lower()}s."
            )
        if source is None:
            raise KsqlException(f"Source {name} does not exist.")
        if source.kind != kind:
            raise KsqlException(
                f"Incompatible data source type is {source.kind}, but statement was ALTER {kind}"
            )
        if source.is_cas_target:
            raise KsqlException("ALTER command is not supported for CREATE ... AS statements.")
        added = [Column(column, sql_type) for column, sql_type in statement.columns]
        try:
            schema = LogicalSchema([*source.schema.columns, *added])
        except DuplicateColumnException as error:
            raise KsqlException(
                f"Cannot add column `{error.column.name}` to schema. A column with the same name "
                "already exists."
            ) from error
        self._metastore.put(replace(source, schema=schema, sql=sql), replace=True)
        return Done(f"{kind.capitalize()} {name} altered.")

    def create_type(self, statement: CreateType) -> Done:
        name, sql_type = statement.name, statement.type
        known = self._metastore.resolve_type(name)
        if known is not None:
            if not statement.if_not_exists:
                raise KsqlException(
                    f"Cannot register custom type '{name}' since it is already registered with "
                    f"type: {known}"
                )
            return Done(f"{name} is already registered with type {known}")
        self._metastore.register_type(name, sql_type)
        return Done(f"Registered custom type with name '{name}' and SQL type {sql_type}")

    def drop_type(self, statement: DropType) -> Done:
        if self._metastore.delete_type(statement.name):
            return Done(f"Dropped type '{statement.name}'")
        if not statement.if_exists:
            raise KsqlException(f"Type {statement.name} does not exist.")
        return Done(f"Type '{statement.name}' does not exist")
