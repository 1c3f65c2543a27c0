"""Spark's failures in the user's terms. The texts in `captured` are Spark's own."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from moldau.pipelines import DefinitionError, Pipeline, PipelineError
from moldau.pipelines.definition.pipeline import loads
from moldau.pipelines.machine.explaining import explain, short

CAPTURED = Path(__file__).with_name("captured")
YAML = """\
name: big-orders
source: {topic: orders, schema: "id STRING, amount DOUBLE"}
steps:
  - sql: |
      SELECT id,
       cast(id as int) x FROM input
sink: {topic: big-orders}
"""
BAD_RECORD = (
    "orders.yaml:2: bad record orders-0 at offset 2: the value is not a JSON object: nope "
    "(dead_letter: TOPIC sends such records there, errors: ignore leaves them out)"
)
CAST = (
    'orders.yaml:6: The value \'a\' of the type "STRING" cannot be cast to "INT" because it is '
    "malformed. (position 2)"
)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return loads(YAML, file="orders.yaml")


def captured(name: str) -> str:
    return (CAPTURED / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "expected", "retriable"),
    [
        ("bad-record", BAD_RECORD, False),
        ("bad-record-awaited", BAD_RECORD, False),
        (
            "row-step",
            "steps.py:25: in check: KeyError: 'amunt' (record orders-0 at offset 0) "
            "(dead_letter: TOPIC sends such records there, errors: ignore leaves them out)",
            False,
        ),
        ("udf", "steps.py:34: in f: ZeroDivisionError: float division by zero", False),
        ("cast", CAST, False),
        ("cast-awaited", CAST, False),
        (
            "output-mode",
            "orders.yaml:1: Invalid streaming output mode: append. This output mode is not "
            "supported for streaming aggregations without watermark on streaming "
            "DataFrames/DataSets. (outputMode: update, or a watermark step before the grouping)",
            False,
        ),
        (
            "no-topic",
            "orders.yaml:2: source: topic 'orders' does not exist at 127.0.0.1:41783 (correct its "
            "name, or create it: moldau topics --create --topic orders --bootstrap-server "
            "127.0.0.1:41783)",
            True,
        ),
        (
            "no-broker",
            "orders.yaml:1: Metadata was not done within 3000 ms: no node of the cluster can be "
            "reached: Metadata to node -1 at 127.0.0.1:1 is not sent: [Errno 111] Connection "
            "refused (is one running at 127.0.0.1:1?)",
            True,
        ),
    ],
)
def test_failures_of_running_queries(
    pipeline: Pipeline, name: str, expected: str, retriable: bool
) -> None:
    text = captured(name)
    error = explain(text, pipeline)
    assert str(error) == expected
    assert error.retriable is retriable
    assert error.detail == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "unknown-column",
            "orders.yaml:6: A column, variable, or function parameter with name `amout` cannot be "
            "resolved. Did you mean one of the following? [`amount`, `id`, `_key`, `_offset`, "
            "`_topic`]. (position 1)",
        ),
        (
            "syntax",
            "orders.yaml:6: Syntax error at or near 'input': extra input 'input'. (position 12)",
        ),
        (
            "unknown-view",
            "orders.yaml:6: The table or view `inputt` cannot be found. (position 13) "
            "(there are input)",
        ),
        (
            "types",
            'orders.yaml:6: Cannot resolve "(amount + array(1))" due to data type mismatch: the '
            "left and right operands of the binary operator have incompatible types "
            '("DOUBLE" and "ARRAY<INT>"). (position 1)',
        ),
        (
            "grouping",
            "orders.yaml:5: The query does not include a GROUP BY clause. Add GROUP BY or turn it "
            "into the window functions using OVER clauses. (position 0)",
        ),
    ],
)
def test_mistakes_in_sql_are_told_by_their_own_line(
    pipeline: Pipeline, name: str, expected: str
) -> None:
    error = explain(captured(name), pipeline, step=pipeline.steps[0])
    assert str(error) == expected
    assert not error.retriable


def test_nothing_of_java_is_shown(pipeline: Pipeline) -> None:
    for path in CAPTURED.glob("*.txt"):
        shown = str(explain(path.read_text(), pipeline))
        assert "\n" not in shown
        assert "org.apache" not in shown
        assert len(shown) < 700


def test_what_is_not_known_is_told_by_its_first_sentence() -> None:
    text = "java.lang.IllegalStateException: no space left\n\tat org.apache.spark.X.y(X.scala:1)"
    assert short(text) == "no space left"
    assert explain(text).retriable


def test_the_innermost_cause_is_told() -> None:
    text = (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times\n"
        "\tat org.apache.spark.X.y(X.scala:1)\n"
        "Caused by: org.apache.spark.SparkException: Task failed while writing rows\n"
        "Caused by: java.io.IOException: No space left on device\n"
    )
    assert str(explain(text)) == "No space left on device"


def test_chained_exceptions_are_told_by_their_cause() -> None:
    text = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: \
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 10, in main
    process()
  File "/home/ann/shop/steps.py", line 7, in rate
    return rates[currency]
           ~~~~~^^^^^^^^^^
KeyError: 'EUR'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ann/shop/steps.py", line 9, in rate
    raise RuntimeError("no rate")
RuntimeError: no rate
"""
    assert str(explain(text)) == "steps.py:7: in rate: KeyError: 'EUR'"


def test_a_service_that_does_not_answer_may_answer_later() -> None:
    text = """Traceback (most recent call last):
  File "/home/ann/shop/steps.py", line 7, in rate
    return fetch(currency)
ConnectionRefusedError: [Errno 111] Connection refused
"""
    assert explain(text).retriable


def test_errors_survive_pickling(pipeline: Pipeline) -> None:
    error = explain(captured("udf"), pipeline)
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == str(error)
    assert copied.detail == error.detail
    many = DefinitionError([PipelineError("a", where="p.yaml:1"), PipelineError("b")])
    assert str(pickle.loads(pickle.dumps(many))) == "p.yaml:1: a\nb"


def test_our_own_errors_stay_as_they_are() -> None:
    error = PipelineError("a", where="p.yaml:1")
    assert explain(error) is error
