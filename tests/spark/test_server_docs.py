"""The examples of docs/spark-server.md: its Python runs, its commands have the options they use."""

from __future__ import annotations

import re
import shlex

import pytest

from moldau.cli.catalogue import find_tool
from moldau.cli.main import parser_of
from moldau.client import Producer
from moldau.spark import ConnectServer
from support.processes import ROOT

TEXT = (ROOT / "docs" / "spark-server.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)


def test_the_python_runs(
    server: ConnectServer, bootstrap: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("greetings", value=b"hello")
    monkeypatch.setenv("SPARK_REMOTE", server.session_url)
    names: dict[str, object] = {}
    for block in blocks("python"):
        code = block.replace("127.0.0.1:9092", bootstrap)
        exec(code.replace("moldau-data-spark", str(server.places.folder)), names)
    shown = capsys.readouterr().out
    assert "|   hello|" in shown
    assert server.url in shown


def test_the_commands_are_understood() -> None:
    commands = [
        line.partition(" #")[0]
        for block in blocks("sh")
        for line in block.replace("\\\n", " ").splitlines()
        if line.strip()
    ]
    assert len(commands) >= 9
    for command in commands:
        program, *words = shlex.split(command)
        if program in ("docker", "kubectl"):
            # Of theirs, only what a container is to run is ours.
            if "--" not in words:
                continue
            program, *words = words[words.index("--") + 1 :]
        assert program == "moldau"
        tool = find_tool(words)
        assert tool is not None, command
        parser_of(tool).parse(words[1:])
