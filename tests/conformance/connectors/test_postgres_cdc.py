"""Change data capture from a real PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import ConnectError, RetriableError, SourceRecord
from moldau.data import logical
from moldau.data.struct import Struct
from moldau.testing.connect import SourceDriver
from support.postgres import Postgres
from support.waiting import eventually

CONNECTOR = "io.debezium.connector.postgresql.PostgresConnector"
_slots = itertools.count(1)


class Site:
    """A database, and connectors that capture its changes."""

    def __init__(self, cluster: Postgres) -> None:
        self.name = cluster.database()
        self._connection = cluster.connect(self.name, autocommit=True)
        self.slot = f"slot{next(_slots)}"
        self.config = {
            "database.hostname": "127.0.0.1",
            "database.port": str(cluster.port),
            "database.user": "moldau",
            "database.dbname": self.name,
            "topic.prefix": "app",
            "slot.name": self.slot,
            "poll.interval.ms": "50",
            "status.update.interval.ms": "20",
        }

    def run(self, *statements: str) -> None:
        """All in one transaction."""
        with self._connection.transaction():
            for statement in statements:
                self._connection.execute(statement)

    def value(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]

    def source(self, **config: str) -> SourceDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        return SourceDriver(CONNECTOR, {**self.config, **keys})

    def close(self) -> None:
        # A slot holds back the log of the whole cluster.
        eventually(self._drop_slot, what="the slot is free")
        self._connection.close()

    def _drop_slot(self) -> bool:
        import psycopg

        try:
            self._connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE slot_name = %s", (self.slot,),
            )  # fmt: skip
        except psycopg.errors.ObjectInUse:
            return False
        return True


@pytest.fixture
def site(postgres: Postgres) -> Iterator[Site]:
    made = Site(postgres)
    made.run("CREATE TABLE orders (id INT PRIMARY KEY, item TEXT NOT NULL, price NUMERIC(8,2))")
    yield made
    made.close()


def shown(records: list[SourceRecord]) -> list[tuple[Any, ...]]:
    """Operation, key, and items before and after; a tombstone as its key."""
    found: list[tuple[Any, ...]] = []
    for record in records:
        key = None if record.key is None else record.key.get("id")
        if record.value is None:
            found.append(("tombstone", key))
            continue
        rows = [record.value.get(name) for name in ("before", "after")]
        items = [None if row is None else row.get("item") for row in rows]
        found.append((record.value.get("op"), key, *items))
    return found


def test_rows_first_then_every_change(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (1, 'tea', 1.5), (2, 'cup', NULL)")
    with site.source() as source:
        first = source.poll_until(2)
        assert shown(first) == [("r", 1, None, "tea"), ("r", 2, None, "cup")]
        assert first[0].topic == "app.public.orders"
        assert first[0].value.get("source").get("snapshot") == "true"
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
            ("u", 2, None, "mug"),
            ("d", 1, None, None),
            ("tombstone", 1),
            ("c", 4, None, "tea"),
            ("d", 3, None, None),
            ("tombstone", 3),
        ]
        origin: Struct = changes[0].value.get("source")
        assert (origin.get("db"), origin.get("schema"), origin.get("table")) == (
            site.name, "public", "orders",
        )  # fmt: skip
        assert origin.get("txId") == changes[1].value.get("source").get("txId")
        assert changes[0].value_schema is not None
        assert changes[0].value_schema.name == "app.public.orders.Envelope"


def test_nothing_is_missing_or_doubled_after_a_stop_within_a_transaction(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (0, 'first', NULL)")
    with site.source(max_batch_size="3") as source:
        found = source.poll_until(1)
        source.commit()
        site.run(*(f"INSERT INTO orders VALUES ({number}, 'x', NULL)" for number in range(1, 11)))
        found += source.poll_until(3)
        source.commit()  # Three of the ten.
        source.restart()
        found += source.poll_until(3)
        source.restart()  # These three come again, as they were not committed.
        again = source.poll_until(3)
        assert shown(again) == shown(found[-3:])
        source.commit()
        source.restart()
        found += source.poll_until(4)
        source.commit()
        source.restart()
        site.run("INSERT INTO orders VALUES (11, 'last', NULL)")
        found += source.poll_until(1)
    assert [record.key.get("id") for record in found] == list(range(12))


def test_changes_while_nobody_reads_are_not_lost(site: Site) -> None:
    with site.source(snapshot_mode="no_data") as source:
        assert source.poll() == []
        source.commit()
        site.run("INSERT INTO orders VALUES (1, 'a', NULL)")
        source.restart()
        assert shown(source.poll_until(1)) == [("c", 1, None, "a")]


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
        assert found[-1].source_offset is not None
        assert found[-1].source_offset["last_snapshot_record"]
        source.commit()
        source.restart()
        site.run("INSERT INTO orders VALUES (99, 'new', NULL)")
        assert shown(source.poll_until(1)) == [("c", 99, None, "new")]


def test_transactions_of_the_database_are_transactions_of_the_connector(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (1, 'a', NULL), (2, 'b', NULL)")
    with site.source() as source:
        snapshot = source.poll_until(2)
        assert source.transactions.calls == [("commit", snapshot[-1])]
        site.run("INSERT INTO orders VALUES (3, 'c', NULL)", "DELETE FROM orders WHERE id = 3")
        site.run("INSERT INTO orders VALUES (4, 'd', NULL)")
        records = source.poll_until(4)
        ends = [record for _, record in source.transactions.calls[1:]]
        assert ends == [records[2], records[3]]


def test_types_as_debezium_writes_them(site: Site) -> None:
    site.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN positive AS INT CHECK (VALUE > 0)",
        "CREATE TABLE types (id BIGINT PRIMARY KEY, b BOOLEAN, s SMALLINT, r REAL, d DOUBLE "
        "PRECISION, n NUMERIC, raw BYTEA, u UUID, j JSONB, day DATE, t TIME, ts TIMESTAMP(3), "
        "tz TIMESTAMPTZ, m MOOD, p POSITIVE, tags TEXT[], nums INT[])",
    )
    insert = (
        "INSERT INTO types VALUES ({}, true, 3, 0.5, 0.25, 12.345, '\\x00ff', "
        "'7f1d3c5e-0000-4000-8000-000000000001', '{{\"a\": 1}}', '2026-03-01', '12:30:15.25', "
        "'2026-03-01 12:30:15.123', '2026-03-01 12:30:15.5+02', 'ok', 7, "
        "'{{a,\"b, \\\"c\\\"\",NULL}}', '{{1,2}}')"
    )
    site.run(insert.format(1))
    with site.source(table_include_list="public.types") as source:
        (read,) = source.poll_until(1)
        site.run(insert.format(2))
        (created,) = source.poll_until(1)
    expected = {
        "b": True, "s": 3, "r": 0.5, "d": 0.25, "raw": b"\0\xff",
        "u": "7f1d3c5e-0000-4000-8000-000000000001", "j": '{"a": 1}', "day": 20513,
        "t": 45015250000, "ts": 1772368215123000, "tz": "2026-03-01T10:30:15.500000Z",
        "m": "ok", "p": 7, "tags": ["a", 'b, "c"', None], "nums": [1, 2],
    }  # fmt: skip
    for record in (read, created):  # From the snapshot and from the stream: the same.
        after = record.value.get("after")
        assert {name: after.get(name) for name in expected} == expected
        number = after.get("n")
        assert (number.get("scale"), number.get("value")) == (3, (12345).to_bytes(2, "big"))
    fields = {field.name: field.schema for field in read.value.get("after").schema.fields}
    assert fields["ts"].name == "io.debezium.time.MicroTimestamp"
    assert fields["m"].parameters == {"allowed": "sad,ok"}
    with site.source(
        table_include_list="public.types", time_precision_mode="connect",
        decimal_handling_mode="string", slot_name=f"{site.slot}b", slot_drop_on_stop="true",
    ) as source:  # fmt: skip
        after = source.poll_until(2)[0].value.get("after")
        assert after.schema.field("ts").schema.name == logical.TIMESTAMP_NAME
        assert after.get("n") == "12.345"


def test_values_that_a_message_leaves_out_and_whole_old_rows(site: Site) -> None:
    site.run("CREATE TABLE big (id INT PRIMARY KEY, n INT, item TEXT)")
    site.run("ALTER TABLE big ALTER item SET STORAGE EXTERNAL")
    site.run("INSERT INTO big VALUES (1, 1, repeat('x', 10000))")
    with site.source(table_include_list="public.big") as source:
        source.poll_until(1)
        site.run("UPDATE big SET n = 2")
        assert shown(source.poll_until(1)) == [("u", 1, None, "__debezium_unavailable_value")]
        site.run("ALTER TABLE big REPLICA IDENTITY FULL")
        site.run("UPDATE big SET item = 'new'")
        assert shown(source.poll_until(1)) == [("u", 1, "x" * 10000, "new")]


def test_a_table_that_changes_and_filters(site: Site) -> None:
    site.run("CREATE TABLE other (id INT PRIMARY KEY, item TEXT)", "CREATE SCHEMA s")
    site.run("CREATE TABLE s.orders (id INT, item TEXT)")
    config = {"table_include_list": r"public\.orders,s\..*", "schema_exclude_list": "t.*"}
    with site.source(**config) as source:
        assert source.poll() == []
        site.run("INSERT INTO other VALUES (1, 'left out')")
        site.run("INSERT INTO s.orders VALUES (1, 'no key')")
        (record,) = source.poll_until(1)
        assert (record.topic, record.key) == ("app.s.orders", None)
        site.run("ALTER TABLE orders ADD COLUMN note TEXT DEFAULT 'none'")
        site.run("INSERT INTO orders VALUES (1, 'a', NULL, 'hello')")
        (record,) = source.poll_until(1)
        assert record.value.get("after").get("note") == "hello"


def test_the_server_may_forget_what_is_committed(site: Site) -> None:
    position = f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{site.slot}'"  # noqa: E501
    with site.source() as source:
        source.poll()
        begin = site.value(position)
        site.run("INSERT INTO orders VALUES (1, 'a', NULL)")
        source.poll_until(1)

        def moved() -> bool:
            source.commit()
            source.poll()
            return bool(site.value(position) != begin)

        eventually(moved, what="the slot moves on")


def test_a_lost_slot_and_a_lost_server_are_said(site: Site) -> None:
    with site.source() as source:
        site.run("INSERT INTO orders VALUES (1, 'a', NULL)")
        source.poll_until(1)
        source.commit()
        source.stop()
        eventually(site._drop_slot, what="the slot is free")
        source._start()
        with pytest.raises(ConnectError, match=r"slot .* is gone.*reset"):
            source.poll()
    with site.source(database_port="1") as source, pytest.raises(RetriableError):
        source.poll()


def test_a_broken_connection_is_made_again(site: Site) -> None:
    with site.source() as source:
        site.run("INSERT INTO orders VALUES (1, 'a', NULL)")
        source.poll_until(1)
        source.commit()
        site.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{site.name}' AND pid <> pg_backend_pid()"
        )
        site.run("INSERT INTO orders VALUES (2, 'b', NULL)")
        found: list[SourceRecord] = []

        def arrived() -> bool:
            try:
                found.extend(source.poll())
            except RetriableError:
                return False
            return bool(found)

        eventually(arrived, what="the change arrives")
        assert shown(found) == [("c", 2, None, "b")]
