"""`moldau pipelines validate` against Spark itself: neither refuses what the other accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.cli.main import main
from moldau.pipelines import Pipeline, PipelineError, Sql, Topic, build
from moldau.spark.runtime.server import ConnectServer
from support.pipeline_sql import ACCEPTED, REFUSED, SCHEMA

Capture = pytest.CaptureFixture[str]


def problem(spark: Any, sql: str, bootstrap: str) -> str | None:
    pipeline = Pipeline(
        "p",
        source=Topic("orders", schema=SCHEMA),
        steps=[Sql(sql)],
        sink=Topic("out"),
        output_mode="complete" if "GROUP BY" in sql or "count(" in sql else "append",
    )
    try:
        build.check(pipeline, spark, bootstrap=bootstrap)
    except PipelineError as error:
        return str(error)
    return None


@pytest.mark.long("Spark parses hundreds of statements; unit tests have the answers of some")
def test_spark_agrees_about_statements(spark: Any, bootstrap: str) -> None:
    found = {sql: problem(spark, sql, bootstrap) for sql in ACCEPTED}
    assert {sql: text for sql, text in found.items() if text is not None} == {}
    assert [sql for sql, _ in REFUSED if problem(spark, sql, bootstrap) is None] == []


def test_a_running_server_checks_what_only_spark_knows(
    server: ConnectServer, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "p.yaml"
    text = (
        f'name: p\nsource: {{topic: orders, schema: "{SCHEMA}"}}\nsteps:\n'
        "  - sql: SELECT upperr(id) AS id FROM input\nsink: {topic: out, key: id}\n"
    )
    path.write_text(text)
    words = ["pipelines", "--data", str(server.places.folder), "validate", str(path)]
    assert main(words) == 1
    shown = capsys.readouterr().err
    assert "p.yaml:4: " in shown
    assert "`upperr`" in shown
    assert "Checked: everything, by Spark's own analysis." in shown
    path.write_text(text.replace("upperr", "upper"))
    assert main(words) == 0
    assert "no mistake was found in the pipeline p." in capsys.readouterr().out
