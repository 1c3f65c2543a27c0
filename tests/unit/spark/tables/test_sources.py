"""Sources without Spark, over tables that others have written."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from moldau.spark.tables import ChangedRowsError, OptionError, TableError
from moldau.spark.tables.delta_source import DeltaSource
from moldau.spark.tables.iceberg_source import IcebergSource
from moldau.spark.tables.jdbc.machine.address import parse_address
from moldau.spark.tables.jdbc.machine.queries import Progress
from moldau.spark.tables.jdbc.source import JdbcSource
from moldau.spark.tables.machine.growth import advance, between
from moldau.spark.tables.machine.options import check_options
from support.table_stage import connected, iceberg


class Lake:
    """A Delta or Iceberg table that its own library writes and our source reads."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = str(folder / "table")
        self.address = {"delta": self.folder}
        if kind == "iceberg":
            self.address = {"iceberg": self.folder, "table": "shop.orders"}
            Path(self.folder).mkdir()

    def append(self, **columns: list[Any]) -> None:
        rows = pa.table(columns)
        if self.kind == "delta":
            from deltalake import write_deltalake

            write_deltalake(self.folder, rows, mode="append", schema_mode="merge")
            return
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog(
            "moldau", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=self.folder
        )
        catalog.create_namespace_if_not_exists("shop")
        table = catalog.create_table_if_not_exists("shop.orders", rows.schema)
        with table.update_schema() as update:
            update.union_by_name(rows.schema)
        table.append(rows)

    def delete(self, condition: str) -> None:
        if self.kind == "delta":
            from deltalake import DeltaTable

            DeltaTable(self.folder).delete(condition)
        else:
            iceberg(self.address).delete(condition)

    def source(self, **options: Any) -> Any:
        checked = check_options(self.kind, "source", {**self.address, **options})
        return DeltaSource(checked) if self.kind == "delta" else IcebergSource(checked)


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def ids(source: Any, files: Any) -> list[int]:
    schema = source.schema()
    rows = [
        row for file in files for batch in source.read(file, schema) for row in batch.to_pylist()
    ]
    return sorted(row["id"] for row in rows)


class Stream:
    """What a stream over the table is given, batch by batch."""

    def __init__(self, source: Any, *, skip_changes: bool = False) -> None:
        self._source = source
        self._log = source.log()
        self._skip = skip_changes
        self._at = source.start(self._log)

    def next(self, files_max: int | None = None) -> list[int]:
        self._log.latest()
        end = advance(self._log, self._at, files_max=files_max, skip_changes=self._skip)
        files = between(self._log, self._at, end, skip_changes=self._skip)
        self._at = end
        return ids(self._source, files)


def test_a_batch_reads_the_table_as_it_is(lake: Lake) -> None:
    lake.append(id=[1, 2], name=["a", None])
    lake.append(id=[3], name=["c"])
    lake.delete("id = 2")
    source = lake.source()
    assert ids(source, source.batch_files()) == [1, 3]


def test_a_stream_gives_the_table_first_and_then_what_is_added(lake: Lake) -> None:
    lake.append(id=[1], name=["a"])
    lake.append(id=[2], name=["b"])
    stream = Stream(lake.source())
    assert stream.next() == [1, 2]
    assert stream.next() == []
    lake.append(id=[3], name=["c"])
    assert stream.next() == [3]


def test_a_bounded_batch_leaves_the_rest_for_the_next(lake: Lake) -> None:
    for number in range(4):
        lake.append(id=[number])
    stream = Stream(lake.source())
    first, second = stream.next(3), stream.next(3)
    assert (len(first), sorted(first + second)) == (3, [0, 1, 2, 3])


def test_where_a_stream_starts(lake: Lake) -> None:
    lake.append(id=[1])
    latest = Stream(lake.source(startingVersion="latest"))
    lake.append(id=[2])
    assert latest.next() == [2]
    assert Stream(lake.source(startingVersion="earliest")).next() == [1, 2]
    second = 1 if lake.kind == "delta" else iceberg(lake.address).current_snapshot().snapshot_id
    assert Stream(lake.source(startingVersion=str(second))).next() == [2]
    with pytest.raises(TableError, match="startingVersion"):
        Stream(lake.source(startingVersion="99"))


def test_a_rewrite_stops_the_stream_or_is_left_out(lake: Lake) -> None:
    lake.append(id=[1, 2])
    stream = Stream(lake.source())
    skipping = Stream(lake.source(skipChangeCommits=True), skip_changes=True)
    assert stream.next() == skipping.next() == [1, 2]
    lake.delete("id = 2")
    lake.append(id=[3])
    with pytest.raises(ChangedRowsError, match="skipChangeCommits"):
        stream.next()
    assert skipping.next() == [3]


def test_columns_that_older_files_lack_are_null(lake: Lake) -> None:
    lake.append(id=[1])
    lake.append(id=[2], name=["b"])
    source = lake.source()
    rows = [
        row
        for file in source.batch_files()
        for batch in source.read(file, source.schema())
        for row in batch.to_pylist()
    ]
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, None), (2, "b")]


