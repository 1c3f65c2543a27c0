"""`moldau pipelines validate`: all that can be found without Spark and without data."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from moldau.cli.main import main
from moldau.pipelines import PipelineError
from moldau.pipelines.validation import validate
from support.pipeline_sql import ACCEPTED, REFUSED, SCHEMA

EXAMPLES = Path(__file__).parents[4] / "examples"
HEAD = f"""\
name: p
source: {{topic: orders, schema: "{SCHEMA}"}}
"""


def found(folder: Path, text: str) -> list[str]:
    path = folder / "p.yaml"
    path.write_text(dedent(text))
    return [str(mistake) for mistake in validate(path).mistakes]


def with_sql(folder: Path, sql: str, *, key: str = "1") -> list[str]:
    path = folder / "p.yaml"
    text = json.dumps(sql)
    path.write_text(f"{HEAD}steps:\n  - sql: {text}\nsink: {{topic: out, key: {key}}}\n")
    return [f"{one.message} ({one.hint})" for one in validate(path).mistakes]


def test_all_mistakes_of_a_file_have_their_own_line_and_column(tmp_path: Path) -> None:
    text = """\
        name: big-orders
        source:
          topic: orders
          schema: "id STRING NOT NULL, amount DUBLE, at TIMESTAMP"
        steps:
          - sql: |
              SELECT id, amout, at
              FROM input
          - sql: >-
              SELEC id
              FROM input
          - cast: {id: BIGNT}
          - sql: SELECT id
                 FROM orders
        sink: {topic: big-orders, key: nosuch, headers: {a: "upper(idd)"}}
        outputMode: appendd
        """
    assert found(tmp_path, text) == [
        "p.yaml:4:39: source: schema: unknown type 'DUBLE' (did you mean DOUBLE?)",
        "p.yaml:7:18: steps[0]: sql: there is no column 'amout' (did you mean amount?)",
        "p.yaml:10:7: steps[1]: sql: unknown word 'SELEC' (did you mean SELECT?)",
        "p.yaml:12:16: steps[2]: cast: id: unknown type 'BIGNT' (did you mean BIGINT?)",
        "p.yaml:14:15: steps[3]: sql: there is no view 'orders' (there is input)",
        "p.yaml:15:32: sink: key: there is no column 'nosuch' (there is id)",
        "p.yaml:15:60: sink: headers: there is no column 'idd' (did you mean id?)",
        "p.yaml:16:1: outputMode: unknown mode 'appendd' (did you mean 'append'?)",
    ]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("drop: [nosuch]", "p.yaml:4:12: steps[0]: drop: there is no column 'nosuch'"),
        ("rename: {nosuch: b}", "p.yaml:4:14: steps[0]: rename: there is no column 'nosuch'"),
        ("cast: {nosuch: INT}", "p.yaml:4:12: steps[0]: cast: there is no column 'nosuch'"),
        (
            "watermark: {column: nosuch, delay: 1 minute}",
            "p.yaml:4:25: steps[0]: watermark: there is no column 'nosuch'",
        ),
    ],
)
def test_columns_of_other_steps(tmp_path: Path, step: str, expected: str) -> None:
    (line,) = found(tmp_path, f"{HEAD}steps:\n  - {step}\nsink: {{topic: out}}\n")
    assert line.startswith(expected)


def test_columns_are_followed_from_step_to_step(tmp_path: Path) -> None:
    text = f"""{HEAD}steps:
  - rename: {{amount: total}}
  - drop: [tags]
  - sql: SELECT *, total * 2 AS twice FROM input
    name: twice
  - sql: SELECT id, twice, tags, amount, _offset FROM twice
  - sql: SELECT id FROM twice
sink: {{parquet: out, partitionBy: [twice]}}
"""
    assert [line.partition(" (")[0] for line in found(tmp_path, text)] == [
        "p.yaml:8:28: steps[3]: sql: there is no column 'tags'",
        "p.yaml:8:34: steps[3]: sql: there is no column 'amount'",
        "p.yaml:10:36: sink: partitionBy: there is no column 'twice'",
    ]


@pytest.mark.parametrize(
    "step",
    [
        "sql: SELECT id, amout, at FROM input",
        "sql: SELECT *, amout * 2 AS twice FROM input",
        "sql: SELECT id, nosuch_one FROM input WHERE nosuch_two > 1",
        "sql: SELECT i.idd, at FROM input i",
        "explode: tagz",
        "explode: id",
        "rename: {amout: total}",
        "drop: [amout]",
    ],
)
def test_what_comes_after_a_mistake_is_checked(tmp_path: Path, step: str) -> None:
    """A mistake in a step must not hide another one in the sink, nor be reported twice."""
    text = f"{HEAD}steps:\n  - {step}\nsink: {{topic: out, key: KEY}}\n"
    *first, last = found(tmp_path, text.replace("KEY", "nosuch"))
    assert first
    assert all(line.startswith("p.yaml:4:") for line in first)
    assert last.startswith("p.yaml:5:25: sink: key: there is no column 'nosuch' (there is ")
    assert "amout" not in last
    meant = "total" if "total" in step else "id"
    assert found(tmp_path, text.replace("KEY", meant)) == first


def test_a_corrected_name_is_not_reported_again(tmp_path: Path) -> None:
    text = f"""{HEAD}steps:
  - sql: SELECT id, amout FROM input
  - sql: SELECT *, amount * 2 AS twice, amout AS same FROM input
  - drop: [nosuch]
