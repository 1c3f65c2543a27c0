"""`moldau.sql.connect` against a server: DB-API 2.0, push queries, DataFrames."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from moldau import sql
from support.sql_server import SqlServer

EARLIEST = {"auto.offset.reset": "earliest"}
CREATE = """
    CREATE STREAM every (id STRING KEY, b BOOLEAN, i INT, l BIGINT, d DOUBLE, c DECIMAL(6, 2),
        y BYTES, da DATE, ti TIME, ts TIMESTAMP, a ARRAY<INT>, m MAP<STRING, DOUBLE>,
        s STRUCT<x INT, y DECIMAL(3, 1)>)
        WITH (kafka_topic='every', value_format='JSON', partitions=1);
"""
ROW = (
    "it's -- ?",
    True,
    -1,
    2**53,
    -1.5,
    Decimal("-3.50"),
    b"\x00\xff",
    date(2024, 2, 29),
    time(1, 2, 3),
    datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=UTC),
    [1, 2],
    {"k": 0.5},
)


@pytest.fixture(scope="module")
def connection(server: SqlServer) -> Iterator[sql.Connection]:
    with sql.connect(server.url, properties=EARLIEST) as made:
        made.execute(CREATE)
        made.execute(
            "INSERT INTO every VALUES (?,?,?,?,?,?,?,?,?,?,?,?, STRUCT(x := 7, y := 1.5))", ROW
        )
        made.cursor().executemany(
            "INSERT INTO every (id, i) VALUES (:id, :number)",
            [{"id": f"row{index}", "number": index} for index in range(3)],
        )
        made.execute("CREATE TABLE sums AS SELECT id, SUM(i) AS total FROM every GROUP BY id;")
        # The table has read all of the stream when its last row is there.
        with made.execute("SELECT * FROM sums EMIT CHANGES LIMIT 4") as cursor:
            assert len(cursor.fetchall()) == 4
        yield made


def test_values_come_back_as_they_were_given(connection: sql.Connection) -> None:
    cursor = connection.execute("SELECT * FROM every WHERE id = ? EMIT CHANGES LIMIT 1", [ROW[0]])
    row = cursor.fetchone()
    assert row == (*ROW, {"X": 7, "Y": Decimal("1.5")})
    assert cursor.fetchone() is None
    assert cursor.description is not None
    assert cursor.description[5][:6] == ("C", "DECIMAL(6, 2)", None, None, 6, 2)
    kinds = [each[1] for each in cursor.description]
    assert kinds[0] == sql.STRING
    assert kinds[4] == sql.NUMBER
    assert kinds[6] == sql.BINARY
    assert kinds[9] == sql.DATETIME
    assert kinds[0] != sql.NUMBER


def test_a_pull_query_with_parameters(connection: sql.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT total FROM sums WHERE id = :id;", {"id": "row2"})
    assert cursor.fetchall() == [(2,)]
    cursor.execute("SELECT id, total FROM sums")
    assert cursor.rowcount == -1
    assert sorted(cursor)[:1] == [(ROW[0], -1)]
    hostile = "row1' OR id = 'row2"
    assert cursor.execute("SELECT * FROM sums WHERE id = ?", [hostile]).fetchall() == []


def test_what_statements_answer(connection: sql.Connection) -> None:
    cursor = connection.execute("SHOW TABLES;")
    assert cursor.description is not None
    assert cursor.description[0][0] == "Table Name"
    assert [row[0] for row in cursor] == ["SUMS"]
    assert connection.execute("DESCRIBE sums;").fetchall()[1] == ("TOTAL", "INTEGER")
    done = connection.execute("CREATE TYPE point AS STRUCT<x INT, y INT>;")
    assert done.description is None
    assert done.entities[0]["@type"] == "currentStatus"
    with pytest.raises(sql.ProgrammingError, match="no rows"):
        done.fetchone()


def test_errors_are_those_of_pep_249(connection: sql.Connection) -> None:
    with pytest.raises(sql.ProgrammingError, match="line 1:8") as caught:
        connection.execute("CREATE STREM x;")
    assert caught.value.error_code == 40001
    with pytest.raises(sql.ProgrammingError, match="NOTHING"):
        connection.execute("SELECT * FROM nothing EMIT CHANGES")
    with pytest.raises(sql.InterfaceError, match="more placeholders"):
        connection.execute("SELECT * FROM sums WHERE id = ?", [])
    with pytest.raises(sql.DataError, match="does not fit BIGINT"):
        connection.execute("SELECT * FROM sums WHERE id = ?", [2**63])
    with pytest.raises(sql.NotSupportedError):
        connection.rollback()
    with pytest.raises(sql.OperationalError, match="moldau sql start"):
        sql.connect("http://127.0.0.1:1").execute("SHOW TABLES")
    closed = connection.cursor()
    closed.close()
    with pytest.raises(sql.InterfaceError, match="closed"):
        closed.execute("SHOW TABLES")


def test_a_push_query_for_async(connection: sql.Connection) -> None:
    async def read() -> list[tuple[object, ...]]:
        found = []
        async with connection.stream("SELECT id FROM every EMIT CHANGES") as rows:
            assert [each[0] for each in rows.description] == ["ID"]
            async for row in rows:
                found.append(row)
                if len(found) == 2:
                    later = asyncio.to_thread(
                        connection.execute, "INSERT INTO every (id, i) VALUES (?, ?)", ["later", 9]
                    )
                    await later
                if row == ("later",):
                    break
        return found

    found = asyncio.run(asyncio.wait_for(read(), 60))
    assert found[0] == (ROW[0],)
    assert found[-1] == ("later",)


def test_a_push_query_that_fails_and_one_that_ends(connection: sql.Connection) -> None:
    async def read(text: str) -> list[tuple[object, ...]]:
        return [row async for row in connection.stream(text)]

    assert len(asyncio.run(read("SELECT i FROM every EMIT CHANGES LIMIT 3"))) == 3
    with pytest.raises(sql.ProgrammingError, match="NOWHERE"):
        asyncio.run(read("SELECT i FROM nowhere EMIT CHANGES"))


def test_a_data_frame_of_pandas(connection: sql.Connection) -> None:
    frame = connection.pandas("SELECT id, b, i, d, c, ts, a FROM every EMIT CHANGES LIMIT 2")
    assert list(frame.columns) == ["ID", "B", "I", "D", "C", "TS", "A"]
    assert [str(each) for each in frame.dtypes] == [
        "string", "boolean", "Int32", "Float64", "object", "datetime64[ms, UTC]", "object",
    ]  # fmt: skip
    assert frame["I"].sum() == -1
    assert frame["TS"].iloc[0] == ROW[9]
    assert frame["D"].isna().tolist() == [False, True]
    empty = connection.pandas("SELECT * FROM sums WHERE id = 'none'")
    assert (len(empty), str(empty["TOTAL"].dtype)) == (0, "Int32")