def test_a_table_that_is_not_there_says_so(lake: Lake) -> None:
    with pytest.raises(TableError, match="there is no"):
        lake.source().schema()


def test_an_older_version_of_a_delta_table(tmp_path: Path) -> None:
    lake = Lake("delta", tmp_path)
    lake.append(id=[1])
    lake.append(id=[2])
    source = lake.source(versionAsOf=0)
    assert ids(source, source.batch_files()) == [1]


def test_compaction_gives_a_delta_stream_nothing_twice(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    lake = Lake("delta", tmp_path)
    lake.append(id=[1])
    lake.append(id=[2])
    stream = Stream(lake.source(startingVersion="earliest"))
    DeltaTable(lake.folder).optimize.compact()
    lake.append(id=[3])
    assert stream.next() == [1, 2, 3]


def test_partition_values_come_back_with_their_types(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    lake = Lake("delta", tmp_path)
    at = datetime.datetime(2026, 1, 1, 12, 30, 0, 250000, tzinfo=datetime.UTC)
    columns = {
        "id": [1, 2],
        "day": [datetime.date(2026, 1, 1), None],
        "n": pa.array([7, 8], pa.int32()),
        "at": pa.array([at, None], pa.timestamp("us", "UTC")),
        "price": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(5, 2)),
        "ok": [True, False],
        "text": ["a/b %c", "é"],
    }
    rows = pa.table(columns)
    write_deltalake(lake.folder, rows, partition_by=["day", "n", "at", "price", "ok", "text"])
    source = lake.source()
    for stream_of in (source.batch_files(), source.log().version(0).files):
        found = [
            r for f in stream_of for b in source.read(f, source.schema()) for r in b.to_pylist()
        ]
        assert sorted(found, key=lambda row: row["id"]) == rows.to_pylist()


# Databases


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest, of_kind: Any) -> Any:
    return of_kind(request.param)


def jdbc(table: Any, **options: Any) -> JdbcSource:
    address = {k: v for k, v in table.address.items() if k != "table" or "query" not in options}
    checked = check_options("jdbc", "source", {**address, **options})
    return JdbcSource(checked, parse_address(checked.address))


def run(table: Any, *statements: str) -> None:
    with connected(table.kind, table.address) as connection:
        for statement in statements:
            connection.execute(statement)


def all_rows(source: JdbcSource, schema: Any = None) -> list[dict[str, Any]]:
    schema = schema or source.schema()
    return [
        row
        for condition in source.conditions()
        for batch in source.read(condition, schema)
        for row in batch.to_pylist()
    ]


def test_types_of_postgresql(of_kind: Any) -> None:
    table = of_kind("postgresql")
    run(
        table,
        "CREATE TABLE orders (a smallint, b numeric(10,2), c numeric, d timestamptz, e timestamp, "
        "f date, g boolean, h bytea, i text[], j jsonb, k uuid, l interval, m real)",
        "INSERT INTO orders (a, b, c) VALUES (null, null, 'NaN')",
        "INSERT INTO orders VALUES (1, 2.5, 3.25, '2026-01-01 01:00+01', '2026-01-01 01:00', "
        "'2026-01-01', true, '\\x00ff', '{a,null}', '{\"x\": 1}', "
        "'12345678-1234-1234-1234-123456789abc', '1 day', 0.5)",
    )
    second, first = all_rows(jdbc(table))
    utc = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert list(first.values()) == [
        1,
        decimal.Decimal("2.50"),
        decimal.Decimal("3.25"),
        utc,
        datetime.datetime(2026, 1, 1, 1),
        datetime.date(2026, 1, 1),
        True,
        b"\x00\xff",
        ["a", None],
        '{"x": 1}',
        "12345678-1234-1234-1234-123456789abc",
        "1 day",
        0.5,
    ]
    assert set(second.values()) == {None}


def test_types_of_mariadb(of_kind: Any) -> None:
    table = of_kind("mariadb")
    run(
        table,
        "CREATE TABLE orders (a tinyint, b smallint unsigned, c int unsigned, d bigint unsigned, "
        "e decimal(10,2), f decimal(50,2), g timestamp(6) NULL, h datetime, i date, j tinyint(1), "
        "k varbinary(9), l json, m enum('x', 'y'), n time, o year, p bit(3), q float, r text)",
        "INSERT INTO orders (a) VALUES (null)",
        "SET time_zone = '+01:00'",
        "INSERT INTO orders VALUES (1, 65535, 4294967295, 18446744073709551615, 2.5, 3.25, "
        "'2026-01-01 01:00:00.5', '2026-01-01 01:00', '2026-01-01', true, x'00ff', '[1]', 'y', "
        "'01:02:03', 2026, b'101', 0.5, 'š')",
    )
    second, first = all_rows(jdbc(table))
    assert list(first.values()) == [
        1,
        65535,
        4294967295,
        decimal.Decimal("18446744073709551615"),
        decimal.Decimal("2.50"),
        "3.25",
        datetime.datetime(2026, 1, 1, microsecond=500_000, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 1, 1),
        datetime.date(2026, 1, 1),
        True,
        b"\x00\xff",
        "[1]",
        "y",
        "01:02:03",
        2026,
        5,
        0.5,
        "š",
    ]
    assert set(second.values()) == {None}


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"])
def test_what_our_sink_wrote_comes_back_with_its_types(of_kind: Any, kind: str) -> None:
    table = of_kind(kind)
    at = datetime.datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=datetime.UTC)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("price", pa.decimal128(10, 2)),
            ("exact", pa.decimal128(38, 3)),
            ("at", pa.timestamp("us", "UTC")),
            ("wall", pa.timestamp("us")),
            ("day", pa.date32()),
            ("ok", pa.bool_()),
            ("raw", pa.binary()),
            ("ratio", pa.float64()),
        ]
    )
    large = decimal.Decimal("12345678901234567890123456789012345.678")
    row = (
        1,
        decimal.Decimal("0.10"),
        large,
        at,
        at.replace(tzinfo=None),
        at.date(),
        False,
        b"x",
        0.5,
    )
    table.write(0, [row, (2,) + (None,) * 8], schema=schema)
    source = jdbc(table)
    assert source.schema() == schema
    assert [tuple(found.values()) for found in all_rows(source)] == [row, (2,) + (None,) * 8]


