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
    list(zip(EXAMPLES, ["'columns': ['a', 3]", "AL", "A text, repeated."], strict=True)),
)
def test_an_example_runs(
    server: SqlServer, example: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(example.replace("http://127.0.0.1:8088", server.url), "example", "exec"), {})
    assert shown in capsys.readouterr().out


def test_the_examples_in_python_run(server: SqlServer, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "sql-python.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for example in examples:
        exec(compile(example.replace("http://127.0.0.1:8088", server.url), "example", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["['1.50', '2.25']", "('a', Decimal('1.50'))", "2.25"]


def test_the_tests_of_statements_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "sql-shell.md").read_text()
    (statements,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    (inputs,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "orders.sql").write_text(statements)
    (tmp_path / "plain.sql").write_text("\n".join(statements.splitlines()[1:3]))
    (tmp_path / "in.json").write_text(inputs)
    outputs = inputs.replace('"inputs"', '"outputs"').replace('"orders"', '"DEAR"')
    (tmp_path / "out.json").write_text(outputs.replace("price", "PRICE"))
    (tmp_path / "wrong.json").write_text(outputs.replace("80.0", "81.0"))
    runner = [str(ROOT / "bin" / "ksql-test-runner"), "-s", "plain.sql", "-i", "in.json", "-o"]

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_START_S, check=False, cwd=tmp_path
        )

    done = run([sys.executable, "-m", "moldau.cli", "sql", "test", "orders.sql"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 passed" in done.stdout
    done = run([*runner, "out.json"])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "\t >>> Test passed!"), done
    done = run([*runner, "wrong.json"])
    assert done.returncode == 1
    assert "Topic 'DEAR', message 0: value" in done.stdout


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
