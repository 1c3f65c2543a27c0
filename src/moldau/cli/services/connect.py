"""`moldau connect`: runs Connect's workers, and manages connectors through their REST interface."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from moldau.cli.services.options import add_service_arguments, service_properties
from moldau.cli.streams.hosted import add_instances, checked_instances, start_application
from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.arguments import Commands, Parser
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import Failure
from moldau.cli.support.running import find_deployment
from moldau.installation import pip_install

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau connect start
  moldau connect standalone worker.properties source.properties
  moldau connect create source.json
  moldau connect create lines connector.class=FileStreamSource file=in.txt \\
      topic=lines
  moldau connect status lines
  moldau connect explain lines
  moldau connect metrics lines --follow
  moldau connect dry-run sink.json --sample 5
  moldau connect offsets lines
"""
_URL = "http://127.0.0.1:8083"
#: Commands about one connector: what each is for.
_ONE = {
    "show": "show a connector's configuration and tasks",
    "status": "show the states of a connector and its tasks",
    "pause": "pause a connector and its tasks",
    "resume": "resume a connector that is paused or stopped",
    "stop": "stop a connector and end its tasks",
    "delete": "delete a connector",
    "explain": "show in one line why a connector or task failed",
}


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    start = commands.add("start", "run a distributed worker until Ctrl-C, or workers on Spark")
    add_service_arguments(start, what="worker", port=8083, brokers="of the cluster")
    add_instances(start)
    standalone = commands.add("standalone", "run a worker alone, with the connectors of files")
    standalone.add_argument("worker", metavar="WORKER", help="properties file of the worker")
    standalone.add_argument(
        "connectors",
        nargs="*",
        metavar="CONNECTOR",
        help="properties or JSON files of connectors",
    )
    _add_plugins(commands)
    _add_management(commands)


def _add_plugins(commands: Commands) -> None:
    plugins = commands.add("plugins", "list connectors, transforms and converters")
    plugins.add_argument("plugin", nargs="?", metavar="NAME", help="show its settings")
    plugins.add_argument("--all", action="store_true", help="not only connectors")
    plugins.add_argument(
        "--plugin-path", default="", metavar="DIRS", help="directories as in plugin.path"
    )
    plugins.add_argument("--version", metavar="RANGE", help="of the plug-in to show")
    plugins.add_argument("--json", action="store_true", help="print JSON")
    dry = commands.add("dry-run", "show what a connector's transforms make of records")
    dry.add_argument("file", metavar="FILE", help="properties or JSON file of the connector")
    dry.add_argument("--sample", type=int, default=5, metavar="N", help="records (default: 5)")
    dry.add_argument(
        "--input",
        metavar="FILE",
        help="values as JSON lines, instead of records of the connector's source or topics",
    )
    dry.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="brokers, to read a sink's topics"
    )


def _add_management(commands: Commands) -> None:
    listing = commands.add("list", "list connectors with their states")
    _add_url(listing)
    create = commands.add("create", "create a connector, or change it if it exists")
    create.add_argument("connector", metavar="FILE|NAME", help="a file, or a name with settings")
    create.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings")
    create.add_argument("--paused", action="store_true", help="create it paused")
    _add_url(create)
    edit = commands.add("edit", "change settings of a connector; an empty value removes one")
    edit.add_argument("connector", metavar="NAME", help="the connector")
    edit.add_argument("settings", nargs="+", metavar="KEY=VALUE", help="settings")
    _add_url(edit)
    for name, text in _ONE.items():
        command = commands.add(name, text)
        command.add_argument("connector", metavar="NAME", help="the connector")
        _add_url(command)
    restart = commands.add("restart", "restart a connector, its tasks or one task")
    restart.add_argument("connector", metavar="NAME", help="the connector")
    restart.add_argument("--task", type=int, metavar="N", help="only this task")
    restart.add_argument("--tasks", action="store_true", help="also all tasks")
    restart.add_argument("--only-failed", action="store_true", help="only what has failed")
    _add_url(restart)
    offsets = commands.add("offsets", "show, set or reset the offsets of a connector")
    offsets.add_argument("connector", metavar="NAME", help="the connector")
    offsets.add_argument("--set", metavar="FILE", help="JSON with offsets, as printed")
    offsets.add_argument("--reset", action="store_true", help="remove all offsets")
    _add_url(offsets)
    metrics = commands.add("metrics", "show what tasks have done, how fast, and how far behind")
    metrics.add_argument("connector", nargs="?", metavar="NAME", help="only this connector")
    metrics.add_argument("--follow", action="store_true", help="repeat until Ctrl-C")
    metrics.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="time that rates are measured over (default: 1)",
    )
    _add_url(metrics)
    tail = commands.add("tail", "follow the states of connectors until Ctrl-C")
    tail.add_argument("connector", nargs="?", metavar="NAME", help="only this connector")
    tail.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="pause between two looks (default: 1)",
    )
    _add_url(tail)


