"""What statements are refused for, with ksqlDB's messages, and that trying them changes nothing."""

from __future__ import annotations

import pytest

from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.engine.results import Listing
from moldau.sql.errors import KsqlStatementException, ParseFailedException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in
from moldau.sql.syntax.statements import Query
from moldau.sql.testing.registry import MemoryRegistry

_STREAM = (
    "CREATE STREAM s (id INT KEY, v STRING) "
    "WITH (kafka_topic='t', value_format='AVRO', partitions=2, replicas=1);"
)


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


@pytest.fixture
def engine(registry: MemoryRegistry) -> KsqlEngine:
    topics = MemoryTopics(default_partitions=None)
    made = KsqlEngine(
        functions=built_in(), formats=format_for, topics=topics, registry=registry, config={}
    )
    made.execute_script(_STREAM)
    return made


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "CREATE STREAM x (id INT KEY, v STRING) WITH (kafka_topic='t', value_format='AVRO', "
            "partitions=3);",
            "A Kafka topic with the name 't' already exists, with different partition/replica "
            "configuration than required. KSQL expects 3 partitions (topic has 2), -1 replication "
            "factor (topic has 1).",
        ),
        (
            "CREATE STREAM x WITH (kafka_topic='t', replicas=3) AS SELECT * FROM s;",
            "KSQL expects 2 partitions (topic has 2), 3 replication factor (topic has 1).",
        ),
        (
            "INSERT INTO s WITH (QUERY_ID='csas_x') SELECT * FROM s;",
            "Query IDs must not start with a reserved query ID prefix (INSERTQUERY_, CTAS_, CSAS_, "
            "CST_). Got 'CSAS_X'.",
        ),
        (
            "INSERT INTO s WITH (QUERY_ID='a-b') SELECT * FROM s;",
            "Query IDs may contain only alphanumeric characters and '_'. Got: 'A-B'",
        ),
        (
            "EXPLAIN nothing;",
            "Query with id:NOTHING does not exist, use SHOW QUERIES to view the full set of "
            "queries.",
        ),
    ],
)
def test_a_statement_is_refused(engine: KsqlEngine, sql: str, message: str) -> None:
    with pytest.raises(KsqlStatementException) as found:
        engine.execute_script(sql)
    assert message in str(found.value)


def test_the_query_of_a_source_table_ends_with_its_table(engine: KsqlEngine) -> None:
    engine.execute_script(
        "CREATE SOURCE TABLE t (id INT PRIMARY KEY, v STRING) "
        "WITH (kafka_topic='t', value_format='AVRO');"
    )
    for action in ("PAUSE", "RESUME", "TERMINATE"):
        with pytest.raises(
            KsqlStatementException, match=f"Cannot {action.lower()} query 'CST_T_0'"
        ):
            engine.execute_script(f"{action} CST_T_0;")
    engine.execute_script("DROP TABLE t;")
    assert not engine.queries


def test_headers_can_be_switched_off() -> None:
    engine = KsqlEngine(
        functions=built_in(),
        formats=format_for,
        topics=MemoryTopics(),
        config={"ksql.headers.columns.enabled": "false"},
    )
    with pytest.raises(KsqlStatementException, match="headers columns is disabled"):
        engine.execute_script(
            "CREATE STREAM s (h BYTES HEADER('a')) WITH (kafka_topic='t', value_format='JSON');"
        )


def test_a_topic_is_deleted_with_its_schemas_unless_another_source_reads_it(
    engine: KsqlEngine, registry: MemoryRegistry
) -> None:
    engine.execute_script("CREATE STREAM z WITH (kafka_topic='t', value_format='AVRO');")
    with pytest.raises(KsqlStatementException) as found:
        engine.execute_script("DROP STREAM s DELETE TOPIC;")
    assert "Found other data sources (Z) using topic t" in str(found.value)
    assert engine.topics.partitions("t") == 2
    engine.execute_script("DROP STREAM z; DROP STREAM s DELETE TOPIC;")
    assert engine.topics.partitions("t") is None
    with pytest.raises(LookupError):
        registry.latest("t-value")


def test_a_file_with_several_messages_needs_the_name_of_one(
    engine: KsqlEngine, registry: MemoryRegistry
) -> None:
    registry.register(
        "p-value",
        "PROTOBUF",
        'syntax = "proto3"; package a; message One { int32 x = 1; } message Two { string y = 1; }',
    )
    create = "CREATE STREAM p WITH (kafka_topic='p', value_format='PROTOBUF', partitions=1{});"
    with pytest.raises(KsqlStatementException) as found:
        engine.execute_script(create.format(""))
    assert "Value schema has multiple schema definitions." in str(found.value)
    assert "- a.One\n- a.Two\n\nPlease specify a schema full name" in str(found.value)
    engine.execute_script(create.format(", value_schema_full_name='a.Two'"))
    assert str(engine.metastore.sources["P"].schema) == "`Y` STRING"


