"""`moldau up`: its options and subcommands. `launch.py` does the work."""

from __future__ import annotations

import argparse
from importlib import import_module

from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
run the whole platform on this machine

A broker, the Schema Registry, the REST Proxy, Connect, the SQL server and Control Center start as
processes of their own and are kept running: one that ends is started again, ever later after
failures in a row. Spark starts with the first pipeline. Ctrl-C stops all of them in order; a second
Ctrl-C kills them. Whatever ends this command ends the services too.

DIR holds the data, the state and the log of each service. A service that is not installed is left
out, with a line on how to install it."""

_EXAMPLES = """\
examples:
  moldau up
  moldau up --detach
  moldau up status
  moldau up logs connect --follow
  moldau up stop
  moldau up --brokers 3 --without rest,sql
  moldau up --only broker,registry --port 19092 --service-port registry=18081
  moldau up --with mqtt --data /var/moldau
  moldau up --bootstrap-server kafka1:9092
  moldau up destroy --yes
"""
#: Words after `moldau up`; each is a command of its own, too.
_COMMANDS = {
    "status": "show the services and their states",
    "stop": "stop all services; the data stays",
    "logs": "print what a service has logged",
    "destroy": "stop all services and delete their data",
}


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--detach", "-d", action="store_true", help="return when all services are up"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="directory of the platform (default: ./moldau-platform)",
    )
    parser.add_argument(
        "--brokers",
        type=int,
        metavar="N",
        help="number of brokers (default: 1, or those in DIR)",
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="P",
        help="port of the first broker; 0 chooses free ports for all services (default: 9092)",
    )
    parser.add_argument(
        "--service-port",
        action="append",
        default=[],
        metavar="SERVICE=P",
        help="port of a service; may be repeated. The default ports are registry 8081, rest 8082, "
        "connect 8083, sql 8088, console 9021, mqtt 1883",
    )
    _add_choices(parser)
    commands = parser.add_commands(required=False)
    for name, text in _COMMANDS.items():
        command = commands.add(name, text)
        import_module(f"moldau.cli.platform.{name}").add_arguments(command)


def _add_choices(parser: Parser) -> None:
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="address to listen on, 0.0.0.0 for all of this machine (default: 127.0.0.1). Control "
        "Center stays on 127.0.0.1 without a --service-config that sets its login",
    )
    parser.add_argument(
        "--advertised-host",
        default="127.0.0.1",
        metavar="H",
        help="with --host: name or address under which clients reach the broker (default: "
        "127.0.0.1)",
    )
    parser.add_argument("--without", metavar="SERVICE,...", help="leave these services out")
    parser.add_argument("--with", dest="added", metavar="SERVICE,...", help="also run: mqtt")
    parser.add_argument("--only", metavar="SERVICE,...", help="run these services alone")
    parser.add_argument(
        "--spark", action="store_true", help="start Spark at once, not with the first pipeline"
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="use these brokers instead of starting one",
    )
    parser.add_argument(
        "--service-config",
        action="append",
        default=[],
        metavar="SERVICE=FILE",
        help="properties file of a service; may be repeated",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a configuration key of the brokers; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.command is not None:
        module = import_module(f"moldau.cli.platform.{arguments.command}")
        return int(module.run(arguments))
    from moldau.cli.platform.launch import run_detached, run_up

    return run_detached(arguments) if arguments.detach else run_up(arguments)
