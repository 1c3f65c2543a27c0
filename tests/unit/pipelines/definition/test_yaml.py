"""Pipelines written in YAML: what they become, and how each mistake is told."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from moldau.pipelines import DefinitionError, Pipeline, PipelineError
from moldau.pipelines.definition import (
    Cast,
    Drop,
    Python,
    Rename,
    RowStep,
    Sql,
    Table,
    Topic,
    Trigger,
    Watermark,
)
from moldau.pipelines.definition.pipeline import loads

GOOD = """\
name: big-orders
source:
  topic: orders
  schema: "id STRING, amount DOUBLE, at TIMESTAMP"
  startingOffsets: earliest
  maxOffsetsPerTrigger: 1000
steps:
  - watermark: {column: at, delay: 10 minutes}
  - sql: |
      SELECT id,
             amount
      FROM input
    name: amounts
  - cast: {amount: "DECIMAL(10, 2)"}
  - rename: {amount: total}
  - drop: [at]
  - python: steps.py:enrich
    args: {factor: 2}
  - row: steps.py:check
    schema: "id STRING, total DOUBLE"
sink: {topic: big-orders, key: id, headers: {origin: "'orders'"}}
trigger: 1 second
outputMode: append
dead_letter: orders-dead-letter
connector: auto
kafka: {isolation.level: read_committed}
"""
STEPS = """\
import rates


def enrich(frame, factor=1):
    return frame


def check(row):
    return rates.of(row)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "rates.py").write_text("def of(row):\n    return row\n")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "orders.yaml"
    path.write_text(text)
    return path


def mistakes(text: str, folder: Path | None = None) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        loads(dedent(text), file="orders.yaml", base=folder)
    return str(caught.value).splitlines()


def test_every_part_is_understood(folder: Path) -> None:
    pipeline = Pipeline.load(write(folder, GOOD))
    source = pipeline.sources["input"]
    assert isinstance(source, Topic)
    assert source.topic == "orders"
    assert source.format == "json"
    assert source.settings == {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "1000"}
    assert [type(step) for step in pipeline.steps] == [
        Watermark,
        Sql,
        Cast,
        Rename,
        Drop,
        Python,
        RowStep,
    ]
    assert pipeline.steps[1].name == "amounts"
    assert pipeline.trigger == Trigger("1 second")
    assert pipeline.kafka == {"isolation.level": "read_committed"}
    assert pipeline.base == str(folder)
    assert not pipeline.finite


def test_comes_back_from_json_as_it_was(folder: Path) -> None:
    pipeline = Pipeline.load(write(folder, GOOD))
    stored = json.loads(json.dumps(pipeline.to_json()))
    (folder / "steps.py").unlink()
    (folder / "rates.py").unlink()
    restored = Pipeline.from_json(stored)
    assert restored == pipeline
    assert restored.to_json() == stored
    step = restored.steps[6]
    assert isinstance(step, RowStep)
    assert step.function.load()({"id": "a"}) == {"id": "a"}


def test_lines_are_those_of_the_file(folder: Path) -> None:
    pipeline = Pipeline.from_json(Pipeline.load(write(folder, GOOD)).to_json())
    assert [str(step.place) for step in pipeline.steps] == [
        "orders.yaml:8",
        "orders.yaml:10",  # the first line of the SQL itself, not of `sql: |`
        "orders.yaml:14",
        "orders.yaml:15",
        "orders.yaml:16",
        "orders.yaml:17",
        "orders.yaml:19",
    ]
    assert str(pipeline.sink.place) == "orders.yaml:21"


