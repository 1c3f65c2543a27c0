"""The `moldau` command: finds the tool, parses its arguments and runs it.

Exit codes: 0 success, 1 bad usage or failure, 130 interrupted, 141 if the reader of the output has
closed it (as for any program in a shell's pipe); some tools have more, as in Kafka.
An error from outside of this program is one line, never a traceback.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import TextIO

from moldau import __version__
from moldau.cli.catalogue import TOOLS, Tool, find_tool, help_listing
from moldau.cli.support.addresses import fill_in, relax
from moldau.cli.support.arguments import Parser
from moldau.cli.support.output import CLOSED_PIPE_STATUS, discard, flushed, surviving_closed_output
from moldau.config.suggestions import did_you_mean

__all__ = ["main", "parser_of"]

# Commands that find their cluster by themselves; commands that use a cluster only if one is named.
_OWN_CLUSTER = frozenset(
    {"console", "learn", "pipelines", "profile", "registry", "rest", "spark", "up"}
)
_CLUSTER_IF_NAMED = frozenset({"doctor"})
# Commands that serve, or start what does: they do their work also if nobody reads their output.
_SERVERS = frozenset(
    {"cluster", "console", "registry", "rest", "server-start", "spark", "start", "up"}
)
# Of those, the subcommands that only show something.
_SHOWING = frozenset({"status"})
# Tools that in Kafka use the last of several values of an option, as those with subcommands do; the
# others refuse repeated options.
_LAST_WINS = frozenset(
    {
        "metadata-shell",
        "producer-perf-test",
        "verifiable-consumer",
        "verifiable-producer",
        "verifiable-share-consumer",
    }
)

# Those whose errors begin with the program's name: no script compares their lines with Kafka's.
_PREFIXED = ("start", "server-start", "cluster", "up", "status", "stop", "logs", "destroy")

_INTRODUCTION = """\
usage: moldau COMMAND ...

Moldau: Kafka brokers, tools and data pipelines in one Python package.

Any Kafka client can connect to a broker that `moldau start` runs. Commands that Kafka has as
scripts take the same options and print the same output."""

_EXAMPLES = """\
examples:
  moldau up                                     run the whole platform on this machine
  moldau start                                  start a broker on 127.0.0.1:9092
  moldau start --port 19092 --data /var/moldau  with this port and data directory
  moldau start server.properties                with a Kafka configuration file
  moldau cluster                                start a cluster of three nodes
  moldau topics --create --topic orders --partitions 3
  moldau profile create prod --bootstrap-server kafka1:9092,kafka2:9092
  moldau doctor                                 check this installation

`moldau help COMMAND` describes a command, `moldau --version` prints the version."""


def main(argv: Sequence[str] | None = None) -> int:
    try:
        status = _main(list(sys.argv[1:] if argv is None else argv))
    except BrokenPipeError:
        # The reader of the output has closed it, e.g. `| head`: not an error.
        discard(sys.stdout)
        return CLOSED_PIPE_STATUS
    except SystemExit:
        # What --help prints is still buffered.
        if not flushed(sys.stdout):
            return CLOSED_PIPE_STATUS
        raise
    return status if flushed(sys.stdout) else CLOSED_PIPE_STATUS


def _main(words: list[str]) -> int:
    if not words:
        _print_help(sys.stderr)
        return 1
    if words[0] == "help" and len(words) > 1:
        words = [*words[1:], "--help"]
    if words[0] in ("-h", "--help", "help"):
        _print_help(sys.stdout)
        return 0
    if words[0] == "--version":
        print(f"moldau {__version__}")
        return 0
    tool = find_tool(words)
    if tool is None:
        guess = did_you_mean(words[0], TOOLS) or " `moldau --help` lists all commands."
        print(f"moldau: error: there is no command {words[0]}.{guess}", file=sys.stderr)
        return 1
    # With `moldau cluster cluster-id` the second word is the tool's own.
    return _run(tool, words[1:])


def parser_of(tool: Tool) -> Parser:
    """The tool's parser, complete; imports its module."""
    # The scripts in bin/ pass on the name that the user called, for usage texts.
    prog = os.environ.get("MOLDAU_SCRIPT") or f"moldau {tool.name}"
    parser = Parser(prog=prog, description=tool.help)
    parser.last_wins = tool.name in _LAST_WINS
    import_module(tool.module).add_arguments(parser)
    if "--version" not in parser._option_string_actions:
        parser.add_version()
    if _finds_cluster(tool):
        relax(parser)
    return parser


def _finds_cluster(tool: Tool) -> bool:
    """Whether --bootstrap-server is optional. Kafka's scripts require it."""
    return tool.name not in _OWN_CLUSTER and not os.environ.get("MOLDAU_SCRIPT")


def _run(tool: Tool, argv: Sequence[str]) -> int:
    parser = parser_of(tool)
    arguments = parser.parse(argv)
    if not hasattr(arguments, "parser"):
        arguments.parser = parser
    arguments.tool_parser = parser
    arguments.given = list(argv)
    serves = tool.name in _SERVERS and not _SHOWING.intersection(argv[:1])
    with surviving_closed_output() if serves else nullcontext():
        return _run_parsed(tool, argv, arguments)


def _run_parsed(tool: Tool, argv: Sequence[str], arguments: Namespace) -> int:
    # Imported late: usage errors and --version do not need it.
    from moldau.cli.support.failures import Failure
    from moldau.cli.support.parents import end_with_parent

    try:
        arguments.has_parent = end_with_parent(os.environ)
        if _finds_cluster(tool):
            default = tool.name not in _CLUSTER_IF_NAMED
            fill_in(arguments, argv, os.environ, default=default)
        status = import_module(tool.module).run(arguments)
    except Failure as failure:
        # The lines of Kafka's tools are compared by scripts.
        prefix = "moldau: " if tool.name in _PREFIXED else ""
        stream: TextIO = sys.stdout if getattr(failure, "to_stdout", False) else sys.stderr
        origin = getattr(arguments, "origin", "") if failure.is_about_address else ""
        print(f"{prefix}{failure} {origin}".rstrip(), file=stream)
        return int(getattr(failure, "exit_code", 1))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        if not _is_expected(error):
            raise
        print(f"{arguments.tool_parser.prog}: {_one_line(error)}", file=sys.stderr)
        return 1
    return int(status)


def _is_expected(error: Exception) -> bool:
    """Whether the error has a cause outside of this program, so that a traceback would not help."""
    errors = sys.modules.get("moldau.client.errors")
    if errors is not None and isinstance(error, errors.KafkaError):
        return True
    from moldau.config.errors import ConfigError

    return isinstance(error, ConfigError)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _print_help(stream: TextIO) -> None:
    print(f"{_INTRODUCTION}\n\n{help_listing()}\n\n{_EXAMPLES}", file=stream)
