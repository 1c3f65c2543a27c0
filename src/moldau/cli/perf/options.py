"""What the two consumer performance tools have in common: options and settings."""

from __future__ import annotations

import argparse

from moldau.cli.console.options import add_client_options, client_settings, use_bytes
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json
from moldau.cli.support.machine.java_dates import DateFormat

__all__ = ["add_consumer_options", "check_consumer_options", "perf_settings", "timeout_warning"]

_TIMEOUT_MS = 10_000


def add_consumer_options(parser: Parser, *, group: str) -> None:
    add_client_options(parser, "consumer", old_config="--consumer.config")
    parser.add_argument("--topic", metavar="NAME", help="topic to read")
    parser.add_argument(
        "--num-records", type=int, metavar="N", help="number of records to read (required)"
    )
    parser.add_deprecated(
        "--messages",
        instead="--num-records",
        warning="Warning: --messages is deprecated. Use --num-records instead.",
    )
    parser.add_argument("--group", metavar="ID", help=f"group ID (default: {group})")
    parser.add_argument(
        "--fetch-size",
        type=int,
        default=1024 * 1024,
        metavar="BYTES",
        help="bytes to fetch per request (default: 1048576)",
    )
    parser.add_argument(
        "--socket-buffer-size",
        type=int,
        default=2 * 1024 * 1024,
        metavar="BYTES",
        help="size of the socket's buffer (default: 2097152)",
    )
    parser.add_argument(
        "--timeout",
        type=int,
        nargs="?",
        const=_TIMEOUT_MS,
        default=_TIMEOUT_MS,
        metavar="MS",
        help="exit if no record arrives for this long (default: 10000)",
    )
    parser.add_argument(
        "--print-metrics", action="store_true", help="print the consumer's metrics at the end"
    )
    parser.add_argument(
        "--show-detailed-stats", action="store_true", help="also report at every interval"
    )
    parser.add_argument(
        "--reporting-interval",
        type=int,
        default=5000,
        metavar="MS",
        help="how often to report (default: 5000)",
    )
    parser.add_argument(
        "--date-format",
        default="yyyy-MM-dd HH:mm:ss:SSS",
        metavar="PATTERN",
        help="format of times, as in Java's SimpleDateFormat (default: yyyy-MM-dd HH:mm:ss:SSS)",
    )
    parser.add_argument("--hide-header", action="store_true", help="do not print the header")
    add_json(parser)


def check_consumer_options(arguments: argparse.Namespace) -> DateFormat:
    """Bad usage ends here; the format of times."""
    if arguments.num_records is None:
        arguments.parser.error('Missing required argument "[num-records]"')
    if arguments.reporting_interval <= 0:
        arguments.parser.error("Reporting interval must be greater than 0.")
    try:
        return DateFormat(arguments.date_format)
    except ValueError as error:
        parser: Parser = arguments.parser
        parser.error(str(error))


def perf_settings(
    arguments: argparse.Namespace, *, group: str, client_id: str
) -> dict[str, object]:
    """The settings that both tools give their consumers."""
    settings = client_settings(arguments)
    settings["group.id"] = arguments.group or group
    settings["receive.buffer.bytes"] = arguments.socket_buffer_size
    settings["check.crcs"] = "false"
    settings.setdefault("client.id", client_id)
    use_bytes(settings, "deserializer")
    return settings


def timeout_warning(timeout_ms: int) -> str:
    return (
        "WARNING: Exiting before consuming the expected number of records: timeout "
        f"({timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
    )
