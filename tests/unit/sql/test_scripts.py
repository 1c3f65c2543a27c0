"""ksqlDB's scripts of statements and ASSERTs, in process."""

from __future__ import annotations

import pytest

from moldau.cli.main import main
from support.ksql.sql_tests import FOLDER, Script, run_script, scripts

#: The script that this one runs is not part of the vectors.
_NOT_APPLICABLE = {"test/6/basic test with run script"}
_SCRIPTS = list(scripts()) if FOLDER.exists() else []


@pytest.mark.parametrize("script", _SCRIPTS, ids=lambda script: script.id)
def test_script(script: Script) -> None:
    if script.id in _NOT_APPLICABLE:
        pytest.skip("RUN SCRIPT of a file that is not there")
    run_script(script)


@pytest.mark.skipif(not _SCRIPTS, reason="the shared vectors are not there")
def test_the_command_runs_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "test", "--test-directory", str(FOLDER)]) == 1
    shown = capsys.readouterr().out.splitlines()
    failed = [line for line in shown if line.startswith("FAILED")]
    assert failed == ["FAILED test.sql: basic test with run script"]
    assert shown[-1] == f"{len(_SCRIPTS) - 1} of {len(_SCRIPTS)} passed"
