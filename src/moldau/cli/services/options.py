"""The options that every `moldau SERVICE start` has."""

from __future__ import annotations

import argparse

from moldau.cli.support.addresses import DEFAULT_SERVERS
from moldau.cli.support.arguments import Parser
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import Failure

__all__ = ["add_service_arguments", "service_properties"]


def add_service_arguments(start: Parser, *, what: str, port: int, brokers: str) -> None:
    """`what` is the service and `brokers` what it needs them for, as the help says it."""
    start.set_defaults(is_service=True)
    start.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help=f"properties file with Confluent's keys (default: a {what} for this machine)",
    )
    start.add_argument(
        "--port", type=int, metavar="P", help=f"port on 127.0.0.1; 0 chooses one (default: {port})"
    )
    start.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help=f"brokers {brokers} (default: those of the file, of MOLDAU_BOOTSTRAP_SERVERS or of "
        f"the profile in use, or {DEFAULT_SERVERS})",
    )
    start.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a configuration key; may be repeated",
    )


def service_properties(arguments: argparse.Namespace) -> dict[str, str]:
    """Those of the file, with what `--override` and `--port` set."""
    properties = {} if arguments.file is None else read_config_file(arguments.file)
    for each in arguments.override:
        key, separator, value = each.partition("=")
        if not separator:
            raise Failure(f"--override {each}: use KEY=VALUE")
        properties[key.strip()] = value.strip()
    if arguments.port is not None:
        if not 0 <= arguments.port <= 65535:
            raise Failure(f"--port {arguments.port}: a port must be between 0 and 65535")
        properties["listeners"] = f"http://127.0.0.1:{arguments.port}"
    return properties
