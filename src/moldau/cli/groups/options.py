"""The options of the group tools, and which of them go together: the same for all three kinds."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import NoReturn

from moldau.cli.support.arguments import Parser
from moldau.cli.support.common import add_common, add_json

__all__ = [
    "CSV_SCENARIOS",
    "SCENARIOS",
    "add_actions",
    "add_describe_options",
    "add_reset_options",
    "check_action",
    "check_describe",
    "check_one_scenario",
    "given",
    "has",
    "parse_states",
    "refuse_elsewhere",
    "refuse_together",
]

#: The ways to say where a reset goes to, of which one may be given.
SCENARIOS = (
    "--to-offset",
    "--shift-by",
    "--to-datetime",
    "--by-duration",
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--from-file",
)
CSV_SCENARIOS = ("--from-file",)

# What --state and --type hold when they are given without a value.
_PRESENT = ""


def add_actions(parser: Parser, kind: str, *, required_server: bool = True) -> None:
    """The actions, the groups they act on, and the common options."""
    add_common(parser, required=required_server)
    parser.add_argument("--list", action="store_true", help=f"list all {kind} groups")
    parser.add_argument(
        "--describe", action="store_true", help="describe groups and how far behind they are"
    )
    parser.add_argument("--delete", action="store_true", help="delete groups, with their offsets")
    parser.add_argument(
        "--reset-offsets",
        action="store_true",
        help="move the offsets of groups without members: --dry-run shows, --execute does it",
    )
    parser.add_argument(
        "--delete-offsets", action="store_true", help="delete a group's offsets of some topics"
    )
    parser.add_argument(
        "--group", action="append", default=[], metavar="ID", help="the group; may be repeated"
    )
    parser.add_argument("--all-groups", action="store_true", help=f"all {kind} groups")
    parser.add_argument(
        "--timeout",
        type=int,
        default=30000,
        metavar="MS",
        help="how long to wait for answers (default 30000)",
    )
    add_json(parser)


def add_describe_options(parser: Parser, *, types: bool = False) -> None:
    parser.add_argument(
        "--offsets", action="store_true", help="describe: offsets and lag (the default)"
    )
    parser.add_argument("--members", action="store_true", help="describe: the members")
    parser.add_argument(
        "--state",
        nargs="?",
        const=_PRESENT,
        metavar="STATE,...",
        help="describe: the state; list: show the states, or only groups in these",
    )
    if types:
        parser.add_argument(
            "--type",
            nargs="?",
            const=_PRESENT,
            metavar="TYPE,...",
            help="list: show the types, or only groups of these (classic, consumer)",
        )
    parser.add_argument("--verbose", action="store_true", help="describe: more columns")


def add_reset_options(parser: Parser, scenarios: Sequence[str], *, export: bool) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what a reset would do")
    parser.add_argument("--execute", action="store_true", help="do it")
    if export:
        parser.add_argument("--export", action="store_true", help="print the new offsets as CSV")
    for option in scenarios:
        kind, metavar, text = _SCENARIO_HELP[option]
        if kind is bool:
            parser.add_argument(option, action="store_true", help=text)
        else:
            parser.add_argument(option, type=kind, metavar=metavar, help=text)


_SCENARIO_HELP: dict[str, tuple[type, str, str]] = {
    "--to-offset": (int, "N", "reset to this offset"),
    "--shift-by": (int, "N", "reset by so many from the committed offset, also backwards"),
    "--to-datetime": (
        str,
        "YYYY-MM-DDThh:mm:ss.sss",
        "reset to the first record of that time or later, UTC unless it ends in a zone",
    ),
    "--by-duration": (str, "PnDTnHnMnS", "reset to the time so long ago"),
    "--to-earliest": (bool, "", "reset to the start"),
    "--to-latest": (bool, "", "reset to the end"),
    "--to-current": (bool, "", "reset to the committed offset"),
    "--from-file": (str, "CSV", "reset to what a file says that --export wrote"),
}


def has(arguments: argparse.Namespace, option: str) -> bool:
    """Whether the option was given, also with a value that is zero or empty."""
    value = getattr(arguments, option.removeprefix("--").replace("-", "_"), None)
    return value is not None and value is not False and value != []


def given(arguments: argparse.Namespace, options: Iterable[str]) -> list[str]:
    return [option for option in options if has(arguments, option)]


def refuse_together(arguments: argparse.Namespace, used: str, others: Iterable[str]) -> None:
    """Bad usage if `used` was given together with one of `others`."""
    if has(arguments, used):
        for other in given(arguments, others):
            _fail(arguments, f'Option "[{used[2:]}]" can\'t be used with option "[{other[2:]}]"')


def refuse_elsewhere(
    arguments: argparse.Namespace, options: Iterable[str], actions: Collection[str]
) -> None:
    """Bad usage for options that only make sense with one of `actions`."""
    if not given(arguments, actions):
        for option in given(arguments, options):
            _fail(arguments, f"Option {option} can only be used with {' or '.join(actions)}")


def check_action(
    arguments: argparse.Namespace, actions: Sequence[str], before_last: str = ""
) -> str:
    """The one action; bad usage if there is none, or more than one."""
    chosen = given(arguments, actions)
    if len(chosen) != 1:
        *others, last = actions
        told = f"{', '.join(others)}, {before_last}{last}"
        _fail(arguments, f"Command must include exactly one action: {told}")
    return chosen[0]


def check_describe(arguments: argparse.Namespace) -> None:
    if not given(arguments, ("--group", "--all-groups")):
        _fail(arguments, "Option [describe] takes one of these options: [all-groups], [group]")
    if len(given(arguments, ("--members", "--offsets", "--state"))) > 1:
        _fail(
            arguments,
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        )
    if arguments.state:
        _fail(arguments, "Option [describe] does not take a value for [state]")


def check_one_scenario(arguments: argparse.Namespace, scenarios: Sequence[str]) -> None:
    if arguments.dry_run and arguments.execute:
        _fail(arguments, "Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    for option in scenarios:
        refuse_together(arguments, option, (other for other in scenarios if other != option))


def parse_states(arguments: argparse.Namespace, valid: Sequence[str]) -> frozenset[str]:
    """The states that --state names, in Kafka's spelling; none for all."""
    if not arguments.state:
        return frozenset()
    by_lower = {state.lower(): state for state in valid}
    states = [by_lower.get(part.strip().lower()) for part in arguments.state.split(",")]
    if None in states:
        _fail(
            arguments,
            f"Invalid state list '{arguments.state}'. Valid states are: {', '.join(valid)}",
        )
    return frozenset(state for state in states if state is not None)


def _fail(arguments: argparse.Namespace, message: str) -> NoReturn:
    parser: Parser = arguments.parser
    parser.error(message)
