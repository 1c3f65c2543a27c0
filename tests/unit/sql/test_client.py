"""Parameters, the input of the shell, what it completes, and what it shows."""

from __future__ import annotations

import io
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau import sql
from moldau.cli.services.sql_shell.completion import Catalogue, complete
from moldau.cli.services.sql_shell.live import Board
from moldau.cli.services.sql_shell.printing import Printer
from moldau.cli.services.sql_shell.splitting import Chart, chart_of, client_command, statements
from moldau.sql.client.binding import bind, literal
from moldau.sql.syntax.expressions import StringLiteral
from moldau.sql.syntax.parser import parse_expression

KNOWN = Catalogue(
    {"ORDERS": ["ID", "AMOUNT"], "USERS": ["ID", "NAME"]},
    ["ABS", "UCASE"],
    ["CSAS_X_1"],
    ["orders"],
)


def test_the_module_is_cheap_to_import() -> None:
    code = (
        "import sys; from moldau import sql; print(len([m for m in sys.modules if 'moldau' in m]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 3


def test_the_module_is_one_of_db_api() -> None:
    assert (sql.apilevel, sql.threadsafety, sql.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(sql.ProgrammingError, sql.DatabaseError)
    assert issubclass(sql.InterfaceError, sql.Error)
    assert sql.TimestampFromTicks(0).year == 1970
    missing = [name for name in sql.__all__ if not hasattr(sql, name)]
    assert missing == []


def test_placeholders_in_texts_names_and_comments_are_not_meant() -> None:
    text = "SELECT '?', `?`, a := ?, ':x' -- ? :x\n/* ? */ FROM s"
    assert bind(text, [1]) == text.replace("a := ?", "a := 1")
    assert bind("WHERE a = :a AND b = :ab", {"a": 1, "ab": "x"}) == "WHERE a = 1 AND b = 'x'"
    assert bind("a=?", None) == "a=?"
    with pytest.raises(sql.InterfaceError, match="2 parameters"):
        bind("a = ?", [1, 2])
    with pytest.raises(sql.InterfaceError, match="no parameter :b"):
        bind("a = :b", {"a": 1})
    with pytest.raises(sql.InterfaceError, match="not a text"):
        bind("a = ?", "x")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_one_literal(text: str) -> None:
    assert parse_expression(literal(text)) == StringLiteral(text)


@given(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.decimals(
            allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000
        ),
    )
)
def test_any_number_is_one_literal(number: int | float | Decimal) -> None:
    found = parse_expression(f"0 - {literal(number)}")
    assert found.right.value == number  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [[], {}, object(), Decimal("NaN"), "\ud800", 2**63])
def test_what_cannot_be_written_is_refused(value: object) -> None:
    with pytest.raises(sql.DataError):
        literal(value)


def test_input_is_split_at_semicolons() -> None:
    done, rest = statements("SELECT ';' FROM a; -- ;\nSELECT 1; SELECT")
    assert [each.split()[0] for each in done] == ["SELECT", "--"]
    assert rest.strip() == "SELECT"
    assert statements("-- nothing\n")[1] == ""
    command = client_command("run  script 'a b.sql';")
    assert command is not None
    assert (command.name, command.argument) == ("RUN SCRIPT", "'a b.sql'")
    assert client_command("output json").argument == "json"  # type: ignore[union-attr]
    assert client_command("SET CLI WRAP OFF;").name == "CLI"  # type: ignore[union-attr]
    assert client_command("SELECT * FROM server;") is None
    assert chart_of("chart total by id SELECT * FROM t;") == Chart(
        "SELECT * FROM t;", "TOTAL", "ID"
    )
    assert chart_of("live select 1;") == Chart("select 1;", None, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT * FROM ", ["ORDERS", "USERS"]),
        ("SELECT * FROM or", ["ORDERS"]),
        ("SELECT o.ID FROM orders o JOIN users AS u ON o.id = u.", ["ID", "NAME"]),
        ("DESCRIBE FUNCTION u", ["UCASE"]),
        ("SHOW TA", ["TABLES"]),
        ("TERMINATE ", ["CSAS_X_1", "ALL"]),
        ("DROP STREAM o", ["ORDERS"]),
        ("PRINT ", ["'orders'"]),
        ("RUN ", []),
        ("SELECT 1; SHOW STR", ["STREAMS"]),
    ],
)
def test_completion(text: str, words: list[str]) -> None:
    found, typed = complete(text, KNOWN)
    assert typed == len(text) - len(
        text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    )
    if words:
        assert found[: len(words)] == words


def test_columns_of_the_sources_that_are_named() -> None:
    found, _ = complete("SELECT * FROM orders WHERE A", KNOWN)
    assert found[:2] == ["AMOUNT", "ABS"]
    assert "NAME" not in complete("INSERT INTO orders (", KNOWN)[0]


def test_rows_in_all_forms() -> None:
    lines = [b'["a, b", 1]', b'["c\\nd", null]']
    shown = {}
    for output in ("TABULAR", "JSON", "CSV", "PLAIN"):
        out = io.StringIO()
        printer = Printer(out, output)  # type: ignore[arg-type]
        printer.column_width = 8
        assert printer.rows(["NAME", "N"], ["STRING", "INTEGER"], lines) == 2
        shown[output] = out.getvalue()
    assert shown["CSV"] == 'NAME,N\n"a, b",1\n"c\nd",null\n'
    assert shown["PLAIN"].splitlines()[:2] == ["NAME\tN", "a, b\t1"]
    assert '{"row":{"columns":["a, b", 1]}}' in shown["JSON"]
    assert shown["TABULAR"].splitlines()[1:4] == [
        "| NAME     | N        |",
        "+----------+----------+",
        "| a, b     | 1        |",
    ]


def test_long_cells_are_wrapped_or_cut() -> None:
    out = io.StringIO()
    printer = Printer(out, "TABULAR")
    printer.column_width = 8
    printer.rows(["X"], ["STRING"], [b'["abcdefghijkl"]'])
    assert "| abcdefgh |\n| ijkl     |" in out.getvalue()
    printer.wrap = False
    printer.rows(["X"], ["STRING"], [b'["abcdefghijkl"]'])
    assert "| abcde... |" in out.getvalue()


def test_a_live_table_keeps_the_last_row_of_a_key() -> None:
    board = Board(["ID", "N"], Chart("", None, None), ["ID"])
    for row in (["a", 1], ["b", 2], ["a", 3]):
        board.add(row)
    table = board.shown(80, 24).renderables[0]
    assert table.row_count == 2
    assert list(table.columns[1].cells) == ["3", "2"]


def test_charts() -> None:
    bars = Board(["ID", "N"], Chart("", "N", "ID"), [])
    for row in (["a", 1], ["b", 2], ["a", 4]):
        bars.add(row)
    out = io.StringIO()
    Printer(out, "TABULAR").render(bars.shown(41, 24))
    a, b = out.getvalue().splitlines()[1:]
    assert a.count("█") == 2 * b.count("█") > 0
    assert a.endswith(" 4")
    line = Board(["N"], Chart("", "N", None), [])
    for value in (0, 7, None, 3.5):
        line.add([value])
    out = io.StringIO()
    Printer(out, "TABULAR").render(line.shown(40, 24))
    assert out.getvalue().splitlines() == ["N: 0 to 7, last 3.5", "▁█ ▅"]
    with pytest.raises(sql.ProgrammingError, match=r"no column X\. It has: N"):
        Board(["N"], Chart("", "X", None), [])
