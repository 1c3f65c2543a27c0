"""Bulk sinks without Spark: columns, where rows go, and what stays secret."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import DataError
from moldau.connect.connectors.tables.sink import (
    DeltaSinkConnector,
    HdfsBulkSinkConnector,
    IcebergSinkConnector,
    JdbcBulkSinkConnector,
    S3BulkSinkConnector,
)
from moldau.connect.machine.columns import columns_of, ddl, row_of
from moldau.connect.runtime.bulk import conversion_settings, table_of
from moldau.connect.runtime.bulk_rows import record_to_row
from moldau.data import builders, logical
from moldau.data.struct import Struct

INNER = builders.struct({"city": builders.STRING})
ORDER = builders.struct(
    {
        "id": builders.INT64,
        "small": builders.INT16,
        "price": logical.decimal(2, precision=9),
        "day": logical.DATE,
        "at": logical.TIME,
        "when": logical.TIMESTAMP,
        "tags": builders.array(builders.STRING),
        "counts": builders.map_of(builders.STRING, builders.INT32),
        "to": INNER,
        "raw": builders.BYTES,
    }
)


def test_columns_and_values_of_a_struct() -> None:
    assert ddl(columns_of([(ORDER, Struct(ORDER))])) == (
        "`id` BIGINT, `small` SMALLINT, `price` DECIMAL(9,2), `day` DATE, `at` STRING, "
        "`when` TIMESTAMP, `tags` ARRAY<STRING>, `counts` MAP<STRING, INT>, "
        "`to` STRUCT<`city`: STRING>, `raw` BINARY"
    )
    day = datetime.date(2026, 1, 2)
    when = datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC)
    order = Struct(ORDER)
    given: dict[str, Any] = {
        "id": 1,
        "small": 2,
        "price": Decimal("1.50"),
        "day": day,
        "when": when,
        "tags": ["x"],
        "counts": {"a": 1},
        "raw": b"r",
    }
    for name, value in given.items():
        order.put(name, value)
    order.put("at", datetime.time(4, 5)).put("to", Struct(INNER).put("city", "Písek"))
    assert row_of(order) == {**given, "at": "04:05:00", "to": {"city": "Písek"}}


def test_columns_of_values_without_a_schema() -> None:
    rows = [{"a": 1, "b": None, "c": [None, "x"], "d": {"e": True}}, {"a": 1.5, "b": "y"}]
    found = columns_of((None, each) for each in rows)
    assert found == {
        "a": "DOUBLE",
        "c": "ARRAY<STRING>",
        "d": "STRUCT<`e`: BOOLEAN>",
        "b": "STRING",
    }
    with pytest.raises(DataError, match="the field a as BIGINT and as STRING"):
        columns_of([(None, {"a": 1}), (None, {"a": "x"})])
    with pytest.raises(DataError, match=r"HoistField\$Value makes a struct"):
        columns_of([(None, "a line")])


def test_where_rows_go() -> None:
    delta = {"path": "/lake", "pk.fields": "id,day", "partition.by": "day", "sink.x": "1"}
    table = DeltaSinkConnector().table(delta)
    assert (table.kind, table.options) == (
        "delta",
        {"delta": "/lake", "partitionBy": ["day"], "upsert": ["id", "day"], "x": "1"},
    )
    iceberg = IcebergSinkConnector().table({"path": "/w", "table": "shop.orders"})
    assert iceberg.options == {"iceberg": "/w", "table": "shop.orders"}
    hdfs = HdfsBulkSinkConnector().table({"name": "n", "hdfs.url": "hdfs://h:8020/"})
    assert (hdfs.kind, hdfs.options) == ("parquet", {"parquet": "hdfs://h:8020/topics/n"})
    s3 = {"name": "n", "s3.bucket.name": "b", "format": "avro", "store.url": "http://h:9000"}
    assert S3BulkSinkConnector().table(s3).options == {
        "avro": "s3://b/topics/n",
        "storage.region": "us-west-2",
        "storage.endpoint_override": "h:9000",
        "storage.scheme": "http",
    }


def test_secrets_stay_as_they_are_written() -> None:
    given = {
        "connection.url": "${file:/etc/db:url}",
        "connection.password": "${file:/etc/db:password}",
        "table": "orders",
    }
    resolved = {**given, "connection.url": "jdbc:sqlite:x", "connection.password": "s3cret"}
    table = table_of(JdbcBulkSinkConnector(), given, resolved)
    assert table.options == {
        "jdbc": "jdbc:sqlite:x",
        "table": "orders",
        "password": "${file:/etc/db:password}",
    }


def test_a_record_becomes_a_row() -> None:
    worker = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
    connector = {
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "place",
        "transforms.place.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.place.offset.field": "place",
        "topics": "not for a converter",
    }
    settings = conversion_settings(worker, {}, connector)
    assert "topics" not in json.loads(settings)
    row = {
        "connect_topic": "t",
        "connect_partition": 0,
        "connect_offset": 7,
        "connect_timestamp": 5,
        "connect_key": b"k",
        "connect_headers": None,
    }
    value = {**row, "connect_value": bytearray(b'{"id": 1}')}
    assert record_to_row(value, settings=settings) == {"id": 1, "place": 7}
    assert record_to_row({**row, "connect_value": None}, settings=settings) is None
