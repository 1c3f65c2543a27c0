"""Pipelines written in Python, and functions that travel with a definition."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines import (
    Csv,
    DefinitionError,
    Delta,
    Iceberg,
    Jdbc,
    Json,
    Parquet,
    Pipeline,
    PipelineError,
    Python,
    RowStep,
    Sql,
    Table,
    Topic,
    Watermark,
)
from moldau.pipelines.build.environment import with_environment
from moldau.pipelines.build.table_options import table_options
from moldau.pipelines.definition.code import resolve
from moldau.pipelines.definition.topic_options import sink_options, source_options

FACTOR = 3


def tripled(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "amount": row["amount"] * FACTOR}


def orders(**more: Any) -> Pipeline:
    fields: dict[str, Any] = {
        "source": Topic("orders", schema="id STRING, amount DOUBLE"),
        "sink": Topic("big-orders", key="id"),
    }
    return Pipeline("big-orders", **{**fields, **more})


def test_is_the_same_as_its_json() -> None:
    pipeline = orders(
        steps=[
            Watermark("at", "10 minutes"),
            "SELECT * FROM input",
            RowStep(tripled),
            Python(lambda frame: frame, name="same"),
        ],
        trigger={"availableNow": True},
        dead_letter="dead",
    )
    stored = json.loads(json.dumps(pipeline.to_json()))
    restored = Pipeline.from_json(stored)
    assert restored == pipeline
    assert restored.finite
    assert isinstance(restored.steps[1], Sql)


def test_functions_travel_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    step = RowStep(tripled)
    assert str(step.function.place).startswith("test_python.py:")
    monkeypatch.delitem(sys.modules, __name__)
    stored = json.loads(json.dumps(orders(steps=[step]).to_json()))
    restored = Pipeline.from_json(stored).steps[0]
    assert isinstance(restored, RowStep)
    assert restored.function.load()({"amount": 2}) == {"amount": 6}


def test_neighbours_in_a_package_travel_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A package without __init__.py has no file of its own.
    (tmp_path / "ourshop").mkdir()
    (tmp_path / "ourshop" / "tax.py").write_text("def of(row):\n    return row * 2\n")
    (tmp_path / "ourshop" / "steps.py").write_text(
        "from ourshop import tax\ndef f(row):\n    return tax.of(row)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    from importlib import import_module

    code = RowStep(import_module("ourshop.steps").f).function
    for name in ("ourshop", "ourshop.steps", "ourshop.tax"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.undo()
    assert code.load()(3) == 6


def test_what_cannot_travel_is_told() -> None:
    handle = sys.stderr
    with pytest.raises(PipelineError, match=r"function <lambda> cannot be sent to Spark"):
        RowStep(lambda row: handle.write(str(row)))


def test_parts_know_the_line_that_made_them() -> None:
    pipeline = orders(steps=[Sql("SELECT 1 FROM input")])
    assert str(pipeline.steps[0].place).startswith("test_python.py:")
    with pytest.raises(DefinitionError, match=r"test_python.py:\d+: sink: unknown option 'kee'"):
        orders(sink=Topic("out", kee="id"))


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (Parquet("a"), "parquet"),
        (Json("a"), "json"),
        (Csv("a"), "csv"),
        (Delta("a"), "delta"),
        (Iceberg("a", table="db.t"), "iceberg"),
        (Jdbc("jdbc:sqlite:a.db", table="t"), "jdbc"),
    ],
)
def test_tables(table: Table, kind: str) -> None:
    assert table.kind == kind
    assert Pipeline.from_json(orders(sink=table).to_json()).sink == table


class TestFiles:
    def write(self, folder: Path, **files: str) -> None:
        for name, source in files.items():
            path = folder / (name.replace("__", "/") + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)

    def test_neighbours_travel_along(self, tmp_path: Path) -> None:
        self.write(
            tmp_path,
            steps="import json, rates\nfrom shop import tax\nfrom shop.tax import ALL\n"
            "def f(row):\n    return rates.of(row) + tax.of(row) + ALL\n",
            rates="from base import ONE\ndef of(row):\n    return ONE\n",
            base="ONE = 1\n",
            shop__tax="ALL = 100\ndef of(row):\n    return 10\n",
            unused="raise RuntimeError\n",
        )
        code = resolve("steps.py:f", tmp_path)
        assert sorted(code.files) == ["base.py", "rates.py", "shop/tax.py", "steps.py"]
        for path in tmp_path.rglob("*.py"):
            path.unlink()
        assert code.load()({}) == 111
        assert not {"rates", "steps", "shop"} & set(sys.modules)

    def test_functions_of_two_files_with_one_name_differ(self, tmp_path: Path) -> None:
        found = []
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            self.write(folder, steps=f"def f():\n    return {number}\n")
            found.append(resolve("steps:f", folder))
        assert [code.load()() for code in found] == [1, 2]

    def test_a_function_can_be_sent_on_by_spark(self, tmp_path: Path) -> None:
        from pyspark import cloudpickle

        self.write(
            tmp_path,
            steps="import rates\ndef f(row):\n    import math\n    return rates.of(row)\n",
            rates="def of(row):\n    return row * 2\n",
        )
        sent = cloudpickle.dumps(resolve("steps.py:f", tmp_path).load())
        assert cloudpickle.loads(sent)(4) == 8

    def test_installed_modules_stay_names(self, tmp_path: Path) -> None:
        code = resolve("json:dumps", tmp_path)
        assert code.to_json() == {"function": "dumps", "module": "json"}
        assert code.load()([1]) == "[1]"

    def test_a_mistake_while_loading_is_told_by_its_line(self, tmp_path: Path) -> None:
        self.write(tmp_path, steps="import os\n\nlimit = int('ten')\ndef f(row):\n    return row\n")
        with pytest.raises(PipelineError, match=r"^steps.py:3: ValueError: invalid literal"):
            resolve("steps.py:f", tmp_path).load()

    @pytest.mark.parametrize(
        ("reference", "expected"),
        [
            ("steps.py", r"is not of the form 'file.py:function'"),
            ("steps.py:g", r"steps.py has no function 'g'; it has f"),
            ("wrong.py:f", r"wrong.py:1: SyntaxError"),
            ("steps.py:later", r"steps.py:3: later is async"),
        ],
    )
    def test_wrong_references(self, tmp_path: Path, reference: str, expected: str) -> None:
        self.write(
            tmp_path,
            steps="def f(row):\n    return row\nasync def later(row):\n    pass\n",
            wrong="def f(:\n",
        )
        with pytest.raises(ValueError, match=expected):
            resolve(reference, tmp_path)


class TestOptions:
    def test_each_end_gets_the_settings_it_understands(self) -> None:
        kafka = {"isolation.level": "read_committed", "linger.ms": "5", "security.protocol": "SSL"}
        source = source_options(
            Topic("orders", format="string", maxOffsetsPerTrigger=10),
            kafka,
            bootstrap="b:1",
            group="p",
        )
        assert source == {
            "kafka.bootstrap.servers": "b:1",
            "kafka.isolation.level": "read_committed",
            "kafka.security.protocol": "SSL",
            "subscribe": "orders",
            "groupId": "p",
            "maxOffsetsPerTrigger": "10",
        }
        assert sink_options(Topic("out"), kafka, bootstrap="b:1") == {
            "kafka.bootstrap.servers": "b:1",
            "kafka.linger.ms": "5",
            "kafka.security.protocol": "SSL",
        }

    @pytest.mark.parametrize(
        ("topic", "expected"),
        [
            (Topic(topics=["a", "b"]), ("subscribe", "a,b")),
            (Topic(pattern="a.*"), ("subscribePattern", "a.*")),
            (Topic(assign={"a": [0, 1]}), ("assign", '{"a": [0, 1]}')),
        ],
    )
    def test_ways_to_name_topics(self, topic: Topic, expected: tuple[str, str]) -> None:
        options = source_options(topic, {}, bootstrap="b:1", group="p")
        assert expected in options.items()

    def test_batches_of_topics_have_a_limit(self) -> None:
        own = source_options(Topic("a"), {}, bootstrap="b:1", group="p", interval_ms=60_000)
        assert (own["maxOffsetsPerTrigger"], own["targetBatchDuration"]) == ("auto", "60000ms")
        given = Topic("a", maxoffsetspertrigger=7)
        fixed = source_options(given, {}, bootstrap="b:1", group="p")
        assert fixed["maxoffsetspertrigger"] == "7"
        assert "targetBatchDuration" not in fixed
        found = Topic("a", maxOffsetsPerTrigger="auto", targetBatchDuration="2s")
        auto = source_options(found, {}, bootstrap="b:1", group="p")
        assert (auto["maxOffsetsPerTrigger"], auto["targetBatchDuration"]) == ("auto", "2s")

    def test_sparks_connector_is_given_what_it_knows(self) -> None:
        topic = Topic("a", groupId="g", mirrorOffsets=False, failOnDataLoss=False)
        options = source_options(topic, {}, bootstrap="b:1", group="p", connector="kafka")
        assert options == {
            "kafka.bootstrap.servers": "b:1",
            "subscribe": "a",
            "failOnDataLoss": "false",
            "maxOffsetsPerTrigger": "1000000",
        }

    def test_folders_are_meant_from_the_definitions_own(self) -> None:
        pipeline = orders(base="/data/shop", dead_letter="dead")
        made = table_options(Parquet("out"), pipeline, "b:1")
        assert made == {"parquet": "/data/shop/out"}
        made = table_options(Parquet("s3://bucket/out"), pipeline, "b:1")
        assert made == {"parquet": "s3://bucket/out"}
        jdbc = Jdbc("jdbc:sqlite:orders.db", table="t", onError="dead_letter")
        assert table_options(jdbc, pipeline, "b:1") == {
            "jdbc": "jdbc:sqlite:/data/shop/orders.db",
            "table": "t",
            "onError": "dead_letter",
            "deadLetterTopic": "dead",
            "kafka.bootstrap.servers": "b:1",
        }

    def test_secrets_come_from_the_environment_when_it_starts(self) -> None:
        url = "${env:SHOP_URL}"
        pipeline = orders(sink=Jdbc(url, table="t", password="${env:SHOP_PASSWORD}"))
        assert "SHOP_PASSWORD" in json.dumps(pipeline.to_json())
        environment = {"SHOP_URL": "jdbc:postgresql://db/shop", "SHOP_PASSWORD": "secret"}
        started = with_environment(pipeline, environment)
        assert started.sink.to_json()["jdbc"] == "jdbc:postgresql://db/shop"
        assert started.sink.to_json()["password"] == "secret"
        with pytest.raises(PipelineError, match=r"the environment has no variable SHOP_URL"):
            with_environment(pipeline, {})
