"""How `--help` looks: a short usage line, sections in one order for all commands, and the width.

Text without indentation is filled to the terminal's width; indented lines (examples, JSON) are
printed as they are.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Sequence

__all__ = ["ACTIONS", "DEPRECATED", "HelpFormat", "sections", "sentence", "usage"]

#: The title of the options of which a tool performs one.
ACTIONS = "actions (exactly one is required)"
#: How the help text of an option begins that Kafka has deprecated.
DEPRECATED = "deprecated: "
_CLIENT_OPTIONS = {"--command-config", "--command-property"}
_GENERAL_OPTIONS = {"--help", "--json", "--version"}
_WIDTH_MAX = 96


class HelpFormat(argparse.HelpFormatter):
    """Argparse's layout, but for filling, hyphens and the order of an option's names."""

    def __init__(self, prog: str) -> None:
        columns = shutil.get_terminal_size(fallback=(_WIDTH_MAX + 2, 24)).columns
        super().__init__(prog, max_help_position=30, width=min(_WIDTH_MAX, columns - 2))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        paragraph: list[str] = []
        for line in [*text.splitlines(), ""]:
            is_verbatim = not line or line.startswith(" ")
            if not is_verbatim:
                paragraph.append(line)
            if is_verbatim or line.endswith(":"):
                lines += _filled(paragraph, width)
                paragraph = []
            if is_verbatim:
                lines.append(line)
        return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines[:-1])

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _filled([text], width)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def _filled(lines: Sequence[str], width: int) -> list[str]:
    """Neither options nor values are divided at their hyphens."""
    return textwrap.wrap(
        " ".join(" ".join(lines).split()), width, break_on_hyphens=False, break_long_words=False
    )


def sentence(text: str) -> str:
    """A description that is a phrase in a list of commands, as a sentence of its own."""
    first, newline, rest = text.partition("\n")
    if (first and first[-1].isalnum()) or first.endswith((")", "`", "'")):
        first = f"{first}."
    return f"{first[:1].upper()}{first[1:]}{newline}{rest}"


def usage(parser: argparse.ArgumentParser) -> str:
    """What must be given; everything else is [OPTIONS]."""
    formatter = HelpFormat(parser.prog)
    grouped: list[argparse.Action] = []
    parts: list[str] = []
    for group in parser._mutually_exclusive_groups:
        if group.required:
            grouped += group._group_actions
            shown = (_with_value(formatter, each) for each in group._group_actions)
            parts.append(f"({' | '.join(shown)})")
    parts[:0] = [
        _with_value(formatter, each)
        for each in parser._actions
        if each.option_strings and each.required and each not in grouped
    ]
    parts.append("[OPTIONS]")
    for each in parser._actions:
        if isinstance(each, argparse._SubParsersAction):
            parts.append("COMMAND ...")
        elif not each.option_strings and each.help is not argparse.SUPPRESS:
            parts.append(formatter._format_args(each, each.metavar or each.dest.upper()))  # type: ignore[arg-type]
    prefix = "usage: "
    text = textwrap.fill(
        f"{prefix}{parser.prog} {' '.join(parts)}",
        formatter._width,
        subsequent_indent=" " * min(len(f"{prefix}{parser.prog} "), 24),
        break_on_hyphens=False,
        break_long_words=False,
    )
    return text.removeprefix(prefix)


def _with_value(formatter: HelpFormat, action: argparse.Action) -> str:
    name = action.option_strings[0]
    if action.nargs == 0:
        return name
    value = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
    return f"{name} {value}"


def sections(parser: argparse.ArgumentParser) -> Iterable[tuple[str, list[argparse.Action]]]:
    """The titles and arguments of `--help`, what is particular to the command first."""
    cluster: list[argparse.Action] = []
    general: list[argparse.Action] = []
    deprecated: list[argparse.Action] = []
    options: list[argparse.Action] = []
    commands: list[argparse.Action] = []
    arguments: list[argparse.Action] = []
    named: list[tuple[str, list[argparse.Action]]] = []
    actions: list[tuple[str, list[argparse.Action]]] = []
    for group in parser._action_groups:
        own: list[argparse.Action] = []
        for action in group._group_actions:
            names = set(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                commands.append(action)
            elif not names:
                arguments.append(action)
            elif str(action.help).startswith(DEPRECATED):
                deprecated.append(action)
            elif str(action.metavar).startswith("HOST:PORT") or names & _CLIENT_OPTIONS:
                cluster.append(action)
            elif names & _GENERAL_OPTIONS:
                general.append(action)
            elif group is parser._optionals:
                options.append(action)
            else:
                own.append(action)
        (actions if group.title == ACTIONS else named).append((group.title or "", own))
    general.sort(key=lambda action: "--json" not in action.option_strings)
    return (
        ("commands", commands),
        ("arguments", arguments),
        *actions,
        ("options", options),
        *named,
        ("cluster and client", cluster),
        ("general", general),
        ("deprecated", deprecated),
    )
