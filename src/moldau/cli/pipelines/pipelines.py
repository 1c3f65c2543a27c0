"""`moldau pipelines`: start, stop and watch data pipelines.

A failure is reported with the line of the definition; the rest is in the pipeline's log. Exit
codes: 0 success, 1 failure. Output is plain text in a pipe, one JSON document with --json.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.cli.pipelines import texts
from moldau.cli.pipelines.definition_texts import own_line, warn_of_secrets
from moldau.cli.pipelines.top import add_top, run_top
from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings, running_cluster
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.connecting import Unreachable, wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.running import find_deployment
from moldau.cli.support.tables import Table, aligned, on_terminal, print_json
from moldau.spark.runtime.places import DEFAULT_FOLDER

if TYPE_CHECKING:
    from moldau.pipelines.api import PipelineInfo, Pipelines
    from moldau.pipelines.errors import PipelineError

__all__ = ["add_arguments", "open_pipelines", "reporting", "run"]

_DEFAULT_LINES = 50

_EXAMPLES = """\
examples:
  moldau pipelines validate orders.yaml   check a definition
  moldau pipelines start orders.yaml      start it, or apply a new definition
  moldau pipelines list                   list all pipelines with state and lag
  moldau pipelines top                    watch rates, lag and batches
  moldau pipelines show orders            show all details of a pipeline
  moldau pipelines logs -f orders         print its log, and new lines
  moldau pipelines stop orders            stop it; its checkpoint remains
  moldau pipelines start orders           continue from the checkpoint
  moldau pipelines delete orders --checkpoint

Pipelines use the brokers of the deployment. Until it has any, these are the brokers in
MOLDAU_BOOTSTRAP_SERVERS, of the profile in use, or 127.0.0.1:9092. --bootstrap-server sets others.
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, required=False)
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="directory of the deployment, or of its broker (default: the deployment that is "
        f"running, or the one in this directory, ./{DEFAULT_FOLDER})",
    )
    add_json(parser)
    commands = parser.add_commands()
    commands.add("list", "list all pipelines")
    add_top(commands)
    show = commands.add("show", "show all details of a pipeline")
    show.add_argument("name", metavar="NAME", help="name of the pipeline")
    start = commands.add(
        "start",
        "start a pipeline from a file, or by name",
        description="start a pipeline from a YAML file, or by name. The definition in a file is "
        "written to the registry first. The command waits until the pipeline runs or fails. A "
        "pipeline that runs with another definition is restarted from its checkpoint.",
    )
    start.add_argument(
        "definition", metavar="FILE.yaml|NAME", help="definition, or name of a pipeline"
    )
    for command, help_text in (
        ("stop", "stop a pipeline; its checkpoint remains"),
        ("restart", "stop a pipeline and start it from its checkpoint"),
    ):
        commands.add(command, help_text).add_argument(
            "name", metavar="NAME", help="name of the pipeline"
        )
    delete = commands.add("delete", "stop and delete a pipeline")
    delete.add_argument("name", metavar="NAME", help="name of the pipeline")
    delete.add_argument("--checkpoint", action="store_true", help="also delete its checkpoint")
    for command in ("start", "stop", "restart", "delete"):
        _add_waiting(_subparser(parser, command))
    logs = commands.add("logs", "print a pipeline's log")
    logs.add_argument("name", metavar="NAME", help="name of the pipeline")
    logs.add_argument(
        "--follow", "-f", action="store_true", help="also print new lines as they come"
    )
    logs.add_argument(
        "--lines",
        "-n",
        type=int,
        default=_DEFAULT_LINES,
        metavar="N",
        help=f"number of lines from the end; 0 for all (default: {_DEFAULT_LINES})",
    )
    logs.add_argument("--detail", action="store_true", help="print errors with all details")
    validate = commands.add(
        "validate",
        "check a definition without starting it",
        description="check a definition without starting anything. All mistakes are reported, each "
        "with its line and column: options, functions, schemas, SQL and columns. If the "
        "deployment's Spark server is running, Spark checks it, too. The last line lists what was "
        "and was not checked.",
    )
    validate.add_argument("file", metavar="FILE.yaml", help="definition of the pipeline")