@pytest.mark.parametrize(
    ("sink", "kind"),
    [
        ("{parquet: out, partitionBy: [day]}", "parquet"),
        ("{json: out}", "json"),
        ("{csv: out}", "csv"),
        ("{delta: out, upsert: [id]}", "delta"),
        ("{iceberg: out, table: db.orders}", "iceberg"),
        ("{jdbc: 'jdbc:postgresql://db/shop', table: orders, upsert: [id]}", "jdbc"),
    ],
)
def test_tables_are_told_by_their_kind(sink: str, kind: str) -> None:
    pipeline = loads(f"name: p\nsource: {{topic: t, format: string}}\nsink: {sink}\n")
    assert isinstance(pipeline.sink, Table)
    assert pipeline.sink.kind == kind
    assert Pipeline.from_json(pipeline.to_json()) == pipeline


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "source: {topic: t, format: string}\nsink:\n  tpoic: out",
            "orders.yaml:4:3: sink: unknown option 'tpoic' (did you mean 'topic'?)",
            id="misspelt topic",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsink:\n  topic: out\n  kay: id",
            "orders.yaml:5:3: sink: unknown option 'kay' (did you mean 'key'?)",
            id="misspelt option",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsink: {parquet: out, partitonBy: [a]}",
            "orders.yaml:3:22: sink: unknown option 'partitonBy' (did you mean 'partitionBy'?)",
            id="misspelt option of a table",
        ),
        pytest.param(
            "source: {topic: t}\nsink: {topic: out}",
            "orders.yaml:2:1: source: format 'json' needs a schema: columns as DDL, e.g. "
            'schema: "id STRING, amount DOUBLE" (format: string gives the value as it is)',
            id="json without a schema",
        ),
        pytest.param(
            "source: {topic: t, format: jsn, schema: a INT}\nsink: {topic: out}",
            "orders.yaml:2:20: source: unknown format 'jsn' (did you mean 'json'?)",
            id="unknown format",
        ),
        pytest.param(
            "source: {topic: t, format: string, startingOffsets: earlist}\nsink: {topic: out}",
            "orders.yaml:2:36: source: Option 'startingOffsets': Expected 'earliest', 'latest'",
            id="a value that the source refuses",
        ),
        pytest.param(
            "source: {topic: t, pattern: t.*, format: string}\nsink: {topic: out}",
            "orders.yaml:2:1: source: exactly one of topic, topics, pattern and assign, "
            "not topic and pattern",
            id="two ways to name topics",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsteps:\n  - sql: SELECT 1\n  - sqll: x\n"
            "sink: {topic: out}",
            "orders.yaml:5:5: steps[1]: unknown step 'sqll' (did you mean 'sql'?)",
            id="unknown step",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsteps:\n  - python: steps.py:enrihc\n"
            "sink: {topic: out}",
            "orders.yaml:4:5: python: steps.py has no function 'enrihc'; it has enrich, check",
            id="unknown function",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsteps:\n  - row: other.py:check\n"
            "sink: {topic: out}",
            "orders.yaml:4:5: row: there is no file other.py in",
            id="missing file",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsink: {topic: out}\ntrigger: soon",
            "orders.yaml:4:1: trigger: expected '1 second', 'available now' or 'once', got 'soon'",
            id="trigger",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsteps:\n"
            "  - watermark: {column: at, delay: soon}\nsink: {topic: out}",
            "orders.yaml:4:5: steps[0]: watermark: delay 'soon' is no time (e.g. 10 minutes)",
            id="delay",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsink: {topic: out}\nname: q",
            "orders.yaml:4:1: 'name': given twice",
            id="given twice",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsink: {topic: out}\ndead_letter: t",
            "orders.yaml:4:1: dead_letter: is also the source, so bad records would be read again "
            "and again",
            id="dead letters in a circle",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nconnector: kafka\n"
            "sink: {topic: out, exactlyOnce: true}",
            "orders.yaml:4:20: sink: connector 'kafka' is at least once (connector: auto or "
            "moldau)",
            id="exactly once where that cannot be",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsink: {topic: out\n",
            "orders.yaml:4:1: not YAML: expected ',' or '}'",
            id="not YAML",
        ),
        pytest.param(
            "source: {topic: t, format: string}\nsink: {parquet: out}\noutputMode: update",
            "orders.yaml:4:1: outputMode: a parquet sink cannot take output mode 'update'",
            id="output mode",
        ),
        pytest.param(
            "sources: {a: {topic: t, format: string}, b: {topic: u, format: string}}\n"
            "steps:\n  - drop: value\nsink: {topic: out}",
            "orders.yaml:4:5: steps[0]: with several sources the first step must name its "
            "source (from: a)",
            id="first step of several sources",
        ),
    ],
)
def test_mistakes_are_told_by_their_line(folder: Path, text: str, expected: str) -> None:
    (line,) = mistakes("name: p\n" + text, folder)
    assert line.startswith(expected)


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    text = """\
        name: p
        sorce: {topic: t}
        steps:
          - sqll: SELECT 1
        sink: {topic: out, ky: id}
        """
    assert mistakes(text, folder) == [
        "orders.yaml:2:1: unknown option 'sorce' (did you mean 'source'?)",
        "orders.yaml:4:5: steps[0]: unknown step 'sqll' (did you mean 'sql'?)",
        "orders.yaml:5:20: sink: unknown option 'ky' (did you mean 'key'?)",
    ]


def test_mistakes_of_every_kind_are_told_at_once(folder: Path) -> None:
    """Of how it is written, of its values, of its functions and of what contradicts."""
    text = """\
        name: a b
        source:
          topic: t
          format: jsn
          schema: id INT
        outputMode: updat
        steps:
          - row: steps.py:chek
          - watermark: {column: at, delay: soon}
        sink: {parquet: out, partitonBy: [a]}
        errors: stop
        triger: 1 second
        """
    assert [line.partition(": ")[0] for line in mistakes(text, folder)] == [
        "orders.yaml:1:1",
        "orders.yaml:4:3",
        "orders.yaml:6:1",
        "orders.yaml:8:5",
        "orders.yaml:9:5",
        "orders.yaml:10:22",
        "orders.yaml:11:1",
        "orders.yaml:12:1",
    ]


def test_variables_are_put_in() -> None:
    text = "name: p\nsource: {topic: '${in}', format: string}\nsink: {parquet: '${folder}/x'}\n"
    pipeline = loads(text, file="p.yaml", variables={"in": "orders", "folder": "/data"})
    assert str(pipeline.sources["input"]) == "orders"
    assert pipeline.sink.to_json()["parquet"] == "/data/x"
    with pytest.raises(DefinitionError, match=r"p.yaml:3:8: no variable 'folder' is given"):
        loads(text, file="p.yaml", variables={"in": "orders"})


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"no\.yaml: cannot be read: No such file"):
        Pipeline.load(tmp_path / "no.yaml")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    with pytest.raises(PipelineError, match=r"empty\.yaml: empty"):
        Pipeline.load(tmp_path / "empty.yaml")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1 second", {"processingTime": "1 second"}),
        ("500ms", {"processingTime": "500 milliseconds"}),
        ("available now", {"availableNow": True}),
        ({"availableNow": True}, {"availableNow": True}),
        ("once", {"once": True}),
        ({"processingTime": "2 minutes"}, {"processingTime": "2 minutes"}),
        (None, {"processingTime": "0 seconds"}),
    ],
)
def test_triggers(written: Any, expected: dict[str, Any]) -> None:
    from moldau.pipelines.definition.triggers import trigger_of

    trigger = trigger_of(written)
    assert trigger.for_spark() == expected
    assert trigger_of(trigger.to_json()) == trigger
    assert trigger.finite == ("processingTime" not in expected)