def test_statements_in_a_sandbox_have_no_effect(
    engine: KsqlEngine, registry: MemoryRegistry
) -> None:
    engine.execute_script("CREATE STREAM o AS SELECT * FROM s;")
    sandbox = engine.sandbox()
    sandbox.execute_script(
        "CREATE TYPE a AS INT;"
        "CREATE STREAM n (x a) WITH (kafka_topic='n', value_format='AVRO', partitions=1);"
        "INSERT INTO n VALUES (1);"
        "CREATE STREAM m AS SELECT * FROM n;"
        "PAUSE CSAS_O_0;"
        "DROP STREAM o DELETE TOPIC;"
    )
    assert set(sandbox.metastore.sources) == {"S", "N", "M"}
    assert sandbox.topics.counts() == {"t": 2, "n": 1, "M": 1}
    assert set(engine.metastore.sources) == {"S", "O"}
    assert engine.topics.counts() == {"t": 2, "O": 2}
    assert engine.metastore.resolve_type("A") is None
    assert engine.queries["CSAS_O_0"].state == "RUNNING"
    assert registry.latest("O-value")[1] == "AVRO"
    with pytest.raises(LookupError):
        registry.latest("n-value")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("WINDOWSTART > 1 AND WINDOWSTART >= 2", "Duplicate `WINDOWSTART` bounds on: GREATER_THAN"),
        ("WINDOWEND = 1 AND WINDOWEND = 1", "Duplicate `WINDOWEND` bounds on: EQUAL"),
        ("WINDOWSTART <> 1", "Unsupported `WINDOWSTART` bounds: NOT_EQUAL"),
        (
            "WINDOWSTART = 1 AND WINDOWSTART < 5",
            "`(WINDOWSTART < 5)` cannot be combined with other `WINDOWSTART` bounds",
        ),
    ],
)
def test_bounds_of_windows_are_refused(engine: KsqlEngine, where: str, message: str) -> None:
    engine.execute_script(
        "CREATE TABLE w AS SELECT id, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 SECOND) "
        "GROUP BY id;"
    )
    sql = f"SELECT * FROM w WHERE id = 1 AND {where};"
    query = engine.prepare(engine.parse(sql)[0])
    assert isinstance(query, Query)
    with pytest.raises(KsqlStatementException) as found:
        engine.pull_query(query, sql)
    assert message in str(found.value)


def test_bounds_of_windows_on_both_sides_are_combined(engine: KsqlEngine) -> None:
    engine.execute_script(
        "CREATE TABLE w AS SELECT id, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 SECOND) "
        "GROUP BY id;"
    )
    sql = (
        "SELECT * FROM w WHERE (id = 1 AND WINDOWSTART > 1 AND 9 >= WINDOWSTART) "
        "OR (id = 2 AND WINDOWEND = 5);"
    )
    query = engine.prepare(engine.parse(sql)[0])
    assert isinstance(query, Query)
    first, second = engine.pull_query(query, sql).plan.lookups
    assert (first.start.low, first.start.high, first.end.low) == (2, 9, None)
    assert (second.end.low, second.end.high, second.start.low) == (5, 5, None)


def test_secrets_are_not_listed() -> None:
    engine = KsqlEngine(
        functions=built_in(),
        formats=format_for,
        topics=MemoryTopics(),
        config={
            "ksql.service.id": "a_",
            "ksql.streams.sasl.jaas.config": "x",
            "ksql.schema.registry.basic.auth.user.info": "me:x",
            "ksql.streams.ssl.keystore.key": "x",
            "ksql.persistence.default.format.key": "JSON",
        },
    )
    (listed,) = engine.execute_script("SHOW PROPERTIES;")
    assert isinstance(listed, Listing)
    shown = {each["name"]: each["value"] for each in listed.rows}
    assert shown["ksql.service.id"] == "a_"
    assert shown["ksql.persistence.default.format.key"] == "JSON"
    assert [each for each in shown.values() if each == "[hidden]"] == ["[hidden]"] * 3