def _add_url(parser: Parser) -> None:
    parser.add_argument(
        "--url", default=_URL, metavar="URL", help=f"any worker of the cluster (default: {_URL})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "start":
        return _start(arguments)
    if arguments.command == "standalone":
        return _standalone(arguments)
    if arguments.command in ("plugins", "dry-run"):
        from moldau.cli.services import connect_plugins

        return connect_plugins.run(arguments)
    if arguments.command == "metrics":
        from moldau.cli.services import connect_metrics

        return connect_metrics.run(arguments)
    from moldau.cli.services import connect_client

    return connect_client.run(arguments)


def _start(arguments: argparse.Namespace) -> int:
    properties = _distributed_properties(arguments, os.environ)
    _set_deployment(properties, arguments.data)
    if arguments.instances is not None:
        _start_on_spark(arguments, properties)
        return 0
    return _serve(properties, distributed=True, connectors=[])


def _set_deployment(properties: dict[str, str], given: str | None) -> None:
    """Where bulk sinks find Spark. Which of several is asked only of who uses one."""
    with suppress(Failure):
        found = str(Path(find_deployment(given, os.environ)).absolute())
        properties.setdefault("spark.deployment", found)


def _start_on_spark(arguments: argparse.Namespace, properties: Mapping[str, str]) -> None:
    """Workers as instances of an application that has the name of their group."""
    from moldau.config.errors import ConfigError
    from moldau.connect.runtime.worker_config import WorkerConfig
    from moldau.pipelines.machine.applications import ApplicationDefinition
    from moldau.services.connect.on_spark import PROGRAM

    try:
        WorkerConfig.of(properties, distributed=True)
    except ConfigError as error:
        raise Failure(str(error)) from None
    arguments.bootstrap_server = properties["bootstrap.servers"]
    arguments.command_config = None
    definition = ApplicationDefinition(
        name=properties["group.id"],
        kind="connect",
        program=PROGRAM,
        instances=checked_instances(arguments.instances),
        settings=dict(properties),
    )
    start_application(arguments, definition)


def _distributed_properties(
    arguments: argparse.Namespace, environment: Mapping[str, str]
) -> dict[str, str]:
    properties = service_properties(arguments)
    if arguments.bootstrap_server is not None:
        properties["bootstrap.servers"] = arguments.bootstrap_server
    elif not properties.get("bootstrap.servers"):
        settings = cluster_settings(environment) or {"bootstrap.servers": DEFAULT_SERVERS}
        properties = {**settings, **properties}
    if arguments.file is not None:
        return properties
    # A worker for this machine: JSON without schemas, and topics that one broker can hold.
    return {
        "group.id": "connect-cluster",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "status.storage.topic": "connect-status",
        "config.storage.replication.factor": "-1",
        "offset.storage.replication.factor": "-1",
        "status.storage.replication.factor": "-1",
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.flush.interval.ms": "10000",
        **properties,
    }


def _standalone(arguments: argparse.Namespace) -> int:
    from moldau.cli.services.connect_files import connector_file

    properties = read_config_file(arguments.worker)
    _set_deployment(properties, None)
    connectors = [connector_file(each) for each in arguments.connectors]
    return _serve(properties, distributed=False, connectors=connectors)


def _serve(
    properties: Mapping[str, str], *, distributed: bool, connectors: list[dict[str, str]]
) -> int:
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.cli.services.serving import Runnable, serve
    from moldau.config.errors import ConfigError
    from moldau.connect.api.errors import ConnectError
    from moldau.connect.runtime.worker_config import WorkerConfig

    try:
        from moldau.services.connect.app import ConnectWorker
    except ModuleNotFoundError as error:
        raise Failure(
            f"a worker needs the package {error.name}: {pip_install('schemas')}"
        ) from None

    try:
        config = WorkerConfig.of(properties, distributed=distributed)
    except ConfigError as error:
        raise Failure(str(error)) from None

    def ready_text(service: Runnable) -> str:
        return _ready_text(service.urls, config.values, distributed=distributed)

    return serve(
        lambda: ConnectWorker(config, distributed=distributed, connectors=connectors),
        ready_text,
        failures=(ConnectError,),
    )


def _ready_text(urls: list[str], values: Mapping[str, object], *, distributed: bool) -> str:
    url = urls[0].replace("0.0.0.0", "127.0.0.1")
    servers = values["bootstrap.servers"]
    shown = ", ".join(servers) if isinstance(servers, tuple) else str(servers)
    where = f"group {values['group.id']}" if distributed else "standalone"
    return "\n".join(
        (
            f"The Connect worker is up ({where}).",
            f"  listening  {', '.join(urls)}",
            f"  cluster    {shown}",
            f"  reference  {url}/docs",
            "",
            "Try it:",
            f"  moldau connect create lines connector.class=FileStreamSource file=in.txt "
            f"topic=lines --url {url}",
            f"  moldau connect list --url {url}",
            "",
            "Ctrl-C stops it.",
        )
    )
