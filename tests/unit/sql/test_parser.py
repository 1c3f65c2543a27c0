"""Statements as text to trees, and what is wrong with those that are none."""

from __future__ import annotations

import pytest

from moldau.sql.errors import ParseFailedException
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.parser import parse, parse_expression, prepare
from moldau.sql.syntax.statement_formatting import formatted
from moldau.sql.syntax.statements import (
    AssertSchema,
    AssertTopic,
    ControlQuery,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    DefineVariable,
    Describe,
    DropConnector,
    DropSource,
    DropType,
    Explain,
    InsertInto,
    InsertValues,
    PrintTopic,
    Query,
    SetProperty,
    Show,
    Statement,
    UnsetProperty,
)


def statement(sql: str) -> Statement:
    (parsed,) = parse(sql)
    return prepare(parsed)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a + b * c", "(A + (B * C))"),
        ("-a * b", "(-A * B)"),
        ("-1", "-1"),
        ("a - 1", "(A - 1)"),
        ("a -1", "(A - 1)"),
        ("not a and b or c", "(((NOT A) AND B) OR C)"),
        ("a || b || 'c'", "CONCAT(CONCAT(A, B), 'c')"),
        ("a in (1, 2) and b not like 'x%'", "((A IN (1, 2)) AND (NOT (B LIKE 'x%')))"),
        ("a between 1 and 2", "(A BETWEEN 1 AND 2)"),
        ("a is not null", "(A IS NOT NULL)"),
        ("a is distinct from b", "(A IS DISTINCT FROM B)"),
        ("s->x[1]->y", "S->X[1]->Y"),
        ("s.a", "S.A"),
        ("case when a then 1 else 2 end", "(CASE WHEN A THEN 1 ELSE 2 END)"),
        ("cast(a as array<int>)", "CAST(A AS ARRAY<INTEGER>)"),
        ("map('a' := 1)", "MAP('a':=1)"),
        ("struct(x := 1, `y` := 'it''s')", "STRUCT(X:=1, y:='it''s')"),
        ("transform(a, (x, y) => x + y)", "TRANSFORM(A, (X, Y) => (X + Y))"),
        ("dateadd(days, 2, d)", "DATEADD(DAYS, 2, D)"),
        ("count(*)", "COUNT(*)"),
        ("1.50", "1.50"),
        ("1e3", "1E3"),
        ("3000000000", "3000000000"),
    ],
)
def test_expressions_keep_their_meaning(written: str, shown: str) -> None:
    assert text(parse_expression(written)) == shown


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT * FROM a EMIT CHANGES;", Query),
        (
            "CREATE OR REPLACE STREAM s (id INT KEY, h BYTES HEADER('x')) WITH (a='b');",
            CreateSource,
        ),
        ("CREATE SOURCE TABLE IF NOT EXISTS t (id INT PRIMARY KEY);", CreateSource),
        (
            "CREATE TABLE t WITH (PARTITIONS=1) AS SELECT a, COUNT(*) FROM s GROUP BY a;",
            CreateAsSelect,
        ),
        ("INSERT INTO s SELECT * FROM a;", InsertInto),
        ("INSERT INTO s (a, b) VALUES (1, ARRAY[1]);", InsertValues),
        ("DROP STREAM IF EXISTS s DELETE TOPIC;", DropSource),
        ("CREATE TYPE IF NOT EXISTS address AS STRUCT<street STRING>;", CreateType),
        ("DROP TYPE address;", DropType),
        ("CREATE SINK CONNECTOR c WITH ('connector.class'='X');", CreateConnector),
        ("DROP CONNECTOR IF EXISTS c;", DropConnector),
        ("LIST ALL TOPICS EXTENDED;", Show),
        ("SHOW SOURCE CONNECTORS;", Show),
        ("SHOW CONNECTOR PLUGINS;", Show),
        ("DESCRIBE s EXTENDED;", Describe),
        ("DESCRIBE FUNCTION substring;", Describe),
        ("EXPLAIN SELECT * FROM a;", Explain),
        ("EXPLAIN CSAS_A_0;", Explain),
        ("PRINT 'topic' FROM BEGINNING INTERVAL 2 LIMIT 3;", PrintTopic),
        ("TERMINATE ALL;", ControlQuery),
        ("PAUSE CSAS_A_0;", ControlQuery),
        ("SET 'auto.offset.reset'='earliest';", SetProperty),
        ("ALTER SYSTEM 'a'='b';", SetProperty),
        ("UNSET 'a';", UnsetProperty),
        ("DEFINE x = 'y';", DefineVariable),
        ("ASSERT NOT EXISTS TOPIC t WITH (PARTITIONS=1) TIMEOUT 3 SECONDS;", AssertTopic),
        ("ASSERT SCHEMA SUBJECT 's' ID 3;", AssertSchema),
    ],
)
def test_every_kind_of_statement_is_read(sql: str, kind: type[Statement]) -> None:
    assert isinstance(statement(sql), kind)