@pytest.mark.parametrize("kind", ["DECIMAL(2, 3)", "DECIMAL(0, 0)", "ARRAY<DECIMAL(2, 3)>"])
def test_a_decimal_that_cannot_be_is_refused(engine: KsqlEngine, kind: str) -> None:
    with pytest.raises(ParseFailedException, match="Failed to prepare statement: DECIMAL"):
        engine.execute_script(
            f"CREATE STREAM d (v {kind}) WITH (kafka_topic='d', value_format='JSON', partitions=1);"
        )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "INSERT INTO s (id, v) VALUES (1);",
            "Expected number columns and values to match: 2, 1",
        ),
        ("INSERT INTO s VALUES ();", "Expected some values for INSERT INTO statement."),
        (
            "CREATE STREAM x AS SELECT id, REDUCE(ARRAY[id], 0, (q, q) => 1) AS z FROM s;",
            "Lambda arguments have duplicates: [Q, Q]",
        ),
        (
            "CREATE STREAM x (a STRUCT<b INT, b STRING>) "
            "WITH (kafka_topic='x', value_format='JSON', partitions=1);",
            "Duplicate field names found in STRUCT: '`B` INTEGER' and '`B` STRING'",
        ),
    ],
)
def test_what_is_wrong_before_names_are_known(engine: KsqlEngine, sql: str, message: str) -> None:
    with pytest.raises(ParseFailedException) as caught:
        engine.execute_script(sql)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("TUMBLING (SIZE 0 SECONDS)", "must be larger than zero"),
        ("HOPPING (SIZE 1 SECONDS, ADVANCE BY 2 SECONDS)", "Window advancement interval should be"),
        ("TUMBLING (SIZE 9 SECONDS, RETENTION 1 SECONDS)", "must be no smaller than"),
    ],
)
def test_a_window_that_streams_refuse_leaves_nothing(
    engine: KsqlEngine, window: str, message: str
) -> None:
    with pytest.raises(KsqlStatementException, match=message):
        engine.execute_script(
            f"CREATE TABLE x AS SELECT v, COUNT(*) AS n FROM s WINDOW {window} GROUP BY v;"
        )
    assert engine.metastore.source("X") is None
    assert not engine.queries


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT id, v FROM s WHERE id = 1", "New query planner does not support WHERE."),
        ("SELECT v AS w FROM s", "New query planner only support column references"),
        ("SELECT v FROM t", "Input TABLES are not supported by the new planner"),
    ],
)
def test_what_the_second_planner_cannot_plan(engine: KsqlEngine, sql: str, message: str) -> None:
    engine.execute_script(
        "CREATE TABLE t (id INT PRIMARY KEY, v STRING) "
        "WITH (kafka_topic='other', value_format='AVRO', partitions=2);"
    )
    session = Session(properties={"ksql.new.query.planner.enabled": "true"})
    with pytest.raises(KsqlStatementException, match=message):
        engine.execute_script(f"CREATE STREAM x AS {sql};", session)


def test_a_struct_has_no_field_twice(engine: KsqlEngine) -> None:
    with pytest.raises(KsqlStatementException, match="Duplicate field names found in STRUCT"):
        engine.execute_script("CREATE STREAM x AS SELECT id, STRUCT(a:=1, a:=2) AS b FROM s;")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT INTO c VALUES ('x');", "Cannot insert values into read-only topic: _confluent-x"),
        ("INSERT INTO c SELECT v FROM s PARTITION BY NULL;", "Cannot insert into read-only topic"),
        (
            "CREATE STREAM d WITH (kafka_topic='__confluent-y') AS SELECT * FROM s;",
            "Cannot write to read-only topic: __confluent-y",
        ),
        ("ALTER SYSTEM 'ksql.readonly.topics'='';", "Cannot alter system configs"),
        ("DROP STREAM c DELETE TOPIC;", "Cannot delete read-only topic: _confluent-x"),
    ],
)
def test_topics_of_the_server_itself_are_not_written(
    engine: KsqlEngine, sql: str, message: str
) -> None:
    """Whoever writes commands could have the server do anything."""
    engine.execute_script(
        "CREATE STREAM c (v STRING) "
        "WITH (kafka_topic='_confluent-x', value_format='AVRO', partitions=1);"
    )
    with pytest.raises(KsqlStatementException, match=message):
        engine.execute_script(sql)
    engine.execute_script("DROP STREAM c;")


def test_hidden_topics_are_listed_with_all(engine: KsqlEngine) -> None:
    engine.execute_script(
        "CREATE STREAM c (v STRING) "
        "WITH (kafka_topic='connect-status', value_format='AVRO', partitions=1);"
    )

    def topics(sql: str) -> list[str]:
        (found,) = engine.execute_script(sql)
        assert isinstance(found, Listing)
        return [each["name"] for each in found.rows]

    assert topics("SHOW TOPICS;") == ["t"]
    assert topics("SHOW ALL TOPICS;") == ["connect-status", "t"]


def test_keys_are_inserted_with_the_schema_that_is_registered(
    engine: KsqlEngine, registry: MemoryRegistry
) -> None:
    engine.execute_script(
        "CREATE STREAM k (id STRING KEY, v STRING) "
        "WITH (kafka_topic='k', format='AVRO', partitions=1);"
        "INSERT INTO k VALUES ('a', 'b');"
    )
    registry.register("k-key", "AVRO", '"long"')
    with pytest.raises(KsqlStatementException) as caught:
        engine.execute_script("INSERT INTO k VALUES ('a', 'b');")
    assert "ksqlDB generated schema would overwrite existing key schema." in str(caught.value)
    registry.delete("k-key")
    with pytest.raises(KsqlStatementException, match=r"Failed to fetch key schema \(k-key\)"):
        engine.execute_script("INSERT INTO k VALUES ('a', 'b');")
