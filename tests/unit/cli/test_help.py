"""`--help` of every command and subcommand, read as a newcomer would in a terminal."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from moldau.cli.catalogue import TOOLS, find_tool
from moldau.cli.main import main, parser_of
from moldau.cli.support.arguments import Parser

# Words of which a reader cannot tell what they mean here.
UNCLEAR = re.compile(
    r"\b(?:tells?|told|says?|anew|folders?|mend|forget|so (?:many|long|much)|under way|"
    r"is no|are none)\b"
)


def parsers(parser: Parser) -> Iterator[Parser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(("columns", "longest"), [(80, 80), (120, 98), (200, 98)])
def test_help_fits_the_terminal(
    tool: str, columns: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for parser in parsers(parser_of(TOOLS[tool])):
        long = [line for line in parser.format_help().splitlines() if len(line) > longest]
        assert long == [], parser.prog


def test_a_command_describes_itself_and_its_arguments(tool: str) -> None:
    for parser in parsers(parser_of(TOOLS[tool])):
        text = parser.format_help()
        description = text.split("\n\n")[1]
        assert re.fullmatch(r"[A-Z`].*\.", description, re.DOTALL), parser.prog
        assert UNCLEAR.findall(text) == [], parser.prog
        undescribed = [action.dest for action in parser._actions if not action.help]
        # A list of subcommands describes each of them.
        assert [name for name in undescribed if name != argparse.SUPPRESS] == [], parser.prog


def example_lines(parser: Parser) -> Iterator[list[str]]:
    _, _, text = (parser.epilog or "").partition("examples:\n")
    block = re.sub(r"\s*\\\n\s*", " ", text.partition("\n\n")[0])
    for line in block.splitlines():
        command = re.split(r" [<>] |\s{2,}", re.sub(r"\$\(.*\)", "X", line.strip()))[0]
        yield [word for word in shlex.split(command) if not word.startswith("MOLDAU_")]


def test_every_command_has_examples_that_it_accepts(tool: str) -> None:
    parser = parser_of(TOOLS[tool])
    examples = [words for each in parsers(parser) for words in example_lines(each)]
    assert examples or "installation:" in (parser.epilog or "")
    for words in examples:
        assert words[0] == "moldau"
        meant = find_tool(words[1:])
        assert meant is not None
        # Ends the process on bad usage.
        parser_of(meant).parse(words[2:])


def test_options_are_listed_by_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["console-producer", "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    titles = re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)
    assert titles == ["options", "cluster and client", "general", "deprecated", "examples"]
    assert shown.startswith("usage: moldau console-producer [OPTIONS]\n")


def test_usage_names_what_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "98")

    def usage(*words: str) -> str:
        parser = next(p for p in parsers(parser_of(TOOLS[words[0]])) if p.prog.endswith(words[-1]))
        return parser.format_help().split("\n\n")[0]

    assert usage("start") == "usage: moldau start [OPTIONS] [FILE]"
    assert usage("storage") == "usage: moldau storage [OPTIONS] COMMAND ..."
    assert usage("transactions", "describe") == (
        "usage: moldau transactions describe --transactional-id ID [OPTIONS]"
    )
    assert "(--record-size BYTES | --payload-file FILE | --payload-monotonic) [OPTIONS]" in (
        " ".join(usage("producer-perf-test").split())
    )
