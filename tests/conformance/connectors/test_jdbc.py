"""The JDBC connectors against real databases: PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

import datetime
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.api import ConnectError, DataError, RetriableError, SourcePartition
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

    def sink(self, *, reports: bool = True, **config: str) -> SinkDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        given = {**self.config, "topics": "orders", **keys}
        return SinkDriver(SINK, given, reports=reports)


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


def test_rows_wait_for_transactions_that_commit_late(site: Site) -> None:
    site.run("CREATE TABLE t (id INTEGER PRIMARY KEY, changed TIMESTAMP NOT NULL)")
    moments = {
        "postgresql": "now() AT TIME ZONE 'UTC'", "sqlite": "datetime('now', '-1 second')",
        "mariadb": "utc_timestamp() - INTERVAL 1 SECOND",
    }  # fmt: skip
    site.run(f"INSERT INTO t VALUES (1, '2026-03-01 10:00:00'), (2, {moments[site.kind]})")
    config = {"mode": "timestamp", "timestamp_column_name": "changed"}
    with site.source(**config, timestamp_delay_interval_ms="3600000") as source:
        assert [record.value["id"] for record in source.poll_until(1)] == [1]
    with site.source(**config) as source:
        assert [record.value["id"] for record in source.poll_until(2)] == [1, 2]


def test_rows_of_one_timestamp_come_again_without_a_number(site: Site) -> None:
    """By timestamps alone a time is only stored when a later one is there."""
    site.run("CREATE TABLE t (id INTEGER PRIMARY KEY, changed TIMESTAMP NOT NULL)")
    site.run(
        "INSERT INTO t VALUES (1, '2026-03-01 10:00:00'), (2, '2026-03-01 11:00:00'), "
        "(3, '2026-03-01 11:00:00'), (4, '2026-03-01 12:00:00')"
    )
    config = {"mode": "timestamp", "timestamp_column_name": "changed"}
    with site.source(**config, batch_max_rows="2") as source:
        first = source.poll()
        assert [record.value["id"] for record in first] == [1, 2]
        hours = [record.source_offset["timestamp"] // 3_600_000 % 24 for record in first]
        assert hours == [10, 10]
        source.commit()
        source.restart()
        found = source.poll_until(3)
        assert [record.value["id"] for record in found] == [2, 3, 4]
        assert found[-1].source_offset["timestamp"] // 3_600_000 % 24 == 12


def test_offsets_of_older_versions_are_found_and_bulk_has_the_table_alone(site: Site) -> None:
    site.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    site.run("INSERT INTO t VALUES (1), (2), (3)")
    with site.source(mode="incrementing") as source:
        source.offsets[SourcePartition({"table": "t"})] = {"incrementing": 2}
        source.restart()
        assert [record.value["id"] for record in source.poll_until(1)] == [3]
    with site.source(mode="bulk") as source:
        record = source.poll_until(1)[0]
        assert (record.source_partition, record.source_offset) == ({"table": "t"}, None)


def test_columns_for_each_table_and_tables_by_expressions(site: Site) -> None:
    for name in ("a_one", "a_two", "b"):
        site.run(f"CREATE TABLE {name} (n_{name} INTEGER NOT NULL, x INTEGER)")
        site.run(f"INSERT INTO {name} VALUES (1, 5)")
    config = {
        "mode": "incrementing", "table_include_list": ".*a_.*,.*b", "table_exclude_list": ".*two",
        "incrementing_column_mapping": ".*a_.*:n_a_one,.*b:n_b",
    }  # fmt: skip
    with site.source(**config) as source:
        assert {record.topic for record in source.poll_until(2)} == {"db-a_one", "db-b"}
    config["incrementing_column_mapping"] = ".*a_.*:n_a_one"
    with site.source(**config) as source, pytest.raises(ConnectError, match="matches none of"):
        source.poll_until(2)


def test_timestamps_as_numbers_and_texts_and_in_the_databases_zone(site: Site) -> None:
    precise = "DATETIME(6)" if site.kind == "mariadb" else "TIMESTAMP"
    site.run(f"CREATE TABLE t (id INTEGER PRIMARY KEY, changed {precise} NOT NULL, x TIME)")
    site.run("INSERT INTO t VALUES (1, '2026-03-01 10:00:00.123456', '10:30:00')")
    utc, tokyo = 1772359200_123456, 1772359200_123456 - 9 * 3600 * 1_000_000
    for granularity, zone, wanted in (
        ("micros_long", "UTC", utc),
        ("micros_string", "Asia/Tokyo", str(tokyo)),
        ("micros_iso_datetime_string", "Asia/Tokyo", "2026-03-01T10:00:00.123456"),
        ("nanos_long", "+09:00", tokyo * 1000),
        ("nanos_string", "UTC", str(utc * 1000)),
        ("nanos_iso_datetime_string", "UTC", "2026-03-01T10:00:00.123456000"),
    ):
        with site.source(
            mode="timestamp+incrementing", timestamp_column_name="changed", db_timezone=zone,
            timestamp_granularity=granularity,
        ) as source:  # fmt: skip
            (record,) = source.poll_until(1)
            assert record.value["changed"] == wanted
            assert record.source_offset["timestamp"] == (utc if zone == "UTC" else tokyo) // 1000
            assert record.value["x"] == datetime.time(10 if zone == "UTC" else 1, 30)
            source.commit()
            site.run("INSERT INTO t VALUES (2, '2026-03-01 10:00:00.123457', NULL)")
            if site.kind != "sqlite":  # Its texts are compared in milliseconds.
                assert [record.value["id"] for record in source.poll_until(1)] == [2]
            site.run("DELETE FROM t WHERE id = 2")


def test_names_that_need_quotes(site: Site) -> None:
    quote = "`" if site.kind == "mariadb" else '"'
    other = '"' if site.kind == "mariadb" else "`"
    table, column = f"odd.na,me {other}x{other} ünï", f"a {other} b.c%"
    site.run(
        f"CREATE TABLE {quote}{table}{quote} "
        f"(id INTEGER PRIMARY KEY, {quote}{column}{quote} INTEGER NOT NULL)"
    )
    site.run(f"INSERT INTO {quote}{table}{quote} VALUES (1, 5)")
    with site.source(
        mode="incrementing", incrementing_column_name=column, topic_prefix="x"
    ) as source:
        (record,) = source.poll_until(1)
        assert (record.topic, record.value[column]) == ("x" + table, 5)
        assert record.source_partition["table"] == f"{site.where}{table}"
    schema = builders.struct({"id": builders.INT32, column: builders.INT32})
    with site.sink(table_name_format=f"{quote}{table}{quote}", insert_mode="upsert",
                   pk_mode="record_value", pk_fields="id", reports=False) as sink:  # fmt: skip
        sink.send("orders", Struct(schema, {"id": 1, column: 7}), value_schema=schema)
    assert site.rows(f"SELECT * FROM {quote}{table}{quote}") == [(1, 7)]


def test_two_tables_for_one_topic_are_refused(postgres: Postgres) -> None:
    name = postgres.database()
    with postgres.connect(name) as connection:
        connection.execute("CREATE TABLE t (id INT); CREATE SCHEMA s; CREATE TABLE s.t (id INT)")
        connection.commit()
    config = {
        "connection.url": postgres.url(name), "connection.user": "moldau", "mode": "bulk",
        "topic.prefix": "x",
    }  # fmt: skip
    with pytest.raises(ConnectError, match=r"duplicate unqualified table names.*public\.t.*s\.t"):
        SourceDriver(SOURCE, config).__enter__()
    with SourceDriver(SOURCE, {**config, "table.whitelist": f'"{name}"."s"."t"'}) as source:
        assert [each["tables"] for each in source.task_configs] == [f"{name}.s.t"]


def test_kinds_of_tables_and_types_of_postgresql(postgres: Postgres) -> None:
    name = postgres.database()
    with postgres.connect(name) as connection:
        connection.execute(
            "CREATE DOMAIN cents AS NUMERIC(9, 2);"
            "CREATE TABLE p (id INT, one BIT(1), few BIT(8), c cents, z TIMESTAMPTZ, u UUID, "
            "j JSONB, h NUMERIC(4, -2)) PARTITION BY LIST (id);"
            "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);"
            "INSERT INTO p VALUES (1, B'1', B'10000001', 1.5, '2026-03-01 10:00:00+02', "
            "'00000000-0000-0000-0000-000000000001', '{\"a\": [1]}', 1234);"
            "CREATE MATERIALIZED VIEW m AS SELECT id AS m_id FROM p;"
            "CREATE VIEW v AS SELECT id AS v_id FROM p"
        )
        connection.commit()
    config = {
        "connection.url": postgres.url(name), "connection.user": "moldau", "mode": "bulk",
        "topic.prefix": "",
    }  # fmt: skip
    for kinds, wanted in (
        ("TABLE", {"p1"}),
        ("PARTITIONED TABLE,VIEW", {"p", "v"}),
        ("MATERIALIZED VIEW", {"m"}),
    ):
        with SourceDriver(SOURCE, {**config, "table.types": kinds}) as source:
            assert {each.topic for each in source.poll_until(len(wanted))} == wanted
    with SourceDriver(SOURCE, {**config, "db.timezone": "America/New_York"}) as source:
        value = source.poll_until(1)[0].value
    assert (value["one"], value["few"], value["c"]) == (True, -127, Decimal("1.50"))
    assert value["z"] == datetime.datetime(2026, 3, 1, 8, tzinfo=datetime.UTC)
    assert value["h"] == 1200
    assert (value["u"][-1], value["j"]) == ("1", '{"a": [1]}')


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


def test_a_query_may_have_percents(site: Site) -> None:
    site.run("CREATE TABLE t (id INTEGER PRIMARY KEY, item VARCHAR(20))")
    site.run("INSERT INTO t VALUES (1, 'tea'), (2, 'a%s'), (3, 'cup')")
    query = "SELECT * FROM (SELECT * FROM t WHERE item LIKE '%a%') AS q"
    with site.source(
        mode="incrementing", query=query, incrementing_column_name="id", topic_prefix="x"
    ) as source:
        assert len(source.poll_until(2)) == 2
        site.run("INSERT INTO t VALUES (4, 'a'), (5, 'b')")
        assert [int(record.value["id"]) for record in source.poll_until(1)] == [4]


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


def test_what_the_database_refuses_is_not_tried_again(site: Site) -> None:
    site.run("CREATE TABLE orders (id INTEGER NOT NULL, other INTEGER NOT NULL)")
    query = "SELECT nosuch FROM orders"
    with site.source(mode="bulk", query=query, topic_prefix="x") as source:
        with pytest.raises(ConnectError, match="nosuch") as failure:
            source.poll()
        assert not isinstance(failure.value, RetriableError)
    with site.sink(fields_whitelist="id", reports=False) as sink:
        with pytest.raises(ConnectError) as refused:
            send(sink, order(1))
        assert not isinstance(refused.value, RetriableError)


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
    with site.sink(reports=False) as sink:
        with pytest.raises(ConnectError, match=r"Table orders is missing .*auto\.create"):
            send(sink, order(1))
        site.run("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        with pytest.raises(ConnectError, match=r"missing fields \(item, price.*auto\.evolve"):
            send(sink, order(1))


def test_defaults_of_fields_are_those_of_columns(site: Site) -> None:
    schema = builders.struct(
        {
            "id": builders.INT32,
            "paid": builders.with_default(builders.BOOLEAN, True),
            "at": builders.with_default(logical.TIMESTAMP, MOMENT),
            "day": builders.with_default(logical.DATE, datetime.date(2026, 3, 1)),
            "n": builders.with_default(builders.OPTIONAL_INT32, 7),
        }
    )
    old = builders.struct({"id": builders.INT32})
    config = {"auto_create": "true", "auto_evolve": "true"}
    with site.sink(**config) as sink:
        sink.send("orders", Struct(old, {"id": 1}), value_schema=old)
        sink.send("orders", Struct(schema, {"id": 2, "n": None}), value_schema=schema)
    with site.sink(**config, replace_null_with_default="false") as sink:
        given = {"paid": True, "at": MOMENT, "day": datetime.date(2026, 3, 1)}
        sink.send("orders", Struct(schema, {"id": 3, "n": None, **given}), value_schema=schema)
    found = site.rows("SELECT id, paid, n FROM orders ORDER BY id")
    assert found == [(1, 1, 7), (2, 1, 7), (3, 1, None)]
    moments = {str(at)[:23] for (at,) in site.rows("SELECT at FROM orders")}
    assert moments == {"2026-03-01 12:30:15.123"}


def test_times_are_written_in_the_databases_zone(site: Site) -> None:
    schema = builders.struct(
        {
            "at": logical.TIMESTAMP,
            "day": logical.DATE,
            "clock": logical.TIME,
            "micros": builders.INT64,
            "text": builders.STRING,
        }
    )
    value = {
        "at": MOMENT, "day": datetime.date(2026, 3, 1), "clock": datetime.time(9),
        "micros": 1772359200_123456, "text": "1772359200123456",
    }  # fmt: skip
    config = {
        "auto_create": "true", "db_timezone": "America/New_York",
        "timestamp_fields_list": "micros,text",
    }  # fmt: skip
    with site.sink(**config) as sink:
        sink.send("orders", Struct(schema, value), value_schema=schema)
    with site.sink(**config, date_timezone="UTC") as sink:
        sink.send("orders", Struct(schema, value), value_schema=schema)
    first, second = site.rows("SELECT at, day, clock, micros, text FROM orders")
    assert [str(each)[:19] for each in first] == [
        "2026-03-01 07:30:15", "2026-02-28", str(first[2]), "2026-03-01 05:00:00",
        "2026-03-01 05:00:00",
    ]  # fmt: skip
    assert str(first[2]).lstrip("0").startswith("4:00:00")
    assert str(second[1]) == "2026-03-01"


def test_values_that_are_texts_have_one_column(site: Site) -> None:
    config = {"auto_create": "true", "pk_mode": "record_key", "pk_fields": "id"}
    with site.sink(**config, insert_mode="upsert", string_output_value_column_name="line") as sink:
        for text in ("one", "two"):
            sink.send(
                "orders", text, value_schema=builders.STRING, key=1, key_schema=builders.INT32
            )
    assert site.rows("SELECT id, line FROM orders") == [(1, "two")]


def test_arrays_of_postgresql_and_columns_in_other_case(postgres: Postgres) -> None:
    name = postgres.database()
    schema = builders.struct(
        {"tags": builders.array(builders.STRING), "n": builders.array(builders.INT32)}
    )
    config = {
        "connection.url": postgres.url(name), "connection.user": "moldau", "topics": "orders",
        "auto.create": "true",
    }  # fmt: skip
    with SinkDriver(SINK, config) as sink:
        value = Struct(schema, {"tags": ["a", 'b"c', "d,e"], "n": [1, 2]})
        sink.send("orders", value, value_schema=schema)
    with postgres.connect(name) as connection:
        row = connection.execute("SELECT tags, n FROM orders").fetchone()
    assert row == (["a", 'b"c', "d,e"], [1, 2])


def test_numbers_of_any_size_fit(site: Site) -> None:
    schema = builders.struct({"n": logical.decimal(2)})
    number = Decimal("1" * 50 + ".25")
    with site.sink(auto_create="true") as sink:
        sink.send("orders", Struct(schema, {"n": number}), value_schema=schema)
    if site.kind != "sqlite":  # It has no numbers of more than 64 bits.
        assert site.rows("SELECT n FROM orders") == [(number,)]


def test_columns_may_be_in_another_case(site: Site) -> None:
    if site.kind == "postgresql":
        pytest.skip("names in quotes are exact there")
    site.run("CREATE TABLE orders (ID INTEGER, Item VARCHAR(20))")
    schema = builders.struct({"id": builders.INT32, "item": builders.STRING})
    with site.sink(reports=False) as sink:
        sink.send("orders", Struct(schema, {"id": 1, "item": "tea"}), value_schema=schema)
    assert site.rows("SELECT id, item FROM orders") == [(1, "tea")]


def test_two_tasks_may_create_and_change_one_table(site: Site) -> None:
    """Whichever is second finds the table of the other."""
    barrier = threading.Barrier(2, timeout=60)
    failures: list[Exception] = []

    def write(task: int) -> None:
        try:
            with site.sink(
                auto_create="true", auto_evolve="true", fields_whitelist="id", reports=False
            ) as sink:
                for number in range(5):
                    barrier.wait()
                    record = order(task)
                    records = [
                        sink.record(f"orders{number}", record, value_schema=ORDER),
                    ]
                    sink.put(records)
        except Exception as error:
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=write, args=(task,)) for task in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    for number in range(5):
        assert site.rows(f"SELECT id FROM orders{number} ORDER BY id") == [(0,), (1,)]


def test_values_without_a_schema_are_refused_with_a_hint(site: Site) -> None:
    strict = site.sink(auto_create="true", reports=False)
    with strict as sink, pytest.raises(DataError, match=r"schemas\.enable=true"):
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