sink: {{topic: out, key: "concat(amount, twice)"}}
"""
    assert found(tmp_path, text) == [
        "p.yaml:4:21: steps[0]: sql: there is no column 'amout' (did you mean amount?)",
        "p.yaml:6:12: steps[2]: drop: there is no column 'nosuch' (there is id, twice, same)",
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    REFUSED,
)
def test_mistakes_in_sql(tmp_path: Path, sql: str, expected: str) -> None:
    (line,) = with_sql(tmp_path, sql)
    assert expected in line


@pytest.mark.parametrize(
    "sql",
    ACCEPTED,
)
def test_what_spark_accepts_is_accepted(tmp_path: Path, sql: str) -> None:
    assert with_sql(tmp_path, sql) == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("id STRING amount DOUBLE", ["expected ',' or NOT NULL, found 'amount'"]),
        ("id", ["column 'id' has no type"]),
        ("id STRING,", ["expected a column after ',', found the end of the statement"]),
        ("a DUBLE, b ARRAY<STRNG>", ["unknown type 'DUBLE'", "unknown type 'STRNG'"]),
        ("a INT, b STRUCT<a: INT>, a STRING", ["there is a column 'a' already"]),
        ("a DECIMAL(40, 2)", ["a decimal has at most 38 digits"]),
        ("_key STRING", ["'_key' is the name of a column that every record has"]),
        ("`a b` INT COMMENT 'x', c: STRUCT<d: DECIMAL(10, 2), e MAP<STRING, ARRAY<INT>>>", []),
        ("at TIMESTAMP_NTZ NOT NULL, v VARCHAR(10), i INTERVAL DAY TO SECOND", []),
        ("struct<a: int>", []),
    ],
)
def test_schemas(tmp_path: Path, schema: str, expected: list[str]) -> None:
    text = f"name: p\nsource:\n  topic: t\n  schema: {json.dumps(schema)}\nsink: {{topic: out}}\n"
    lines = found(tmp_path, text)
    assert len(lines) == len(expected)
    for line, each in zip(lines, expected, strict=True):
        assert each in line


def test_what_is_not_known_is_not_reported(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("def f(frame):\n    return frame\n")
    text = """\
        name: p
        sources:
          orders: {topic: orders, schema: "id STRING"}
          customers: {delta: customers, streaming: false}
        steps:
          - sql: SELECT o.id, c.city, country FROM orders o JOIN customers c ON o.id = c.id
          - python: steps.py:f
          - sql: SELECT anything FROM input
        sink: {topic: out, key: anything}
        """
    path = tmp_path / "p.yaml"
    path.write_text(dedent(text))
    result = validate(path)
    assert result.mistakes == ()
    assert "the columns of sources.customers" in result.unchecked
    assert "the columns after steps[1] (a Python function)" in result.unchecked


def test_the_examples_are_right() -> None:
    files = sorted(EXAMPLES.glob("**/*.yaml"))
    assert len(files) > 10
    shown = {"folder": "x", "data": "x"}
    for path in files:
        if path.parent.name == "pipelines":
            assert (
                validate(path, variables=shown if "${" in path.read_text() else None).mistakes == ()
            )


def test_spark_has_the_last_word(tmp_path: Path) -> None:
    """With a server, what Spark accepts is right, and what it refuses is added."""
    path = tmp_path / "p.yaml"
    path.write_text(f"{HEAD}steps:\n  - sql: SELECT idd FROM input\nsink: {{topic: out}}\n")
    accepted = validate(path, analyse=lambda pipeline: None)
    assert accepted.mistakes == ()
    assert accepted.checked == "everything, by Spark's own analysis"

    def refuse(pipeline: object) -> None:
        raise PipelineError("no such topic", where="p.yaml:2")

    lines = [str(one) for one in validate(path, analyse=refuse).mistakes]
    assert lines[0] == "p.yaml:2: no such topic"
    assert lines[1].startswith("p.yaml:4:17: steps[0]: sql: there is no column 'idd'")


def test_the_command_says_what_was_and_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(f"{HEAD}sink: {{topic: out, key: id}}\n")
    assert main(["pipelines", "validate", "p.yaml"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert "Checked: options, functions, schemas, SQL syntax and names of columns." in last
    assert "Not checked: types of expressions" in last
    Path("p.yaml").write_text(f"{HEAD}sink: {{topic: out, key: nosuch, kay: id}}\n")
    assert main(["pipelines", "validate", "p.yaml"]) == 1
    shown = capsys.readouterr().err.splitlines()
    assert [line for line in shown if line.startswith("p.yaml:3")] == [
        "p.yaml:3:25: sink: key: there is no column 'nosuch' (there is id, amount, at, tags)",
        "p.yaml:3:33: sink: unknown option 'kay' (did you mean 'key'?)",
    ]
    assert shown[-1].startswith("p.yaml: 2 mistakes. Checked: ")
    assert main(["pipelines", "validate", "p.yaml", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [one["where"] for one in report["mistakes"]] == ["p.yaml:3:25", "p.yaml:3:33"]
