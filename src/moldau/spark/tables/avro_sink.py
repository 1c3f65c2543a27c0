"""Avro sink: tasks write files where no reader looks, the driver moves them into the folder.

A batch is committed by a list of its files in `_moldau`, written as a whole: from then on exactly
these files are moved, by whoever comes next, and those of other attempts are removed. The number of
the last batch is kept beside it, so a batch that runs again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from moldau.spark.tables.machine.avro_types import avro_schema
from moldau.spark.tables.machine.batches import (
    MARKER_FOLDER,
    Attempt,
    is_committed,
    short_digest,
)
from moldau.spark.tables.machine.options import Options

from .avro_source import library
from .sinks import Staged
from .storage import Storage, folder_storage

__all__ = ["AvroSink"]

_STAGING = f"{MARKER_FOLDER}/staging"


class AvroSink:
    def __init__(self, options: Options, schema: Any, *, overwrite: bool) -> None:
        self._options = options
        self._frame = schema
        self._avro = avro_schema(schema)

    @property
    def keeps_staged(self) -> bool:
        return True

    def prepare(self) -> None:
        library()
        self._storage()

    def _storage(self) -> Storage:
        return folder_storage(self._options.address, self._options.prefixed("storage."))

    def write(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        storage = self._storage()
        name = f"{_query(attempt.query_id)}.{attempt.batch_id}.{attempt.partition}.{attempt.token}"
        path = f"{_STAGING}/{name}.avro"
        count = 0

        def rows() -> Iterator[dict[str, Any]]:
            nonlocal count
            for batch in batches:
                count += batch.num_rows
                yield from _as_avro(batch)

        try:
            with storage.create(path) as stream:
                codec = self._options.text("compression", "deflate")
                library().writer(stream, self._avro, rows(), codec=codec)
        except BaseException:
            storage.delete([path])
            raise
        if not count:
            storage.delete([path])
        return Staged(attempt, count, (path,) if count else ())

    def commit(self, staged: Sequence[Staged], batch_id: int) -> bool:
        if not staged:
            return False
        query_id, storage = staged[0].attempt.query_id, self._storage()
        done = is_committed(batch_id, _last_batch(storage, query_id))
        if not done:
            self._move(storage, staged, query_id, batch_id)
            storage.put(_last_path(query_id), str(batch_id).encode())
            storage.delete([_list_path(query_id, batch_id)])
        prefix = f"{_query(query_id)}."
        storage.delete(
            path
            for path in list(storage.walk(_STAGING, recursive=False))
            if path.rpartition("/")[2].startswith(prefix)
            and int(path.rpartition("/")[2].split(".")[1]) <= batch_id
        )
        return not done

    def _move(
        self, storage: Storage, staged: Sequence[Staged], query_id: str, batch_id: int
    ) -> None:
        listed = _list_path(query_id, batch_id)
        if not storage.exists(listed):
            files = {
                path: f"part-{_query(query_id)}-{batch_id:08}-{part.attempt.partition:05}.avro"
                for part in staged
                for path in part.parts
            }
            storage.put(listed, json.dumps(files).encode())
        for path, name in json.loads(storage.read(listed)).items():
            # One that is not there any more has been moved before a crash.
            if storage.exists(path):
                storage.move(path, name)

    def abort(self, staged: Sequence[Staged], batch_id: int) -> None:
        query_ids = {part.attempt.query_id for part in staged}
        storage = self._storage()
        if any(storage.exists(_list_path(query_id, batch_id)) for query_id in query_ids):
            # The commit was decided; the batch's next run completes it.
            return
        storage.delete(path for part in staged for path in part.parts)


def _query(query_id: str) -> str:
    return short_digest(query_id)


def _list_path(query_id: str, batch_id: int) -> str:
    return f"{MARKER_FOLDER}/{_query(query_id)}-{batch_id}.json"


def _last_path(query_id: str) -> str:
    return f"{MARKER_FOLDER}/{_query(query_id)}.last"


def _last_batch(storage: Storage, query_id: str) -> int | None:
    path = _last_path(query_id)
    return int(storage.read(path)) if storage.exists(path) else None


def _as_avro(batch: Any) -> Iterator[dict[str, Any]]:
    """Rows as fastavro takes them: maps are dicts there."""
    names = batch.schema.names
    maps = [_with_maps(field.type) for field in batch.schema]
    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield {
            name: value if convert is None else convert(value)
            for name, value, convert in zip(names, row, maps, strict=True)
        }


def _with_maps(kind: Any) -> Any:
    """How lists of pairs, wherever they are in a value, become dicts; None if there are none."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        inner = _with_maps(kind.item_type)
        return lambda value: (
            None if value is None else {key: inner(v) if inner else v for key, v in value}
        )
    if pa.types.is_list(kind) and (each := _with_maps(kind.value_type)) is not None:
        return lambda value: None if value is None else [each(item) for item in value]
    if pa.types.is_struct(kind):
        fields = {field.name: _with_maps(field.type) for field in kind}
        if any(fields.values()):
            return lambda value: (
                None
                if value is None
                else {name: of(value[name]) if of else value[name] for name, of in fields.items()}
            )
    return None
