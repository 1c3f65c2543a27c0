"""Change data capture from a real PostgreSQL."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import ConnectError, RetriableError, SourceRecord
from moldau.data import logical
from moldau.data.struct import Struct
from moldau.testing.connect import SourceDriver, config_errors
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
        markers = [each.value.get("source").get("snapshot") for each in first]
        assert markers == ["first", "last"]
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
        place = changes[0].source_offset
        assert place is not None
        assert origin.get("sequence") == f'["{place["lsn_commit"]}","{origin.get("lsn")}"]'
        headers = [[(each.key, each.value.get("id")) for each in one.headers] for one in changes]
        assert headers[2:5] == [[("__debezium.newkey", 4)], [], [("__debezium.oldkey", 1)]]
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
        "t": 45015250000, "ts": 1772368215123, "tz": "2026-03-01T10:30:15.500000Z",
        "m": "ok", "p": 7, "tags": ["a", 'b, "c"', None], "nums": [1, 2],
    }  # fmt: skip
    for record in (read, created):  # From the snapshot and from the stream: the same.
        after = record.value.get("after")
        assert {name: after.get(name) for name in expected} == expected
        number = after.get("n")
        assert (number.get("scale"), number.get("value")) == (3, (12345).to_bytes(2, "big"))
    fields = {field.name: field.schema for field in read.value.get("after").schema.fields}
    assert fields["ts"].name == "io.debezium.time.Timestamp"
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


@pytest.mark.parametrize("by_root", ["false", "true"])
def test_partitions_have_topics_of_their_own_or_that_of_their_table(
    site: Site, by_root: str
) -> None:
    """From rows and from the stream alike."""
    site.run(
        "CREATE TABLE parts (id INT PRIMARY KEY, item TEXT) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10)",
        "INSERT INTO parts VALUES (1, 'read')",
    )
    config = {"table_include_list": r"public\.parts.*", "publish_via_partition_root": by_root}
    with site.source(**config) as source:
        (read,) = source.poll_until(1)
        site.run("INSERT INTO parts VALUES (2, 'new')")
        (new,) = source.poll_until(1)
    wanted = "app.public.parts" if by_root == "true" else "app.public.parts_low"
    assert [read.topic, new.topic] == [wanted, wanted]
    assert shown([read, new]) == [("r", 1, None, "read"), ("c", 2, None, "new")]


def test_rows_by_a_statement_first_statements_and_a_placeholder(site: Site) -> None:
    site.run(
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "CREATE TABLE seen (n INT); CREATE TABLE big (id INT PRIMARY KEY, item TEXT, n INT)",
        "ALTER TABLE big ALTER COLUMN item SET STORAGE EXTERNAL",
    )
    config = {
        "table.include.list": "public.orders,public.big",
        "snapshot.select.statement.overrides": "public.orders",
        "snapshot.select.statement.overrides.public.orders": "SELECT * FROM orders WHERE id > 1",
        "database.initial.statements": "INSERT INTO seen VALUES (1);SET search_path TO public",
        "unavailable.value.placeholder": "same",
    }
    with SourceDriver(CONNECTOR, {**site.config, **config}) as source:
        assert shown(source.poll_until(2)) == [("r", 2, None, "b"), ("r", 3, None, "c")]
        site.run("INSERT INTO big VALUES (1, repeat('x', 9000), 1)")
        site.run("UPDATE big SET n = 2")
        assert source.poll_until(2)[1].value["after"]["item"] == "same"
    assert site.value("SELECT count(*) FROM seen") > 0
    missing = {"snapshot.select.statement.overrides": "public.orders"}
    assert set(config_errors(CONNECTOR, {**site.config, **missing})) == set(missing)


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


def after(record: SourceRecord) -> dict[str, Any]:
    row = record.value.get("after")
    return {field.name: row.get(field.name) for field in row.schema.fields}


def test_types_that_depend_on_their_size_or_on_a_setting(site: Site) -> None:
    site.run(
        "CREATE EXTENSION hstore",
        "CREATE TABLE more (id INT PRIMARY KEY, m MONEY, b1 BIT(1), b BIT(10), v VARBIT(33), "
        "i INTERVAL, h HSTORE, p POINT, tt TIMETZ, t3 TIME(3), t TIME, ts TIMESTAMP, "
        "never TIMESTAMP, tz TIMESTAMPTZ, tz2 TIMESTAMPTZ(2), always TIMESTAMPTZ, raw BYTEA)",
    )
    insert = (
        "INSERT INTO more VALUES ({}, -1234.5, B'1', B'1000000001', B'101', "
        "'1 year 2 months -3 days 04:05:06.75', 'a=>1, \"b c\"=>NULL', '(1.5,-2)', "
        "'12:30:15.25+02', '00:00:01.5', '00:00:01.5', '2026-03-01 12:30:15', 'infinity', "
        "'2026-03-01 12:30:15+00', '2026-03-01 12:30:15.25+00', '-infinity', '\\x00ff')"
    )
    expected = {
        "m": Decimal("-1234.50"), "b1": True, "b": b"\x01\x02", "v": b"\x05",
        "i": 36572706750000, "h": '{"a":"1","b c":null}', "tt": "10:30:15.25Z", "t3": 1500,
        "t": 1500000, "ts": 1772368215000000, "never": 9223372036825200000,
        "tz": "2026-03-01T12:30:15.000000Z", "tz2": "2026-03-01T12:30:15.25Z",
        "always": "-infinity", "raw": b"\0\xff",
    }  # fmt: skip
    site.run(insert.format(1))
    with site.source(table_include_list="public.more") as source:
        (read,) = source.poll_until(1)
        site.run(insert.format(2))
        (created,) = source.poll_until(1)
    for record in (read, created):
        found = after(record)
        assert {name: found[name] for name in expected} == expected
        assert (found["p"].get("x"), found["p"].get("y")) == (1.5, -2.0)
        assert found["p"].get("wkb").hex() == "0101000000000000000000f83f00000000000000c0"
    fields = {field.name: field.schema for field in read.value.get("after").schema.fields}
    assert {name: fields[name].name for name in ("i", "t3", "t", "b", "h", "tt")} == {
        "i": "io.debezium.time.MicroDuration", "t3": "io.debezium.time.Time",
        "t": "io.debezium.time.MicroTime", "b": "io.debezium.data.Bits",
        "h": "io.debezium.data.Json", "tt": "io.debezium.time.ZonedTime",
    }  # fmt: skip
    other = {
        "interval_handling_mode": "string", "hstore_handling_mode": "map",
        "binary_handling_mode": "base64", "money_fraction_digits": "1",
        "time_precision_mode": "adaptive_time_microseconds",
        "slot_name": f"{site.slot}b", "slot_drop_on_stop": "true",
    }  # fmt: skip
    with site.source(table_include_list="public.more", **other) as source:
        found = after(source.poll_until(2)[0])
    assert (found["i"], found["h"], found["raw"], found["m"], found["t3"]) == (
        "P1Y2M-3DT4H5M6.75S", {"a": "1", "b c": None}, "AP8=", Decimal("-1234.5"), 1500000,
    )  # fmt: skip


def test_columns_that_are_left_out_or_hidden_and_keys_of_other_columns(site: Site) -> None:
    site.run("CREATE TABLE people (id INT PRIMARY KEY, name TEXT, mail TEXT, note TEXT, card TEXT)")
    site.run("ALTER TABLE people REPLICA IDENTITY FULL")
    row = "INSERT INTO people VALUES ({}, 'Ann', 'a@b.c', 'long text', NULL)"
    site.run(row.format(1))
    config = {
        "column_exclude_list": r"public\.people\.(id|note)",
        "column_mask_with_5_chars": "public.people.card",
        "column_truncate_to_2_chars": "public.people.name",
        "column_mask_hash_v2_SHA-256_with_salt_salt": "public.people.mail",
        "message_key_columns": "public.people:mail,id",
    }
    hashed = hashlib.sha256(b"salta@b.c").hexdigest()
    with site.source(table_include_list="public.people", **config) as source:
        found = source.poll_until(1)
        site.run(row.format(2))
        found += source.poll_until(1)
    for number, record in enumerate(found, 1):
        assert after(record) == {"name": "An", "mail": hashed, "card": "*****"}
        assert (record.key.get("mail"), record.key.get("id")) == (hashed, number)
    parameters = {
        field.name: dict(field.schema.parameters or {})
        for field in found[0].value.get("after").schema.fields
    }
    assert parameters == {
        "name": {"truncateLength": "2"}, "mail": {"masked": "true"}, "card": {"masked": "true"},
    }  # fmt: skip


def test_hiding_columns_by_a_setting_that_is_wrong_is_refused(site: Site) -> None:
    wrong = {
        **site.config, "column.mask.with.many.chars": "a", "column.mask.hash.NO.with.salt.x": "a",
        "message.key.columns": "a", "column.include.list": "(",
    }  # fmt: skip
    assert set(config_errors(CONNECTOR, wrong)) == {
        "column.mask.with.many.chars", "column.mask.hash.NO.with.salt.x", "message.key.columns",
        "column.include.list",
    }  # fmt: skip


def test_operations_that_are_skipped_and_updates_without_change(site: Site) -> None:
    site.run("ALTER TABLE orders REPLICA IDENTITY FULL")
    config = {
        "skipped_operations": "c,d", "skip_messages_without_change": "true",
        "column_exclude_list": r"public\.orders\.price", "topic_delimiter": "-",
    }  # fmt: skip
    with site.source(**config) as source:
        assert source.poll() == []
        site.run("INSERT INTO orders VALUES (1, 'tea', 1)")
        site.run("UPDATE orders SET price = 2")
        site.run("UPDATE orders SET item = 'cup'", "DELETE FROM orders", "TRUNCATE orders")
        update, truncate = source.poll_until(2)
    assert shown([update]) == [("u", 1, "tea", "cup")]
    assert update.topic == "app-public-orders"
    assert (truncate.key, truncate.value.get("op")) == (None, "t")


def test_heartbeats_and_what_is_run_with_them(site: Site) -> None:
    config = {
        "heartbeat_interval_ms": "1", "topic_heartbeat_prefix": "beat",
        "heartbeat_action_query": "INSERT INTO orders VALUES (1, 'beat', NULL) "
        "ON CONFLICT (id) DO NOTHING",
    }  # fmt: skip
    with site.source(**config) as source:
        first, *rest = source.poll_until(3)
        assert (first.topic, first.partition) == ("beat.app", 0)
        assert first.key.get("serverName") == "app"
        assert first.value.get("ts_ms") > 1_700_000_000_000
        while not any(each.topic == "app.public.orders" for each in rest):
            rest = source.poll_until(1)
        source.commit()
        source.restart()
        assert {each.topic for each in source.poll_until(1)} == {"beat.app"}


def test_a_lost_slot_begins_with_a_snapshot_where_that_is_wanted(site: Site) -> None:
    site.run("INSERT INTO orders VALUES (1, 'a', NULL)")
    with site.source(snapshot_mode="when_needed") as source:
        assert shown(source.poll_until(1)) == [("r", 1, None, "a")]
        source.commit()
        source.restart()
        site.run("INSERT INTO orders VALUES (2, 'b', NULL)")
        assert shown(source.poll_until(1)) == [("c", 2, None, "b")]
        source.commit()
        source.stop()
        eventually(site._drop_slot, what="the slot is free")
        source._start()
        assert [op for op, *_ in shown(source.poll_until(2))] == ["r", "r"]


def boundaries(records: list[SourceRecord]) -> list[tuple[Any, ...]]:
    """Status, count and tables of the records of transactions; changes with their places."""
    found: list[tuple[Any, ...]] = []
    for record in records:
        if record.topic == "app.transaction":
            each = record.value.as_dict()
            tables = [tuple(one.values()) for one in each["data_collections"] or ()]
            found.append((each["status"], each["event_count"], tables))
        elif record.value is not None:
            block = record.value.get("transaction")
            found.append((block.get("total_order"), block.get("data_collection_order")))
    return found


def test_transactions_have_a_begin_an_end_and_numbers(site: Site) -> None:
    site.run("CREATE TABLE more (id INT PRIMARY KEY)", "INSERT INTO more VALUES (0)")
    changes = (
        "INSERT INTO orders VALUES (1, 'a', NULL)",
        "INSERT INTO more VALUES (1)",
        "DELETE FROM orders WHERE id = 1",
    )
    expected = [
        ("BEGIN", None, []), (1, 1), (2, 1), (3, 2),
        ("END", 3, [("public.orders", 2), ("public.more", 1)]),
    ]  # fmt: skip
    with site.source(provide_transaction_metadata="true", max_batch_size="1") as source:
        (row,) = source.poll_until(1)
        assert row.value.get("transaction") is None
        source.commit()
        site.run(*changes)
        found: list[SourceRecord] = []
        while len(found) < 6:
            found += source.poll_until(1)
            source.commit()
            source.restart()  # At any place, nothing is missing or doubled.
        assert boundaries(found) == expected
        begin, first, end = found[0], found[1], found[-1]
        number = first.value.get("source").get("txId")
        place = first.value.get("source").get("lsn")
        assert first.value.get("transaction").get("id") == f"{number}:{place}"
        assert [each.key.get("id").split(":")[0] for each in (begin, end)] == [str(number)] * 2
        site.run("INSERT INTO more VALUES (2)")
        again = source.poll_until(3)
        assert boundaries(again)[:2] == [("BEGIN", None, []), (1, 1)]
        assert source.transactions.calls[-1] == ("commit", again[-1])
