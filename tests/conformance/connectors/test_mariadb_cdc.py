"""Change data capture from a real MariaDB."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import ConnectError, RetriableError, SourceRecord
from moldau.testing.connect import SourceDriver
from support.mariadb import MariaDb

CONNECTOR = "io.debezium.connector.mysql.MySqlConnector"
_ids = itertools.count(1000)


class Site:
    def __init__(self, server: MariaDb) -> None:
        self._server = server
        self.name = server.database()
        self.config = {
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "moldau",
            "database.password": "secret",
            "database.server.id": str(next(_ids)),
            "database.include.list": self.name,
            "topic.prefix": "app",
            "poll.interval.ms": "20",
        }

    def run(self, *statements: str) -> None:
        """All in one transaction."""
        self._server.execute(self.name, "START TRANSACTION", *statements, "COMMIT")

    def source(self, connector: str = CONNECTOR, **config: str) -> SourceDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        return SourceDriver(connector, {**self.config, **keys})


@pytest.fixture
def site(mariadb: MariaDb) -> Site:
    made = Site(mariadb)
    columns = "id INT PRIMARY KEY, item VARCHAR(20) NOT NULL, price DECIMAL(8,2)"
    made.run(f"CREATE TABLE orders ({columns})")
    return made


def shown(records: list[SourceRecord]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for record in records:
        key = None if record.key is None else record.key.get("id")
        if record.value is None:
            found.append(("tombstone", key))
            continue
        rows = [record.value.get(name) for name in ("before", "after")]
        found.append((record.value.get("op"), key, *(row and row.get("item") for row in rows)))
    return found


def test_rows_first_then_every_change(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (1, 'tea', 1.5), (2, 'cup', NULL)")
    with site.source() as source:
        first = source.poll_until(2)
        assert shown(first) == [("r", 1, None, "tea"), ("r", 2, None, "cup")]
        assert first[0].topic == f"app.{site.name}.orders"
        assert first[0].value.get("after").get("price") == Decimal("1.50")
        site.run(
            "INSERT INTO orders VALUES (3, 'pot', 9)",
            "UPDATE orders SET item = 'mug' WHERE id = 2",
            "UPDATE orders SET id = 4 WHERE id = 1",
            "DELETE FROM orders WHERE id = 3",
        )
        changes = source.poll_until(7)
        assert shown(changes) == [
            ("c", 3, None, "pot"),
            ("u", 2, "cup", "mug"),
            ("d", 1, "tea", None),
            ("tombstone", 1),
            ("c", 4, None, "tea"),
            ("d", 3, "pot", None),
            ("tombstone", 3),
        ]
        ends = [record for _, record in source.transactions.calls]
        assert ends == [first[-1], changes[-1]]


@pytest.mark.long("another database; `make connectors` runs it")
def test_nothing_is_missing_or_doubled_after_a_stop_within_a_transaction(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (0, 'first', NULL)")
    with site.source(max_batch_size="3") as source:
        found = source.poll_until(1)
        source.commit()
        site.run(*(f"INSERT INTO orders VALUES ({number}, 'x', NULL)" for number in range(1, 11)))
        found += source.poll_until(3)
        source.commit()
        source.restart()
        again = source.poll_until(3)
        source.restart()
        found += source.poll_until(3)
        assert shown(found[-3:]) == shown(again)
        source.commit()
        source.restart()
        found += source.poll_until(4)
        source.commit()
        source.restart()
        site.run("INSERT INTO orders VALUES (11, 'last', NULL)")
        found += source.poll_until(1)
    assert [record.key.get("id") for record in found] == list(range(12))


@pytest.mark.long("another database; `make connectors` runs it")
def test_a_snapshot_that_did_not_end_is_made_again(site: Site) -> None:
    rows = ", ".join(f"({number}, 'x', NULL)" for number in range(20))
    site.run(f"INSERT INTO orders VALUES {rows}")
    with site.source(max_batch_size="5") as source:
        source.poll_until(5)
        source.commit()
        source.restart()
        site.run("DELETE FROM orders WHERE id >= 10")
        found = source.poll_until(10)
        assert [record.key.get("id") for record in found] == list(range(10))
        source.commit()
        source.restart()
        site.run("INSERT INTO orders VALUES (99, 'new', NULL)")
        assert shown(source.poll_until(1)) == [("c", 99, None, "new")]


def test_types_are_the_same_from_rows_and_from_the_log(site: Site) -> None:
    site.run(
        "CREATE TABLE types (id BIGINT PRIMARY KEY, t TINYINT, u INT UNSIGNED, f FLOAT, d DOUBLE, "
        "b BIT(1), b9 BIT(9), raw VARBINARY(10), txt TEXT, e ENUM('sad','ok'), s SET('x','y','z'), "
        "day DATE, clock TIME(6), dt DATETIME(3), dt6 DATETIME(6), ts TIMESTAMP(3) NULL, y YEAR)"
    )
    insert = (
        "INSERT INTO types VALUES ({}, -3, 4000000000, 0.5, 0.25, b'1', b'100000001', x'00ff', "
        "'é', 'ok', 'y,x', '2026-03-01', '12:30:15.250000', '2026-03-01 12:30:15.123', "
        "'2026-03-01 12:30:15.123456', '2026-03-01 10:30:15.500', 2026)"
    )
    site._server.execute(site.name, "SET time_zone='+00:00'", insert.format(1))
    with site.source(table_include_list=f"{site.name}.types") as source:
        (read,) = source.poll_until(1)
        site._server.execute(site.name, "SET time_zone='+00:00'", insert.format(2))
        (created,) = source.poll_until(1)
    expected = {
        "t": -3, "u": 4000000000, "f": 0.5, "d": 0.25, "b": True, "b9": b"\x01\x01",
        "raw": b"\0\xff", "txt": "é", "e": "ok", "s": "x,y", "day": 20513, "clock": 45015250000,
        "dt": 1772368215123, "dt6": 1772368215123456, "ts": "2026-03-01T10:30:15.5Z", "y": 2026,
    }  # fmt: skip
    for record in (read, created):
        after = record.value.get("after")
        assert {name: after.get(name) for name in expected} == expected


@pytest.mark.long("another database; `make connectors` runs it")
def test_a_table_that_changes_and_filters(site: Site) -> None:
    site.run("CREATE TABLE other (id INT PRIMARY KEY, item TEXT)")
    with site.source(table_exclude_list=rf"{site.name}\.other") as source:
        assert source.poll() == []
        site.run("INSERT INTO other VALUES (1, 'left out')")
        site.run("INSERT INTO orders VALUES (1, 'a', NULL)")
        assert shown(source.poll_until(1)) == [("c", 1, None, "a")]
        site.run("ALTER TABLE orders ADD COLUMN note TEXT")
        site.run("INSERT INTO orders VALUES (2, 'b', NULL, 'hello')")
        (record,) = source.poll_until(1)
        assert record.value.get("after").get("note") == "hello"


@pytest.mark.long("another database; `make connectors` runs it")
def test_rows_by_a_statement_and_first_statements(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 2)", "CREATE TABLE seen (n INT)")
    select = f"SELECT price, item, id FROM {site.name}.orders WHERE id > 1"
    name = f"{site.name}.orders"
    config = {
        "table.include.list": name,
        "snapshot.select.statement.overrides": name,
        f"snapshot.select.statement.overrides.{name}": select,
        "database.initial.statements": f"INSERT INTO {site.name}.seen VALUES (1)",
    }
    with SourceDriver(CONNECTOR, {**site.config, **config}) as source:
        assert shown(source.poll_until(1)) == [("r", 2, None, "b")]


def test_what_cannot_be_reached_is_said(site: Site) -> None:
    with site.source(database_port="1") as source, pytest.raises(RetriableError):
        source.poll()
    with site.source(database_password="wrong") as source, pytest.raises(ConnectError) as failure:
        source.poll()
    assert not isinstance(failure.value, RetriableError)


def test_the_settings_that_all_databases_share(site: Site) -> None:
    site.run("CREATE TABLE people (id INT PRIMARY KEY, name TEXT, big BIGINT UNSIGNED, raw BLOB)")
    site.run("CREATE TABLE zoo (id INT PRIMARY KEY)", "INSERT INTO zoo VALUES (1)")
    site.run("INSERT INTO people VALUES (1, 'Ann', 18446744073709551615, x'00ff')")
    site.run("INSERT INTO people VALUES (2, NULL, 1, NULL), (3, 'Bob', 1, NULL)")
    config = {
        "table_include_list": rf"{site.name}\.(people|zoo)",
        "column_exclude_list": rf"{site.name}\.people\.id",
        "column_mask_with_3_chars": rf"{site.name}\.people\.name",
        "bigint_unsigned_handling_mode": "precise", "binary_handling_mode": "hex",
        "skipped_operations": "d", "topic_delimiter": "_", "heartbeat_interval_ms": "1",
    }  # fmt: skip
    with site.source(**config) as source:
        rows = source.poll_until(4)
        markers = [each.value.get("source").get("snapshot") for each in rows]
        assert markers == ["first", "true", "last_in_data_collection", "last"]
        first = rows[0].value.get("after")
        assert rows[0].topic == f"app_{site.name}_people"
        assert [field.name for field in first.schema.fields] == ["name", "big", "raw"]
        assert (first.get("name"), first.get("big"), first.get("raw")) == (
            "***", Decimal(18446744073709551615), "00ff",
        )  # fmt: skip
        assert [each.key.get("id") for each in rows] == [1, 2, 3, 1]
        assert source.poll_until(1)[0].topic == "__debezium-heartbeat_app"
        site.run("DELETE FROM people WHERE id = 2", "UPDATE people SET id = 9 WHERE id = 3")
        changes = [each for each in source.poll_until(4) if "heartbeat" not in each.topic]
    headers = [[(each.key, each.value.get("id")) for each in one.headers] for one in changes[:3]]
    assert headers == [[("__debezium.newkey", 9)], [], [("__debezium.oldkey", 3)]]


def test_transactions_have_a_begin_an_end_and_numbers(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (0, 'first', NULL)")
    config = {"provide_transaction_metadata": "true", "topic_transaction": "tx"}
    with site.source(**config, max_batch_size="1") as source:
        source.poll_until(1)
        source.commit()
        site.run("CREATE TABLE more (id INT PRIMARY KEY)")
        site.run("INSERT INTO orders VALUES (1, 'a', NULL)", "DELETE FROM orders WHERE id = 0")
        found: list[SourceRecord] = []
        while len(found) < 5:
            found += source.poll_until(1)
            source.commit()
            source.restart()  # At any place, nothing is missing or doubled.
    assert [each.topic for each in found] == ["app.tx", *[f"app.{site.name}.orders"] * 3, "app.tx"]
    begin, end = found[0].value.as_dict(), found[4].value.as_dict()
    assert (begin["status"], begin["event_count"]) == ("BEGIN", None)
    assert (end["status"], end["event_count"]) == ("END", 2)
    assert end["data_collections"] == [{"data_collection": f"{site.name}.orders", "event_count": 2}]
    blocks = [each.value.get("transaction").values for each in found[1:3]]
    assert blocks == [(begin["id"], 1, 1), (begin["id"], 2, 2)]
    assert end["id"] == begin["id"]


@pytest.mark.parametrize(
    ("connector", "name"),
    [(CONNECTOR, "mysql"), ("io.debezium.connector.mariadb.MariaDbConnector", "mariadb")],
)
def test_a_source_names_its_connector(site: Site, connector: str, name: str) -> None:
    site.run("INSERT INTO orders VALUES (1, 'tea', NULL)")
    with site.source(connector) as source:
        (row,) = source.poll_until(1)
        site.run("INSERT INTO orders VALUES (2, 'cup', NULL)")
        (change,) = source.poll_until(1)
    for record in (row, change):
        origin = record.value.get("source")
        assert origin.get("connector") == name
        assert origin.schema.name == f"io.debezium.connector.{name}.Source"
