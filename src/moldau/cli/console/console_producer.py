"""`kafka-console-producer`: sends lines of standard input to a topic."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from moldau.cli.console.options import (
    add_client_options,
    check_addresses,
    client_settings,
    merge,
    use_bytes,
)
from moldau.cli.console.reader import make_reader
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import parse_properties
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.reporting import message_of

if TYPE_CHECKING:
    from moldau.cli.console.reader import LineRecord
    from moldau.client.producer import Producer

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau console-producer --topic orders < orders.txt
  moldau console-producer --topic orders \\
    --reader-property parse.key=true --reader-property key.separator=:
"""

# Option, setting, type, default, meaning.
_SETTINGS: tuple[tuple[str, str, type, object, str], ...] = (
    ("--timeout", "linger.ms", int, 1000, "how long a batch waits for more records"),
    ("--request-required-acks", "acks", str, "-1", "which replicas must confirm a record"),
    ("--request-timeout-ms", "request.timeout.ms", int, 1500, "how long to wait for a response"),
    ("--message-send-max-retries", "retries", int, 3, "how often to send a record again"),
    ("--retry-backoff-ms", "retry.backoff.ms", int, 100, "how long to wait before a retry"),
    ("--socket-buffer-size", "send.buffer.bytes", int, 102400, "size of the socket's buffer"),
    ("--max-memory-bytes", "buffer.memory", int, 33554432, "memory for unsent records"),
    ("--metadata-expiry-ms", "metadata.max.age.ms", int, 300000, "how often to refresh metadata"),
    ("--max-block-ms", "max.block.ms", int, 60000, "how long to wait while the buffer is full"),
)


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_client_options(parser, "producer", old_config="--producer.config")
    parser.add_deprecated("--producer-property", instead="--command-property")
    parser.add_argument("--topic", metavar="NAME", help="topic to send to")
    parser.add_argument(
        "--sync", action="store_true", help="send one record at a time and wait until it is written"
    )
    parser.add_argument(
        "--compression-codec",
        nargs="?",
        const="gzip",
        metavar="CODEC",
        help="none, gzip, snappy, lz4 or zstd; without a value gzip (default: none)",
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="BYTES", help="batch.size (default: 16384)"
    )
    parser.add_argument(
        "--max-partition-memory-bytes",
        type=int,
        metavar="BYTES",
        help="deprecated: use --batch-size",
    )
    for option, key, kind, default, text in _SETTINGS:
        metavar = "ACKS" if kind is str else "N"
        parser.add_argument(
            option, type=kind, metavar=metavar, help=f"{key}: {text} (default: {default})"
        )
    parser.add_argument(
        "--line-reader",
        default="org.apache.kafka.tools.LineMessageReader",
        metavar="CLASS",
        help="dotted path of a Python class that turns lines into records",
    )
    parser.add_argument(
        "--reader-property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="property of the line reader: parse.key, key.separator (default: tab), parse.headers, "
        "headers.delimiter (default: tab), headers.separator (default: ,), "
        "headers.key.separator (default: :), ignore.error, null.marker; may be repeated",
    )
    parser.add_deprecated("--property", instead="--reader-property")
    parser.add_argument(
        "--reader-config", metavar="FILE", help="properties file for the line reader"
    )


def run(arguments: argparse.Namespace) -> int:
    arguments.parser.require(arguments, "--topic")
    check_addresses(arguments)
    if arguments.max_partition_memory_bytes is not None:
        print(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache "
            "Kafka 5.0. Use --batch-size instead.",
            file=sys.stderr,
        )
    settings = producer_settings(arguments)
    try:
        reader = make_reader(arguments.line_reader, _reader_settings(arguments))
    except ValueError as error:
        raise ToolError(str(error)) from None
    wait_until_reachable(settings)
    from moldau.client.producer import Producer

    with Producer(settings) as producer:
        try:
            for record in reader.read_records(sys.stdin.buffer):
                _send(producer, record, sync=arguments.sync)
        except ValueError as error:
            raise ToolError(str(error)) from None
        finally:
            reader.close()
    return 0


def producer_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """The producer's settings by Kafka's names."""
    settings = client_settings(arguments)
    settings["compression.type"] = arguments.compression_codec or "none"
    settings.setdefault("client.id", "console-producer")
    for option, key, _, default, _ in _SETTINGS:
        merge(settings, key, getattr(arguments, option[2:].replace("-", "_")), default)
    merge(settings, "batch.size", arguments.batch_size, 16384)
    merge(settings, "batch.size", arguments.max_partition_memory_bytes, 16384)
    use_bytes(settings, "serializer")
    return settings


def _reader_settings(arguments: argparse.Namespace) -> dict[str, str]:
    settings: dict[str, str] = {}
    if arguments.reader_config:
        settings.update(read_config_file(arguments.reader_config))
    settings["topic"] = arguments.topic
    settings.update(parse_properties("--reader-property", arguments.reader_property))
    return settings


def _send(producer: Producer, record: LineRecord, *, sync: bool) -> None:
    def report(_metadata: object, error: Exception | None) -> None:
        if error is not None:
            print(
                f"Error when sending message to topic {record.topic} with key: "
                f"{_size(record.key)}, value: {_size(record.value)} with error: "
                f"{message_of(error)}",
                file=sys.stderr,
            )

    future = producer.send(
        record.topic,
        record.value,
        key=record.key,
        partition=getattr(record, "partition", None),
        timestamp=getattr(record, "timestamp", None),
        headers=record.headers,
        on_delivery=None if sync else report,
    )
    if sync:
        future.result()


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"
