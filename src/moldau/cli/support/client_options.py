"""The options that most tools have, and the settings of a client that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from moldau.cli.support.arguments import Parser
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused

__all__ = [
    "add_common",
    "add_json",
    "client_config",
    "parse_properties",
    "read_client_config",
    "read_text",
]


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
