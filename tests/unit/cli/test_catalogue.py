"""Every command has a module, a script and a help; the catalogue itself imports none of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import moldau
from moldau.cli.catalogue import TOOLS, Tool, find_tool
from moldau.cli.groups import groups
from moldau.cli.main import main, parser_of
from moldau.cli.support.failures import ToolError
from moldau.client.errors import DisconnectError, TopicExistsError
from moldau.config import ConfigError

BIN = Path(__file__).parents[3] / "bin"
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_every_tool_has_help_and_a_version(tool: Tool, capsys: Capture) -> None:
    for option, part in (("--help", "usage: "), ("--version", moldau.__version__)):
        with pytest.raises(SystemExit) as ended:
            main([tool.name, option])
        assert not ended.value.code
        shown = capsys.readouterr()
        assert part in shown.out
        assert shown.err == ""


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_bad_usage_of_every_tool_is_one_line(tool: Tool, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main([tool.name, "--bootstrap-sever", "x:1"])
    assert ended.value.code == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    if "--bootstrap-server" in parser_of(tool)._option_string_actions:
        required = "required" in shown.err
        assert required or "Did you mean --bootstrap-server?" in shown.err


def test_the_scripts_are_those_of_the_catalogue() -> None:
    scripts = {path.name for path in BIN.glob("kafka-*")} - {"kafka-rest-start"}
    assert scripts == {f"{tool.script}{tool.suffix}" for tool in TOOLS.values() if tool.script}
    for tool in TOOLS.values():
        if tool.script is None:
            continue
        path = BIN / f"{tool.script}{tool.suffix}"
        assert os.access(path, os.X_OK), path
        text = path.read_text()
        assert text.startswith("#!/bin/sh\n")
        assert re.search(rf'^run_moldau {tool.name} "\$@"$', text, re.MULTILINE), path


def test_a_script_hands_over_its_name_and_options() -> None:
    done = subprocess.run(
        [str(BIN / "kafka-topics.sh"), "--lsit"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "kafka-topics: error: --lsit is not a recognized option. Did you mean --list?\n"
    )


def test_the_help_lists_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for tool in TOOLS.values():
        assert re.search(rf"^  {tool.name} +{re.escape(tool.help)}$", shown, re.MULTILINE)


def test_help_about_a_command(capsys: Capture) -> None:
    for words in (["help", "topics"], ["topics", "--help"], ["kafka-topics", "-h"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
        assert capsys.readouterr().out.startswith("usage: moldau topics ")
    assert main(["help", "tpoics"]) == 1
    assert "Did you mean topics?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (TopicExistsError("it is there"), 1, "it is there"),
        (DisconnectError("gone\nand away"), 1, "gone and away"),
        (ConfigError("client.id is odd"), 1, "client.id is odd"),
        (ToolError("refused", exit_code=3), 3, "refused"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_a_tool_raises_is_one_line(
    error: BaseException, code: int, line: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr(groups, "run", run)
    assert main(["groups", "--bootstrap-server", "a:1", "--list"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert line in shown.err
    assert shown.err.count("\n") == (1 if line else 0)


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(groups, "run", run)
    with pytest.raises(ZeroDivisionError):
        main(["groups", "--bootstrap-server", "a:1", "--list"])


def test_tools_answer_to_their_scripts_names() -> None:
    assert find_tool(["kafka-topics"]) is TOOLS["topics"]
    assert find_tool(["topics", "--list"]) is TOOLS["topics"]
    assert find_tool(["cluster"]) is TOOLS["cluster"]
    assert find_tool(["cluster", "--brokers"]) is TOOLS["cluster"]
    assert find_tool(["cluster", "cluster-id"]) is TOOLS["kafka-cluster"]
    assert find_tool(["kafka-cluster", "unregister"]) is TOOLS["kafka-cluster"]
    assert find_tool(["nothing"]) is None


def test_the_help_imports_no_tool_and_no_client() -> None:
    program = (
        "import sys; from moldau.cli.main import main; main(['--help']); "
        "from moldau.cli.catalogue import TOOLS; tools = {tool.module for tool in TOOLS.values()}; "
        "bad = [m for m in sys.modules if m in tools or m.startswith(('moldau.client', "
        "'moldau.broker', 'asyncio', 'rich'))]; sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
