"""`moldau spark`: the deployment's Spark server, and the control loop of pipelines.

`start` can be repeated: what runs already is left alone. The server and the control loop run after
the command has ended, until `stop`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.cli.pipelines.foreground import stay, until_signal
from moldau.cli.support.addresses import cluster_settings, running_cluster
from moldau.cli.support.arguments import Commands, Parser
from moldau.cli.support.client_options import add_json
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import ToolError
from moldau.cli.support.running import find_deployment
from moldau.cli.support.tables import on_terminal, print_json
from moldau.spark.runtime.places import DEFAULT_FOLDER

if TYPE_CHECKING:
    from moldau.spark.runtime.server import ConnectServer

__all__ = ["add_arguments", "run", "start_all", "status_lines", "status_of", "stop_all"]

_DEFAULT_BROKER = ("127.0.0.1", 9092)

_EXAMPLES = """\
examples:
  moldau spark start
  moldau spark start --conf spark.driver.memory=4g
  moldau spark start --master spark://10.0.0.1:7077 --data /var/moldau/spark
  moldau spark status --json
  moldau spark stop
  moldau spark master --host 10.0.0.1        a Spark cluster: start its master,
  moldau spark worker spark://10.0.0.1:7077  and workers on other machines
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    start = commands.add("start", "start the Spark server and the control loop of pipelines")
    _add_data(start)
    _add_start(start)
    add_json(start)
    for name, help_text in (
        ("status", "show what runs, with addresses and log files"),
        ("stop", "stop all pipelines, the control loop and the server"),
    ):
        command = commands.add(name, help_text)
        _add_data(command)
        add_json(command)
    _add_cluster(commands)


def _add_data(parser: Parser) -> None:
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="directory of the deployment, or of its broker (default: the deployment that is "
        f"running, or the one in this directory, ./{DEFAULT_FOLDER})",
    )


def _add_start(parser: Parser) -> None:
    parser.add_argument(
        "--master",
        metavar="URL",
        help="Spark master, where tasks run: local[N], spark://HOST:PORT, yarn, k8s://URL "
        "(default: local[*], or the one of the last start)",
    )
    parser.add_argument(
        "--conf",
        action="append",
        metavar="KEY=VALUE",
        help="Spark setting; may be repeated",
    )
    parser.add_argument(
        "--packages", metavar="G:A:V,...", help="Maven coordinates of jars to download"
    )
    parser.add_argument(
        "--connector",
        choices=("auto", "moldau", "kafka"),
        help="connector for topics: kafka downloads and uses Spark's own, moldau never uses it, "
        "auto uses it if it was downloaded before (default: auto)",
    )
    parser.add_argument(
        "--host",
        metavar="H",
        help="address that sessions connect to (default: 127.0.0.1). Sessions need the token in "
        "DIR/token, which only its owner can read; with another address it is sent unencrypted, "
        "so put a proxy with TLS in front",
    )
    parser.add_argument(
        "--port", type=int, metavar="P", help="port that sessions connect to (default: a free one)"
    )
    parser.add_argument(
        "--ship",
        metavar="NAME,...",
        help="installed packages to send to the executors of a cluster, besides moldau",
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="brokers of the pipelines (default: those of the last start, of "
        "MOLDAU_BOOTSTRAP_SERVERS or of the profile in use, the broker that `moldau start` runs "
        "here, or 127.0.0.1:9092 if a broker listens there)",
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help="settings of clients, a properties file"
    )

    parser.add_argument(
        "--foreground",
        action="store_true",
        help="stay until Ctrl-C or SIGTERM, which stop everything; for containers and services",
    )


def _add_cluster(commands: Commands) -> None:
    master = commands.add("master", "run the master of a Spark cluster, in the foreground")
    master.add_argument("--host", default="127.0.0.1", metavar="H", help="its address (127.0.0.1)")
    master.add_argument("--port", type=int, default=7077, metavar="P", help="its port (7077)")
    master.add_argument(
        "--webui-port", type=int, default=8080, metavar="P", help="its UI's port (8080)"
    )
    worker = commands.add("worker", "run a worker of a Spark cluster, in the foreground")
    worker.add_argument("master", metavar="URL", help="the master, spark://HOST:PORT")
    worker.add_argument("--host", metavar="H", help="the worker's own address")
    worker.add_argument("--cores", type=int, metavar="N", help="how many it offers (default: all)")
    worker.add_argument("--memory", metavar="SIZE", help="how much it offers, e.g. 4g")
    worker.add_argument("--work-dir", metavar="DIR", help="where executors run (default: ./work)")


