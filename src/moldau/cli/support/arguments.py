"""Argument parsing with suggestions for misspelled options, and the exit codes of Kafka's tools.

Bad usage is one line on stderr that ends with code 1, as in Kafka's tools, not with argparse's 2.
Options are never abbreviated. An alias that Kafka has deprecated works and warns.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from moldau import __version__
from moldau.cli.support.help_format import (
    ACTIONS,
    DEPRECATED,
    HelpFormat,
    sections,
    sentence,
    usage,
)
from moldau.config.suggestions import did_you_mean

__all__ = ["Commands", "Parser", "int32", "int64", "names_option"]

_CHOICE = re.compile(r"invalid choice: '([^']*)'")
# Argparse's messages, in plain words.
_MESSAGES = (
    (r"the following arguments are required: (.*,.*)", r"\1 are required"),
    (r"the following arguments are required: (.*)", r"\1 is required"),
    (r"one of the arguments (.*) is required", r"one of \1 is required"),
    (r"argument (\S+): expected one argument", r"\1 needs a value"),
    (r"argument (\S+): expected at least one argument", r"\1 needs at least one value"),
    (r"argument (\S+): ignored explicit argument (.*)", r"\1 takes no value, but has \2"),
    (r"argument (\S+): not allowed with argument (\S+)", r"\1 cannot be used with \2"),
    (r"argument (.+?): invalid choice: ('.*') \(choose from (.*)\)", r"\1: \2 is not one of \3"),
    (r"argument (.+?): invalid choice: (.*)", r"\1: there is no \2"),
    (r"argument (.+?): (.*)", r"\1: \2"),
    (r"unrecognized arguments: (.*)", r"unexpected argument: \1"),
)


def int32(text: str) -> int:
    """An argument's `type` for what is an int on the wire, as in Java."""
    return _whole_number(text, bits=32)


def int64(text: str) -> int:
    """The same for what is a long."""
    return _whole_number(text, bits=64)


