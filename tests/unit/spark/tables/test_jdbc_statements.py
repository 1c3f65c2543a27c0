"""Addresses, the SQL that is run, and the positions of streams: all of it text."""

from __future__ import annotations

import datetime
import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.spark.tables import OptionError
from moldau.spark.tables.jdbc.machine.address import (
    OTHER,
    POSTGRESQL,
    SQLITE,
    Address,
    parse_address,
)
from moldau.spark.tables.jdbc.machine.queries import Cursor, Progress, earlier, parts, progress_of
from moldau.spark.tables.jdbc.machine.statements import insert_row, move_staged, qualified


@pytest.mark.parametrize(
    ("url", "parameters"),
    [
        pytest.param(
            "jdbc:postgresql://db:5433/shop?user=me&password=a%26b",
            {"host": "db", "port": "5433", "dbname": "shop", "user": "me", "password": "a&b"},
            id="all in one",
        ),
        pytest.param(
            "jdbc:postgresql://a,b:6000/shop?targetServerType=primary",
            {
                "host": "a,b",
                "port": "5432,6000",
                "dbname": "shop",
                "target_session_attrs": "primary",
            },
            id="two hosts",
        ),
        pytest.param(
            "jdbc:postgresql://[::1]/shop?currentSchema=my schema&ssl=true",
            {
                "host": "::1",
                "port": "5432",
                "dbname": "shop",
                "options": "-csearch_path=my\\ schema",
                "sslmode": "verify-full",
            },
            id="IPv6, schema, TLS",
        ),
        pytest.param("jdbc:postgresql:shop", {"dbname": "shop"}, id="local"),
    ],
)
def test_postgresql_addresses(url: str, parameters: dict[str, str]) -> None:
    assert parse_address(url) == Address(POSTGRESQL, tuple(sorted(parameters.items())))


def test_user_and_password_as_options_win() -> None:
    address = parse_address("jdbc:postgresql://h/d?user=a", "b", "c")
    assert dict(address.parameters)["user"] == "b"
    assert dict(address.parameters)["password"] == "c"


def test_other_addresses() -> None:
    assert parse_address("jdbc:sqlite:/tmp/x.db") == Address(SQLITE, path="/tmp/x.db")
    assert parse_address("jdbc:mysql://h/d").database == OTHER
    with pytest.raises(OptionError, match="ends with its process"):
        parse_address("jdbc:sqlite::memory:")
    with pytest.raises(OptionError, match="defaultRowFetchSize"):
        parse_address("jdbc:postgresql://h/d?defaultRowFetchSize=1")


def test_names_are_quoted() -> None:
    assert qualified('public."or.ders"') == '"public"."or.ders"'
    assert qualified("shop orders") == '"shop orders"'


def test_one_statement_moves_all_staged_rows() -> None:
    statement = move_staged("t", [("s1", None, None), ("s2", 3, 7)], ["id", "n"], ["id"], "n")
    assert statement == (
        'INSERT INTO "t" ("id", "n") SELECT DISTINCT ON ("id") "id", "n" FROM ('
        'SELECT "id", "n", 0 AS moldau_task, moldau_row FROM s1 UNION ALL '
        'SELECT "id", "n", 1 AS moldau_task, moldau_row FROM s2 '
        "WHERE moldau_row BETWEEN 3 AND 7) staged "
        'ORDER BY "id", "n" DESC NULLS LAST, moldau_task DESC, moldau_row DESC '
        'ON CONFLICT ("id") DO UPDATE SET "n" = excluded."n" '
        'WHERE "t"."n" IS NULL OR "t"."n" <= excluded."n"'
    )


def test_a_table_of_nothing_but_keys_keeps_what_is_there() -> None:
    assert insert_row("t", ["id"], ["id"], "").endswith('ON CONFLICT ("id") DO NOTHING')


@given(
    st.lists(st.one_of(st.none(), st.integers(-50, 150)), max_size=30),
    st.integers(1, 7),
)
def test_parts_give_every_row_once_also_outside_of_the_bounds(
    ids: list[int | None], count: int
) -> None:
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE t ("id" INTEGER)')
    database.executemany("INSERT INTO t VALUES (?)", [[i] for i in ids])
    found = []
    for condition in parts("id", "0", "100", count):
        found += database.execute(f"SELECT id FROM t WHERE {condition or 'true'}").fetchall()
    assert sorted(map(repr, (row[0] for row in found))) == sorted(map(repr, ids))


@pytest.mark.parametrize(("low", "high"), [("5", "1"), ("1", "2026-01-01"), ("a", "b")])
def test_bounds_that_are_no_range(low: str, high: str) -> None:
    with pytest.raises(OptionError, match=r"no range|no whole number"):
        parts("id", low, high, 2)


def test_parts_by_time() -> None:
    assert parts("at", "2026-01-01", "2026-01-03", 2) == [
        '("at" < \'2026-01-02 00:00:00.000000\' OR "at" IS NULL)',
        "\"at\" >= '2026-01-02 00:00:00.000000'",
    ]


MODES = [
    pytest.param(Cursor("", "id", "?"), id="incrementing"),
    pytest.param(Cursor("at", "", "?"), id="timestamp"),
    pytest.param(Cursor("at", "id", "?"), id="timestamp+incrementing"),
]


@pytest.mark.parametrize("cursor", MODES)
@given(data=st.data())
def test_a_stream_gives_each_row_once_while_rows_are_added(cursor: Cursor, data: Any) -> None:
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE t ("id" INTEGER, "at" TEXT)')
    position, seen, number, clock = Progress(), [], 0, 0
    for _ in range(data.draw(st.integers(1, 4))):
        # Several rows may have the same time, but none comes later with a time already read.
        clock += 1
        for _ in range(data.draw(st.integers(0, 5))):
            clock += data.draw(st.integers(0, 1))
            number += 1
            database.execute("INSERT INTO t VALUES (?, ?)", [number, f"{clock:04d}"])
        while True:
            query, given_values = cursor.latest("t", position, data.draw(st.integers(0, 3)))
            row = database.execute(query, given_values).fetchone()
            if row is None:
                break
            end = cursor.position(row)
            condition, given_values = cursor.between(position, end)
            batch = database.execute(
                f"SELECT id FROM t WHERE {condition} ORDER BY {cursor.order}", given_values
            ).fetchall()
            assert batch
            seen += [found[0] for found in batch]
            position = progress_of(end.as_offset())
    assert sorted(seen) == list(range(1, number + 1))


def test_rows_without_a_position_are_left_out() -> None:
    query, values = Cursor("", "id", "?").latest("t", Progress(), 0)
    assert '"id" IS NOT NULL' in query
    assert values == []


def test_offsets_keep_times_exactly() -> None:
    at = Progress(datetime.datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=datetime.UTC), 7)
    assert progress_of(at.as_offset()) == at
    assert earlier(at, Progress()) == Progress()
    assert earlier(at, Progress(at.timestamp, 6)).incrementing == 6