def run(arguments: argparse.Namespace) -> int:
    from moldau.spark.runtime.errors import SparkRuntimeError

    if arguments.command in ("start", "status", "stop"):
        arguments.data = find_deployment(arguments.data, os.environ)
    try:
        match arguments.command:
            case "start":
                return _start(arguments)
            case "status":
                return _status(arguments)
            case "stop":
                return _stop(arguments)
            case "master":
                return _run_master(arguments)
            case _:
                return _run_worker(arguments)
    except SparkRuntimeError as error:
        raise ToolError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ToolError(
            f"{error.filename}: {error.strerror}" if error.filename else str(error)
        ) from None


def _start(arguments: argparse.Namespace) -> int:
    from moldau.spark.runtime.machine.settings import parse_conf
    from moldau.spark.runtime.server import ConnectServer

    config = read_config_file(arguments.command_config) if arguments.command_config else {}
    server = ConnectServer(
        arguments.data,
        master=arguments.master,
        conf=None if arguments.conf is None else parse_conf(arguments.conf),
        packages=_listed(arguments.packages),
        connector=arguments.connector,
        host=arguments.host,
        port=arguments.port,
        ship=_listed(arguments.ship),
    )
    running = server.attach()
    if running:
        _warn_of_no_effect(arguments, server)
    elif sys.stderr.isatty():
        print("Starting Spark, which takes some seconds ...", file=sys.stderr)
    bootstrap_servers = arguments.bootstrap_server or config.get("bootstrap.servers")
    if not arguments.foreground:
        start_all(server, bootstrap_servers, config)
        _show(server, arguments, already=running)
        return 0
    with until_signal() as ending:
        start_all(server, bootstrap_servers, config)
        _show(server, arguments, already=running)
        sys.stdout.flush()
        return stay(server.places.folder, ending, lambda: stop_all(server))


def _warn_of_no_effect(arguments: argparse.Namespace, server: ConnectServer) -> None:
    """Options of a start have no effect on a running server."""
    names = ("master", "conf", "packages", "connector", "host", "port", "ship")
    given = [f"--{name}" for name in names if getattr(arguments, name) is not None]
    if given:
        print(
            f"moldau: the server is running, so {', '.join(given)} will have no effect until its "
            "next start. "
            f"`moldau spark stop --data {arguments.data}` stops it",
            file=sys.stderr,
        )
        server.remember()


def start_all(
    server: ConnectServer, bootstrap_servers: str | None, config: Mapping[str, str]
) -> None:
    """The server, and the control loop if there is a broker."""
    server.start()
    for notice in server.notices:
        print(f"moldau: {notice}.", file=sys.stderr)
    from moldau.pipelines import daemon
    from moldau.pipelines.control.folder import ControlFolder

    if bootstrap_servers is None:
        known = ControlFolder(server.places.folder).cluster or {}
        bootstrap_servers, config = known.get("bootstrap.servers"), {**known, **config}
    if bootstrap_servers is None:
        named = cluster_settings(os.environ)
        bootstrap_servers, config = named.get("bootstrap.servers"), {**named, **config}
    if bootstrap_servers is None and (cluster := running_cluster(os.environ)) is not None:
        bootstrap_servers = cluster.bootstrap_servers
    if bootstrap_servers is None:
        from moldau.spark.runtime.probe import listens

        if not listens(*_DEFAULT_BROKER):
            return
        bootstrap_servers = "{}:{}".format(*_DEFAULT_BROKER)
    daemon.ensure_running(server.places.folder, bootstrap_servers, config=config, keep_server=True)


def stop_all(server: ConnectServer) -> bool:
    """The loop first, which stops queries in order; False if nothing ran.

    The server is stopped even if the loop had to be killed, which is raised.
    """
    from moldau.pipelines import daemon
    from moldau.pipelines.errors import PipelineError

    try:
        looped = daemon.stop(server.places.folder)
    except PipelineError:
        server.stop()
        raise
    return server.stop() or looped