def _add_waiting(parser: Parser) -> None:
    parser.add_argument(
        "--timeout",
        type=float,
        default=180.0,
        metavar="SECONDS",
        help="how long to wait (default: 180)",
    )
    parser.add_argument(
        "--no-wait", action="store_true", help="return as soon as the request is stored"
    )


def _subparser(parser: Parser, name: str) -> Parser:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: Parser = action.choices[name]
            return found
    raise LookupError(name)


def run(arguments: argparse.Namespace) -> int:
    arguments.data = find_deployment(arguments.data, os.environ)
    with reporting(arguments):
        if arguments.command == "validate":
            from moldau.cli.pipelines.validating import run_validate

            return run_validate(arguments)
        if arguments.command == "top":
            return run_top(arguments, open_pipelines)
        try:
            with open_pipelines(arguments) as pipelines:
                return int(_COMMANDS[arguments.command](pipelines, arguments))
        except Unreachable as error:
            if arguments.command not in ("list", "show"):
                raise
            return _stored(arguments, error)


@contextmanager
def reporting(arguments: argparse.Namespace) -> Iterator[None]:
    """Turns errors into one line each."""
    from moldau.pipelines.errors import PipelineError
    from moldau.spark.runtime.errors import SparkRuntimeError

    try:
        yield
    except PipelineError as error:
        raise ToolError(_error_text(error, arguments)) from None
    except SparkRuntimeError as error:
        raise ToolError(str(error)) from None


@contextmanager
def open_pipelines(arguments: argparse.Namespace) -> Iterator[Pipelines]:
    from moldau.client.config import known_keys
    from moldau.pipelines.api import Pipelines
    from moldau.pipelines.control.folder import ControlFolder

    known = ControlFolder(arguments.data).cluster or {}
    config: dict[str, Any] = dict(known)
    if not (known or arguments.command_config or arguments.bootstrap_server):
        config.update(cluster_settings(os.environ))
        if not config and (cluster := running_cluster(os.environ)) is not None:
            config["bootstrap.servers"] = cluster.bootstrap_servers
    if arguments.command_config:
        config = read_config_file(arguments.command_config)
    servers = (
        arguments.bootstrap_server
        or config.get("bootstrap.servers")
        or known.get("bootstrap.servers")
        or DEFAULT_SERVERS
    )
    config["bootstrap.servers"] = servers
    # What is kept for the control loop are the settings as written: it reads secrets by itself.
    wait_until_reachable(known_keys(config))
    with Pipelines(servers, folder=arguments.data, config=config) as pipelines:
        yield pipelines


# Commands.


def _list(pipelines: Pipelines, arguments: argparse.Namespace) -> int:
    found = pipelines.list()
    return _print_list(found, arguments, _connectors(pipelines, found))


def _connectors(pipelines: Pipelines, found: Sequence[PipelineInfo]) -> list[Any]:
    from moldau.cli.pipelines.connectors import connectors_of
    from moldau.connect.api.errors import ConnectError

    try:
        return connectors_of(pipelines.cluster, found)
    except ConnectError as error:
        print(f"moldau: {error}", file=sys.stderr)
        return []


def _print_list(
    found: Sequence[PipelineInfo], arguments: argparse.Namespace, connectors: Sequence[Any] = ()
) -> int:
    from moldau.cli.pipelines import connectors as words

    if arguments.json:
        print_json(
            [
                *(texts.as_json(info) for info in found),
                *(words.as_json(each) for each in connectors),
            ]
        )
        return 0
    if not found and not connectors:
        print("There are no pipelines. `moldau pipelines start FILE.yaml` starts one.")
        return 0
    columns = ("NAME", "STATE", "FOR", "RESTARTS", "BATCH", "ROWS/S", "LAG", "BEHIND", "LEFT")
    table = Table(*columns, "ENGINE", plain=aligned)
    for info in found:
        progress = info.progress if info.state in ("running", "finished") else None
        table.add(
            info.name,
            texts.condition(info) + ("?" if info.stale else ""),
            texts.age(info.since_ms),
            info.restarts,
            "-" if progress is None else progress.batch_id,
            texts.number(None if progress is None else progress.processed_rows_per_second),
            "-" if progress is None or progress.lag_records is None else progress.lag_records,
            texts.seconds(None if progress is None else progress.lag_seconds),
            texts.time_left(progress),
            texts.engine(info),
            style=texts.COLOURS.get(texts.condition(info)),
        )
    for each in connectors:
        state = words.condition(each)
        unknown = ["-"] * (len(columns) - 2)
        table.add(each.name, state, *unknown, "connect", style=texts.COLOURS.get(state))
    table.show()
    for each in connectors:
        if (why := words.reason(each)) is not None:
            print(f"{each.name}: {why}")
    for info in found:
        if (reason := texts.reason(info)) is not None:
            print(f"{info.name}: {reason}")
    for reason in sorted({info.stale for info in found if info.stale}):
        print(f"?: {reason}, so this may be old. `moldau spark start` starts it.", file=sys.stderr)
    return 0


