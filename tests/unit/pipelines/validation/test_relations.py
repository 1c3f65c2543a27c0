"""Windows, joins and lookups: their mistakes are found without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines import Join, Lookup, Pipeline, Topic, Watermark, Window
from moldau.pipelines.definition.pipeline import loads
from moldau.pipelines.definition.triggers import interval_ms
from moldau.pipelines.tasks.machine.plan import reason_for_spark
from moldau.pipelines.validation import validate

ORDERS = "id STRING, at TIMESTAMP, amount DOUBLE"
PAYMENTS = "order_id STRING, paid_at TIMESTAMP, paid DOUBLE"
HEAD = f"""\
name: p
source: {{topic: orders, schema: "{ORDERS}"}}
steps:
"""
BOTH = f"""\
name: p
sources:
  orders: {{topic: orders, schema: "{ORDERS}", watermark: {{column: at, delay: 1 minute}}}}
  payments: {{topic: paid, schema: "{PAYMENTS}", watermark: {{column: paid_at, delay: 1 minute}}}}
  rates: {{parquet: rates, schema: "id STRING, rate DOUBLE", streaming: false}}
  late: {{topic: late, schema: "id STRING, late_at TIMESTAMP"}}
steps:
"""


def found(folder: Path, text: str) -> list[str]:
    path = folder / "p.yaml"
    path.write_text(text)
    return [str(mistake) for mistake in validate(path).mistakes]


WINDOWS = [
    ("{time: at, aggregates: {n: count(*)}, delay: 1 minute}", "4:5: steps[0]: window: exactly on"),
    ("{time: at, size: 1 minute, aggregates: {n: count(*)}}", "4:5: steps[0]: window: needs a wat"),
    ("{tme: at, size: 1 minute, aggregates: {n: count(*)}}", "4:5: steps[0]: window: needs time"),
    (
        "{time: att, size: 1 minute, aggregates: {n: count(*)}, delay: 1 minute}",
        "4:20: steps[0]: window: time: there is no column 'att' (did you mean at?)",
    ),
    (
        "{time: amount, size: 1 minute, aggregates: {n: count(*)}, delay: 1 minute}",
        "4:20: steps[0]: window: time: column 'amount' is no TIMESTAMP, but DOUBLE",
    ),
    (
        "{time: at, size: soon, aggregates: {n: count(*)}, delay: 1 minute}",
        "4:24: steps[0]: window: size: 'soon' is no time (e.g. 10 minutes)",
    ),
    (
        "{time: at, size: 1 minute, every: 2 minutes, aggregates: {n: count(*)}, delay: 1 minute}",
        "4:40: steps[0]: window: every: must not be longer than size, or rows would be lost",
    ),
    (
        "{time: at, gap: 1 minute, every: 2 minutes, aggregates: {n: count(*)}, delay: 1 minute}",
        "4:39: steps[0]: window: every: sessions begin with their first row",
    ),
    (
        "{time: at, size: 1 minute, by: [idd], aggregates: {n: count(*)}, delay: 1 minute}",
        "4:45: steps[0]: window: by: there is no column 'idd' (did you mean id?)",
    ),
    (
        "{time: at, size: 1 minute, aggregates: {n: sum(amout)}, delay: 1 minute}",
        "4:60: steps[0]: window: aggregates: n: there is no column 'amout' (did you mean amount?)",
    ),
    (
        "{time: at, size: 1 minute, aggregates: {n: sum(amount}, delay: 1 minute}",
        "4:",
    ),
    (
        "{time: at, size: 1 minute, by: id, aggregates: {id: count(*)}, delay: 1 minute}",
        "4:61: steps[0]: window: aggregates: there is already a column 'id'",
    ),
    ("{time: at, size: 1 minute, aggregates: {}, delay: 1 minute}", "4:40: steps[0]: window: no "),
]


@pytest.mark.parametrize(("window", "expected"), WINDOWS)
def test_mistakes_in_windows(tmp_path: Path, window: str, expected: str) -> None:
    lines = found(tmp_path, f"{HEAD}  - window: {window}\nsink: {{topic: out}}\n")
    assert lines[0].startswith(f"p.yaml:{expected}")


def test_sessions_are_written_when_they_have_ended(tmp_path: Path) -> None:
    window = "{time: at, gap: 1 minute, aggregates: {n: count(*)}, delay: 1 minute}"
    text = f"{HEAD}  - window: {window}\nsink: {{topic: out}}\noutputMode: update\n"
    (line,) = found(tmp_path, text)
    assert "4:24: steps[0]: window: a session is written when it has ended" in line


JOINS = [
    (
        "{with: paymnts, keys: {id: order_id}}",
        "8:12: steps[0]: join: with: there is no source or earl",
    ),
    (
        "{with: payments, keys: {id: oder_id}, time: {at: paid_at}, after: 1 hour}",
        "8:39: steps[0]: join: keys: payments: there is no column 'oder_id' (did you mean o",
    ),
    (
        "{with: payments, keys: {idd: order_id}, time: {at: paid_at}, after: 1 hour}",
        "8:35: steps[0]: join: keys: there is no column 'idd' (did you mean id?)",
    ),
    (
        "{with: payments, keys: {id: order_id}, time: {at: paid}, after: 1 hour}",
        "8:61: steps[0]: join: time: payments: column 'paid' is no TIMESTAMP, but DOUBLE",
    ),
    (
        "{with: payments, keys: {id: order_id}, kind: outer, time: {at: paid_at}, after: 1 hour}",
        "8:50: steps[0]: join: kind: unknown kind 'outer' (one of inner, left, right, full)",
    ),
    (
        "{with: payments, keys: {id: order_id}}",
        "8:5: steps[0]: join: needs the times of both sides",
    ),
    (
        "{with: payments, keys: {id: order_id}, time: {at: paid_at}, after: later}",
        "8:71: steps[0]: join: after: 'later' is no time",
    ),
    (
        "{with: late, keys: [id], time: {at: late_at}, after: 1 hour}",
        "8:5: steps[0]: join: 'late' needs a watermark, or all of its rows would be remembered",
    ),
    (
        "{with: rates, keys: [id], kind: full}",
        "8:37: steps[0]: join: kind: full: rows of a table th",
    ),
    (
        "{with: rates, keys: [id], after: 1 hour}",
        "8:5: steps[0]: join: time: a table that is read o",
    ),
]


@pytest.mark.parametrize(("join", "expected"), JOINS)
def test_mistakes_in_joins(tmp_path: Path, join: str, expected: str) -> None:
    text = f"{BOTH}  - join: {join}\n    from: orders\nsink: {{topic: out}}\n"
    lines = found(tmp_path, text)
    assert lines[0].startswith(f"p.yaml:{expected}")


def test_columns_of_both_sides(tmp_path: Path) -> None:
    text = (
        BOTH
        + """\
  - join: {with: payments, keys: {id: order_id}, time: {at: paid_at}, before: 1 minute}
    from: orders
  - join: {with: rates, keys: [id], kind: left}
  - sql: SELECT id, at, amount, order_id, paid, rate, nosuch FROM input