def _status(arguments: argparse.Namespace) -> int:
    from moldau.spark.runtime.server import ConnectServer

    server = ConnectServer(arguments.data)
    _show(server, arguments, already=False)
    return 0 if server.alive() else 1


def _stop(arguments: argparse.Namespace) -> int:
    from moldau.spark.runtime.server import ConnectServer

    server = ConnectServer(arguments.data)
    stopped = stop_all(server)
    if arguments.json:
        print_json({"stopped": stopped, "folder": str(server.places.folder)})
    elif stopped:
        print("Spark has stopped; pipelines go on when it is started again.")
    else:
        print(f"No Spark server runs from {server.places.folder}.")
    return 0


# Output.


def _show(server: ConnectServer, arguments: argparse.Namespace, *, already: bool) -> None:
    status = status_of(server)
    if arguments.json:
        print_json(status)
        return
    lines = status_lines(status, now_ms=int(time.time() * 1000))
    if not on_terminal():
        print("\n".join(lines))
        return
    from rich.console import Console
    from rich.text import Text

    style = "bold green" if status["running"] else "bold yellow"
    console = Console(highlight=False)
    head = lines[0].replace("is up", "is up already") if already else lines[0]
    console.print(Text(head, style=style))
    for line in lines[1:]:
        console.print(
            Text(line[:13], style="cyan").append(line[13:], style="default"), soft_wrap=True
        )


def status_of(server: ConnectServer) -> dict[str, Any]:
    """All that is known of the server and the loop."""
    return server.status() | {"pipelines": _loop_status(server)}


def _loop_status(server: ConnectServer) -> dict[str, object]:
    from moldau.pipelines import daemon
    from moldau.pipelines.control.folder import ControlFolder

    known = daemon.status(server.places.folder)
    if not known.alive:
        return {"running": False}
    cluster = ControlFolder(server.places.folder).cluster or {}
    servers = cluster.get("bootstrap.servers")
    return {"running": True, "pid": known.pid, "bootstrapServers": servers}


def status_lines(status: Mapping[str, Any], *, now_ms: int) -> list[str]:
    """For people: what runs, for how long, and where to look."""
    if not status["running"]:
        lines = ["Spark is not running."]
    else:
        versions = status["versions"]
        connector = "moldau, kafka" if status["connector"] == "kafka" else "moldau"
        lines = [
            f"Spark {versions['spark']} is up.",
            f"  session    {status['url']}",
            f"  token      {status['token']}",
            f"  ui         {status['ui'] or 'none (spark.ui.enabled=false)'}",
            f"  master     {status['master']}",
            f"  runs on    {versions['java']}, Python {versions['python']}",
            f"  topics by  {connector}",
            f"  process    {status['pid']}, up {_age(now_ms - status['startedMs'])}",
        ]
    loop = status["pipelines"]
    if loop["running"]:
        lines.append(
            f"  pipelines  kept running by process {loop['pid']}, on {loop['bootstrapServers']}"
        )
    else:
        lines.append("  pipelines  not kept running: start with --bootstrap-server HOST:PORT")
    return [
        *lines,
        f"  events     {status['events']}",
        f"  log        {status['log']}",
    ]


def _age(ms: int) -> str:
    seconds = max(0, ms // 1000)
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _listed(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


# Spark clusters.


def _run_master(arguments: argparse.Namespace) -> int:
    words = ["--host", arguments.host, "--port", str(arguments.port)]
    words += ["--webui-port", str(arguments.webui_port)]
    return _become("org.apache.spark.deploy.master.Master", words)


def _run_worker(arguments: argparse.Namespace) -> int:
    if not arguments.master.startswith("spark://"):
        raise ToolError(f"{arguments.master} is not the address of a master: use spark://HOST:PORT")
    words: list[str] = []
    if arguments.host is None and arguments.master.startswith("spark://127.0.0.1:"):
        # A master on 127.0.0.1 has no workers on other machines.
        arguments.host = "127.0.0.1"
    for name in ("host", "cores", "memory", "work_dir"):
        value = getattr(arguments, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return _become("org.apache.spark.deploy.worker.Worker", [*words, arguments.master])


def _become(class_name: str, words: list[str]) -> int:
    """Replace this process with Spark's, so that signals reach it."""
    from moldau.spark.runtime.cluster import cluster_command

    command, environ = cluster_command(class_name, words)
    sys.stdout.flush()
    os.execve(command[0], command, environ)
