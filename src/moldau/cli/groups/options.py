"""The options of the group tools, and which of them go together: the same for all three kinds."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import NoReturn

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json

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

#: The options for the new offsets of a reset, of which one may be given.
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
    parser.add_actions(
        {
            "--list": f"list all {kind} groups",
            "--describe": "show offsets and lag, members or state of groups",
            "--delete": "delete groups and their offsets",
            "--reset-offsets": "move the offsets of groups without members",
            "--delete-offsets": "delete a group's offsets of some topics",
        }
    )
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="ID",
        help="group to act on; may be repeated",
    )
    parser.add_argument("--all-groups", action="store_true", help=f"act on all {kind} groups")
    parser.add_argument(
        "--timeout",
        type=int,
        default=30000,
        metavar="MS",
        help="how long to wait for responses (default: 30000)",
    )
    add_json(parser)


def add_describe_options(parser: Parser, *, types: bool = False) -> None:
    group = parser.add_argument_group("output of --list and --describe")
    group.add_argument(
        "--offsets", action="store_true", help="offsets and lag (describe; the default)"
    )
    group.add_argument("--members", action="store_true", help="members (describe)")
    group.add_argument(
        "--state",
        nargs="?",
        const=_PRESENT,
        metavar="STATE,...",
        help="state (describe, list); with --list also: only groups in these states",
    )
    if types:
        group.add_argument(
            "--type",
            nargs="?",
            const=_PRESENT,
            metavar="TYPE,...",
            help="type (list), or only groups of these types: classic, consumer",
        )
    group.add_argument("--verbose", action="store_true", help="more columns (describe)")


def add_reset_options(parser: Parser, scenarios: Sequence[str], *, export: bool) -> None:
    group = parser.add_argument_group("new offsets (with --reset-offsets)")
    group.add_argument("--dry-run", action="store_true", help="only print the new offsets")
    group.add_argument("--execute", action="store_true", help="set the new offsets")
    if export:
        group.add_argument("--export", action="store_true", help="print the new offsets as CSV")
    for option in scenarios:
        kind, metavar, text = _SCENARIO_HELP[option]
        if kind is bool:
            group.add_argument(option, action="store_true", help=text)
        else:
            group.add_argument(option, type=kind, metavar=metavar, help=text)


_SCENARIO_HELP: dict[str, tuple[type, str, str]] = {
    "--to-offset": (int, "N", "set offsets to N"),
    "--shift-by": (int, "N", "move the committed offsets by N, backwards if it is negative"),
    "--to-datetime": (
        str,
        "YYYY-MM-DDThh:mm:ss.sss",
        "set offsets to the first record at this time or later; UTC if it has no time zone",
    ),
    "--by-duration": (
        str,
        "PnDTnHnMnS",
        "set offsets to the first record of the time this long ago, e.g. PT1H30M",
    ),
    "--to-earliest": (bool, "", "set offsets to the earliest offsets"),
    "--to-latest": (bool, "", "set offsets to the latest offsets"),
    "--to-current": (bool, "", "set offsets to the committed offsets"),
    "--from-file": (str, "CSV", "set offsets as in a CSV file that --export printed"),
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
        listed = f"{', '.join(others)}, {before_last}{last}"
        _fail(arguments, f"Command must include exactly one action: {listed}")
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
