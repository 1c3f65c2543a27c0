"""The engine: what statements change, and what it says about sources and queries."""

from __future__ import annotations

import pytest

from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.engine.results import Done, Inserted, Listing, Started, Stopped
from moldau.sql.errors import KsqlStatementException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in
from moldau.sql.syntax.statements import Query
from moldau.streams.hosts.driver import TopologyTestDriver

_CLICKS = (
    "CREATE STREAM clicks (user STRING KEY, url STRING, ms BIGINT) "
    "WITH (kafka_topic='clicks', value_format='JSON', partitions=2);"
)


@pytest.fixture
def engine() -> KsqlEngine:
    made = KsqlEngine(functions=built_in(), formats=format_for, topics=MemoryTopics())
    made.execute_script(_CLICKS)
    return made


def test_queries_have_the_ids_and_applications_of_ksqldb(engine: KsqlEngine) -> None:
    results = engine.execute_script(
        "CREATE STREAM slow AS SELECT * FROM clicks WHERE ms > 100;"
        "CREATE TABLE n AS SELECT user, COUNT(*) AS n FROM clicks GROUP BY user;"
        "INSERT INTO slow SELECT * FROM clicks WHERE ms < 0;"
    )
    ids = [each.query.id for each in results if isinstance(each, Started)]
    assert ids == ["CSAS_SLOW_0", "CTAS_N_1", "INSERTQUERY_2"]
    assert engine.queries["CTAS_N_1"].application_id == "_confluent-ksql-default_query_CTAS_N_1"
    stores = engine.queries["CTAS_N_1"].built.topology.assembly.stores
    assert list(stores) == ["Aggregate-Aggregate-Materialize"]


def test_a_source_that_is_read_cannot_be_dropped(engine: KsqlEngine) -> None:
    engine.execute_script("CREATE STREAM slow AS SELECT * FROM clicks;")
    with pytest.raises(KsqlStatementException, match="read from this source: \\[SLOW\\]"):
        engine.execute_script("DROP STREAM clicks;")
    engine.execute_script("DROP STREAM slow; DROP STREAM clicks;")
    assert not engine.metastore.sources
    assert not engine.queries


def test_if_not_exists_changes_nothing(engine: KsqlEngine) -> None:
    (result,) = engine.execute_script(
        "CREATE STREAM IF NOT EXISTS clicks (x INT) WITH (kafka_topic='x', value_format='JSON');"
    )
    assert result == Done("Cannot add stream `CLICKS`: A stream with the same name already exists.")
    with pytest.raises(KsqlStatementException, match="already exists"):
        engine.execute_script(_CLICKS)


def test_inserted_values_are_the_bytes_of_a_record(engine: KsqlEngine) -> None:
    (record,) = engine.execute_script(
        "INSERT INTO clicks (ROWTIME, user, ms) VALUES (5, 'u', 1 + 2);"
    )
    assert record == Inserted(topic="clicks", key=b"u", value=b'{"URL":null,"MS":3}', timestamp=5)
    with pytest.raises(KsqlStatementException, match="Column name `FOO` does not exist"):
        engine.execute_script("INSERT INTO clicks (foo) VALUES (1);")


def test_queries_are_paused_and_terminated(engine: KsqlEngine) -> None:
    engine.execute_script("CREATE STREAM slow AS SELECT * FROM clicks;")
    engine.execute_script("PAUSE CSAS_SLOW_0;")
    assert engine.queries["CSAS_SLOW_0"].state == "PAUSED"
    (result,) = engine.execute_script("TERMINATE ALL;")
    assert isinstance(result, Stopped)
    assert not engine.queries


def test_sessions_keep_properties_and_variables(engine: KsqlEngine) -> None:
    session = Session()
    engine.execute_script("SET 'ksql.output.topic.name.prefix'='p-'; DEFINE lim = '7';", session)
    engine.execute_script("CREATE STREAM slow AS SELECT * FROM clicks WHERE ms > ${lim};", session)
    source = engine.metastore.source("SLOW")
    assert source is not None
    assert source.topic == "p-SLOW"
    (shown,) = engine.execute_script("SHOW VARIABLES;", session)
    assert shown == Listing("variables", [{"name": "lim", "value": "7"}])


