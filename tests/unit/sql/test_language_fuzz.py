"""Any text gives statements, or one error with its place and what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.sql.engine.engine import KsqlEngine
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.errors import KsqlException, KsqlStatementException, ParseFailedException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in
from moldau.sql.syntax.lexer import KEYWORDS
from moldau.sql.syntax.parser import parse, prepare
from support.examples import examples

E = TypeVar("E", bound=KsqlException)
_FUNCTIONS = built_in()
_NAMES = ["s", "t", "id", "n", "COUNT", "UCASE", "SUM", "x1", "`q q`", '"Q"', "${v}", "ORDER",
          "OFFSET", "UNION", "NULLS", "DESC", "LIVE"]  # fmt: skip
_SYMBOLS = [*"=<>+-*/%;(),.[]'\"`?:$", "<>", "!=", "<=", ">=", "=>", "||", ":=", "->", "--", "/*"]
_LITERALS = ["1", "-1", "99999999999999999999", "1.5", "1e400", "'a'", "''", "'a", "1x", "NULL"]
_FRAGMENTS = [
    "SELECT * FROM s EMIT CHANGES;",
    "CREATE STREAM x AS SELECT id, n FROM s",
    "CREATE TABLE y AS SELECT id, COUNT(*) FROM s GROUP BY id",
    "SELECT id FROM t WHERE id = 'a' ORDER BY",
    "FROM (SELECT id, n FROM s) i",
    "UNION ALL SELECT",
    "WINDOW TUMBLING (SIZE 1 MINUTE)",
    "JOIN t ON s.id = t.id",
    "CASE WHEN n > 1 THEN 'a' END",
    "WITH (kafka_topic='x', value_format='JSON', partitions=1)",
    "TRANSFORM(ARRAY[1], x => x + 1)",
    "STRUCT(a := 1)->a",
    "CAST(n AS DECIMAL(5, 2))",
    "INSERT INTO s (id, n) VALUES ('a', 1);",
    "EXPLAIN",
    "ASSERT TOPIC",
]
_words = st.one_of(
    st.sampled_from(sorted(KEYWORDS)),
    st.sampled_from(_NAMES),
    st.sampled_from(_SYMBOLS),
    st.sampled_from(_LITERALS),
    st.sampled_from(_FRAGMENTS),
)
_texts = st.one_of(
    st.text(max_size=80),
    st.lists(_words, max_size=20).map(" ".join),
    st.builds(
        lambda start, rest: f"{start} {' '.join(rest)};",
        st.sampled_from(_FRAGMENTS),
        st.lists(_words, max_size=6),
    ),
)


@contextmanager
def _failing(kind: type[E]) -> Iterator[list[E]]:
    """What is raised inside, if it is of this kind; anything else fails the test."""
    found: list[E] = []
    try:
        yield found
    except kind as error:
        found.append(error)


_QUICK = settings(
    max_examples=examples(500), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@_QUICK
@given(_texts)
def test_any_text_is_parsed_or_refused_with_its_place(text: str) -> None:
    found = []
    with _failing(ParseFailedException) as refused:
        found = parse(text)
    if refused:
        said = refused[0].raw_unlogged
        assert re.match(r"line \d+:\d+: ", said), said
        assert len(said.splitlines()) >= 2, said
    for each in found:
        with _failing(ParseFailedException) as refused:
            prepare(each)
        assert all(str(each).startswith("Failed to prepare statement") for each in refused)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_texts)
def test_any_statement_is_executed_or_fails_in_words(text: str) -> None:
    engine = KsqlEngine(functions=_FUNCTIONS, formats=format_for, topics=MemoryTopics())
    engine.execute_script("""
        CREATE STREAM s (id STRING KEY, n INT) WITH (kafka_topic='s', value_format='JSON');
        CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (kafka_topic='t', value_format='JSON');
    """)
    with _failing(KsqlException) as refused:
        for parsed in engine.parse(text):
            engine.execute(engine.prepare(parsed), parsed.text)
    assert all(str(each) for each in refused)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FORM s;", "line 1:10: Syntax Error\nExpecting 'FROM'\nDid you mean 'FROM'"),
        ("SELECT n FROM s WHER n = 1;", "Did you mean 'WHERE' instead of 'WHER'?"),
        ("SHOW STREAMZ;", "Did you mean 'STREAMS' instead of 'STREAMZ'?"),
        ("CREAT STREAM x;", "Did you mean 'CREATE'?"),
        ("CREATE STREAM x AS SELECT * FROM orderz;", "ORDERZ does not exist. Did you mean ORDERS?"),
        ("CREATE STREAM x AS SELECT id, amuont FROM orders;", "'AMUONT' cannot be resolved. Did "
         "you mean AMOUNT?"),
        ("DROP STREAM orderss;", "Did you mean ORDERS?"),
        ("DESCRIBE oders;", "Did you mean ORDERS?"),
        ("CREATE STREAM x AS SELECT id, UCAES('a') AS a FROM orders;", "Did you mean UCASE?"),
    ],
)  # fmt: skip
def test_the_nearest_name_is_named(sql: str, said: str) -> None:
    engine = KsqlEngine(functions=built_in(), formats=format_for, topics=MemoryTopics())
    engine.execute_script(
        "CREATE STREAM orders (id STRING KEY, amount INT) "
        "WITH (kafka_topic='orders', value_format='JSON');"
    )
    with pytest.raises(KsqlException) as caught:
        engine.execute_script(sql)
    error = caught.value
    shown = error.unlogged if isinstance(error, KsqlStatementException) else str(error)
    assert said in shown
