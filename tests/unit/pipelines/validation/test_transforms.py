"""Steps that change the shape of rows: their mistakes are found without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines import (
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
    Output,
    Parquet,
    Pipeline,
    Topic,
    Watermark,
)
from moldau.pipelines.build.environment import with_environment
from moldau.pipelines.definition.model import Step
from moldau.pipelines.definition.pipeline import loads
from moldau.pipelines.tasks.machine.plan import reason_for_spark
from moldau.pipelines.validation import validate

SCHEMA = "id STRING, at TIMESTAMP, who STRUCT<name: STRING, home: STRUCT<city: STRING>>, tags ARRAY<STRING>, prices MAP<STRING, DOUBLE>"  # noqa: E501
HEAD = f"""\
name: p
source: {{topic: orders, schema: "{SCHEMA}"}}
"""


def found(folder: Path, steps: str, *, tail: str = "sink: {topic: out}") -> list[str]:
    path = folder / "p.yaml"
    path.write_text(f"{HEAD}steps:\n{steps}\n{tail}\n")
    return [str(mistake) for mistake in validate(path).mistakes]


MISTAKES = [
    ("flatten: nosuch", "4:14: steps[0]: flatten: there is no column 'nosuch' (there is id, at,"),
    ("flatten: [tags]", "4:5: steps[0]: flatten: column 'tags' is no struct, but ARRAY"),
    ('flatten: {separator: ""}', "4:15: steps[0]: flatten: separator: must not be empty"),
    ("flatten: {depth: 0}", "4:15: steps[0]: flatten: depth: must be at least 1"),
    ("flatten: {depht: 1}", "4:15: steps[0]: flatten: unknown option 'depht' (did you mean 'dept"),
    ("mask: {idd: hash}", "4:12: steps[0]: mask: there is no column 'idd' (did you mean id?)"),
    ("mask: {id: hsh}", "4:12: steps[0]: mask: id: unknown way 'hsh'; known are hash, redact "),
    ("mask: {id: {hash: md5}}", "4:12: steps[0]: mask: id: unknown hash 'md5'"),
    ("mask: {id: {hash: sha256, pepper: a}}", "4:12: steps[0]: mask: id: hash has no option 'pep"),
    ("mask: {id: {partial: {last: many}}}", "4:12: steps[0]: mask: id: partial: last: expected"),
    ("mask: {who.nam: redact}", "4:12: steps[0]: mask: 'who' has no field 'nam' (did you mean n"),
    ("mask: id", "4:5: steps[0]: mask: expected a mapping of columns"),
    ("explode: id", "4:14: steps[0]: explode: column 'id' is neither array nor map"),
    ("explode: tag", "4:14: steps[0]: explode: there is no column 'tag' (did you mean tags?)"),
    ("explode: {column: tags, as: [a, b]}", "4:29: steps[0]: explode: as: one name for an arr"),
    ("explode: {column: tags, as: id}", "4:5: steps[0]: explode: there is already a column 'id'"),
    ("explode: {column: tags, outer: 1}", "4:29: steps[0]: explode: outer: expected true or f"),
    ("explode: {as: a}", "4:5: steps[0]: explode: needs column"),
    ("headers_to_columns: {id: trace}", "4:26: steps[0]: headers_to_columns: there is already"),
    ("headers_to_columns: {a: [b]}", "4:26: steps[0]: headers_to_columns: a: expected a name"),
    ("columns_to_headers: {idd: trace}", "4:26: steps[0]: columns_to_headers: there is no colu"),
    ("deduplicate: id", "4:5: steps[0]: deduplicate: needs a watermark, or it would have to rem"),
    (
        "deduplicate: {keys: [idd], watermark: {column: at, delay: 1 minute}}",
        "4:26: steps[0]: deduplicate: there is no column 'idd' (did you mean id?)",
    ),
    (
        "deduplicate: {keys: [id], watermark: {column: att, delay: 1 minute}}",
        "4:51: steps[0]: deduplicate: watermark: there is no column 'att' (did you mean at?)",
    ),
    (
        "deduplicate: {keys: [id], watermark: {column: at, delay: soon}}",
        "4:31: steps[0]: deduplicate: watermark: delay 'soon' is no time",
    ),
]


@pytest.mark.parametrize(("step", "expected"), MISTAKES)
def test_mistakes(tmp_path: Path, step: str, expected: str) -> None:
    (line,) = found(tmp_path, f"  - {step}")
    assert line.startswith(f"p.yaml:{expected}")


@pytest.mark.parametrize(
    ("step", "columns"),
    [
        ("flatten: {separator: /}", "id, at, `who/name`, `who/home/city`, tags, prices"),
        ("flatten: {depth: 1}", "id, at, who_name, who_home, tags, prices"),
        ("flatten: who", "who_home_city"),
        ("explode: {column: tags, as: tag, position: n}", "id, tag, n, prices"),
        ("explode: prices", "id, key, value, tags"),
        ("mask: {who.home.city: redact}", "id, who"),
        ("headers_to_columns: [trace]", "id, trace"),
        ("columns_to_headers: {at: time}\n    keep: true", "id, at"),
        ("deduplicate: {keys: id, watermark: {column: at, delay: 1 hour}}", "id, at"),
    ],
)
def test_columns_after_a_step_are_known(tmp_path: Path, step: str, columns: str) -> None:
    assert not found(tmp_path, f"  - {step}\n  - sql: SELECT {columns} FROM input")
    (line,) = found(tmp_path, f"  - {step}\n  - sql: SELECT {columns}, nosuch FROM input")
    assert "sql: there is no column 'nosuch'" in line


def test_moved_and_exploded_columns_are_gone(tmp_path: Path) -> None:
    steps = "  - columns_to_headers: [id]\n  - explode: prices\n  - drop: [id, prices]"
    assert [line.partition("drop: ")[2].partition(" (")[0] for line in found(tmp_path, steps)] == [
        "there is no column 'id'",
        "there is no column 'prices'",
    ]


def test_python_and_yaml_are_the_same_and_need_spark() -> None:
    steps: list[Step] = [
        HeadersToColumns({"shop": "shop-id"}),
        Deduplicate(("id",), watermark=Watermark("at", "10 minutes")),
        Mask({"who.name": "redact", "id": {"partial": {"first": 1, "with": "#"}}}),
        Explode("tags", into=("tag",), position="n", outer=True),
        Flatten(separator="/", depth=2),
        ColumnsToHeaders({"shop": "shop"}, keep=True),
    ]
    source = Topic("orders", schema=SCHEMA)
    made = Pipeline("p", source=source, steps=steps, sink=Topic("out"), base="/")
    read = loads(
        HEAD
        + """\