def _whole_number(text: str, *, bits: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise argparse.ArgumentTypeError(f"{text} does not fit into {bits} bits")
    return value


class Commands:
    """The subcommands of a tool; the chosen one's name becomes `arguments.command`."""

    def __init__(self, subparsers: Any) -> None:
        self._subparsers = subparsers

    def add(self, name: str, help_text: str, **options: Any) -> Parser:
        options.setdefault("description", help_text)
        parser: Parser = self._subparsers.add_parser(name, help=help_text, **options)
        parser.set_defaults(command=name, parser=parser)
        return parser


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with a suggestion if there is one."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", HelpFormat)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options, add_help=False)
        self.register("type", int, int64)
        self.add_argument("--help", "-h", action="help", help="show this help and exit")
        self._words: Sequence[str] = ()
        #: Whether an option given twice has its last value; else that is bad usage.
        self.last_wins = False

    def add_commands(self, *, required: bool = True) -> Commands:
        """Subcommands, of which one must be given unless the tool does something without."""
        self.set_defaults(command=None, parser=self)
        self.last_wins = True
        return Commands(
            self.add_subparsers(metavar="COMMAND", required=required, parser_class=type(self))
        )

    def add_deprecated(self, *names: str, instead: str, warning: str | None = None) -> None:
        """Aliases of the option `instead`, which must have been added before."""
        action = self._option_string_actions[instead]
        options: dict[str, Any] = {"nargs": action.nargs, "type": action.type}
        self.add_argument(
            *names,
            action=_Deprecated,
            instead=action,
            instead_name=instead,
            warning=warning,
            dest=action.dest,
            default=argparse.SUPPRESS,
            metavar=action.metavar or action.dest.upper(),
            help=f"{DEPRECATED}use {instead}",
            **options,
        )

    def add_actions(self, actions: Mapping[str, str]) -> None:
        """Options without a value, with their help, of which the tool performs one."""
        group = self.add_argument_group(ACTIONS)
        for name, text in actions.items():
            group.add_argument(name, action="store_true", help=text)

    def add_version(self) -> None:
        self.add_argument(
            "--version", action="version", version=__version__, help="print the version and exit"
        )

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(usage(self).replace("%", "%%"), (), ())
        formatter.add_text(sentence(self.description or ""))
        for title, actions in sections(self):
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._words = tuple(args or ())
        return super().parse_known_args(args, namespace)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments; ends the process on bad usage."""
        arguments, extra = self.parse_known_args(self._hoisted(argv))
        parser: Parser = getattr(arguments, "parser", self)
        if extra and not parser._take_late(arguments, extra):
            parser._refuse(extra)
        if not self.last_wins:
            self._refuse_repeated(argv)
        for name, instead in vars(arguments).pop("_deprecated", ()):
            if any(names_option(word, parser._option_string_actions[instead]) for word in argv):
                parser.error(f"Cannot specify both {name} and {instead}. Use {instead} alone")
        return arguments

    def _take_late(self, arguments: argparse.Namespace, extra: Sequence[str]) -> bool:
        """Words after an option belong to the list before it: `create NAME --url U a=b`. argparse
        closes a list that may be empty at the first option."""
        lists = [
            each
            for each in self._actions
            if not each.option_strings and each.nargs in ("*", "+") and each.type is None
        ]
        if len(lists) != 1 or any(each.startswith("-") for each in extra):
            return False
        taken = getattr(arguments, lists[0].dest, None) or []
        setattr(arguments, lists[0].dest, [*taken, *extra])
        return True

    def _hoisted(self, argv: Sequence[str]) -> list[str]:
        """With options of the tool itself moved in front of its subcommand, where they belong.

        Kafka's tools accept them only there, which is hard to remember.
        """
        commands = next(
            (each for each in self._actions if isinstance(each, argparse._SubParsersAction)), None
        )
        words = list(argv)
        if commands is None:
            return words
        at = next((n for n, word in enumerate(words) if word in commands.choices), None)
        if at is None:
            return words
        known = commands.choices[words[at]]._option_string_actions
        moved: list[str] = []
        kept: list[str] = []
        rest = iter(words[at + 1 :])
        for word in rest:
            name, equals, _ = word.partition("=")
            action = self._option_string_actions.get(name)
            if action is None or name in known:
                kept.append(word)
                continue
            moved.append(word)
            if not equals and action.nargs != 0:
                value = next(rest, None)
                if value is None:
                    self.error(f"{word} needs a value")
                moved.append(value)
        return [*words[:at], *moved, words[at], *kept]

    def _refuse_repeated(self, argv: Sequence[str]) -> None:
        """One value would be dropped in silence: `--delete --topic a --topic b`."""
        seen: set[str] = set()
        for word in argv:
            name = word.partition("=")[0]
            action = self._option_string_actions.get(name)
            if not isinstance(action, argparse._StoreAction):
                continue
            if name in seen:
                self.error(
                    f"Found multiple arguments for option {name.lstrip('-')}, but you asked for "
                    "only one"
                )
            seen.add(name)

    def _refuse(self, extra: Sequence[str]) -> NoReturn:
        name = extra[0].partition("=")[0]
        if name.startswith("-"):
            self.error(f"{name} is not a recognized option", name=name)
        self.error(f"unrecognized arguments: {' '.join(extra)}")

    def error(self, message: str, *, name: str | None = None) -> NoReturn:
        guess = ""
        if name is None and (name := self._unknown_option()) is not None:
            # It is the cause of other errors: the intended option is missing, and its value is
            # taken for a command.
            message = f"{name} is not a recognized option"
        if name is not None:
            guess = did_you_mean(name, self._option_string_actions)
        elif match := _CHOICE.search(message):
            guess = did_you_mean(match[1], self._choices())
            if len(self._choices()) > 12:
                message = message[: message.index(" (choose from")]
        elif message.endswith(": COMMAND"):
            message = f"a command is required: {', '.join(self._choices())}"
        hint = guess or f" Run `{self.prog} --help` for usage."
        message = _reworded(message.rstrip("."))
        print(f"{self.prog}: error: {message}.{hint}", file=sys.stderr)
        sys.exit(1)

    def require_one(self, arguments: argparse.Namespace, options: Iterable[str]) -> str:
        """The one of `options` that was given; bad usage if none was, or more than one."""
        options = tuple(options)
        given = [option for option in options if self.is_given(arguments, option)]
        if len(given) != 1:
            self.error(
                "Exactly one of the following arguments is required: "
                + ", ".join(map(_bracketed, options))
            )
        return given[0]

    def require(self, arguments: argparse.Namespace, *options: str) -> None:
        """Bad usage unless all `options` were given."""
        for option in options:
            if not self.is_given(arguments, option):
                self.error(f'Missing required argument "{_bracketed(option)}"')

    def refuse(self, arguments: argparse.Namespace, used: str, options: Iterable[str]) -> None:
        """Bad usage if `used` was given together with one of `options`."""
        if not self.is_given(arguments, used):
            return
        for option in options:
            if self.is_given(arguments, option):
                self.error(
                    f'Option "{_bracketed(used)}" can\'t be used with option "{_bracketed(option)}"'
                )

    def is_given(self, arguments: argparse.Namespace, option: str) -> bool:
        """Whether the option has another value than its default."""
        action = self._option_string_actions[option]
        return bool(getattr(arguments, action.dest, action.default) != action.default)

    def _unknown_option(self) -> str | None:
        known = set(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                known.update(*(each._option_string_actions for each in action.choices.values()))
        for word in self._words:
            name = word.partition("=")[0]
            if name.startswith("--") and len(name) > 2 and name not in known:
                return name
        return None

    def _choices(self) -> list[str]:
        return [str(choice) for action in self._actions for choice in (action.choices or ())]


def _reworded(message: str) -> str:
    for pattern, words in _MESSAGES:
        if re.fullmatch(pattern, message):
            return re.sub(pattern, words, message)
    return message


def names_option(word: str, action: argparse.Action) -> bool:
    """Whether a word of the command line is this option, alone or with its value."""
    return any(
        word == option
        or word.startswith(f"{option}=")
        or (not option.startswith("--") and not word.startswith("--") and word.startswith(option))
        for option in action.option_strings
    )


def _bracketed(option: str) -> str:
    """An option as Kafka's messages name it."""
    return f"[{option.lstrip('-')}]"


class _Deprecated(argparse.Action):
    """Warns, then acts as the option that replaces it."""

    def __init__(
        self, *, instead: argparse.Action, instead_name: str, warning: str | None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._instead = instead
        self._instead_name = instead_name
        self._warning = warning

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        print(
            self._warning
            or f"Option {option_string} is deprecated and will be removed in a future version. "
            f"Use {self._instead_name} instead.",
            file=sys.stderr,
        )
        used = getattr(namespace, "_deprecated", ())
        namespace._deprecated = (*used, (option_string, self._instead_name))
        self._instead(parser, namespace, values, option_string)