sink: {topic: out}
"""
    )
    (line,) = found(tmp_path, text)
    assert "there is no column 'nosuch'" in line
    same = (
        BOTH.replace("paid DOUBLE", "amount DOUBLE")
        + """\
  - join: {with: payments, keys: {id: order_id}, time: {at: paid_at}, before: 1 minute}
    from: orders
sink: {topic: out}
"""
    )
    (line,) = found(tmp_path, same)
    assert "both sides have a column 'amount' (prefix:" in line
    assert not found(tmp_path, same.replace("before: 1 minute", "before: 1 minute, prefix: p_"))


LOOKUPS = [
    ("{topic: a b, key: id, schema: c INT}", "4:5: steps[0]: lookup: 'a b' cannot be the name of"),
    ("{topic: a, key: idd, schema: c INT}", "4:29: steps[0]: lookup: key: there is no column 'idd"),
    ("{topic: a, key: id, schema: c INTT}", "4:43: steps[0]: lookup: schema: unknown type 'INTT'"),
    (
        "{topic: a, key: id, schema: at INT}",
        "4:5: steps[0]: lookup: there is already a column 'at'",
    ),
    ("{topic: a, key: id, schema: c INT, columns: [d]}", "4:58: steps[0]: lookup: columns: there "),
    ("{topic: a, key: id, schema: c INT, missing: fail}", "4:48: steps[0]: lookup: missing: unkn"),
    ("{topic: a, key: id, schema: c INT, maxRows: 0}", "4:48: steps[0]: lookup: maxRows: must be "),
    ("{topic: a, key: id}", "4:5: steps[0]: lookup: needs schema"),
]


@pytest.mark.parametrize(("lookup", "expected"), LOOKUPS)
def test_mistakes_in_lookups(tmp_path: Path, lookup: str, expected: str) -> None:
    lines = found(tmp_path, f"{HEAD}  - lookup: {lookup}\nsink: {{topic: out}}\n")
    assert lines[0].startswith(f"p.yaml:{expected}")


def test_python_and_yaml_are_the_same_and_need_spark() -> None:
    window = Window(
        "at", {"n": "count(*)"}, size="10 minutes", every="5 minutes", by=("id",), delay="1 minute"
    )
    lookup = Lookup("customers", "id", "city STRING", prefix="c_", missing="drop", rows_max=10)
    join = Join(
        "payments",
        {"id": "order_id"},
        kind="left",
        time={"at": "paid_at"},
        after="1 hour",
        source="orders",
    )
    text = (
        BOTH.replace("  rates", "  # rates").replace("  late", "  # late")
        + """\
  - join: {with: payments, keys: {id: order_id}, kind: left, time: {at: paid_at}, after: 1 hour}
    from: orders
  - lookup: {topic: customers, key: id, schema: city STRING, prefix: c_, missing: drop, maxRows: 10}
  - window: {time: at, size: 10 minutes, every: 5 minutes, by: id, delay: 1 minute,
             aggregates: {n: count(*)}}
sink: {topic: out}
"""
    )
    made = Pipeline(
        "p",
        sources={
            "orders": Topic("orders", schema=ORDERS, watermark=Watermark("at", "1 minute")),
            "payments": Topic("paid", schema=PAYMENTS, watermark=Watermark("paid_at", "1 minute")),
        },
        steps=[join, lookup, window],
        sink=Topic("out"),
        base="/",
    )
    assert loads(text, base=Path("/")) == made == Pipeline.from_json(made.to_json())
    for step in (window, lookup):
        source = Topic("orders", schema="id STRING, at STRING")
        alone = Pipeline("p", source=source, steps=[step], sink=Topic("out"))
        assert reason_for_spark(alone.to_json()) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 second", 1_000),
        ("90 seconds", 90_000),
        ("2 hours 30 minutes", 9_000_000),
        ("5ms", 5),
        ("1 day", 86_400_000),
        ("3 milliseconds", 3),
        ("10 Minutes", 600_000),
    ],
)
def test_intervals(text: str, expected: int) -> None:
    assert interval_ms(text) == expected
