"""Variables in scripts: what they become, and what they cannot become."""

from __future__ import annotations

import pytest

from moldau.sql.errors import ParseFailedException
from moldau.sql.syntax.parser import parse, prepare
from moldau.sql.syntax.statements import DefineVariable, UndefineVariable
from moldau.sql.syntax.variables import substitute


@pytest.mark.parametrize(
    ("sql", "variables", "result"),
    [
        ("SELECT ${col} FROM ${src};", {"col": "a", "SRC": "b"}, "SELECT a FROM b;"),
        ("SELECT ${n} FROM s;", {"n": "-1.5e3"}, "SELECT -1.5e3 FROM s;"),
        ("SELECT ${t} FROM s;", {"t": "'it''s'"}, "SELECT 'it''s' FROM s;"),
        ("SELECT * FROM ${`s`};", {"s": "x"}, "SELECT * FROM ${`s`};"),
        ("SELECT ${unknown} FROM s;", {"x": "1"}, "SELECT ${unknown} FROM s;"),
        ("WHERE a = 'x-${v}';", {"v": "it's"}, "WHERE a = 'x-it''s';"),
        ("WHERE a = '$${v} ${v}';", {"v": "x"}, "WHERE a = '${v} x';"),
        ("DEFINE topic = 't'; PRINT ${topic};", {}, "DEFINE topic = 't'; PRINT t;"),
        ("SELECT `a ${v}` FROM s;", {"v": "b`c"}, "SELECT `a b``c` FROM s;"),
        ("-- ${v}\nSELECT 1;", {"v": "2"}, "-- ${v}\nSELECT 1;"),
        (
            "DEFINE a = 'x'; DEFINE b = '${a}y'; SELECT ${b}; UNDEFINE a; SELECT ${a};",
            {},
            "DEFINE a = 'x'; DEFINE b = 'xy'; SELECT xy; UNDEFINE a; SELECT ${a};",
        ),
    ],
)
def test_variables_are_replaced_before_parsing(
    sql: str, variables: dict[str, str], result: str
) -> None:
    assert substitute(sql, variables) == result


@pytest.mark.parametrize(
    "value", ["a; DROP STREAM b", "a b", "x, y", "'a' OR true", "'a", "1x", ""]
)
def test_a_variable_is_one_name_or_one_literal(value: str) -> None:
    with pytest.raises(ParseFailedException, match="Illegal argument at line: 2, col: 8"):
        substitute("-- first\nSELECT ${v} FROM s;", {"v": value})


def test_variables_may_have_the_names_of_keywords() -> None:
    defined, undefined = (prepare(each) for each in parse("DEFINE topic = 't'; UNDEFINE topic;"))
    assert isinstance(defined, DefineVariable)
    assert isinstance(undefined, UndefineVariable)
    assert (defined.name, undefined.name) == ("topic", "topic")
