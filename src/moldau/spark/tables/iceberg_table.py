"""Iceberg tables through pyiceberg: the catalog, opening, creating.

Without further properties the catalog is an SQLite file `catalog.db` in the warehouse folder, so a
folder is all that is needed; any other catalog is named by pyiceberg's own properties, written as
`catalog.<property>`.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.fs as arrow_fs

from moldau.spark.tables.machine.options import Options

from .errors import TableError
from .sinks import missing_extra
from .storage import Storage

_DEFAULT_CATALOG = "moldau"


def catalog_properties(options: Options) -> dict[str, str]:
    """pyiceberg's properties of the catalog that these options name."""
    given = options.prefixed("catalog.")
    warehouse = options.address
    location = warehouse if "://" in warehouse else f"file://{warehouse}"
    if given or "catalog" in options:
        return {"warehouse": location, **given}
    if "://" in warehouse and not warehouse.startswith("file://"):
        raise TableError(
            f"the Iceberg warehouse {warehouse} is no local folder, so its catalog must be named",
            "Add catalog.type and catalog.uri, or catalog: a name in pyiceberg's configuration",
        )
    folder = warehouse.removeprefix("file://")
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": location}


def open_catalog(options: Options) -> Any:
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise missing_extra("pyiceberg") from None
    properties = catalog_properties(options)
    if properties.get("uri", "").startswith("sqlite:///") and "catalog" not in options:
        os.makedirs(properties["uri"].removeprefix("sqlite:///").rpartition("/")[0], exist_ok=True)
    return load_catalog(options.text("catalog", _DEFAULT_CATALOG), **properties)


def identifier(options: Options) -> tuple[str, ...]:
    """`name` alone is in the namespace `default`."""
    parts = tuple(options.text("table").split("."))
    return parts if len(parts) > 1 else ("default", *parts)


def open_table(options: Options, catalog: Any = None) -> Any:
    catalog = catalog or open_catalog(options)
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return catalog.load_table(identifier(options))
    except NoSuchTableError:
        raise TableError(
            f"there is no Iceberg table {options.text('table')} in {options.address}",
            "A sink makes it with the first batch",
        ) from None


def exists(options: Options, catalog: Any) -> bool:
    return bool(catalog.table_exists(identifier(options)))


def create(options: Options, catalog: Any, schema: Any, partition_by: tuple[str, ...]) -> None:
    from pyiceberg.exceptions import TableAlreadyExistsError

    name = identifier(options)
    catalog.create_namespace_if_not_exists(name[:-1])
    properties = options.prefixed("table.")
    if "compression" in options:
        codec = options.text("compression").replace("none", "uncompressed")
        properties["write.parquet.compression-codec"] = codec
    try:
        with catalog.create_table_transaction(name, schema, properties=properties) as transaction:
            if partition_by:
                with transaction.update_spec() as spec:
                    for column in partition_by:
                        spec.add_identity(column)
    except TableAlreadyExistsError:
        # Another process came first; whether the rows fit is looked at afterwards in any case.
        return


def columns(table: Any) -> Any:
    """The table's columns as a pyarrow schema, without Iceberg's field ids."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return plain(schema_to_pyarrow(table.schema(), include_field_ids=False))


def plain(schema: Any) -> Any:
    """The same columns with Arrow's ordinary text and list types, which Spark's batches have."""
    return pa.schema([pa.field(f.name, _plain_type(f.type), f.nullable) for f in schema])


def _plain_type(arrow_type: Any) -> Any:
    if pa.types.is_large_string(arrow_type):
        return pa.string()
    if pa.types.is_large_binary(arrow_type):
        return pa.binary()
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return pa.list_(_plain_type(arrow_type.value_type))
    if pa.types.is_map(arrow_type):
        return pa.map_(_plain_type(arrow_type.key_type), _plain_type(arrow_type.item_type))
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(f.name, _plain_type(f.type), f.nullable) for f in arrow_type])
    return arrow_type


def table_storage(table: Any) -> Storage:
    """The table's folder as the files of its own FileIO."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    location = table.location()
    if isinstance(table.io, PyArrowFileIO):
        scheme, netloc, path = PyArrowFileIO.parse_location(location, table.io.properties)
        return Storage(table.io.fs_by_scheme(scheme, netloc), path)
    scheme, _, path = location.partition("://")
    return Storage(arrow_fs.PyFileSystem(arrow_fs.FSSpecHandler(table.io.get_fs(scheme))), path)
