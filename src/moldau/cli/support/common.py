"""What the tools share: common options, the admin client, tables, JSON and progress.

Invariants: in a pipe a tool prints Kafka's plain text; colours, boxes and progress bars
appear on a terminal only. Progress goes to stderr, so that stdout has only results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from moldau.cli.support.arguments import Parser
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused

if TYPE_CHECKING:
    from rich.console import Console

    from moldau.client.admin import Admin

__all__ = [
    "Progress",
    "Refused",
    "Table",
    "ToolError",
    "Unreachable",
    "add_common",
    "add_json",
    "aligned",
    "client_config",
    "message_of",
    "on_terminal",
    "open_admin",
    "parse_properties",
    "print_json",
    "progress",
    "read_client_config",
    "read_config_file",
    "read_text",
    "reporting_as",
    "tabbed",
    "wait_until_reachable",
]

# How long a tool waits for a first broker to listen: enough for one that is just starting.
REACHABLE_SECONDS_MAX = 5.0
# How long for the answer of one that accepts connections: as long as request.timeout.ms. A machine
# may be busy, and a client would not be answered sooner.
ANSWER_SECONDS_MAX = 30.0
_RETRY_SECONDS = 0.2

PlainLayout = Callable[[Sequence[str], Sequence[Sequence[str]]], Iterable[str]]


class Unreachable(ToolError):
    """No node answers at the cluster's addresses."""

    is_about_address = True


@contextmanager
def reporting_as(prefix: str, *, to_stdout: bool = False) -> Iterator[None]:
    """Turns refusals and errors of the client into the one line that Kafka's tool prints."""
    from moldau.client.errors import ConfigError as ClientConfigError
    from moldau.client.errors import KafkaError

    try:
        yield
    except (Refused, KafkaError, ClientConfigError) as error:
        raise ToolError(f"{prefix}{message_of(error)}", to_stdout=to_stdout) from None


def message_of(error: BaseException) -> str:
    """What Kafka's tool would show of an error: the broker's own words where there are any."""
    words = getattr(error, "message", "")
    if " " not in words:
        # Only a name, or nothing: the error's own text is better.
        words = str(error) or type(error).__name__
    return " ".join(line.strip() for line in str(words).splitlines()).strip()


# Options, and the client they describe.


def add_common(
    parser: Parser,
    *,
    controllers: bool = False,
    required: bool = True,
    deprecated: Sequence[str] = (),
    short: bool = False,
) -> None:
    """--bootstrap-server (with `controllers`, or --bootstrap-controller), --command-config.

    `deprecated` are aliases of --command-config. With `short` there are -b, -C and -c.
    """
    servers = ("--bootstrap-server", "-b") if short else ("--bootstrap-server",)
    config = ("--command-config", "-c") if short else ("--command-config",)
    if controllers:
        group = parser.add_mutually_exclusive_group(required=required)
        group.add_argument(
            *servers,
            metavar="HOST:PORT,...",
            help="addresses of one or more brokers of the cluster",
        )
        group.add_argument(
            *(("--bootstrap-controller", "-C") if short else ("--bootstrap-controller",)),
            metavar="HOST:PORT,...",
            help="addresses of one or more controllers, instead of brokers",
        )
    else:
        parser.add_argument(
            *servers,
            metavar="HOST:PORT,...",
            required=required,
            help="addresses of one or more brokers of the cluster",
        )
    parser.add_argument(*config, metavar="FILE", help="properties file with settings of the client")
    if deprecated:
        parser.add_deprecated(*deprecated, instead="--command-config")


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def read_text(path: str) -> str:
    """The text of a file; Refused if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"{path} is not a text file") from None


def read_client_config(path: str) -> dict[str, object]:
    """A client's settings in a file. As in Kafka's tools, keys that no client has are logged and
    left out: such a file often serves other programs too."""
    from moldau.client.config import known_keys

    return known_keys(read_config_file(path))


def parse_properties(option: str, entries: Iterable[str]) -> dict[str, str]:
    """Repeated key=value options; a key without a value stands for the empty one, as in Kafka."""
    properties: dict[str, str] = {}
    for entry in entries:
        key, _, value = entry.partition("=")
        if not key:
            raise ToolError(f"{option} {entry}: expected key=value")
        properties[key] = value
    return properties


def client_config(arguments: argparse.Namespace) -> dict[str, object]:
    """Settings by Kafka's names: those of --command-config, and where the cluster is."""
    config: dict[str, object] = {}
    if getattr(arguments, "command_config", None):
        config.update(read_client_config(arguments.command_config))
    controllers = getattr(arguments, "bootstrap_controller", None)
    if controllers:
        config.pop("bootstrap.servers", None)
        config["bootstrap.controllers"] = controllers
    elif arguments.bootstrap_server:
        config.pop("bootstrap.controllers", None)
        config["bootstrap.servers"] = arguments.bootstrap_server
    return config


def open_admin(arguments: argparse.Namespace, **settings: Any) -> Admin:
    """An admin client for the cluster of the options; ToolError if no node can be reached."""
    from moldau.client.admin import Admin

    config = client_config(arguments)
    wait_until_reachable(config)
    return Admin(config, **settings)


