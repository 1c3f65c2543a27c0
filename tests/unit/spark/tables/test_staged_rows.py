"""Rows of an upsert pass through the driver in batches; only their keys are held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moldau.spark.tables.staged_rows import StagedRows
from moldau.spark.tables.storage import local_storage

SCHEMA = pa.schema([("id", pa.int64()), ("version", pa.int64()), ("text", pa.string())])


def staged(folder: Path, *files: list[tuple[Any, ...]], by: str = "") -> StagedRows:
    for number, rows in enumerate(files):
        table = pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
        )
        pq.write_table(table, folder / f"{number}.parquet")
    paths = [f"{number}.parquet" for number in range(len(files))]
    return StagedRows(local_storage(str(folder)), paths, SCHEMA, ("id",), by)


def texts(rows: StagedRows) -> list[str]:
    return [str(row["text"]) for row in rows.reader().read_all().to_pylist()]


def test_the_last_of_each_key_counts(tmp_path: Path) -> None:
    first = [(1, 9, "a"), (2, 1, "b"), (1, 3, "c")]
    rows = staged(tmp_path, first, [(2, 2, "d"), (3, None, "e")])
    assert texts(rows) == ["c", "d", "e"]
    by_version = staged(tmp_path, first, [(2, 2, "d"), (3, None, "e")], by="version")
    assert texts(by_version) == ["a", "d", "e"]
    assert by_version.keys.to_pylist()[0] == {"id": 1, "version": 9}


def test_rows_can_be_left_out_by_their_keys(tmp_path: Path) -> None:
    rows = staged(tmp_path, [(1, 1, "a"), (2, 1, "b"), (3, 1, "c")])
    rows.keep(pa.array([True, False, True]))
    assert len(rows) == 2
    assert texts(rows) == ["a", "c"]
    assert texts(staged(tmp_path)) == []


@pytest.fixture
def measured() -> Any:
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    yield pool
    pa.set_memory_pool(before)


def test_memory_holds_keys_and_one_batch(tmp_path: Path, measured: Any) -> None:
    files = 12
    for number in range(files):
        text = pa.array([f"{number}-{row}" + "x" * 100_000 for row in range(40)])
        ids = pa.array(range(number * 40, number * 40 + 40))
        table = pa.table([ids, ids, text], schema=SCHEMA)
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=10)
    del table, text, ids
    total = files * 40 * 100_000
    start = measured.max_memory()
    paths = [f"{number}.parquet" for number in range(files)]
    rows = StagedRows(local_storage(str(tmp_path)), paths, SCHEMA, ("id",), "")
    held = measured.bytes_allocated()
    count, largest = 0, 0
    for batch in rows.reader():
        count += batch.num_rows
        largest = max(largest, measured.bytes_allocated() - held)
    assert count == files * 40
    assert largest < total / 3
    assert start < total
