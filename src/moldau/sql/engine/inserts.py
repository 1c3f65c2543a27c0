"""INSERT VALUES: expressions without columns to the bytes of a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.sql.engine.results import Inserted
from moldau.sql.engine.settings import Settings
from moldau.sql.errors import KsqlException
from moldau.sql.expressions.constants import constant
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.sources.schema import PSEUDO_COLUMNS, ROWTIME
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import InsertValues
from moldau.sql.topology.serdes import Serdes
from moldau.sql.types import SqlType


def target_of(name: str, metastore: MetaStore, settings: Settings) -> DataSource:
    """The source that values are inserted into."""
    source = metastore.source(name)
    if source is None:
        raise KsqlException(
            f"Cannot insert values into an unknown stream/table: `{name}`{metastore.hint(name)}"
        )
    if source.is_source:
        raise KsqlException(
            f"Cannot insert values into read-only {source.kind.lower()}: {source.name}"
        )
    if source.key_format.is_windowed:
        raise KsqlException("Cannot insert values into windowed stream/table!")
    if settings.is_read_only(source.topic):
        raise KsqlException(f"Cannot insert values into read-only topic: {source.topic}")
    return source


def resolved_values(
    statement: InsertValues, source: DataSource, functions: Functions
) -> dict[str, Any]:
    """The values by column."""
    schema = source.schema
    headers = [
        each.name
        for each in schema.headers
        if not statement.columns or each.name in statement.columns
    ]
    if headers:
        raise KsqlException(f"Cannot insert into HEADER columns: {', '.join(headers)}")
    names = list(statement.columns) or [each.name for each in (*schema.key, *schema.value)]
    if len(names) != len(statement.values):
        shown = ", ".join(f"`{name}`" for name in statement.columns)
        values = ", ".join(text(each) for each in statement.values)
        raise KsqlException(
            f"Expected a value for each column. Expected Columns: [{shown}]. Got [{values}]"
        )
    known: dict[str, SqlType] = {each.name: each.type for each in schema.columns}
    found: dict[str, Any] = {}
    for name, expression in zip(names, statement.values, strict=True):
        if name not in known and name not in PSEUDO_COLUMNS:
            raise KsqlException(f"Column name `{name}` does not exist.")
        if name in PSEUDO_COLUMNS and name != ROWTIME:
            raise KsqlException(f"Inserting into column `{name}` is not allowed.")
        wanted = known.get(name) or PSEUDO_COLUMNS[name]
        found[name] = constant(expression, wanted, name, functions, "insert value")
    return found


def insert_values(
    statement: InsertValues,
    metastore: MetaStore,
    functions: Functions,
    serdes: Serdes,
    settings: Settings,
    check: Callable[[DataSource], None],
) -> Inserted:
    """The record of an INSERT VALUES statement; `check` looks at the schema of its key."""
    source = target_of(statement.target, metastore, settings)
    values = resolved_values(statement, source, functions)
    schema = source.schema
    if source.kind == "TABLE":
        missing = [each.name for each in schema.key if each.name not in values]
        if missing:
            raise KsqlException(
                f"Value for primary key column(s) {', '.join(missing)} is required for tables"
            )
    key = tuple(values.get(each.name) for each in schema.key)
    row = tuple(values.get(each.name) for each in schema.value)
    value_format = source.value_format
    check(source)
    return Inserted(
        topic=source.topic,
        key=serdes.key(source.key_format, schema).serialize(source.topic, key),
        value=serdes.value(value_format.format, schema, value_format.features).serialize(
            source.topic, row
        ),
        timestamp=values.get(ROWTIME),
    )