steps:
  - headers_to_columns: {shop: shop-id}
  - deduplicate: {keys: id, watermark: {column: at, delay: 10 minutes}}
  - mask: {who.name: redact, id: {partial: {first: 1, with: "#"}}}
  - explode: {column: tags, as: tag, position: n, outer: true}
  - flatten: {separator: /, depth: 2}
  - columns_to_headers: [shop]
    keep: true
sink: {topic: out}
""",
        base=Path("/"),
    )
    assert read == made == Pipeline.from_json(made.to_json())
    for step in steps:
        alone = Pipeline("p", source=source, steps=[step], sink=Topic("out"))
        assert reason_for_spark(alone.to_json()) is not None


def test_the_salt_may_come_from_the_environment() -> None:
    mask = Mask({"id": {"hash": "sha256", "salt": "${env:SALT}"}})
    source = Topic("orders", schema=SCHEMA)
    made = Pipeline("p", source=source, steps=["SELECT '${env:X}' AS id", mask], sink=Topic("out"))
    text, put_in = with_environment(made, {"SALT": "pepper"}).steps
    assert text == made.steps[0]
    assert put_in == Mask({"id": {"hash": "sha256", "salt": "pepper"}})


SINKS = [
    ("sink: {route: shop, topics: [a]}", "4:15: sink: route: there is no column 'shop' (there is"),
    ("sink: {topics: [a, b]}", "4:1: sink: exactly one topic (or route: an expression)"),
    ("sink: {route: id, topics: [a, orders]}", "4:19: sink: topic 'orders' is also read by source"),
    ("sink: {route: id, topics: [a b]}", "4:1: sink: 'a b' cannot be the name of a topic"),
    ("sink: {route: id, toppics: [a]}", "4:19: sink: unknown option 'toppics' (did you mean 'to"),
    ("sinks: {}", "1: sink: missing (e.g. sink: {topic: orders})"),
    ("sinks: {a: {topic: x, key: idd}}", "4:28: sinks.a: key: there is no column 'idd' (did you"),
    ("sinks: {a: {topic: x, kay: id}}", "4:23: sinks.a: unknown option 'kay' (did you mean 'key'"),
    ("sinks: {a: {topic: orders}}", "4:13: sinks.a: topic 'orders' is also read by source"),
    (
        "sinks: {a: {topic: x}, b: {parquet: data, sql: SELECT idd FROM input}}",
        "4:55: sinks.b: sql: there is no column 'idd' (did you mean id?)",
    ),
    (
        "sinks: {a: {topic: x, sql: SELECT id FROM a}}",
        "4:43: sinks.a: sql: there is no view 'a' (there is input)",
    ),
    (
        "sinks: {a: {topic: x, key: id, sql: SELECT at FROM input}}",
        "4:28: sinks.a: key: there is no column 'id' (there is at)",
    ),
    (
        "sinks: {a: {topic: x, sql: SELECT count(*) AS n FROM input}}",
        "4:23: sinks.a: sql: must be a plain SELECT",
    ),
    ("sinks: {a: {parquett: x}}", "4:13: sinks.a: unknown option 'parquett' (did you mean 'parq"),
    (
        "sinks: {a: {topic: x}}\nconnector: kafka",
        "5:1: connector: 'kafka' is at least once and cannot write several sinks",
    ),
]


@pytest.mark.parametrize(("sink", "expected"), SINKS)
def test_mistakes_in_sinks(tmp_path: Path, sink: str, expected: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"{HEAD}steps: []\n{sink}\n")
    (line,) = [str(mistake) for mistake in validate(path).mistakes]
    assert line.startswith(f"p.yaml:{expected}")


def test_sinks_in_python_and_yaml_are_the_same() -> None:
    made = Pipeline(
        "p",
        source=Topic("orders", schema=SCHEMA),
        sinks={
            "some": Output(Topic("x", key="id"), sql="SELECT id FROM input"),
            "routed": Topic(route="id", topics=["a", "b"]),
            "table": Parquet("data"),
        },
        base="/",
    )
    text = """\
sinks:
  some: {topic: x, key: id, sql: SELECT id FROM input}
  routed: {route: id, topics: [a, b]}
  table: {parquet: data}
"""
    assert loads(HEAD + text, base=Path("/")) == made == Pipeline.from_json(made.to_json())
    assert reason_for_spark(made.to_json()) == "several sinks"


def test_tables_have_no_headers(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        """\
name: p
source: {parquet: data, schema: id STRING}
steps:
  - headers_to_columns: [a]
  - columns_to_headers: {id: a}
sink: {parquet: more}
"""
    )
    assert [str(mistake) for mistake in validate(path).mistakes] == [
        "p.yaml:4:5: steps[0]: headers_to_columns: only records have headers, and no source is a "
        "topic",
        "p.yaml:5:5: steps[1]: columns_to_headers: only records have headers, and no sink is a "
        "topic",
    ]
