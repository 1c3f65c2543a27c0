"""How declarations become Spark's readers and writers, told by stand-ins that write down calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from moldau.spark import tables
from moldau.spark.tables.frames import EachBatch


class Recorder:
    """Takes any chain of calls, as Spark's builders do, and remembers them."""

    def __init__(self, failures: list[str] | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.failures = failures or []

    def __getattr__(self, name: str) -> Any:
        if name in ("readStream", "read", "write", "writeStream", "sparkSession", "dataSource"):
            return self

        def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, args, options))
            if name == "start" and self.failures:
                raise PySparkException(self.failures.pop())
            return [('{"id":"query-1"}',)] if name == "collect" else self

        return call

    def given(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, options) for called, args, options in self.calls if called == name]


def start(frame: Recorder, kind: str, options: dict[str, Any], mode: str = "append") -> None:
    tables.start_sink(
        frame,
        kind,
        options,
        query_name="orders",
        trigger={"availableNow": True},
        checkpoint="/checkpoint",
        output_mode=mode,
    )


def test_a_relative_folder_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = Recorder()
    start(frame, "json", {"json": "orders", "partitionBy": ["day"]})
    assert (("path", str(tmp_path / "orders")), {}) in frame.given("option")
    assert frame.given("partitionBy") == [(("day",), {})]
    frame = Recorder()
    start(frame, "jdbc", {"jdbc": "jdbc:sqlite:shop.db", "table": "orders"})
    assert frame.given("options")[0][1]["url"] == f"jdbc:sqlite:{tmp_path / 'shop.db'}"


def test_folders_in_object_stores_are_left_as_they_are() -> None:
    frame = Recorder()
    start(frame, "delta", {"delta": "s3://lake/orders"})
    assert frame.given("options")[0][1]["path"] == "s3://lake/orders"


def test_a_query_gets_its_name_trigger_checkpoint_and_mode() -> None:
    frame = Recorder()
    start(frame, "delta", {"delta": "/orders"}, "complete")
    assert frame.given("queryName") == [(("orders",), {})]
    assert frame.given("trigger") == [((), {"availableNow": True})]
    assert frame.given("outputMode") == [(("complete",), {})]
    assert (("checkpointLocation", "/checkpoint"), {}) in frame.given("option")


def test_in_update_mode_each_batch_carries_the_querys_id_and_its_number() -> None:
    frame = Recorder()
    start(frame, "delta", {"delta": "/orders", "upsert": ["id"]}, "update")
    ((each,), _) = frame.given("foreachBatch")[0]
    assert isinstance(each, EachBatch)
    batch = Recorder()
    each(batch, 7)
    each(batch, 8)
    written = [options for _, options in batch.given("options")]
    assert [(o["txnAppId"], o["txnVersion"], o["upsert"]) for o in written] == [
        ("query-1", "7", "id"),
        ("query-1", "8", "id"),
    ]


def test_a_busy_machine_is_given_more_time_but_not_without_end() -> None:
    slow = "Python worker failed to connect back."
    frame = Recorder([slow] * 2)
    start(frame, "delta", {"delta": "/orders", "upsert": ["id"]}, "update")
    assert len(frame.given("start")) == 3
    with pytest.raises(PySparkException, match="connect back"):
        start(Recorder([slow] * 99), "delta", {"delta": "/orders", "upsert": ["id"]}, "update")
    frame = Recorder(["no such column"])
    with pytest.raises(PySparkException, match="no such column"):
        start(frame, "delta", {"delta": "/orders", "upsert": ["id"]}, "update")
    assert len(frame.given("start")) == 1


def test_what_only_postgresql_and_sqlite_do_is_refused_for_others() -> None:
    mysql = {"jdbc": "jdbc:mysql://h/d", "table": "orders"}
    with pytest.raises(tables.OptionError, match="upsert works with PostgreSQL"):
        start(Recorder(), "jdbc", {**mysql, "upsert": ["id"]})
    with pytest.raises(tables.OptionError, match="can be read as a stream"):
        tables.read(Recorder(), "jdbc", mysql, True)
    spark = Recorder()
    tables.read(spark, "jdbc", {**mysql, "jdbc.sessionInitStatement": "SET x"}, False)
    given = spark.given("options")[0][1]
    assert (given["dbtable"], given["sessionInitStatement"]) == ("orders", "SET x")
