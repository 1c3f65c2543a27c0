"""What docs/spark.md tells a user to copy works as written, in its order."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moldau.spark.schemas.machine.options import REGISTRY_KEYS
from moldau.spark.sink.machine import options as writing
from moldau.spark.source.machine import options as reading
from spark.running import committed, patiently
from support.processes import ROOT

DOCUMENT = ROOT / "docs" / "spark.md"


def moldau(line: str) -> str:
    command = [sys.executable, "-m", "moldau.cli", *shlex.split(line)[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow("every example of the page runs on Spark")
def test_the_examples_run(
    spark_url: str, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DOCUMENT.read_text().replace("127.0.0.1:9092", bootstrap)
    text = text.replace("session()", f"session({spark_url!r})")
    text = text.replace('"checkpoints/', f'"{tmp_path}/')
    names: dict[str, Any] = {}
    described = ""
    try:
        for language, block in re.findall(r"```(sh|python)\n(.*?)```", text, re.DOTALL):
            if language == "python":
                if "read_committed" in block:
                    committed(bootstrap, "big-orders")
                patiently(functools.partial(exec, compile(block, "docs/spark.md", "exec"), names))
            else:
                described = "".join(map(moldau, block.splitlines()))
    finally:
        if "spark" in names:
            names["spark"].stop()
    rows = [line.split() for line in described.splitlines() if line.startswith("moldau-spark-big")]
    # Partition, offset and lag.
    assert sum(int(row[3]) for row in rows) == 2
    assert {row[5] for row in rows} == {"0"}
    assert names["found"] == ["o1"]
    assert names["behind"].records == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2"


def test_every_option_is_in_the_document() -> None:
    text = DOCUMENT.read_text()
    # Of the settings of a registry's client the document says where they are described.
    for name in {*reading._NAMES, *writing._NAMES} - {*REGISTRY_KEYS}:
        assert f"`{name}`" in text, name
    assert "serdes.md#settings" in text
