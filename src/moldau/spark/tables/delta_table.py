"""Delta tables through the `deltalake` package: opening, creating, and what is not supported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.fs as arrow_fs

from .errors import TableError
from .sinks import missing_extra
from .storage import Storage, local_storage

# What only deltalake's own writers keep: files added by hand could break it. A table's protocol may
# name a feature that the table does not use, so its settings and columns are looked at.
_SETTINGS_REFUSED = (
    "delta.enableRowTracking",
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV2",
)
_COLUMNS_REFUSED = {
    "delta.generationExpression": "generated columns",
    "delta.identity.start": "identity columns",
    "delta.invariants": "column invariants",
}


def library() -> Any:
    try:
        import deltalake
    except ImportError:
        raise missing_extra("deltalake") from None
    return deltalake


def exists(folder: str, storage_options: Mapping[str, str]) -> bool:
    return bool(library().DeltaTable.is_deltatable(folder, dict(storage_options)))


def open_table(folder: str, storage_options: Mapping[str, str], version: int | None = None) -> Any:
    delta = library()
    try:
        return delta.DeltaTable(folder, version=version, storage_options=dict(storage_options))
    except delta.exceptions.TableNotFoundError:
        raise TableError(
            f"there is no Delta table in {folder}", "A sink makes it with the first batch"
        ) from None
    except delta.exceptions.DeltaError as error:
        at = "" if version is None else f" at version {version}"
        raise TableError(f"the Delta table {folder} cannot be opened{at}: {error}") from None


def table_storage(folder: str, storage_options: Mapping[str, str]) -> Storage:
    if "://" not in folder or folder.startswith("file://"):
        return local_storage(folder.removeprefix("file://"))
    library()
    from deltalake.fs import DeltaStorageHandler

    handler = DeltaStorageHandler(folder, dict(storage_options))
    return Storage(arrow_fs.PyFileSystem(handler), "")


def columns(table: Any) -> Any:
    """The table's columns as a pyarrow schema."""
    return pa.schema(table.schema().to_arrow())


def check_writable(table: Any, folder: str) -> None:
    configuration = table.metadata().configuration
    refused = {name for name in _SETTINGS_REFUSED if configuration.get(name) == "true"}
    refused |= {name for name in configuration if name.startswith("delta.constraints.")}
    for field in table.schema().fields:
        refused |= {text for name, text in _COLUMNS_REFUSED.items() if name in field.metadata}
    if _maps_columns(configuration):
        refused.add("column mapping")
    if refused:
        raise TableError(
            f"the Delta table {folder} uses {', '.join(sorted(refused))}, which this sink "
            "does not keep",
            "Write to a table without it",
        )


def check_readable(table: Any, folder: str) -> None:
    if _maps_columns(table.metadata().configuration):
        raise TableError(
            f"the Delta table {folder} uses column mapping, which this source does not know",
            "Read it with deltalake's own scan, or copy it into a table without it",
        )


def _maps_columns(configuration: Mapping[str, str]) -> bool:
    return configuration.get("delta.columnMapping.mode", "none") != "none"