def _stored(arguments: argparse.Namespace, error: Unreachable) -> int:
    """The states that the control loop has last written, if no broker answers."""
    from moldau.pipelines.stored import stored_infos

    stored = stored_infos(arguments.data)
    if stored is None:
        raise error
    found, seconds = stored
    if arguments.command == "list":
        _print_list(found, arguments)
    else:
        named = [info for info in found if info.name == arguments.name]
        if not named:
            raise error
        _print_one(named[0], arguments)
    print(
        f"moldau: {error} The states above are those that the control loop wrote {seconds:.0f} s "
        "ago.",
        file=sys.stderr,
    )
    return 0


def _show(pipelines: Pipelines, arguments: argparse.Namespace) -> int:
    return _print_one(pipelines.show(arguments.name), arguments)


def _print_one(info: PipelineInfo, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json(texts.as_json(info))
        return 0
    lines = list(_lines_of(info))
    width = max(len(name) for name, _ in lines)
    if not on_terminal():
        for name, value in lines:
            print(f"{name + ':' if name else '':<{width + 2}}{value}")
        return 0
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in lines:
        style = texts.COLOURS.get(texts.condition(info), "") if name == "State" else ""
        grid.add_row(name, Text(value, style=style))
    Console().print(grid)
    return 0


def _lines_of(info: PipelineInfo) -> Iterator[tuple[str, str]]:
    condition = texts.condition(info)
    state = condition if info.since_ms is None else f"{condition} for {texts.age(info.since_ms)}"
    if info.stale:
        state += f" ({info.stale}, so this may be old)"
    yield "Name", info.name
    yield "State", state
    yield "Wanted", info.desired
    yield "Restarts", f"{info.restarts}, {info.attempts} failures in a row"
    if info.state == "restarting" and info.retry_at_ms is not None:
        seconds = max(0.0, info.retry_at_ms / 1000 - time.time())
        yield "Next try", f"in {seconds:.0f} s, after {info.attempts} failures"
    if info.activity is not None and info.state == "running":
        yield "Activity", info.activity
    if (progress := info.progress) is not None:
        yield "Batch", f"{progress.batch_id}, {progress.input_rows} rows, at {progress.at}"
        yield "Rows/s", texts.number(progress.processed_rows_per_second)
        if progress.lag_records is not None:
            behind = texts.seconds(progress.lag_seconds)
            yield (
                "Lag",
                f"{progress.lag_records} records" + ("" if behind == "-" else f", {behind}"),
            )
        if progress.backlog_done is not None:
            yield "Backlog", f"{progress.backlog_done:.0%} done, {texts.time_left(progress)} left"
        if progress.durations_ms:
            yield "Phases", texts.phases(progress)
    if info.instances is not None:
        application = info.definition["application"]
        yield "Engine", f"hosted on Spark, {application['kind']}"
        yield "Instances", f"{info.instances}, {info.instances_running or 0} running"
        yield "Program", str(application["settings"].get("program.file", application["program"]))
    elif info.definition:
        yield "From", _endpoint(info.definition, "source")
        yield "To", _endpoint(info.definition, "sink")
        trigger = str(info.definition.get("trigger", ""))
        yield "Trigger", "as fast as possible" if trigger in ("", "0 seconds") else trigger
    if info.instances is None:
        yield "Engine", info.engine
        yield "Connector", info.connector or str(info.definition.get("connector", "auto"))
    yield "Checkpoint", info.checkpoint
    yield "Generation", f"{info.generation}, revision {info.revision}"
    for query in info.queries:
        yield "Query", f"{query.name} {query.id} run {query.run_id}"
    if (error := info.last_error) is not None:
        recovered = ", recovered" if condition in ("running", "finished") else ""
        yield "Last error", f"{texts.short(str(error))} ({texts.age(error.at_ms)} ago{recovered})"
        if error.hint:
            yield "", error.hint
        if (code := own_line(error.where, Path(info.definition.get("base", ".")))) is not None:
            yield "", code


def _start(pipelines: Pipelines, arguments: argparse.Namespace) -> int:
    with _waiting(arguments, f"starting {arguments.definition}"):
        info = pipelines.start(
            arguments.definition, wait=not arguments.no_wait, timeout=arguments.timeout
        )
    warn_of_secrets(info.definition)
    return _done(info, arguments)


def _stop(pipelines: Pipelines, arguments: argparse.Namespace) -> int:
    with _waiting(arguments, f"stopping {arguments.name}"):
        info = pipelines.stop(arguments.name, wait=not arguments.no_wait, timeout=arguments.timeout)
    return _done(info, arguments)


def _restart(pipelines: Pipelines, arguments: argparse.Namespace) -> int:
    with _waiting(arguments, f"restarting {arguments.name}"):
        info = pipelines.restart(
            arguments.name, wait=not arguments.no_wait, timeout=arguments.timeout
        )
    return _done(info, arguments)


def _delete(pipelines: Pipelines, arguments: argparse.Namespace) -> int:
    with _waiting(arguments, f"deleting {arguments.name}"):
        pipelines.delete(
            arguments.name,
            checkpoint=arguments.checkpoint,
            wait=not arguments.no_wait,
            timeout=arguments.timeout,
        )
    if arguments.json:
        print_json({"deleted": arguments.name, "checkpoint": arguments.checkpoint})
    else:
        print(f"{arguments.name} is deleted.")
    return 0


def _logs(pipelines: Pipelines, arguments: argparse.Namespace) -> int:
    lines = arguments.lines if arguments.lines > 0 else None
    shown = pipelines.logs(
        arguments.name, lines=lines, follow=arguments.follow, detail=arguments.detail
    )
    for line in shown:
        if arguments.json:
            print_json({"line": line})
        else:
            print(line)
        if arguments.follow:
            sys.stdout.flush()
    return 0


_COMMANDS = {
    "list": _list,
    "show": _show,
    "start": _start,
    "stop": _stop,
    "restart": _restart,
    "delete": _delete,
    "logs": _logs,
}


# Texts.


def _done(info: PipelineInfo, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json(texts.as_json(info))
    else:
        print(f"{info.name} is {info.state}.")
    return 0


@contextmanager
def _waiting(arguments: argparse.Namespace, what: str) -> Iterator[None]:
    """Shows activity on a terminal: a first start takes a while."""
    if arguments.json or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ..."):
        yield


def _error_text(error: PipelineError, arguments: argparse.Namespace) -> str:
    """The error, and the line of the definition that it is about."""
    text = str(error)
    named = getattr(arguments, "definition", None) or getattr(arguments, "file", None) or "."
    code = own_line(error.where, Path(named).parent)
    return text if code is None or "\n" in text else f"{text}\n{code}"


def _endpoint(definition: Any, kind: str) -> str:
    """A source or sink in a few words."""
    from moldau.spark.tables import FORMATS

    ends = (
        [definition[kind]] if kind in definition else list(definition.get(f"{kind}s", {}).values())
    )
    parts = []
    for end in ends:
        keys = ("topics", "topic", "route", "pattern", "assign")
        names = next((end[key] for key in keys if end.get(key)), None)
        if names is not None:
            parts.append(f"topic {', '.join(names) if isinstance(names, list) else names}")
        else:
            found = next((each for each in FORMATS if each in end), None)
            parts.append("?" if found is None else f"{found} {end[found]}")
    return "; ".join(parts)
