"""The parser of all tools: one line for bad usage, deprecated names, checks in Kafka's words."""

from __future__ import annotations

import argparse

import pytest

from moldau.cli.support.arguments import Parser, int32, int64

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def parser() -> Parser:
    parser = Parser(prog="tool")
    parser.add_argument("--topic")
    parser.add_argument("--command-property", action="append", default=[])
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--list", action="store_true")
    parser.add_deprecated("--property", "--prop", instead="--command-property")
    return parser


def refused(parser: Parser, *argv: str) -> argparse.Namespace:
    with pytest.raises(SystemExit) as ended:
        parser.parse(argv)
    assert ended.value.code == 1
    return argparse.Namespace()


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["--topc", "a"], "tool: error: --topc is not a recognized option. Did you mean --topic?"),
        (["--topc=a"], "tool: error: --topc is not a recognized option. Did you mean --topic?"),
        # No abbreviations: a script must not break when an option is added.
        (
            ["--co", "1"],
            "tool: error: --co is not a recognized option. Run `tool --help` for usage.",
        ),
        (["stray"], "tool: error: unexpected argument: stray. Run `tool --help` for usage."),
        (["--topic"], "tool: error: --topic needs a value."),
        (["--count", "x"], "tool: error: --count: 'x' is not a whole number."),
    ],
)
def test_bad_usage_is_one_line(parser: Parser, argv: list[str], line: str, capsys: Capture) -> None:
    refused(parser, *argv)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith(line)


@pytest.mark.parametrize("text", ["x", "", "2147483648", "-2147483649", "1.5"])
def test_numbers_that_are_none_or_too_large(text: str, capsys: Capture) -> None:
    parser = Parser(prog="tool")
    parser.add_argument("--count", type=int32)
    parser.add_argument("--time", type=int64)
    refused(parser, f"--count={text}")
    assert "tool: error: --count: " in capsys.readouterr().err
    assert parser.parse(["--count=-2147483648", "--time", "2147483648"]).time == 2**31


def test_values_that_look_like_numbers_and_equals_signs(parser: Parser) -> None:
    assert parser.parse(["--topic=a=b", "--count", "-5"]).topic == "a=b"
    assert parser.parse(["--count", "-5"]).count == -5


def test_options_may_be_repeated(parser: Parser) -> None:
    found = parser.parse(["--command-property", "a=1", "--command-property=b=2"])
    assert found.command_property == ["a=1", "b=2"]


def test_an_option_for_one_value_is_given_once(parser: Parser, capsys: Capture) -> None:
    refused(parser, "--topic", "a", "--topic=b")
    assert "Found multiple arguments for option topic, but you asked for only one" in (
        capsys.readouterr().err
    )
    assert parser.parse(["--list", "--list"]).list
    parser.last_wins = True
    assert parser.parse(["--topic", "a", "--topic=b"]).topic == "b"


def test_a_deprecated_name_works_and_warns(parser: Parser, capsys: Capture) -> None:
    found = parser.parse(["--property", "a=1", "--prop=b=2"])
    assert found.command_property == ["a=1", "b=2"]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "Option --property is deprecated and will be removed in a future version. "
        "Use --command-property instead.",
        "Option --prop is deprecated and will be removed in a future version. "
        "Use --command-property instead.",
    ]
    assert not hasattr(found, "_deprecated")


def test_an_old_and_a_new_name_together_are_refused(parser: Parser, capsys: Capture) -> None:
    refused(parser, "--property", "a=1", "--command-property=b=2")
    assert "Cannot specify both --property and --command-property" in capsys.readouterr().err


def test_checks_speak_kafkas_words(parser: Parser, capsys: Capture) -> None:
    found = parser.parse(["--list"])
    assert parser.require_one(found, ["--list", "--topic"]) == "--list"
    for check, words in (
        (lambda: parser.require(found, "--topic"), 'Missing required argument "[topic]"'),
        (
            lambda: parser.refuse(parser.parse(["--list", "--count=1"]), "--list", ["--count"]),
            'Option "[list]" can\'t be used with option "[count]"',
        ),
        (
            lambda: parser.require_one(found, ["--topic", "--count"]),
            "Exactly one of the following arguments is required: [topic], [count]",
        ),
    ):
        with pytest.raises(SystemExit):
            check()
        assert words in capsys.readouterr().err
    parser.refuse(found, "--topic", ["--list"])


def test_a_subcommand_answers_for_its_own_options(capsys: Capture) -> None:
    parser = Parser(prog="tool")
    parser.add_argument("--everywhere")
    commands = parser.add_commands()
    commands.add("describe", "tell").add_argument("--status", action="store_true")
    found = parser.parse(["--everywhere=x", "describe", "--status"])
    assert (found.command, found.everywhere, found.status) == ("describe", "x", True)
    # Behind the subcommand it means the same.
    assert parser.parse(["describe", "--everywhere", "y", "--status"]) == parser.parse(
        ["--everywhere=y", "describe", "--status"]
    )
    refused(parser, "describe", "--everywhere")
    assert "--everywhere needs a value" in capsys.readouterr().err
    refused(parser, "describe", "--statsu")
    assert capsys.readouterr().err == (
        "tool describe: error: --statsu is not a recognized option. Did you mean --status?\n"
    )
    refused(parser, "descirbe")
    assert "Did you mean describe?" in capsys.readouterr().err


def test_words_after_an_option_belong_to_the_list_before_it(capsys: Capture) -> None:
    parser = Parser(prog="tool")
    create = parser.add_commands().add("create", "make one")
    create.add_argument("name")
    create.add_argument("settings", nargs="*")
    create.add_argument("--url", default="here")
    for words in (
        ["a=1", "b=2", "--url", "u"],
        ["--url", "u", "a=1", "b=2"],
        ["a=1", "--url", "u", "b=2"],
    ):
        found = parser.parse(["create", "x", *words])
        assert (found.name, found.url, found.settings) == ("x", "u", ["a=1", "b=2"])
    with pytest.raises(SystemExit):
        parser.parse(["create", "x", "--url", "u", "a=1", "--no-such"])
    assert "--no-such is not a recognized option" in capsys.readouterr().err
