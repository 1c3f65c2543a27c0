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
from moldau.cli.main import main, parser_of

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
    scripts = {path.stem for path in BIN.glob("kafka-*.sh")}
    assert scripts == {tool.script for tool in TOOLS.values() if tool.script is not None}
    for tool in TOOLS.values():
        if tool.script is None:
            continue
        path = BIN / f"{tool.script}.sh"
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
        "bad = [m for m in sys.modules if m.startswith(('moldau.cli.tools.', 'moldau.client', "
        "'moldau.broker', 'asyncio', 'rich'))]; sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
