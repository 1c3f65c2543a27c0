"""Rows that a database refuses: the batch fails and says which, or they become dead letters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from moldau.spark.tables import RejectedRowError, SchemaMismatchError, TableError
from moldau.spark.tables.jdbc import mariadb_sink, postgres_sink, rejected, sqlite_sink
from moldau.spark.tables.jdbc.rejected import Rejected, send_dead_letters
from moldau.spark.tables.machine.options import check_options
from moldau.testing import Broker
from support.table_stage import connected

DATABASES = ["postgresql", "mariadb", "sqlite"]
DEAD_LETTERS = {
    "onError": "dead_letter",
    "deadLetterTopic": "orders-dead-letter",
    "kafka.bootstrap.servers": "127.0.0.1:1",
}


@pytest.fixture
def dead_letters(monkeypatch: pytest.MonkeyPatch) -> list[Rejected]:
    """What would be sent to the topic."""
    sent: list[Rejected] = []

    def send(_options: Any, rows: Sequence[Rejected], _batch_id: int) -> None:
        sent.extend(rows)

    for module in (postgres_sink, mariadb_sink, sqlite_sink):
        monkeypatch.setattr(module, "send_dead_letters", send)
    return sent


def made(of_kind: Any, kind: str, declaration: str) -> Any:
    """A table that was there before, with its own rules."""
    table = of_kind(kind)
    with connected(kind, table.address) as connection:
        connection.execute(f"CREATE TABLE orders ({declaration})")
    return table


@pytest.mark.parametrize("kind", DATABASES)
def test_the_error_names_the_row_and_nothing_is_added(of_kind: Any, kind: str) -> None:
    table = made(of_kind, kind, "id bigint PRIMARY KEY, name text NOT NULL")
    with pytest.raises(RejectedRowError, match=r'"id": 2.*name.*onError: dead_letter'):
        table.write(0, [(1, "a"), (2, None)])
    assert table.ids() == []


@pytest.mark.parametrize("kind", DATABASES)
def test_a_key_that_is_there_already_is_named(of_kind: Any, kind: str) -> None:
    table = made(of_kind, kind, "id bigint PRIMARY KEY, name text")
    table.write(0, [(1, "a")])
    with pytest.raises(RejectedRowError, match=r"id|entry '1' for key 'PRIMARY'"):
        table.write(1, [(2, "b"), (1, "again")])
    assert table.ids() == [1]
    table.write(1, [(2, "b")])
    assert table.ids() == [1, 2]
    assert table.staged_things() == []


def test_a_value_that_cannot_be_cast_is_named_with_its_column(of_kind: Any) -> None:
    table = made(of_kind, "postgresql", "id bigint, name integer")
    with pytest.raises(RejectedRowError, match=r'"id": 2.*integer.*column name'):
        table.write(0, [(1, "7"), (2, "seven")])


@pytest.mark.parametrize("kind", DATABASES)
def test_refused_rows_become_dead_letters_and_the_others_go_in(
    of_kind: Any, kind: str, dead_letters: list[Rejected]
) -> None:
    table = made(of_kind, kind, "id bigint PRIMARY KEY CHECK (id < 100), name text NOT NULL")
    table.write(0, [(1, "a")], **DEAD_LETTERS)
    rows = [(n, f"n{n}") for n in range(2, 20)]
    bad = [(1, "the key is there"), (30, None), (100, "too large")]
    table.write(1, [*rows, bad[0]], [*bad[1:], (20, "fine")], **DEAD_LETTERS)
    assert sorted(table.ids()) == list(range(1, 21))
    found = sorted(json.loads(row.row)["id"] for row in dead_letters)
    assert found == [1, 30, 100]
    assert all(row.reason for row in dead_letters)
    assert table.staged_things() == []


@pytest.mark.parametrize("kind", DATABASES)
def test_upserted_rows_keep_their_order_around_refused_ones(
    of_kind: Any, kind: str, dead_letters: list[Rejected]
) -> None:
    table = made(of_kind, kind, "id bigint PRIMARY KEY, name text CHECK (name <> 'bad')")
    rows = [(1, "old"), (2, "bad"), (1, "new"), (3, "c")]
    table.write(0, rows, upsert=["id"], **DEAD_LETTERS)
    assert [(row["id"], row["name"]) for row in table.rows()] == [(1, "new"), (3, "c")]
    assert [json.loads(row.row) for row in dead_letters] == [{"id": 2, "name": "bad"}]


def test_text_that_postgresql_cannot_store_is_refused(
    of_kind: Any, dead_letters: list[Rejected]
) -> None:
    table = of_kind("postgresql")
    table.write(0, [(1, "a"), (2, "nul\x00byte")], **DEAD_LETTERS)
    assert table.ids() == [1]
    assert json.loads(dead_letters[0].row)["id"] == 2


def test_too_many_refused_rows_mean_that_the_table_is_wrong(
    of_kind: Any, monkeypatch: pytest.MonkeyPatch, dead_letters: list[Rejected]
) -> None:
    monkeypatch.setattr(rejected, "REJECTED_MAX", 3)
    table = made(of_kind, "sqlite", "id bigint, name text NOT NULL")
    with pytest.raises(RejectedRowError, match="more than 3 rows"):
        table.write(0, [(n, None) for n in range(10)], **DEAD_LETTERS)
    assert table.ids() == []


@pytest.mark.parametrize("kind", DATABASES)
def test_upsert_into_a_table_without_that_key_says_what_to_create(of_kind: Any, kind: str) -> None:
    table = made(of_kind, kind, "id bigint, name text")
    with pytest.raises(SchemaMismatchError, match=r"no unique key over id.*CREATE UNIQUE INDEX"):
        table.write(0, [(1, "a")], upsert=["id"])


def test_upsert_beside_another_unique_key_is_refused(of_kind: Any) -> None:
    # MariaDB would replace the row that has the same name, whatever its id is.
    table = made(of_kind, "mariadb", "id bigint PRIMARY KEY, name varchar(9) UNIQUE")
    with pytest.raises(SchemaMismatchError, match=r"another unique key, name"):
        table.write(0, [(1, "a")], upsert=["id"])


def test_a_table_without_transactions_is_refused(of_kind: Any) -> None:
    table = of_kind("mariadb")
    with connected("mariadb", table.address) as connection:
        connection.execute("CREATE TABLE orders (id bigint, name text) ENGINE=Aria")
    with pytest.raises(TableError, match=r"engine Aria.*ENGINE=InnoDB"):
        table.write(0, [(1, "a")])


def test_dead_letters_arrive_with_their_reason_in_headers() -> None:
    from moldau.client import Consumer

    with Broker() as broker:
        options = check_options(
            "jdbc",
            "sink",
            {
                "jdbc": "jdbc:sqlite:x.db",
                "table": "orders",
                **DEAD_LETTERS,
                "kafka.bootstrap.servers": broker.bootstrap_servers,
                "kafka.isolation.level": "read_committed",
            },
        )
        send_dead_letters(options, [Rejected('{"id": 1}', "NOT NULL failed", "IntegrityError")], 7)
        with Consumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id="readers",
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.subscribe(["orders-dead-letter"])
            record = next(iter(consumer))
    headers = dict(record.headers)
    assert record.value == b'{"id": 1}'
    assert headers["__connect.errors.exception.message"] == b"NOT NULL failed"
    assert headers["__connect.errors.moldau.batch"] == b"7"


def test_arrays_and_structs_are_json_in_postgresql(of_kind: Any) -> None:
    table = of_kind("postgresql")
    lines = pa.list_(pa.struct([("sku", pa.string()), ("count", pa.int32())]))
    schema = pa.schema(
        [("id", pa.int64()), ("lines", lines), ("tags", pa.map_(pa.string(), pa.int64()))]
    )
    table.write(0, [(1, [{"sku": "x", "count": 2}], [("a", 1)])], schema=schema)
    with connected("postgresql", table.address) as connection:
        row = connection.execute("SELECT lines->0->>'sku', tags->'a' FROM orders").fetchone()
    assert row == ("x", 1)
