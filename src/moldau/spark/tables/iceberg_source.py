"""Iceberg source: the files of a snapshot, or those that each new snapshot adds."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.spark.tables.machine.growth import Position, Version
from moldau.spark.tables.machine.options import Options

from . import iceberg_table
from .errors import TableError

_CACHED_VERSIONS = 64
_NO_SNAPSHOT = 0


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """A file to read, and where the table's metadata of that moment is."""

    task: Any
    metadata_location: str


class IcebergLog:
    """A table's snapshots, oldest first, along the line that leads to the current one.

    A table without any snapshot is at version 0, which adds nothing.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._catalog = iceberg_table.open_catalog(options)
        self._cache: dict[tuple[int, bool], Version] = {}
        self.refresh()

    def refresh(self) -> None:
        self.table = iceberg_table.open_table(self._options, self._catalog)
        self._line = _line(self.table)

    def latest(self) -> int:
        self.refresh()
        return self._line[-1] if self._line else _NO_SNAPSHOT

    def oldest(self) -> int:
        return self._line[0] if self._line else _NO_SNAPSHOT

    def following(self, number: int) -> Sequence[int]:
        if number == _NO_SNAPSHOT:
            return self._line
        if number not in self._line:
            raise TableError(
                f"snapshot {number} is no longer part of the Iceberg table "
                f"{self._options.text('table')}: it expired or the table was rolled back",
                "Start again with a new checkpoint",
            )
        return self._line[self._line.index(number) + 1 :]

    def version(self, number: int) -> Version:
        return self._cached(number, False)

    def whole(self, number: int) -> Version:
        return self._cached(number, True)

    def _cached(self, number: int, whole: bool) -> Version:
        if number == _NO_SNAPSHOT:
            return Version(number, ())
        found = self._cache.get((number, whole))
        if found is None:
            found = self._all_files(number) if whole else self._added(number)
            while len(self._cache) >= _CACHED_VERSIONS:
                self._cache.pop(next(iter(self._cache)))
            self._cache[number, whole] = found
        return found

    def _all_files(self, number: int) -> Version:
        tasks = self.table.scan(snapshot_id=number).plan_files()
        return Version(number, self._files(tasks))

    def _files(self, tasks: Iterable[Any]) -> tuple[IcebergFile, ...]:
        ordered = sorted(tasks, key=lambda task: str(task.file.file_path))
        return tuple(IcebergFile(task, self.table.metadata_location) for task in ordered)

    def _added(self, number: int) -> Version:
        from pyiceberg.manifest import DataFileContent, ManifestEntryStatus
        from pyiceberg.table import FileScanTask
        from pyiceberg.table.snapshots import Operation

        snapshot = self.table.snapshot_by_id(number)
        if snapshot is None:
            self.following(number)
            raise TableError(f"snapshot {number} expired before it was read")
        operation = snapshot.summary.operation if snapshot.summary else Operation.APPEND
        if operation == Operation.REPLACE:
            return Version(number, ())
        change = "" if operation == Operation.APPEND else f"is a change ({operation.value})"
        tasks = [
            FileScanTask(entry.data_file)
            for manifest in snapshot.manifests(self.table.io)
            if manifest.added_snapshot_id == number
            for entry in manifest.fetch_manifest_entry(self.table.io)
            if entry.status == ManifestEntryStatus.ADDED
            and entry.snapshot_id == number
            and entry.data_file.content == DataFileContent.DATA
        ]
        return Version(number, self._files(tasks), change)


def _line(table: Any) -> list[int]:
    """The ids of the current snapshot and its ancestors, oldest first."""
    found = []
    snapshot = table.current_snapshot()
    while snapshot is not None:
        found.append(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return found[::-1]


class IcebergSource:
    """What a query needs to read an Iceberg table; travels to tasks by pickle."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def log(self) -> IcebergLog:
        return IcebergLog(self._options)

    def schema(self) -> Any:
        return iceberg_table.columns(iceberg_table.open_table(self._options))

    def batch_files(self) -> Sequence[Any]:
        log = self.log()
        pinned = self._options.number("snapshot-id")
        return log.whole(pinned or log.latest()).files

    def start(self, log: IcebergLog) -> Position:
        wanted = self._options.text("startingVersion")
        latest = log.latest()
        if not wanted:
            return Position(latest, 0, whole=True)
        if wanted == "latest":
            return Position(latest, len(log.version(latest).files))
        number = log.oldest() if wanted == "earliest" else int(wanted)
        if log.table.snapshot_by_id(number) is None and number != _NO_SNAPSHOT:
            raise TableError(f"startingVersion: there is no snapshot {number}")
        return Position(number, 0)

    def read(self, file: IcebergFile, schema: Any) -> Iterator[Any]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        properties = iceberg_table.catalog_properties(self._options)
        table = _table_at(file.metadata_location, tuple(sorted(properties.items())))
        projected = table.schema().select(*schema.names)
        scan = ArrowScan(table.metadata, table.io, projected, AlwaysTrue())
        for batch in scan.to_record_batches([file.task]):
            yield batch.select(schema.names).cast(schema)


@functools.lru_cache(maxsize=8)
def _table_at(metadata_location: str, properties: tuple[tuple[str, str], ...]) -> Any:
    """The table as its metadata file says: tasks need no catalog, and all see the same."""
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(metadata_location, dict(properties))
