"""The commands and the definition of docs/security-spark.md are understood."""

from __future__ import annotations

import re
import shlex

from moldau.cli.catalogue import find_tool
from moldau.cli.main import parser_of
from moldau.client.config import ADMIN_KEYS, keys_of
from moldau.config.properties import load_properties
from moldau.pipelines.definition.pipeline import loads
from moldau.pipelines.definition.secrets import stored_secrets
from moldau.security.machine.jaas import parse_jaas
from support.processes import ROOT

TEXT = (ROOT / "docs" / "security-spark.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)


def test_the_commands_are_understood() -> None:
    commands = [
        line
        for block in blocks("sh")
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith("moldau ")
    ]
    assert len(commands) >= 7
    for command in commands:
        words = shlex.split(command)[1:]
        tool = find_tool(words)
        assert tool is not None, command
        parser_of(tool).parse(words[1:])


def test_the_definition_and_the_properties_are_understood() -> None:
    (text,) = blocks("yaml")
    assert stored_secrets(loads(text).to_json()) == []
    client, secret = map(load_properties, blocks("properties"))
    assert keys_of(ADMIN_KEYS, client) == client
    assert parse_jaas("jaas", secret["jaas"])