def test_what_is_there_is_listed(engine: KsqlEngine) -> None:
    engine.execute_script(
        "CREATE TABLE n AS SELECT user, COUNT(*) AS n FROM clicks WINDOW SESSION (1 HOUR) "
        "GROUP BY user; CREATE TYPE pair AS STRUCT<a INT, b ARRAY<DECIMAL(4, 2)>>;"
    )
    streams, tables, types = engine.execute_script("SHOW STREAMS; SHOW TABLES; SHOW TYPES;")
    assert isinstance(streams, Listing)
    assert [each["name"] for each in streams.rows] == ["CLICKS"]
    assert isinstance(tables, Listing)
    assert tables.rows[0]["isWindowed"] is True
    assert isinstance(types, Listing)
    assert types.rows[0]["schema"]["fields"][1]["schema"]["memberSchema"]["type"] == "DECIMAL"
    (described,) = engine.execute_script("DESCRIBE n EXTENDED;")
    assert isinstance(described, Listing)
    row = described.rows[0]
    assert [each["name"] for each in row["fields"]] == ["USER", "N"]
    assert row["windowType"] == "SESSION"
    assert [each["id"] for each in row["writeQueries"]] == ["CTAS_N_0"]


def test_explain_shows_the_plan_and_keeps_nothing(engine: KsqlEngine) -> None:
    (shown,) = engine.execute_script("EXPLAIN SELECT user FROM clicks WHERE ms > 1 EMIT CHANGES;")
    assert isinstance(shown, Listing)
    assert "[ FILTER ]" in shown.rows[0]["executionPlan"]
    engine.execute_script("CREATE STREAM slow AS SELECT * FROM clicks;")
    assert list(engine.queries) == ["CSAS_SLOW_0"]


def test_a_push_query_passes_rows_on(engine: KsqlEngine) -> None:
    sql = "SELECT user, UCASE(url) AS u, ms + 1 FROM clicks WHERE ms > 1 EMIT CHANGES;"
    statement = engine.prepare(engine.parse(sql)[0])
    assert isinstance(statement, Query)
    rows: list[tuple[object, object, int]] = []
    query = engine.push_query(statement, lambda *each: rows.append(each), sql)
    with TopologyTestDriver(query.built.topology) as driver:
        topic = driver.input_topic("clicks")
        topic.pipe_input(("a",), ("x", 1), timestamp=1)
        topic.pipe_input(("b",), ("y", 2**63 - 1), timestamp=2)
    assert rows == [(("b",), ("b", "Y", -(2**63)), 2)]
    assert [each.name for each in query.plan.schema.value] == ["USER", "U", "KSQL_COL_0"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "CREATE TABLE t (id INT PRIMARY KEY) WITH (kafka_topic='t', value_format='JSON', "
            "retention_ms=5);",
            "Non-windowed tables do not support retention",
        ),
        (
            "CREATE STREAM s WITH (cleanup_policy='compact') AS SELECT * FROM clicks;",
            "Users can't set the CLEANUP_POLICY config manually",
        ),
        (
            "CREATE STREAM s WITH (timestamp='url', timestamp_format='{bad') AS "
            "SELECT * FROM clicks;",
            "Invalid datetime format for config:TIMESTAMP_FORMAT",
        ),
        ("CREATE STREAM s WITH (foo='x') AS SELECT * FROM clicks;", "WITH clause: FOO"),
        ("CREATE STREAM s (a INT) WITH (value_format='JSON');", "KAFKA_TOPIC"),
    ],
)
def test_properties_that_do_not_fit_are_refused(engine: KsqlEngine, sql: str, message: str) -> None:
    with pytest.raises(KsqlStatementException, match=message):
        engine.execute_script(sql)
    assert list(engine.metastore.sources) == ["CLICKS"]
