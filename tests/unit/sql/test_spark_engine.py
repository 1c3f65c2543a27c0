"""ENGINE='spark-sql': what is compiled, and what is refused with a reason."""

from __future__ import annotations

import pytest

from moldau.sql.engine.engine import KsqlEngine
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.errors import KsqlException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in

SOURCES = """
    CREATE STREAM s (id STRING KEY, n INT, l BIGINT, d DOUBLE, t STRING, b BOOLEAN)
        WITH (kafka_topic='s', value_format='JSON');
    CREATE STREAM deep (id STRING KEY, a ARRAY<INT>) WITH (kafka_topic='d', value_format='JSON');
    CREATE TABLE tab (id STRING PRIMARY KEY, n INT) WITH (kafka_topic='t', value_format='JSON');
"""


def engine() -> KsqlEngine:
    made = KsqlEngine(functions=built_in(), formats=format_for, topics=MemoryTopics())
    made.execute_script(SOURCES)
    return made


def test_the_plan_is_shown() -> None:
    made = engine()
    statement = (
        "CREATE STREAM o WITH (engine='spark-sql') AS SELECT id, n + l AS m, t FROM s "
        "WHERE n > 1 AND NOT (t = 'it''s' OR b IS NULL);"
    )
    _, listed = made.execute_script(f"{statement} EXPLAIN CSAS_O_0;")
    shown = listed.rows[0]["executionPlan"]  # type: ignore[union-attr]
    assert shown.splitlines() == [
        " > [ SPARK SQL ] read s as JSON",
        " > [ SPARK SQL ] filter coalesce((`N` > 1), false)",
        " > [ SPARK SQL ] filter (NOT (coalesce((`T` = CAST(X'69742773' AS string)), false) OR "
        "(`B` IS NULL)))",
        " > [ SPARK SQL ] select (CAST(`N` AS bigint) + CAST(`L` AS bigint)) AS `M`, `T` AS `T`",
        " > [ SPARK SQL ] write O as JSON",
    ]
    (explained,) = engine().execute_script(f"EXPLAIN {statement}")
    assert "SPARK SQL" in explained.rows[0]["executionPlan"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id, COUNT(*) FROM s GROUP BY id", "only filters and projections"),
        ("SELECT s.id, tab.n FROM s JOIN tab ON s.id = tab.id", "only filters and projections"),
        ("SELECT id, n FROM tab", "is a table"),
        ("SELECT id, a FROM deep", "of type ARRAY<INTEGER>"),
        ("SELECT id, n / 2 FROM s", "division"),
        ("SELECT id, d + 1 FROM s", "only INTEGER and BIGINT"),
        ("SELECT id, UCASE(t) FROM s", "not shown to be the same"),
        ("SELECT id, n FROM s WHERE d > 1", "whole numbers are compared"),
        ("SELECT id, n FROM s WHERE t > 'a'", "whole numbers are compared"),
        ("SELECT id, n FROM s WHERE NOT (n + 1 > 3)", "not shown to be the same"),
        ("SELECT id, n FROM s WHERE NOT b", "may be NULL"),
        ("SELECT id, n + 1 > 3 FROM s", "not shown to be the same"),
    ],
)
def test_what_is_not_the_same_is_refused(query: str, reason: str) -> None:
    kind = "TABLE" if "COUNT" in query or ("tab" in query and "JOIN" not in query) else "STREAM"
    with pytest.raises(KsqlException, match=reason):
        engine().execute_script(f"CREATE {kind} o WITH (engine='spark-sql') AS {query};")


def test_an_engine_that_is_not_there() -> None:
    with pytest.raises(KsqlException, match="must be one of: streams, spark-sql"):
        engine().execute_script("CREATE STREAM o WITH (engine='flink') AS SELECT id, n FROM s;")
