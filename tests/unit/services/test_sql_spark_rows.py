"""Tables of Spark for SQL: their columns, their values, and queries over them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from moldau.services.sql.machine.spark_rows import row_reader, sql_columns
from moldau.services.sql.spark_tables import SparkTables, _is_in
from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.errors import KsqlException, ParseFailedException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in
from moldau.sql.syntax.statements import CreateAsSelect, SparkTable


def _schema(**kinds: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True} for name, kind in kinds.items()]
    return {"type": "struct", "fields": fields}


_ALL = _schema(
    id="long",
    small="short",
    Name="varchar(10)",
    day="date",
    at="timestamp",
    wall="timestamp_ntz",
    price="decimal(6,2)",
    items={"type": "array", "elementType": "integer", "containsNull": True},
    rates={"type": "map", "keyType": "string", "valueType": "double"},
    inner=_schema(x="byte", when="date"),
    raw="binary",
)


def test_columns_have_sqls_types() -> None:
    shown = {name: str(kind) for name, kind in sql_columns(_ALL)}
    assert shown == {
        "ID": "BIGINT",
        "SMALL": "INTEGER",
        "NAME": "STRING",
        "DAY": "DATE",
        "AT": "TIMESTAMP",
        "WALL": "TIMESTAMP",
        "PRICE": "DECIMAL(6, 2)",
        "ITEMS": "ARRAY<INTEGER>",
        "RATES": "MAP<STRING, DOUBLE>",
        "INNER": "STRUCT<`X` INTEGER, `WHEN` DATE>",
        "RAW": "BYTES",
    }


def test_values_are_sqls() -> None:
    row = (
        *(
            7,
            1,
            "ann",
            date(1970, 1, 3),
            datetime.fromtimestamp(1.5),
            datetime(1970, 1, 1, 0, 0, 2),
        ),
        *(Decimal("1.5"), [1, None], {"k": 1.0}, (3, date(1970, 1, 2)), bytearray(b"x")),
    )
    assert row_reader(_ALL)(row) == (
        *(7, 1, "ann", 2, 1500, 2000, Decimal("1.50"), [1, None], {"k": 1.0}, (3, 1), b"x"),
    )
    assert row_reader(_ALL)((None,) * 11) == (None,) * 11


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (_schema(a="long", A="long"), "Two columns are named A"),
        (_schema(a="interval"), "Column a: interval has no type in SQL"),
        (
            _schema(a={"type": "map", "keyType": "long", "valueType": "long"}),
            "has no type in SQL: convert it with CAST",
        ),
    ],
)
def test_what_sql_does_not_have(schema: Any, message: str) -> None:
    with pytest.raises(KsqlException, match=message):
        sql_columns(schema)


def _prepared(sql: str) -> Any:
    engine = KsqlEngine(functions=built_in(), formats=format_for, topics=MemoryTopics())
    return engine.prepare(engine.parse(sql)[0]), engine


def test_a_table_is_named_as_spark_names_it() -> None:
    statement, _ = _prepared(
        "CREATE TABLE c WITH (value_format='JSON', key='id') AS "
        "SELECT id FROM DELTA.`/data/c#versionAsOf=3, timeZone=UTC` x WHERE x.id > 1;"
    )
    assert isinstance(statement, CreateAsSelect)
    relation = statement.query.source
    options = (("versionAsOf", "3"), ("timeZone", "UTC"))
    assert (relation.spark, relation.alias) == (SparkTable("delta", "/data/c", options), "X")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("orc.`/x`", "orc is not a kind of table: use one of delta, iceberg"),
        ("delta.`#a=b`", "Write a table as delta.`/path`"),
        ("delta.`/x#a`", "Write a table as delta.`/path`"),
    ],
)
def test_tables_that_cannot_be_meant(source: str, message: str) -> None:
    with pytest.raises(ParseFailedException, match=message):
        _prepared(f"CREATE STREAM c WITH (value_format='JSON') AS SELECT * FROM {source};")


@pytest.mark.parametrize(
    ("place", "is_allowed"),
    [
        ("/data/orders", True),
        ("/data", True),
        ("/database/orders", False),
        ("/data/./orders", True),
        ("/", False),
        ("s3://shop/orders", True),
        ("s3://shopping/orders", False),
        ("jdbc:sqlite:/data/shop.db", True),
        ("jdbc:sqlite:/etc/shop.db", False),
        ("jdbc:postgresql://db:5432/shop", True),
    ],
)
def test_only_some_places_may_be_read(place: str, is_allowed: bool) -> None:
    places = ("/data/", "s3://shop", "jdbc:sqlite:/data", "jdbc:postgresql://db:5432/shop")
    assert any(_is_in(place, each) for each in places) is is_allowed


@pytest.mark.parametrize(
    ("sql", "places", "message"),
    [
        ("SELECT * FROM delta.`/data/c`", [], "may not be read: the server's setting"),
        ("SELECT * FROM delta.`/data/../etc`", ["/data"], "may not be read"),
        ("SELECT * FROM delta.`/data/c`", ["/data"], "Tables of Spark need a Spark server"),
        ("SELECT a, COUNT(*) AS n FROM delta.`/data/c` GROUP BY a", ["/data"], "GROUP BY is not"),
        ("SELECT * FROM delta.`/data/c` PARTITION BY a", ["/data"], "PARTITION BY is not"),
    ],
)
def test_what_is_refused_before_spark_is_asked(sql: str, places: list[str], message: str) -> None:
    statement, engine = _prepared(f"CREATE STREAM c WITH (value_format='JSON') AS {sql};")
    tables = SparkTables("", places, rows=None, topics=MemoryTopics())  # type: ignore[arg-type]
    with pytest.raises(KsqlException, match=message):
        tables.create(statement, engine, Session(), lambda sql: [])
