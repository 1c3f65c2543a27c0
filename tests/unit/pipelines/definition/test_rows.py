"""What workers do with rows: called here with Arrow batches, as Spark calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from moldau.pipelines.build.rows import TAG, RowRunner, RowStepError
from moldau.pipelines.definition.code import Code
from moldau.pipelines.definition.model import FAIL, IGNORE
from moldau.pipelines.machine.explaining import explain

ERROR = StructType(
    [
        StructField(name, StringType())
        for name in ("stage", "class", "exception", "message", "stacktrace")
    ]
)
OWN = [StructField("id", StringType()), StructField("amount", DoubleType())]
CARRIED = [
    StructField("_topic", StringType()),
    StructField("_partition", LongType()),
    StructField("_offset", LongType()),
    StructField("__error", ERROR),
]


def run(
    function: Callable[..., Any],
    rows: list[dict[str, Any]],
    *,
    on_error: str = TAG,
    own: list[StructField] = OWN,
    args: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    schema = StructType([*own, *CARRIED])
    runner = RowRunner(
        code=Code.of(function).to_json(),
        args=args or {},
        on_error=on_error,
        schema_json=json.dumps(schema.jsonValue()),
        columns=tuple(one.name for one in own),
        carried=tuple(one.name for one in CARRIED),
    )
    filled = [
        {"_topic": "orders", "_partition": 0, "_offset": index, "__error": None, **row}
        for index, row in enumerate(rows)
    ]
    types = pa.schema(
        [
            ("id", pa.string()),
            ("amount", pa.float64()),
            ("tags", pa.map_(pa.string(), pa.string())),
            ("_topic", pa.string()),
            ("_partition", pa.int64()),
            ("_offset", pa.int64()),
            ("__error", pa.struct([(one.name, pa.string()) for one in ERROR])),
        ]
    )
    batches = [pa.RecordBatch.from_pylist([row], schema=types) for row in filled]
    return [row for batch in runner(iter(batches)) for row in batch.to_pylist()]


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (row["id"], row["amount"], row["_offset"], (row["__error"] or {}).get("message"))
        for row in rows
    ]


def test_a_row_becomes_a_row_several_or_none() -> None:
    def split(row: dict[str, Any]) -> Any:
        if row["id"] == "none":
            return None
        return [row, row] if row["id"] == "two" else row

    rows = [{"id": "one", "amount": 1.0}, {"id": "none"}, {"id": "two", "amount": 2.0}]
    assert shown(run(split, rows)) == [
        ("one", 1.0, 0, None),
        ("two", 2.0, 2, None),
        ("two", 2.0, 2, None),
    ]


def test_a_failure_marks_its_row_and_the_others_go_on() -> None:
    def check(row: dict[str, Any]) -> dict[str, Any]:
        if row["amount"] is None:
            raise KeyError("amount")
        return row

    failed, good = run(check, [{"id": "a"}, {"id": "b", "amount": 1.0}])
    assert shown([failed, good]) == [(None, None, 0, "'amount'"), ("b", 1.0, 1, None)]
    error = failed["__error"]
    assert error["stage"] == "TRANSFORMATION"
    assert error["class"] == "check"
    assert error["exception"] == "KeyError"
    assert "in check" in error["stacktrace"]
    assert "/build/rows.py" not in error["stacktrace"]


def test_rows_that_were_bad_before_pass_by() -> None:
    def never(row: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("called")

    before = {"stage": "VALUE_CONVERTER", "message": "no JSON"}
    assert shown(run(never, [{"__error": before}])) == [(None, None, 0, "no JSON")]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"id": "a", "amount": "many"}, "column 'amount' must be double, got 'many'"),
        ({"id": "a", "total": 1.0}, "the row has 'total', which is no column of the step's schema"),
        (5, "a row step returns a dict, a list of dicts or None, not int"),
    ],
)
def test_what_the_schema_cannot_hold_is_bad(result: Any, message: str) -> None:
    (row,) = run(lambda row: result, [{"id": "a"}])
    assert row["__error"]["message"].startswith(message)


def test_of_several_rows_one_that_is_bad_takes_all_with_it() -> None:
    rows = run(lambda row: [{"id": "x"}, {"amount": "many"}], [{"id": "a"}])
    assert [row["__error"] is None for row in rows] == [False]


def test_arguments_maps_and_new_columns() -> None:
    def tag(row: dict[str, Any], name: str) -> dict[str, Any]:
        return {"tags": {**row["tags"], name: "yes"}, "list": [row["id"]]}

    own = [
        StructField("tags", MapType(StringType(), StringType())),
        StructField("list", ArrayType(StringType())),
    ]
    (row,) = run(tag, [{"id": "a", "tags": {"x": "1"}}], own=own, args={"name": "y"})
    assert dict(row["tags"]) == {"x": "1", "y": "yes"}
    assert row["list"] == ["a"]


def test_without_dead_letters_a_failure_ends_the_query_and_names_the_record() -> None:
    def check(row: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no")

    with pytest.raises(RowStepError) as caught:
        run(check, [{"id": "a"}], on_error=FAIL)
    line = check.__code__.co_firstlineno + 1
    assert str(explain(str(caught.value))).startswith(
        f"test_rows.py:{line}: in check: ValueError: no (record orders-0 at offset 0)"
    )


def test_or_is_left_out() -> None:
    def check(row: dict[str, Any]) -> dict[str, Any]:
        return row if row["id"] == "b" else row["no"]  # type: ignore[no-any-return]

    assert shown(run(check, [{"id": "a"}, {"id": "b"}], on_error=IGNORE)) == [("b", None, 1, None)]
