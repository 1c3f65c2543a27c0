"""The Python examples of docs/sql-server.md, and the server and the shell as commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import BrokerProcess
from support.sql_server import SqlServer

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "sql-server.md").read_text(), re.DOTALL
)
_START_S = 60


@pytest.mark.parametrize(
    ("example", "shown"),
    list(zip(EXAMPLES, ["'columns': ['a', 3]", "A text, repeated."], strict=True)),
)
def test_an_example_runs(
    server: SqlServer, example: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(example.replace("http://127.0.0.1:8088", server.url), "example", "exec"), {})
    assert shown in capsys.readouterr().out


def test_the_server_and_its_shell_are_commands(broker: BrokerProcess, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau.cli", "sql"]
    start = [
        *command, "start", "--port", "0", "--bootstrap-server", broker.bootstrap,
        "--override", "ksql.service.id=command_",
        "--override", f"ksql.streams.state.dir={tmp_path}",
    ]  # fmt: skip
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            shown = ""
            while "Ctrl-C stops it." not in shown:
                line = process.stdout.readline()
                assert line, shown
                shown += line
            found = re.search(r"listening  (\S+)", shown)
            assert found is not None
            done = subprocess.run(
                [*command, "--server", found[1], "-e", "SHOW FUNCTIONS;"],
                capture_output=True, text=True, timeout=_START_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert "ABS\tSCALAR\tMATHEMATICAL" in done.stdout
        finally:
            process.terminate()
            assert process.wait(_START_S) == 0