def test_clauses_of_a_query() -> None:
    query = statement(
        "SELECT a.x AS y, b.*, c->* FROM a LEFT JOIN b "
        "WITHIN (1 HOUR, 2 DAYS) GRACE PERIOD 1 MINUTE ON a.id = b.id "
        "WINDOW HOPPING (SIZE 5 SECONDS, ADVANCE BY 1 SECOND, RETENTION 1 DAY) "
        "WHERE a.x > 1 GROUP BY a.x, b.z HAVING COUNT(*) > 1 EMIT FINAL LIMIT 3;"
    )
    assert isinstance(query, Query)
    assert query.joins[0].kind == "LEFT"
    assert query.joins[0].within is not None
    assert query.joins[0].within.before.ms == 3_600_000
    assert query.window is not None
    assert (query.window.kind, query.window.size.ms) == ("HOPPING", 5000)
    assert query.group_by is not None
    assert len(query.group_by) == 2
    assert (query.emit, query.limit) == ("FINAL", 3)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELEC * FROM a;",
            "line 1:1: Syntax Error\nUnknown statement 'SELEC'\nDid you mean 'SELECT'?",
        ),
        (
            "SELECT a FROM\n  b WHERE;",
            "line 2:10: Syntax Error\nSyntax error at or near ';' at line 2:10",
        ),
        ("CREATE STREAM s (a INT b) WITH (x='y');", "Expecting {',', ')'}"),
        ("SELECT (a, b) FROM c;", "missing ')' at ','"),
        ("SELECT a FROM b", "missing"),
        ("CREATE STREAM from (a INT);", "Syntax error at or near 'from'"),
    ],
)
def test_errors_say_where_and_what(sql: str, message: str) -> None:
    with pytest.raises(ParseFailedException) as caught:
        parse(sql)
    assert message in caught.value.unlogged or "Expecting ';'" in caught.value.unlogged


def test_unknown_types_and_sources_are_found_when_a_statement_is_prepared() -> None:
    with pytest.raises(ParseFailedException, match="Cannot resolve unknown type: FOO"):
        statement("CREATE STREAM s (a foo) WITH (x='y');")
    with pytest.raises(ParseFailedException, match="'C' is not a valid stream/table name or alias"):
        statement("SELECT c.x FROM a;")


def test_names_are_in_capitals_unless_quoted() -> None:
    made = statement("CREATE STREAM `quoted` (a INT, \"b\" INT) WITH (x='y');")
    assert isinstance(made, CreateSource)
    assert (made.name, [each.name for each in made.elements]) == ("quoted", ["A", "b"])


def test_deeply_nested_expressions_are_refused() -> None:
    for nested in ("(" * 300 + "1" + ")" * 300, " -" * 5000 + "a", "NOT " * 5000 + "a"):
        with pytest.raises(ParseFailedException, match="too large to parse"):
            statement(f"SELECT {nested} FROM a;")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE STREAM S (ID INTEGER KEY, V ARRAY<STRING>) WITH (KAFKA_TOPIC='s', PARTITIONS=1);",
        "CREATE OR REPLACE TABLE T AS SELECT\n  S.A,\n  COUNT(*) N\nFROM S S\n"
        "WINDOW HOPPING ( SIZE 5 SECONDS , ADVANCE BY 1 SECONDS ) \nWHERE (S.A > 1)\nGROUP BY S.A\n"
        "EMIT CHANGES",
        "INSERT INTO S SELECT *\nFROM A A\nLEFT OUTER JOIN B B WITHIN 1 HOURS ON ((A.X = B.X))\n"
        "EMIT CHANGES",
    ],
)
def test_statements_are_written_as_they_are_read(sql: str) -> None:
    assert formatted(statement(sql if sql.endswith(";") else f"{sql};")) == sql
