"""What ksqlDB does not have: ORDER BY, OFFSET, UNION ALL, queries in FROM, HAVING alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.sql.engine.engine import KsqlEngine
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in
from moldau.sql.testing.script import ScriptTester
from moldau.streams import TopologyTestDriver

SOURCES = """
    CREATE STREAM a (id STRING KEY, n INT, tags ARRAY<STRING>)
        WITH (kafka_topic='a', value_format='JSON', partitions=1);
    CREATE STREAM b (id STRING KEY, n INT)
        WITH (kafka_topic='b', value_format='JSON', partitions=1);
    CREATE TABLE t (id STRING PRIMARY KEY, n INT)
        WITH (kafka_topic='t', value_format='JSON', partitions=1);
    CREATE TABLE sums AS SELECT id, SUM(n) AS total, COUNT(*) AS c FROM a GROUP BY id;
"""


def engine() -> KsqlEngine:
    made = KsqlEngine(functions=built_in(), formats=format_for, topics=MemoryTopics())
    made.execute_script(SOURCES)
    return made


def run(script: str) -> None:
    tester = ScriptTester(functions=built_in(), formats=format_for)
    try:
        tester.run(SOURCES + script)
    finally:
        tester.close()


def pulled(sql: str) -> list[Any]:
    made = engine()
    with TopologyTestDriver(made.queries["CTAS_SUMS_0"].built.topology) as driver:
        topic = driver.input_topic("a")
        for key, n in (("x", 3), ("y", 1), ("z", 2), ("x", 1), ("w", None)):
            topic.pipe_input((key,), (n, None))
        pull = made.pull_query(made.prepare(made.parse(sql)[0]), sql)  # type: ignore[arg-type]
        return list(pull.rows(driver.state_store(pull.store_name)))


def pushed(sql: str) -> list[Any]:
    made, rows = engine(), []
    query = made.push_query(
        made.prepare(made.parse(sql)[0]),  # type: ignore[arg-type]
        lambda key, row, time: rows.append(row),
        sql,
    )
    with TopologyTestDriver(query.built.topology) as driver:
        driver.input_topic("a").pipe_input(("p",), (4, None))
        if "FROM b" in sql:
            driver.input_topic("b").pipe_input(("q",), (5,))
        driver.input_topic("a").pipe_input(("p",), (3, None))
    return [row for row in rows if row is not None]


@pytest.mark.parametrize(
    ("clauses", "ids"),
    [
        ("ORDER BY total", "wyzx"),
        ("ORDER BY total DESC", "xzyw"),
        ("ORDER BY total DESC, id DESC LIMIT 2", "xz"),
        ("ORDER BY c DESC, id LIMIT 2 OFFSET 1", "wy"),
        ("ORDER BY 1 DESC", "zyxw"),
        ("ORDER BY total + c * -10 , id", "xwyz"),
        ("ORDER BY NULLIF(total, 2) NULLS FIRST, id", "zwyx"),
        ("ORDER BY NULLIF(total, 2) DESC, id", "zxyw"),
        ("ORDER BY NULLIF(total, 2) DESC NULLS LAST", "xywz"),
        ("WHERE total > 1 ORDER BY id", "xz"),
        ("ORDER BY id OFFSET 3", "z"),
        ("ORDER BY id OFFSET 1 LIMIT 1", "x"),
        ("ORDER BY id LIMIT 0", ""),
        ("OFFSET 10", ""),
    ],
)
def test_pull_queries_are_sorted_and_cut(clauses: str, ids: str) -> None:
    found = pulled(f"SELECT id, total, c FROM sums {clauses};")
    assert "".join(row[0] for row in found) == ids


def test_words_of_the_new_clauses_are_still_names() -> None:
    made = engine()
    made.execute_script("""
        CREATE STREAM union (order STRING KEY, offset INT, desc INT)
            WITH (kafka_topic='u', value_format='JSON');
        CREATE STREAM offset AS SELECT order, offset, desc AS asc FROM union offset;
        CREATE STREAM first AS SELECT order, asc AS nulls FROM offset order WHERE order.asc > 1;
    """)
    assert made.metastore.source("FIRST") is not None


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT id FROM sums ORDER BY total;", "'TOTAL' is not selected.*which has ID"),
        ("SELECT id FROM sums ORDER BY 2;", "1 columns"),
        ("SELECT id, MAP(id := 1) m FROM sums ORDER BY m;", "have no order"),
        ("SELECT id FROM sums OFFSET -1;", "negative integers in the OFFSET"),
        ("SELECT id FROM sums UNION ALL SELECT id FROM sums;", "UNION"),
    ],
)
def test_wrong_pull_queries(sql: str, message: str) -> None:
    with pytest.raises(KsqlException, match=message):
        pulled(sql)


def test_union_all_of_streams() -> None:
    run("""
        CREATE STREAM both AS SELECT id, n FROM a WHERE n > 0
            UNION ALL SELECT id, n * 10 AS n FROM b
            UNION ALL SELECT id, n + 100 AS n FROM a;
        INSERT INTO a (id, n) VALUES ('x', 1);
        INSERT INTO b (id, n) VALUES ('y', 2);
        INSERT INTO a (id, n) VALUES ('z', -1);
        ASSERT VALUES both (id, n) VALUES ('x', 1);
        ASSERT VALUES both (id, n) VALUES ('x', 101);
        ASSERT VALUES both (id, n) VALUES ('y', 20);
        ASSERT VALUES both (id, n) VALUES ('z', 99);
        ASSERT STREAM both (id STRING KEY, n INT) WITH (kafka_topic='BOTH');
    """)


def test_a_push_query_over_a_union_and_its_plan() -> None:
    sql = "SELECT id, n FROM a UNION ALL SELECT id, n FROM b EMIT CHANGES;"
    assert pushed(sql) == [("p", 4), ("q", 5), ("p", 3)]
    (listing,) = engine().execute_script(f"EXPLAIN {sql}")
    assert "[ UNION ]" in listing.rows[0]["executionPlan"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id, n FROM a UNION SELECT id, n FROM b", "Expecting 'ALL'"),
        ("SELECT id, n FROM a UNION ALL SELECT id, CAST(n AS BIGINT) AS n FROM b", "same columns"),
        ("SELECT id, n FROM a UNION ALL SELECT id, n AS m FROM b", "same columns|schema"),
        ("SELECT id, COUNT(*) FROM a GROUP BY id UNION ALL SELECT id, n FROM b", "for streams"),
        ("SELECT id, n FROM a ORDER BY id", "ORDER BY is for pull queries"),
        ("SELECT id, n FROM a OFFSET 2", "OFFSET is for pull queries"),
    ],
)
def test_wrong_streams(query: str, message: str) -> None:
    with pytest.raises(KsqlException) as caught:
        engine().execute_script(f"CREATE STREAM wrong AS {query};")
    error = caught.value
    shown = error.unlogged if isinstance(error, KsqlStatementException) else str(error)
    assert re.search(message, shown), shown


def test_queries_in_from() -> None:
    run("""
        CREATE STREAM plain AS SELECT i.id, more * 2 AS twice
            FROM (SELECT id, n + 1 AS more FROM a WHERE n > 0) AS i WHERE i.more < 10;
        CREATE STREAM every AS SELECT * FROM (SELECT * FROM a) x WHERE x.n > 100;
        CREATE TABLE big AS SELECT id, n2 FROM (SELECT id, SUM(n) AS n2 FROM a GROUP BY id) s
            WHERE n2 > 5;
        CREATE TABLE counted AS SELECT parity, COUNT(*) AS c
            FROM (SELECT id, n % 2 AS parity FROM a) z GROUP BY parity;
        CREATE STREAM deep AS SELECT id, k FROM
            (SELECT id, j + 1 AS k FROM (SELECT id, n + 1 AS j FROM a) i1) i2 WHERE k = 5;
        INSERT INTO a (id, n) VALUES ('x', 3);
        INSERT INTO a (id, n) VALUES ('x', 300);
        ASSERT VALUES plain (id, twice) VALUES ('x', 8);
        ASSERT VALUES every (id, n) VALUES ('x', 300);
        ASSERT VALUES big (id, n2) VALUES ('x', 303);
        ASSERT VALUES counted (parity, c) VALUES (1, 1);
        ASSERT VALUES counted (parity, c) VALUES (0, 1);
        ASSERT VALUES deep (id, k) VALUES ('x', 5);
    """)


def test_a_pull_query_over_a_query() -> None:
    found = pulled(
        "SELECT id, d FROM (SELECT id, total * 2 AS d FROM sums) i WHERE d > 3 ORDER BY d;"
    )
    assert found == [("z", 4), ("x", 8)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id, m FROM (SELECT id, n FROM a) i", "'M' cannot be resolved.*has ID, N"),
        ("SELECT id FROM (SELECT id FROM a LIMIT 3) i", "cannot have UNION, ORDER BY, LIMIT"),
        ("SELECT id FROM (SELECT id FROM a EMIT CHANGES) i", "cannot have EMIT"),
        ("SELECT id FROM (SELECT id FROM a)", "needs a name"),
        ("SELECT id, COUNT(*) FROM (SELECT id, COUNT(*) c FROM a GROUP BY id) i GROUP BY id",
         "has groups"),
        ("SELECT id, t FROM (SELECT id, EXPLODE(tags) t FROM a) i WHERE t = 'x'",
         "has table functions"),
        ("SELECT i.id FROM (SELECT id FROM a) i JOIN t ON i.id = t.id", "cannot be joined"),
    ],
)  # fmt: skip
def test_queries_in_from_that_are_refused(query: str, message: str) -> None:
    with pytest.raises(KsqlException) as caught:
        engine().execute_script(f"CREATE STREAM wrong AS {query};")
    error = caught.value
    shown = error.unlogged if isinstance(error, KsqlStatementException) else str(error)
    assert re.search(message, shown), shown


def test_having_without_groups() -> None:
    run("""
        CREATE STREAM kept AS SELECT id, n * 2 AS twice FROM a WHERE n > 0 HAVING twice > 10;
        INSERT INTO a (id, n) VALUES ('x', 3);
        INSERT INTO a (id, n) VALUES ('x', 6);
        ASSERT VALUES kept (id, twice) VALUES ('x', 12);
    """)
    assert pushed("SELECT SUM(n) AS total FROM a HAVING COUNT(*) > 1 EMIT CHANGES;") == [(7,)]
