"""Client settings from the options of the console and performance tools.

An option on the command line takes precedence over the same setting among the properties, and that
over the option's default.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any, Literal

from moldau.cli.console.formatters import FORMATTERS, MessageFormatter, make_formatter
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import parse_properties, read_client_config
from moldau.cli.support.config_files import read_config_file

__all__ = [
    "add_client_options",
    "add_formatter_options",
    "add_loop_options",
    "check_addresses",
    "client_settings",
    "formatter_of",
    "group_of",
    "merge",
    "use_bytes",
]

_DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)]?:([0-9]+)", re.ASCII)


def add_client_options(
    parser: Parser, role: str, *, old_config: str, required: bool = True
) -> None:
    """--bootstrap-server, --command-config and --command-property, with their old names."""
    parser.add_argument(
        "--bootstrap-server",
        required=required,
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster",
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help=f"properties file with settings of the {role}"
    )
    parser.add_deprecated(old_config, instead="--command-config")
    parser.add_argument(
        "--command-property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"setting of the {role}; takes precedence over the file; may be repeated",
    )


def client_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """The settings of the file, of --command-property, which takes precedence, and the address."""
    from moldau.client.config import known_keys

    settings: dict[str, object] = {}
    if arguments.command_config:
        settings.update(read_client_config(arguments.command_config))
    properties = parse_properties("--command-property", arguments.command_property)
    settings.update(known_keys(properties))
    if arguments.bootstrap_server:
        settings["bootstrap.servers"] = arguments.bootstrap_server
    return settings


def merge(settings: dict[str, object], key: str, given: object, default: object) -> None:
    """Add an option to the settings; `given` is None if it was not given."""
    if given is not None:
        settings[key] = given
    else:
        settings.setdefault(key, default)


def use_bytes(settings: dict[str, object], kind: Literal["serializer", "deserializer"]) -> None:
    """Keys and values are sent or received as bytes."""
    for part in ("key", "value"):
        settings[f"{part}.{kind}"] = (
            f"org.apache.kafka.common.serialization.ByteArray{kind.capitalize()}"
        )


def check_addresses(arguments: argparse.Namespace) -> None:
    parts = arguments.bootstrap_server.split(",")
    if not all(_ADDRESS.fullmatch(part) for part in parts):
        arguments.parser.error("Please provide valid host:port like host1:9091,host2:9092")


def group_of(
    arguments: argparse.Namespace, settings: Mapping[str, Any], old_config: str
) -> str | None:
    """The group ID, wherever it was given; bad usage if two places differ."""
    places = [arguments.group]
    if arguments.command_config:
        places.append(read_config_file(arguments.command_config).get("group.id"))
    properties = parse_properties("--command-property", arguments.command_property)
    places.append(properties.get("group.id"))
    ids = sorted({place for place in places if place is not None})
    if len(ids) > 1:
        listed = ", ".join(f"'{each}'" for each in ids)
        arguments.parser.error(
            "The group ids provided in different places (directly using '--group', via "
            f"'--consumer-property', or via '{old_config}') do not match. "
            f"Detected group ids: {listed}"
        )
    return ids[0] if ids else settings.get("group.id")


def add_loop_options(parser: Parser) -> None:
    """When the console consumers exit, and what they print beside records."""
    parser.add_argument(
        "--max-messages", type=int, metavar="N", help="exit after this number of records"
    )
    parser.add_argument(
        "--timeout-ms", type=int, metavar="MS", help="exit if no record arrives for this long"
    )
    parser.add_argument(
        "--enable-systest-events",
        action="store_true",
        help="also print lifecycle events, for system tests",
    )


def add_formatter_options(parser: Parser) -> None:
    parser.add_argument(
        "--formatter",
        default=_DEFAULT_FORMATTER,
        metavar="CLASS",
        help="class that prints records: "
        + ", ".join(name.rpartition(".")[2] for name in FORMATTERS)
        + ", or the dotted path of a Python class (default: DefaultMessageFormatter)",
    )
    parser.add_argument(
        "--formatter-property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="property of the formatter: print.timestamp, print.key, print.value, "
        "print.partition, print.offset, "
        "print.epoch, print.headers, print.delivery (true or false), key.separator, "
        "line.separator, headers.separator, null.literal, key.deserializer, "
        "value.deserializer, headers.deserializer; may be repeated",
    )
    parser.add_deprecated("--property", instead="--formatter-property")
    parser.add_argument(
        "--formatter-config", metavar="FILE", help="properties file for the formatter"
    )
    parser.add_argument(
        "--json", action="store_true", help="print each record as a JSON object on one line"
    )
    parser.add_argument(
        "--key-deserializer", metavar="CLASS", help="deserializer of keys (default: none)"
    )
    parser.add_argument(
        "--value-deserializer", metavar="CLASS", help="deserializer of values (default: none)"
    )


def formatter_of(arguments: argparse.Namespace) -> MessageFormatter:
    """The formatter that the options describe; bad usage if there is none."""
    settings: dict[str, str] = {}
    if arguments.formatter_config:
        settings.update(read_config_file(arguments.formatter_config))
    if arguments.key_deserializer:
        settings["key.deserializer"] = arguments.key_deserializer
    if arguments.value_deserializer:
        settings["value.deserializer"] = arguments.value_deserializer
    settings.update(parse_properties("--formatter-property", arguments.formatter_property))
    if arguments.json:
        return _json_formatter(arguments, settings)
    try:
        return make_formatter(arguments.formatter, settings)
    except ValueError as error:
        parser: Parser = arguments.parser
        parser.error(str(error))


def _json_formatter(arguments: argparse.Namespace, settings: Mapping[str, str]) -> MessageFormatter:
    from moldau.cli.console.formatters_lines import JsonLinesFormatter

    if arguments.formatter != _DEFAULT_FORMATTER:
        arguments.parser.error("--json and --formatter exclude each other: use one of them")
    formatter = JsonLinesFormatter()
    formatter.configure(settings)
    return formatter
