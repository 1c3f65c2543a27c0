"""Avro files: each batch's rows once, whatever fails, and every type comes back."""

from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from moldau.spark.tables import SchemaMismatchError, TableError, check_options
from moldau.spark.tables.avro_sink import AvroSink
from moldau.spark.tables.avro_source import Decode
from moldau.spark.tables.machine.avro_types import arrow_schema_of, avro_schema
from moldau.spark.tables.machine.batches import Attempt
from moldau.spark.tables.storage import Storage

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Folder:
    """Written as Spark writes it, and read with fastavro alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.query_id = str(uuid.uuid4())

    def sink(self, schema: Any = SCHEMA, **options: Any) -> AvroSink:
        checked = check_options("avro", "sink", {"avro": str(self.path), **options})
        made = AvroSink(checked, schema, overwrite=False)
        made.prepare()
        return made

    def stage(self, sink: AvroSink, batch_id: int, *parts: list[tuple[Any, ...]]) -> Any:
        schema = sink._frame
        found = []
        for partition, rows in enumerate(parts):
            columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            attempt = Attempt(self.query_id, batch_id, partition, str(uuid.uuid4()))
            found.append(sink.write(iter([batch]), attempt))
        return found

    def write(self, batch_id: int, *parts: list[tuple[Any, ...]], **options: Any) -> bool:
        sink = self.sink(**options)
        return sink.commit(self.stage(sink, batch_id, *parts), batch_id)

    def rows(self) -> list[Any]:
        found = []
        for path in sorted(self.path.glob("*.avro")):
            with path.open("rb") as file:
                found += list(fastavro.reader(file))
        return found

    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows()]

    def left_over(self) -> list[str]:
        return [path.name for path in (self.path / "_moldau").rglob("*") if path.is_file()]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "out")


def test_batches_are_added_once(folder: Folder) -> None:
    assert folder.write(0, [(1, "a"), (2, "b")], [], [(3, None)])
    assert folder.write(1, [(4, "d")])
    assert not folder.write(1, [(4, "d")])
    assert not folder.write(0, [(1, "a")])
    assert folder.ids() == [1, 2, 3, 4]
    assert [name.partition(".")[2] for name in folder.left_over()] == ["last"]


def test_nothing_is_visible_before_the_commit_or_after_an_abort(folder: Folder) -> None:
    sink = folder.sink()
    staged = folder.stage(sink, 0, [(1, "a")])
    assert folder.ids() == []
    sink.abort(staged, 0)
    assert folder.left_over() == []
    # One that crashed is removed by the next that is committed.
    folder.stage(sink, 0, [(8, "crashed")])
    folder.write(0, [(1, "a")])
    assert folder.ids() == [1]
    assert len(folder.left_over()) == 1


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_crash_amid_the_commit_is_completed_with_the_same_files(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    sink = folder.sink()
    staged = folder.stage(sink, 0, [(1, "a")], [(2, "b")])
    real, made = Storage.move, 0

    def move(self: Storage, path: str, target: str) -> None:
        nonlocal made
        if target.startswith("part-"):
            if made == moves:
                raise OSError("the machine went away")
            made += 1
        real(self, path, target)

    with monkeypatch.context() as crash:
        crash.setattr(Storage, "move", move)
        if moves < 2:
            with pytest.raises(OSError, match="went away"):
                sink.commit(staged, 0)
            sink.abort(staged, 0)
    # The rows come in other tasks this time: those of the first attempt count.
    assert folder.write(0, [(2, "b"), (1, "a")])
    assert sorted(folder.ids()) == [1, 2]
    assert len(folder.left_over()) == 1


def test_a_task_that_fails_leaves_nothing(folder: Folder) -> None:
    sink = folder.sink()

    def broken() -> Any:
        yield pa.RecordBatch.from_pylist([{"id": 1, "name": "a"}], schema=SCHEMA)
        raise RuntimeError("the input broke")

    with pytest.raises(RuntimeError, match="broke"):
        sink.write(broken(), Attempt(folder.query_id, 0, 0, "t"))
    assert folder.left_over() == []


TYPES = pa.schema(
    [
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("whole", pa.int64()),
        ("ratio", pa.float64()),
        ("price", pa.decimal128(12, 3)),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("a", pa.int32()), ("m", pa.map_(pa.string(), pa.string()))])),
    ]
)
AT = datetime.datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=datetime.UTC)
ROW = (
    *(True, -3, 2**40, 0.5, decimal.Decimal("-12345.678"), "š", b"\x00\xff"),
    *(AT.date(), AT, AT.replace(tzinfo=None), ["x", None], [("k", 1)]),
    {"a": 1, "m": [("n", None)]},
)


def columns(**types: Any) -> str:
    """Spark's description of columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return str(from_arrow_schema(pa.schema(list(types.items()))).json())


def test_every_type_is_written_and_read(folder: Folder) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    folder.write(0, [ROW, (None,) * len(ROW)], schema=TYPES, compression="xz")
    [path] = folder.path.glob("*.avro")
    with path.open("rb") as file:
        found = arrow_schema_of(fastavro.reader(file).writer_schema)
    # Avro has no whole number of 16 bits.
    assert found == TYPES.set(1, pa.field("small", pa.int32()))
    files = pa.RecordBatch.from_pylist([{"path": str(path), "content": path.read_bytes()}])
    [batch] = Decode(False, from_arrow_schema(found).json())(iter([files]))
    rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    assert rows == [ROW, (None,) * len(ROW)]


def test_what_arrow_lacks_becomes_text_and_wrong_types_are_named(tmp_path: Path) -> None:
    kinds = [
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "t", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
    ]
    avro = {"type": "record", "name": "R", "fields": kinds}
    assert set(arrow_schema_of(avro).types) == {pa.string()}
    path = tmp_path / "a.avro"
    value = {"u": uuid.UUID(int=1), "t": datetime.time(1, 2), "e": "A"}
    with path.open("wb") as file:
        fastavro.writer(file, avro, [value])
    files = pa.RecordBatch.from_pylist([{"path": "a.avro", "content": path.read_bytes()}])
    text = columns(u=pa.string(), t=pa.string(), e=pa.string(), more=pa.int32())
    [batch] = Decode(False, text)(iter([files]))
    assert batch.to_pylist() == [
        {"u": str(uuid.UUID(int=1)), "t": "01:02:00", "e": "A", "more": None}
    ]
    wrong = columns(e=pa.int64())
    with pytest.raises(TableError, match=r"Avro file a\.avro cannot be read"):
        list(Decode(False, wrong)(iter([files])))
    broken = pa.RecordBatch.from_pylist([{"path": "a.avro", "content": b"not Avro"}])
    assert list(Decode(True, text)(iter([broken]))) == []


def test_types_that_avro_lacks_are_named() -> None:
    with pytest.raises(SchemaMismatchError, match="'when' is duration"):
        avro_schema(pa.schema([("when", pa.duration("us"))]))
    union = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}
    with pytest.raises(SchemaMismatchError, match="a union of 2 types"):
        arrow_schema_of(union)


def test_a_place_that_python_cannot_write_is_named() -> None:
    options = check_options("avro", "sink", {"avro": "hdfs://node/out"})
    with pytest.raises(TableError, match="hdfs://node/out"):
        AvroSink(options, SCHEMA, overwrite=False).prepare()