def wait_until_reachable(
    config: Mapping[str, Any],
    *,
    seconds_max: float | None = None,
    idle_ms_max: int | None = None,
) -> None:
    """Returns once a Kafka node answers at one of the bootstrap addresses; ToolError if none does.

    A client would retry for a minute and end with a timeout that explains little. A node may be
    slow to answer, but an answer that is not Kafka's is reported at once. `idle_ms_max` is how long
    the user lets the tool wait for records.
    """
    from moldau.cli.support.probe import problems_of
    from moldau.client.config.settings import parse_addresses

    key = "bootstrap.controllers" if config.get("bootstrap.controllers") else "bootstrap.servers"
    entries = [entry.strip() for entry in str(config.get(key, "")).split(",") if entry.strip()]
    addresses = parse_addresses(key, entries)
    limit = REACHABLE_SECONDS_MAX if seconds_max is None else seconds_max
    deadline = time.monotonic() + limit
    waiting = False
    while True:
        problems = problems_of(
            addresses,
            connect_seconds_max=REACHABLE_SECONDS_MAX,
            answer_seconds_max=_answer_seconds_max(config, idle_ms_max),
        )
        if problems is None:
            return
        certain = all(problem.certain for problem in problems)
        if certain or time.monotonic() >= deadline:
            break
        if not waiting and sys.stderr.isatty():
            print(f"No answer from {', '.join(entries)} yet, waiting ...", file=sys.stderr)
        waiting = True
        time.sleep(_RETRY_SECONDS)
    listed = "; ".join(
        f"{entry}: {problem.text}" for entry, problem in zip(entries, problems, strict=True)
    )
    kind = "controller" if key == "bootstrap.controllers" else "broker"
    fix = (
        f"Give the address of a {kind}."
        if certain
        else "Check that it is running and that the address is right."
    )
    raise Unreachable(f"no {kind} can be reached at {listed}. {fix}")


def _answer_seconds_max(config: Mapping[str, Any], idle_ms_max: int | None) -> float:
    given = str(config.get("default.api.timeout.ms", ""))
    if given.isdecimal() and int(given):
        # What the user gives every operation is enough for this one.
        return int(given) / 1000
    if idle_ms_max is not None and idle_ms_max >= 0:
        # A busy node needs at least this long; that no record came is not an error.
        return min(ANSWER_SECONDS_MAX, max(REACHABLE_SECONDS_MAX, idle_ms_max / 1000))
    return ANSWER_SECONDS_MAX


# Output.


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def tabbed(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell, each followed by a tab: most of Kafka's tables."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        yield "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))


def aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell, two blanks apart: tables that Kafka does not have."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


class Table:
    """Rows under headers: in a pipe in the layout of Kafka's tool, on a terminal for people."""

    def __init__(
        self, *headers: str, plain: PlainLayout = tabbed, title: str | None = None
    ) -> None:
        self._headers = headers
        self._plain = plain
        self._title = title
        self._rows: list[tuple[str, ...]] = []
        self._styles: list[str | None] = []

    def add(self, *cells: object, style: str | None = None) -> None:
        """A row; `style` is its colour on a terminal."""
        self._rows.append(tuple(str(cell) for cell in cells))
        self._styles.append(style)

    def __len__(self) -> int:
        return len(self._rows)

    def show(self) -> None:
        if on_terminal():
            self._show_rich()
            return
        for line in self._plain(self._headers, self._rows):
            print(line)

    def _show_rich(self) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        from moldau.cli.support.machine.table_layout import fitted, lines_of

        console = Console()
        if self._title is not None:
            console.print(Text(self._title, style="bold"), soft_wrap=True)
        if not self._rows:
            console.print(Text("  none", style="dim"))
            return
        layout = fitted(self._headers, self._rows, console.width)
        for line in lines_of(layout.shared, console.width):
            console.print(Text(line, style="dim"), soft_wrap=True)
        styled = list(zip(self._rows, self._styles, strict=True))
        if not layout.columns:
            _show_fields(console, self._headers, styled, {header for header, _ in layout.shared})
            return
        table = RichTable(box=SIMPLE_HEAD, header_style="bold cyan")
        for column in layout.columns:
            justify: Literal["left", "right"] = "right" if column.numeric else "left"
            table.add_column(
                column.header, justify=justify, overflow="fold", max_width=column.width
            )
        for row, style in styled:
            cells = (Text(row[column.index]) for column in layout.columns)
            table.add_row(*cells, style=style)
        console.print(table)


def _show_fields(
    console: Console,
    headers: Sequence[str],
    rows: Sequence[tuple[Sequence[str], str | None]],
    known: Container[str],
) -> None:
    """Each row as lines of header and value, where the terminal is too narrow for a table."""
    from rich.text import Text

    width = max(map(len, headers))
    for row, style in rows:
        console.print()
        for header, cell in zip(headers, row, strict=True):
            if header not in known:
                line = Text(f"  {header:<{width}}  ", style="bold cyan")
                console.print(line.append(Text(cell, style=style or "default")), soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON document; indented and coloured on a terminal."""
    if on_terminal():
        from rich.console import Console

        Console().print_json(json.dumps(value))
    else:
        print(json.dumps(value))


class Progress(Protocol):
    """Progress of an operation."""

    def advance(self, count: float = 1) -> None: ...

    def update(self, completed: float) -> None: ...


class _Silent:
    def advance(self, count: float = 1) -> None:
        return

    def update(self, completed: float) -> None:
        return


@contextmanager
def progress(
    description: str, *, total: float | None = None, unit: str = "records"
) -> Iterator[Progress]:
    """Shows progress, rate and time left on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield _Silent()
        return
    from moldau.cli.support.progress import Bar

    bar = Bar(description, total, unit)
    try:
        yield bar
    finally:
        bar.close()