def test_parts_of_a_table_and_a_query(database: Any) -> None:
    run(database, "CREATE TABLE orders (id bigint, name text)")
    run(database, *(f"INSERT INTO orders VALUES ({n}, 'n{n}')" for n in range(10)))
    cut = jdbc(database, partitionColumn="id", lowerBound=0, upperBound=10, numPartitions=3)
    assert len(cut.conditions()) == 3
    assert sorted(row["id"] for row in all_rows(cut)) == list(range(10))
    query = jdbc(database, query="SELECT id, name FROM orders WHERE name LIKE 'n%' AND id > 7;")
    assert [row["name"] for row in all_rows(query)] == ["n8", "n9"]
    as_text = pa.schema([("id", pa.string())])
    assert all_rows(query, as_text) == [{"id": "8"}, {"id": "9"}]


def test_a_stream_of_rows_goes_on_where_it_was(database: Any) -> None:
    run(database, "CREATE TABLE orders (id bigint, at timestamp)")

    def insert(*rows: tuple[int, str]) -> None:
        run(database, *(f"INSERT INTO orders VALUES ({n}, '{at}')" for n, at in rows))

    source = jdbc(
        database,
        mode="timestamp+incrementing",
        **{"timestamp.column.name": "at", "incrementing.column.name": "id"},
    )

    def take(start: Progress, rows_max: int = 0) -> tuple[list[int], Progress]:
        end = source.latest(start, rows_max)
        if end == start:
            return [], end
        condition = source.cursor().between(start, end)
        batches = source.read(condition, source.schema(), source.cursor().order)
        return [row["id"] for batch in batches for row in batch.to_pylist()], end

    insert((1, "2026-01-01 00:00:01"), (2, "2026-01-01 00:00:01"), (3, "2026-01-01 00:00:02"))
    first, at = take(Progress(), 1)
    assert first == [1]
    second, at = take(at)
    assert second == [2, 3]
    # A row that is changed gets a new time, and comes again with it.
    run(database, "UPDATE orders SET at = '2026-01-01 00:00:09' WHERE id = 1")
    assert take(at)[0] == [1]


def test_rows_of_the_last_moments_can_be_waited_for(database: Any) -> None:
    run(
        database,
        "CREATE TABLE orders (id bigint, at timestamp)",
        "INSERT INTO orders VALUES (1, '2026-01-01 00:00:00'), (2, '2037-12-31 00:00:00')",
    )
    options = {"timestamp.column.name": "at", "timestamp.delay.interval.ms": 1000}
    end = jdbc(database, mode="timestamp", **options).latest(Progress(), 0)
    assert str(end.timestamp).startswith("2026-01-01")


def test_what_is_missing_is_named(database: Any) -> None:
    with pytest.raises(TableError, match=r"table orders|SQLite database .* cannot be opened"):
        jdbc(database).schema()
    run(database, "CREATE TABLE orders (id bigint)")
    with pytest.raises(OptionError, match="mode: incrementing"):
        jdbc(database).cursor()
    options = {"incrementing.column.name": "number"}
    with pytest.raises(TableError, match=r"'number', which incrementing.column.name names"):
        jdbc(database, mode="incrementing", **options).checked_cursor()
    bounds = {"lowerBound": 0, "upperBound": 9, "numPartitions": 2}
    with pytest.raises(TableError, match="'number', which partitionColumn names"):
        jdbc(database, partitionColumn="number", **bounds).conditions()


@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_a_server_that_is_not_there_says_so(database: str) -> None:
    url = f"jdbc:{database}://127.0.0.1:1/shop?user=me&password=secret"
    checked = check_options("jdbc", "source", {"jdbc": url, "table": "orders"})
    with pytest.raises(TableError, match=r"127\.0\.0\.1:1 cannot be reached") as told:
        JdbcSource(checked, parse_address(url)).schema()
    assert "secret" not in str(told.value)
