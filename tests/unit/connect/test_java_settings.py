"""Configurations for Java's connectors: every documented setting is read, explained or refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moldau.connect.built_in import CONNECTORS
from moldau.connect.machine.dialects import DIALECTS, Dialect, refusals, remarks, translated
from moldau.connect.plugins import Plugins
from moldau.connect.validation import unread_settings, validate_connector
from moldau.data import builders
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver
from support.documented_settings import DOCUMENTED

PLUGINS = Plugins()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_documented_setting_is_accounted_for(name: str) -> None:
    dialect = DIALECTS.get(name, Dialect())
    connector = PLUGINS.connector(name)
    own = connector.config()
    for setting in DOCUMENTED[name]:
        config = {"connector.class": name, setting: "some value"}
        made = translated(config)
        is_read = (
            (setting in made and setting in own)
            or setting in dialect.computed
            or setting in dialect.renamed
            or setting.startswith(connector.PASSED_ON)
        )
        is_refused = setting in refusals(config)
        said = remarks(config, [setting])[0]
        is_explained = said.startswith((f"{setting} has no effect: ", f"{setting} is not supp"))
        assert is_read or is_refused or is_explained, f"{name}: nobody knows {setting}"
        # What is read is not said to be without effect as well.
        assert not (is_read and (is_refused or is_explained)) or setting in dialect.refused, setting


@pytest.mark.parametrize("name", DIALECTS)
def test_what_is_translated_is_read(name: str) -> None:
    """Every name of ours in the tables is a setting of the connector."""
    own = PLUGINS.connector(name).config()
    dialect = DIALECTS[name]
    for theirs, ours in dialect.renamed.items():
        if not theirs.endswith("*") and theirs in DOCUMENTED.get(name, ()):
            assert ours in own, (theirs, ours)
    for theirs, compute in dialect.computed.items():
        if theirs in DOCUMENTED.get(name, ()):
            assert set(compute("true")) | set(compute("1")) <= set(own), theirs
    known = {each for row in CONNECTORS for each in row.java_names}
    assert name in known


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("io.debezium.connector.jdbc.JdbcSinkConnector",
         {"connection.username": "me", "primary.key.mode": "record_key",
          "schema.evolution": "basic", "collection.name.format": "t_${topic}"},
         {"connection.user": "me", "pk.mode": "record_key", "auto.create": "true",
          "auto.evolve": "true", "table.name.format": "t_${topic}"}),
        ("io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
         {"aws.s3.bucket.name": "b", "format.output.type": "jsonl", "file.max.records": "7"},
         {"s3.bucket.name": "b", "format.class": "JsonFormat", "flush.size": "7"}),
        ("io.confluent.connect.jdbc.JdbcSourceConnector",
         {"numeric.precision.mapping": "true"}, {"numeric.mapping": "precision_only"}),
        ("io.confluent.connect.jdbc.JdbcSourceConnector", {"numeric.precision.mapping": "no"}, {}),
        ("com.redis.kafka.connect.RedisSinkConnector",
         {"redis.type": "hash", "redis.host": "h:1"},
         {"redis.command": "HSET", "redis.uri": "redis://h:1"}),
        ("streams.kafka.connect.sink.Neo4jSinkConnector",
         {"neo4j.topic.cypher.orders": "MERGE (n)"}, {"neo4j.cypher.topic.orders": "MERGE (n)"}),
        ("com.splunk.kafka.connect.SplunkSinkConnector",
         {"splunk.hec.socket.timeout": "60"}, {"read.timeout.ms": "60000"}),
        # Our own name counts if both are given.
        ("io.aiven.connect.jdbc.JdbcSourceConnector",
         {"timestamp.initial.ms": "5", "timestamp.initial": "7"}, {"timestamp.initial": "7"}),
        ("FileStreamSource", {"file": "x"}, {"file": "x"}),
    ],
)  # fmt: skip
def test_translations(name: str, given: dict[str, str], wanted: dict[str, str]) -> None:
    found = translated({"connector.class": name, **given})
    assert found == {"connector.class": name, **wanted}


def test_what_would_change_the_data_is_refused_and_the_rest_is_named() -> None:
    name = "io.debezium.connector.postgresql.PostgresConnector"
    config: dict[str, str | None] = {
        "connector.class": name,
        "name": "x",
        "topic.prefix": "p",
        "database.hostname": "h",
        "database.user": "u",
        "database.dbname": "d",
        "signal.data.collection": "public.signals",
        "provide.transaction.metadata": "false",
        "max.queue.size": "100",
        "snapshot.isolation.mode": "serializable",
        "no.such.setting": "1",
    }
    found = validate_connector(config, PLUGINS)
    wrong = {key: each.errors for key, each in found.values.items() if each.errors}
    assert list(wrong) == ["signal.data.collection"]
    given = {key: value for key, value in config.items() if value is not None}
    assert remarks(given, unread_settings(found, given))[-3:] == [
        "max.queue.size has no effect: memory is bounded by max.batch.size",
        "snapshot.isolation.mode is not supported",
        "nothing reads no.such.setting",
    ]


def test_changes_become_rows(tmp_path: Path) -> None:
    """Debezium's JDBC sink by its name and settings: what it gets is unwrapped."""
    file = tmp_path / "shop.db"
    config = {
        "topics": "shop.orders",
        "connection.url": f"jdbc:sqlite:{file}",
        "insert.mode": "upsert",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "delete.enabled": "true",
    }
    row = builders.struct({"id": builders.INT32, "item": builders.STRING}, optional=True)
    change = builders.struct(
        {"before": row, "after": row, "op": builders.STRING}, name="shop.orders.Envelope"
    )
    key = builders.struct({"id": builders.INT32})
    with SinkDriver("io.debezium.connector.jdbc.JdbcSinkConnector", config) as sink:

        def put(number: int, op: str, before: str | None, after: str | None) -> None:
            def version(item: str | None) -> Struct | None:
                return None if item is None else Struct(row, {"id": number, "item": item})

            sink.send(
                "shop.orders",
                Struct(change, {"before": version(before), "after": version(after), "op": op}),
                value_schema=change,
                key=Struct(key, {"id": number}),
                key_schema=key,
            )

        put(1, "c", None, "tea")
        put(2, "c", None, "milk")
        put(1, "u", "tea", "coffee")
        put(2, "d", "milk", None)
        sink.send("shop.orders", None, key=Struct(key, {"id": 2}), key_schema=key)
        sink.commit()
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT id, item FROM shop_orders").fetchall() == [(1, "coffee")]
