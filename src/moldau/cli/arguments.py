"""Argument parsing that guesses what was meant, with the exit codes of Kafka's tools.

Bad usage ends with code 1, as in Kafka's tools, not with argparse's 2.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from moldau.config.suggestions import did_you_mean

__all__ = ["Help", "Parser"]

_CHOICE = re.compile(r"invalid choice: '([^']*)'")


class Help(argparse.HelpFormatter):
    """Keeps line breaks of descriptions and examples."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=96)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(indent + line for line in text.splitlines(keepends=True))


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line after the usage, with a guess where there is one."""

    def __init__(self, **options: object) -> None:
        options.setdefault("formatter_class", Help)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)  # type: ignore[arg-type]

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments; ends the process on bad usage."""
        arguments, extra = self.parse_known_args(argv)
        if extra:
            parser: Parser = getattr(arguments, "parser", self)
            shown = " ".join(extra)
            name = extra[0].partition("=")[0]
            parser.error(f"unrecognized arguments: {shown}", name=name)
        return arguments

    def error(self, message: str, *, name: str | None = None) -> NoReturn:
        guess = ""
        if name is not None:
            guess = did_you_mean(name, self._option_string_actions)
        elif match := _CHOICE.search(message):
            guess = did_you_mean(match[1], self._choices())
        self.print_usage(sys.stderr)
        print(f"{self.prog}: error: {message}.{guess}".replace("..", "."), file=sys.stderr)
        sys.exit(1)

    def _choices(self) -> list[str]:
        return [str(choice) for action in self._actions for choice in (action.choices or ())]
