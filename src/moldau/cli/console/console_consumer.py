"""`kafka-console-consumer`: prints the records of topics."""

from __future__ import annotations

import argparse
import random
import re
import sys
from typing import TYPE_CHECKING

from moldau.cli.console.formatters import MessageFormatter
from moldau.cli.console.loop import RecordLoop, reason_of
from moldau.cli.console.options import (
    add_client_options,
    add_formatter_options,
    add_loop_options,
    client_settings,
    formatter_of,
    group_of,
    merge,
    use_bytes,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.signals import Signals
from moldau.client.topics import TopicPartition

if TYPE_CHECKING:
    from moldau.cli.console.formatters import Output, RawRecord
    from moldau.client.consumer import Consumer

__all__ = ["add_arguments", "run"]

_EARLIEST = -2
_LATEST = -1
_NAMED_OFFSETS = {"earliest": _EARLIEST, "latest": _LATEST}

_EXAMPLES = """\
examples:
  moldau console-consumer --topic orders --from-beginning
  moldau console-consumer --topic orders --group shop \\
    --formatter-property print.key=true --formatter-property key.separator=' | '
  moldau console-consumer --topic orders --partition 0 \\
    --offset 42 --max-messages 1
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_client_options(parser, "consumer", old_config="--consumer.config")
    parser.add_deprecated("--consumer-property", instead="--command-property")
    parser.add_argument("--topic", metavar="NAME", help="topic to read")
    parser.add_argument(
        "--include", metavar="REGEX", help="topics to read, as a regular expression"
    )
    parser.add_argument(
        "--partition", type=int, metavar="N", help="read only this partition, without a group"
    )
    parser.add_argument(
        "--offset",
        metavar="N",
        help="where to start with --partition: an offset, earliest or latest (default: latest)",
    )
    parser.add_argument(
        "--from-beginning",
        action="store_true",
        help="start at the earliest record if the group has no committed offset",
    )
    parser.add_argument(
        "--group", metavar="ID", help="consumer group (default: a new one, console-consumer-N)"
    )
    add_loop_options(parser)
    parser.add_argument(
        "--isolation-level",
        metavar="LEVEL",
        help="read_committed or read_uncommitted (default: read_uncommitted)",
    )
    parser.add_argument(
        "--skip-message-on-error", action="store_true", help="skip records that cannot be printed"
    )
    add_formatter_options(parser)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    offset = _start_offset(arguments)
    settings = consumer_settings(arguments)
    formatter = formatter_of(arguments)
    wait_until_reachable(settings, idle_ms_max=arguments.timeout_ms)
    from moldau.client.consumer import Consumer

    consumer = Consumer(settings)
    with Signals(consumer.wakeup) as signals:
        loop = RecordLoop(
            lambda timeout: consumer.poll(timeout),
            signals,
            timeout_ms=arguments.timeout_ms,
            count_max=arguments.max_messages,
        )
        try:
            _subscribe(arguments, consumer, offset)
            _print_all(loop, formatter, skip=arguments.skip_message_on_error)
        finally:
            _rewind(consumer, loop)
            consumer.close()
            formatter.close()
            print(f"Processed a total of {loop.count} messages", file=sys.stderr)
            if arguments.enable_systest_events:
                print("shutdown_complete", flush=True)
    return signals.exit_code


def _check(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    parser.require_one(arguments, ("--topic", "--include"))
    if arguments.partition is not None:
        if arguments.topic is None:
            parser.error("The topic is required when partition is specified.")
        if arguments.from_beginning and arguments.offset is not None:
            parser.error("Options from-beginning and offset cannot be specified together.")
    elif arguments.offset is not None:
        parser.error("The partition is required when offset is specified.")
    if arguments.include is not None:
        try:
            re.compile(arguments.include)
        except re.error as error:
            parser.error(f"--include {arguments.include} is not a regular expression: {error}")


def _start_offset(arguments: argparse.Namespace) -> int:
    if arguments.offset is None:
        return _EARLIEST if arguments.from_beginning else _LATEST
    text = arguments.offset.lower()
    if text in _NAMED_OFFSETS:
        return _NAMED_OFFSETS[text]
    if not (text.isascii() and text.isdigit()):
        arguments.parser.error(
            f"The provided offset value '{arguments.offset}' is incorrect. Valid values are "
            "'earliest', 'latest', or a non-negative long."
        )
    return int(text)


def consumer_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """The consumer's settings by Kafka's names."""
    settings = client_settings(arguments)
    group = group_of(arguments, settings, "--consumer.config")
    if group is not None and arguments.partition is not None:
        arguments.parser.error("Options group and partition cannot be specified together.")
    reset = settings.get("auto.offset.reset")
    if reset is None:
        settings["auto.offset.reset"] = "earliest" if arguments.from_beginning else "latest"
    elif arguments.from_beginning and reset != "earliest":
        raise ToolError(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option"
        )
    settings.setdefault("client.id", "console-consumer")
    merge(settings, "isolation.level", arguments.isolation_level, "read_uncommitted")
    if group is None:
        # This group is not used again: its offsets would only fill the log.
        group = f"console-consumer-{random.randrange(100_000)}"
        settings.setdefault("enable.auto.commit", "false")
    settings["group.id"] = group
    # The formatter deserializes, so that a record that cannot be read can be skipped.
    use_bytes(settings, "deserializer")
    return settings


def _subscribe(
    arguments: argparse.Namespace, consumer: Consumer[bytes | None, bytes | None], offset: int
) -> None:
    if arguments.partition is None:
        if arguments.topic is not None:
            consumer.subscribe([arguments.topic])
        else:
            consumer.subscribe(re.compile(arguments.include))
        return
    partition = TopicPartition(arguments.topic, arguments.partition)
    _require_partition(consumer, partition)
    consumer.assign([partition])
    if offset == _EARLIEST:
        consumer.seek_to_beginning([partition])
    elif offset == _LATEST:
        consumer.seek_to_end([partition])
    else:
        consumer.seek(partition, offset)


def _require_partition(
    consumer: Consumer[bytes | None, bytes | None], partition: TopicPartition
) -> None:
    """Kafka's tool waits for ever. A topic that does not exist is waited for, as there."""
    count = len(consumer.partitions_for(partition.topic))
    if count and not 0 <= partition.partition < count:
        has = "only partition 0" if count == 1 else f"partitions 0 to {count - 1}"
        raise ToolError(
            f"topic {partition.topic} has no partition {partition.partition}: it has {has}"
        )


def _print_all(loop: RecordLoop, formatter: MessageFormatter, *, skip: bool) -> None:
    def take(record: RawRecord, output: Output) -> None:
        try:
            formatter.write_to(record, output)
        except BrokenPipeError:
            raise
        except Exception as error:  # Custom formatters may raise anything.
            reason = reason_of(error)
            if not skip:
                raise ToolError(f"Unknown error when running consumer: {reason}") from error
            print(f"Error processing message, skipping this message: {reason}", file=sys.stderr)

    loop.run(take)


def _rewind(consumer: Consumer[bytes | None, bytes | None], loop: RecordLoop) -> None:
    """Go back to what was received but not printed, so that closing does not commit it."""
    first: dict[TopicPartition, int] = {}
    for record in loop.waiting:
        first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
    assigned = consumer.assignment() if first else ()
    for partition, offset in first.items():
        if partition in assigned:
            consumer.seek(partition, offset)
