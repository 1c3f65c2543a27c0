"""The Cassandra sinks against a real Cassandra."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import DataError, RetriableError
from moldau.data import builders, logical
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, config_errors
from support.java_servers import Cassandra, java_server_missing, running_cassandra

SINK = "io.confluent.connect.cassandra.CassandraSinkConnector"
MAPPED = "com.datastax.oss.kafka.sink.CassandraSinkConnector"
KEY = builders.struct({"id": builders.INT32})
ITEM = builders.struct(
    {
        "name": builders.OPTIONAL_STRING,
        "price": logical.decimal(2),
        "at": logical.TIMESTAMP,
        "day": logical.DATE,
        "tags": builders.array(builders.STRING),
        "counts": builders.map_of(builders.STRING, builders.INT64),
        "data": builders.BYTES,
    }
)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
pytestmark = pytest.mark.long("starts a server of `make parts`; `make connectors` runs it")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cassandra() -> Iterator[Cassandra]:
    if missing := java_server_missing("cassandra"):
        pytest.skip(missing)
    with running_cassandra() as server:
        yield server


@pytest.fixture
def keyspace(cassandra: Cassandra) -> str:
    name = f"test{next(_numbers)}"
    cassandra.session.execute(
        f"CREATE KEYSPACE {name} WITH replication = "
        "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    return name


def sink(server: Cassandra, keyspace: str, **config: str) -> SinkDriver:
    keys = {name.replace("_", "."): value for name, value in config.items()}
    given = {**server.config, "cassandra.keyspace": keyspace, "topics": "items", **keys}
    return SinkDriver(SINK, given)


def item(name: str | None) -> Struct:
    return Struct(
        ITEM,
        {
            "name": name, "price": Decimal("1.50"), "at": MOMENT, "day": MOMENT.date(),
            "tags": ["x"], "counts": {"a": 1}, "data": b"\x00",
        },
    )  # fmt: skip


def send(driver: SinkDriver, *rows: tuple[int, Struct | None]) -> None:
    driver.put(
        [
            driver.record(
                "items", value, key=Struct(KEY, {"id": number}), key_schema=KEY,
                value_schema=None if value is None else value.schema,
            )
            for number, value in rows
        ]
    )  # fmt: skip


def test_keyspace_and_table_are_created_and_rows_upserted(cassandra: Cassandra) -> None:
    with sink(cassandra, "made_here") as driver:
        rows = [(1, item("old")), (2, item("cup")), (1, item("tea")), (3, item("pot")), (3, None)]
        for _ in range(2):  # Records that come again change nothing.
            send(driver, *rows)
    (first, second) = cassandra.rows('SELECT id, name, price, tags, counts FROM made_here."items"')
    assert first[:3] == (1, "tea", Decimal("1.50"))
    assert (list(first[3]), dict(first[4])) == (["x"], {"a": 1})
    assert second[:2] == (2, "cup")
    ((at, day, data),) = cassandra.rows("SELECT at, day, data FROM made_here.items WHERE id = 1")
    assert (at.replace(tzinfo=datetime.UTC), day.date(), data) == (MOMENT, MOMENT.date(), b"\x00")


def test_columns_are_added(cassandra: Cassandra, keyspace: str) -> None:
    more = builders.struct({"name": builders.STRING, "stock": builders.INT32})
    with sink(cassandra, keyspace) as driver:
        send(driver, (1, item("tea")))
        send(driver, (1, Struct(more, {"name": "green tea", "stock": 7})))
    query = f"SELECT name, stock, price FROM {keyspace}.items"
    assert cassandra.rows(query) == [("green tea", 7, Decimal("1.50"))]


@pytest.mark.parametrize("mode", ["Insert", "Update"])
def test_values_without_a_schema_need_a_table(
    cassandra: Cassandra, keyspace: str, mode: str
) -> None:
    with sink(cassandra, keyspace, cassandra_write_mode=mode) as driver:
        driver.send("items", {"n": 1}, key={"id": 1})
        ((_, error),) = driver.errant
        assert "can only be created" in str(error)
    cassandra.session.execute(f"CREATE TABLE {keyspace}.items (id int PRIMARY KEY, n bigint)")
    with sink(
        cassandra, keyspace, cassandra_write_mode=mode, cassandra_table_manage_enabled="false",
        cassandra_ttl="1000",
    ) as driver:  # fmt: skip
        driver.put(
            [
                driver.record("items", value, key={"id": number})
                for number, value in ((1, {"n": 5}), (2, {"n": "no number"}), (3, {"n": 7}))
            ]
        )
        ((record, error),) = driver.errant
        assert record.key == {"id": 2}
        assert isinstance(error, DataError)
    assert cassandra.rows(f"SELECT id, n FROM {keyspace}.items") == [(1, 5), (3, 7)]
    ((lives,), _) = cassandra.rows(f"SELECT TTL(n) FROM {keyspace}.items")
    assert 900 < lives <= 1000


def test_mappings_of_topics_to_tables(cassandra: Cassandra, keyspace: str) -> None:
    for table in ("by_id", "by_name"):
        key = table.removeprefix("by_")
        cassandra.session.execute(
            f"CREATE TABLE {keyspace}.{table} (id int, name text, note text, PRIMARY KEY ({key}))"
        )
    config: dict[str, Any] = {
        "contactPoints": "127.0.0.1",
        "port": str(cassandra.port),
        "loadBalancing.localDc": "datacenter1",
        "topics": "items",
        f"topic.items.{keyspace}.by_id.mapping": "id=key, name=value.name, note=value.a.b",
        f"topic.items.{keyspace}.by_name.mapping": "name=value.name, id=key",
    }
    with SinkDriver(MAPPED, config) as driver:
        driver.put(
            [
                driver.record("items", value, key=key)
                for key, value in (
                    (1, {"name": "tea", "a": {"b": "deep"}}),
                    (1, {"name": "chai"}),  # Without a note: the one that is there stays.
                    (2, {"name": "cup"}),
                    (2, None),
                )
            ]
        )
    assert cassandra.rows(f"SELECT id, name, note FROM {keyspace}.by_id") == [(1, "chai", "deep")]
    names = cassandra.rows(f"SELECT name, id FROM {keyspace}.by_name")
    assert ("chai", 1) in names
    errors = config_errors(MAPPED, {**config, "topics": "items,others"})
    assert "no mapping for others" in str(errors)


def test_wrong_settings_and_a_server_that_is_away() -> None:
    assert set(config_errors(SINK, {"cassandra.write.mode": "x"})) == {
        "cassandra.keyspace", "cassandra.write.mode",
    }  # fmt: skip
    away = Cassandra(1, None)
    with sink(away, "k") as driver, pytest.raises(RetriableError):
        send(driver, (1, item("tea")))
