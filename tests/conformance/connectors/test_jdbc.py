"""The JDBC connectors against real databases: PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.api import ConnectError, DataError, RetriableError
from moldau.data import builders, logical
from moldau.data.schema import Type
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, SourceDriver, config_errors
from support.mariadb import MariaDb
from support.postgres import Postgres
from support.repeats import mostly_long

SOURCE = "io.confluent.connect.jdbc.JdbcSourceConnector"
SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"
MOMENT = datetime.datetime(2026, 3, 1, 12, 30, 15, 123000, tzinfo=datetime.UTC)


@dataclass
class Site:
    """One database for one test."""

    kind: str
    config: dict[str, str]
    connection: Any
    where: str

    def run(self, statement: str) -> None:
        cursor = self.connection.cursor()
        cursor.execute(statement)
        self.connection.commit()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        self.connection.commit()
        cursor = self.connection.cursor()
        cursor.execute(query)
        return [tuple(row) for row in cursor.fetchall()]

    def source(self, **config: str) -> SourceDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        return SourceDriver(
            SOURCE, {**self.config, "topic.prefix": "db-", "poll.interval.ms": "10", **keys}
        )

    def sink(self, **config: str) -> SinkDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        return SinkDriver(SINK, {**self.config, "topics": "orders", **keys})


@pytest.fixture(
    params=mostly_long(
        ["postgresql", "sqlite", "mariadb"], "another database; `make connectors` has all", keep=2
    )
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    if request.param == "postgresql":
        cluster: Postgres = request.getfixturevalue("postgres")
        name = cluster.database()
        config = {"connection.url": cluster.url(name), "connection.user": "moldau"}
        with cluster.connect(name) as connection:
            yield Site(request.param, config, connection, f"{name}.public.")
    elif request.param == "mariadb":
        server: MariaDb = request.getfixturevalue("mariadb")
        name = server.database()
        config = {
            "connection.url": server.url(name),
            "connection.user": "moldau",
            "connection.password": "secret",
        }
        with server.connect(name) as connection:
            yield Site(request.param, config, connection, f"{name}.")
    else:
        path = tmp_path / "test.db"
        connection = sqlite3.connect(path)
        yield Site(request.param, {"connection.url": f"jdbc:sqlite:{path}"}, connection, "")
        connection.close()


def test_new_rows_follow_by_their_number_and_a_task_continues(site: Site) -> None:
    site.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, item VARCHAR(20) NOT NULL, note TEXT)")
    site.run("INSERT INTO orders VALUES (1, 'tea', NULL), (2, 'cup', 'blue')")
    with site.source(mode="incrementing") as source:
        first, second = source.poll_until(2)
        assert (first.topic, first.value["item"], first.value["note"]) == ("db-orders", "tea", None)
        assert second.source_partition == {"protocol": "1", "table": f"{site.where}orders"}
        assert second.source_offset == {"incrementing": 2}
        schema = first.value_schema
        assert schema is not None
        assert schema.name == "orders"
        assert [field.schema.optional for field in schema.fields] == [False, False, True]
        source.commit()
        site.run("INSERT INTO orders VALUES (3, 'pot', NULL)")
        assert [record.value["id"] for record in source.poll_until(1)] == [3]
        source.restart()  # The third was not committed.
        assert [record.value["id"] for record in source.poll_until(1)] == [3]


def test_changed_rows_follow_by_timestamp(site: Site) -> None:
    precise = "(6)" if site.kind == "mariadb" else ""
    site.run(f"CREATE TABLE t (id INTEGER PRIMARY KEY, changed TIMESTAMP{precise} NOT NULL)")
    site.run(
        "INSERT INTO t VALUES (1, '2026-03-01 10:00:00.000'), (2, '2026-03-01 10:00:00.000'), "
        "(3, '2026-03-01 11:00:00.250')"
    )
    config = {"mode": "timestamp+incrementing", "timestamp_column_name": "changed"}
    with site.source(**config, batch_max_rows="1") as source:
        assert [record.value["id"] for record in source.poll_until(3)] == [1, 2, 3]
        source.commit()
        site.run("UPDATE t SET changed = '2026-03-02 10:00:00.000' WHERE id = 1")
        (record,) = source.poll_until(1)
        assert record.value["id"] == 1
        assert record.value["changed"] == datetime.datetime(2026, 3, 2, 10, tzinfo=datetime.UTC)
        assert record.source_offset == {
            "incrementing": 1,
            "timestamp": 1772445600000,
            "timestamp_nanos": 0,
        }


def test_rows_of_one_timestamp_are_not_lost_between_polls(site: Site) -> None:
    site.run("CREATE TABLE t (id INTEGER PRIMARY KEY, changed TIMESTAMP NOT NULL)")
    rows = ", ".join(f"({number}, '2026-03-01 10:00:00')" for number in range(1, 8))
    site.run(f"INSERT INTO t VALUES {rows}")
    config = {"mode": "timestamp+incrementing", "timestamp_column_name": "changed"}
    with site.source(**config, batch_max_rows="3") as source:
        found = [record.value["id"] for record in source.poll()]
        source.commit()
        source.restart()
        found += [record.value["id"] for record in source.poll_until(4)]
    assert found == [1, 2, 3, 4, 5, 6, 7]


def test_bulk_copies_everything_each_time_and_tables_are_shared_out(site: Site) -> None:
    for name in ("a", "b", "c"):
        site.run(f"CREATE TABLE {name} (id INTEGER)")
        site.run(f"INSERT INTO {name} VALUES (1)")
    with site.source(mode="bulk", table_blacklist="c", tasks_max="5") as source:
        assert [each["tables"] for each in source.task_configs] == [
            f"{site.where}a",
            f"{site.where}b",
        ]
        assert [record.topic for record in source.poll_until(3)] == ["db-a"] * 3


def test_a_query_instead_of_tables(site: Site) -> None:
    site.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    site.run("INSERT INTO t VALUES (1, 5), (2, 6), (3, 7)")
    query = "SELECT * FROM (SELECT id, n * 2 AS double_n FROM t WHERE n > 5) AS q"
    with site.source(mode="bulk", query=query, topic_prefix="doubled") as source:
        found = source.poll_until(2)
        assert {record.topic for record in found} == {"doubled"}
        assert sorted(int(record.value["double_n"]) for record in found) == [12, 14]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"mode": "timestamp", "timestamp.column.name": "nosuch"}, "has no column nosuch; it has"),
        ({"mode": "timestamp", "timestamp.column.name": "at"}, "may be null"),
        ({"mode": "incrementing"}, "no primary key"),
    ],
)
def test_what_cannot_be_followed_is_said(site: Site, config: dict[str, str], problem: str) -> None:
    site.run("CREATE TABLE t (id INTEGER, at TIMESTAMP NULL)")
    with site.source(**config) as source, pytest.raises(ConnectError, match=problem):
        source.poll()


def test_settings_that_do_not_go_together_are_refused() -> None:
    base = {"connection.url": "jdbc:sqlite:/tmp/x.db", "topic.prefix": "x"}
    assert set(config_errors(SOURCE, base)) == {"mode"}
    timestamp = {**base, "mode": "timestamp"}
    assert set(config_errors(SOURCE, timestamp)) == {"timestamp.column.name"}
    assert set(config_errors(SINK, {"connection.url": "x", "insert.mode": "upsert"})) == {
        "connection.url",
        "pk.mode",
    }


ORDER = builders.struct(
    {
        "id": builders.INT32,
        "item": builders.STRING,
        "price": logical.decimal(2, optional=True),
        "weight": builders.OPTIONAL_FLOAT64,
        "at": logical.TIMESTAMP.as_optional(),
        "day": logical.DATE.as_optional(),
        "raw": builders.OPTIONAL_BYTES,
        "paid": builders.OPTIONAL_BOOLEAN,
    },
    name="Order",
)


def order(number: int, item: str = "tea", **values: Any) -> Struct:
    return Struct(ORDER, {"id": number, "item": item, **values})


def send(sink: SinkDriver, *values: Struct | None, keys: list[Any] | None = None) -> None:
    records = [
        sink.record(
            "orders",
            value,
            value_schema=None if value is None else ORDER,
            key=None if keys is None else keys[place],
            key_schema=None if keys is None else builders.INT32,
        )
        for place, value in enumerate(values)
    ]
    sink.put(records)
    sink.commit()


def test_a_table_is_created_and_every_type_comes_back(site: Site) -> None:
    values = {
        "price": Decimal("1.50"),
        "weight": 0.25,
        "at": MOMENT,
        "day": datetime.date(2026, 3, 1),
        "raw": b"\0\xff",
        "paid": True,
    }
    with site.sink(auto_create="true", pk_mode="record_value", pk_fields="id") as sink:
        send(sink, order(1, **values), order(2))
    with site.source(mode="incrementing", table_whitelist="orders") as source:
        first, second = (record.value for record in source.poll_until(2))
    assert first["at"] == MOMENT
    assert first["day"] == datetime.date(2026, 3, 1)
    assert (first["price"], first["weight"], first["raw"]) == (Decimal("1.50"), 0.25, b"\0\xff")
    assert first["paid"] == 1
    assert [second[name] for name in values] == [None] * len(values)


def test_upserts_deletes_and_their_order(site: Site) -> None:
    config = {
        "auto_create": "true", "insert_mode": "upsert", "pk_mode": "record_key",
        "pk_fields": "id", "delete_enabled": "true",
    }  # fmt: skip
    with site.sink(**config) as sink:
        changes = [order(1), order(2), order(1, "cup"), None, order(3), None, order(3, "pot")]
        for _ in range(2):  # Twice: an upsert that is repeated changes nothing.
            send(sink, *changes, keys=[1, 2, 1, 2, 3, 3, 3])
    assert site.rows("SELECT id, item FROM orders ORDER BY id") == [(1, "cup"), (3, "pot")]


def test_updates_by_the_place_in_kafka_and_new_columns(site: Site) -> None:
    old = builders.struct({"item": builders.STRING})
    new = builders.struct({"item": builders.STRING, "size": builders.OPTIONAL_INT64})
    config = {"auto_create": "true", "auto_evolve": "true", "pk_mode": "kafka"}
    with site.sink(**config) as sink:
        sink.send("orders", Struct(old, {"item": "tea"}), value_schema=old)
        sink.send("orders", Struct(new, {"item": "cup", "size": 3}), value_schema=new)
    assert site.rows(
        "SELECT item, size, __connect_topic, __connect_offset FROM orders ORDER BY 4"
    ) == [("tea", None, "orders", 0), ("cup", 3, "orders", 1)]
    with site.sink(insert_mode="update", pk_mode="kafka", table_name_format="orders") as sink:
        sink.send("orders", Struct(old, {"item": "pot"}), value_schema=old)
    assert site.rows("SELECT item FROM orders ORDER BY __connect_offset") == [("pot",), ("cup",)]


def test_a_refused_record_is_reported_and_the_others_are_written(site: Site) -> None:
    site.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, item VARCHAR(20) NOT NULL)")
    with site.sink(fields_whitelist="id,item") as sink:
        send(sink, order(1), order(1, "again"), order(2))
        assert [record.offset for record, _ in sink.errant] == [1]
        sink.task_context.errant_record_reporter = None  # type: ignore[assignment]
        with pytest.raises(ConnectError):
            send(sink, order(3), order(2))
    assert site.rows("SELECT id, item FROM orders ORDER BY id") == [(1, "tea"), (2, "tea")]


def test_a_missing_table_or_column_is_named(site: Site) -> None:
    with site.sink() as sink:
        sink.task_context.errant_record_reporter = None  # type: ignore[assignment]
        with pytest.raises(ConnectError, match=r"Table orders is missing .*auto\.create"):
            send(sink, order(1))
        site.run("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        with pytest.raises(ConnectError, match=r"missing fields \(item, price.*auto\.evolve"):
            send(sink, order(1))


def test_values_without_a_schema_are_refused_with_a_hint(site: Site) -> None:
    with site.sink(auto_create="true") as sink:
        sink.task_context.errant_record_reporter = None  # type: ignore[assignment]
        with pytest.raises(DataError, match=r"schemas\.enable=true"):
            sink.send("orders", {"id": 1})


def test_a_database_that_is_away_is_tried_again(postgres: Postgres) -> None:
    config = {
        "connection.url": "jdbc:postgresql://127.0.0.1:1/x",
        "connection.user": "moldau",
        "topics": "orders",
        "auto.create": "true",
        "max.retries": "2",
        "retry.backoff.ms": "7",
    }
    with SinkDriver(SINK, config) as sink:
        for _ in range(2):
            with pytest.raises(RetriableError):
                send(sink, order(1))
        assert sink.task_context.timeout_ms == 7
        with pytest.raises(ConnectError, match="tried 3 times") as failure:
            send(sink, order(1))
        assert not isinstance(failure.value, RetriableError)


def test_decimals_become_smaller_types_where_they_fit(site: Site) -> None:
    if site.kind == "sqlite":
        pytest.skip("SQLite has no decimals of a declared size")
    site.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n DECIMAL(9,0), p DECIMAL(10,2))")
    site.run("INSERT INTO t VALUES (1, 42, 1.25)")
    for mapping, types in (
        ("none", [Type.BYTES, Type.BYTES]),
        ("precision_only", [Type.INT32, Type.BYTES]),
        ("best_fit", [Type.INT32, Type.FLOAT64]),
    ):
        with site.source(mode="bulk", numeric_mapping=mapping) as source:
            (record,) = source.poll_until(1)
            assert record.value_schema is not None
            assert [field.schema.type for field in record.value_schema.fields[1:]] == types
