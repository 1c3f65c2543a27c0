"""Which statements let bad records through, and how."""

from __future__ import annotations

import pytest

from moldau.pipelines.build.machine.sql_text import mentions, plain_select


@pytest.mark.parametrize(
    ("sql", "name", "found"),
    [
        ("SELECT a FROM input", "input", True),
        ("SELECT a FROM INPUT", "input", True),
        ("SELECT a FROM `input`", "input", True),
        ("SELECT 'input' FROM other", "input", False),
        ("SELECT a FROM other -- not input", "input", False),
        ("SELECT a /* input */ FROM other", "input", False),
        ("SELECT a FROM inputs", "input", False),
        ("SELECT _offset FROM input", "_offset", True),
    ],
)
def test_names_in_a_statement(sql: str, name: str, found: bool) -> None:
    assert mentions(sql, name) is found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, sum(amount) FROM input GROUP BY id",
        "SELECT DISTINCT id FROM input",
        "SELECT a.id FROM input a JOIN other b ON a.id = b.id",
        "SELECT id FROM input UNION ALL SELECT id FROM other",
        "SELECT explode(items) FROM input",
        "SELECT id FROM input, other",
        "SELECT id FROM (SELECT * FROM input)",
        "SELECT id FROM other",
        "WITH x AS (SELECT * FROM input) SELECT * FROM x",
        "SELECT raise_error('no') FROM input",
        "SELECT a.*, b.* FROM input",
        "SELECT 1",
        "",
    ],
)
def test_statements_that_are_not_plain(sql: str) -> None:
    assert plain_select(sql, "input") is None


@pytest.mark.parametrize(
    ("sql", "result", "expected"),
    [
        pytest.param(
            "SELECT id, amount FROM input",
            ["id", "amount"],
            "SELECT id, amount, _key, __error FROM input",
            id="columns cannot fail",
        ),
        pytest.param(
            "SELECT 1 / amount AS part FROM input WHERE amount > 1 OR id = 'from'; ",
            ["part"],
            "SELECT CASE WHEN __error IS NULL THEN (1 / amount\n) END AS `part`, _key, __error "
            "FROM input WHERE CASE WHEN __error IS NOT NULL THEN true "
            "ELSE (amount > 1 OR id = 'from'\n) END",
            id="expressions and conditions are not asked for bad records",
        ),
        pytest.param(
            "SELECT *, upper(id) big FROM input i -- all",
            ["id", "_key", "big"],
            "SELECT *, CASE WHEN __error IS NULL THEN (upper(id)\n) END AS `big`, __error "
            "FROM input i",
            id="a star, an alias without AS, a comment",
        ),
        pytest.param(
            "select upper(id) from input as i",
            ["upper(id)"],
            "SELECT CASE WHEN __error IS NULL THEN (upper(id)\n) END AS `upper(id)`, _key, "
            "__error FROM input as i",
            id="an expression keeps the name that Spark gives it",
        ),
    ],
)
def test_bad_records_pass_plain_statements(sql: str, result: list[str], expected: str) -> None:
    select = plain_select(sql, "input")
    assert select is not None
    assert select.with_columns(["_key", "__error"], result=result, guard=True) == expected


def test_without_bad_records_only_columns_are_added() -> None:
    select = plain_select("SELECT id + 1 AS n FROM input WHERE id > 1", "input")
    assert select is not None
    assert (
        select.with_columns(["_topic"], result=["n"], guard=False)
        == "SELECT id + 1 AS n, _topic FROM input WHERE id > 1"
    )


def test_columns_that_are_named_as_they_are() -> None:
    select = plain_select("SELECT *, i._key, _offset AS place FROM input i", "input")
    assert select is not None
    assert select.names("_key")
    assert not select.names("_offset")
    assert not select.names("_topic")
