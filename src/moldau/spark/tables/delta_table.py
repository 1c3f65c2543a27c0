"""Delta tables through the `deltalake` package: opening, creating, and what is not supported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.fs as arrow_fs

from .errors import TableError
from .sinks import missing_extra
from .storage import Storage, local_storage

# Features whose promises only deltalake's own writers keep: files added by hand could break them.
_WRITER_FEATURES_REFUSED = {
    "columnMapping",
    "checkConstraints",
    "generatedColumns",
    "identityColumns",
    "rowTracking",
    "allowColumnDefaults",
    "icebergCompatV1",
    "icebergCompatV2",
}
_READER_FEATURES_REFUSED = {"columnMapping", "variantType", "typeWidening"}


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
    protocol = table.protocol()
    refused = set(protocol.writer_features or ()) & _WRITER_FEATURES_REFUSED
    configuration = table.metadata().configuration
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        refused.add("columnMapping")
    if any(name.startswith("delta.constraints.") for name in configuration):
        refused.add("checkConstraints")
    # Older protocol versions imply features without naming them; only those used count.
    present = {f for f in refused if f != "checkConstraints" or _has_constraints(configuration)}
    if present:
        raise TableError(
            f"the Delta table {folder} uses {', '.join(sorted(present))}, which this sink "
            "does not keep",
            "Write to a table without it",
        )


def _has_constraints(configuration: Mapping[str, str]) -> bool:
    return any(name.startswith("delta.constraints.") for name in configuration)


def check_readable(table: Any, folder: str) -> None:
    refused = set(table.protocol().reader_features or ()) & _READER_FEATURES_REFUSED
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        refused.add("columnMapping")
    if refused:
        raise TableError(
            f"the Delta table {folder} uses {', '.join(sorted(refused))}, which this source "
            "does not know",
            "Read it with deltalake's own scan, or copy it into a table without it",
        )
