"""`kafka-console-share-consumer`: prints the records of a topic as a member of a share group."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from moldau.cli.console.loop import RecordLoop, reason_of
from moldau.cli.console.options import (
    add_client_options,
    add_formatter_options,
    add_loop_options,
    client_settings,
    formatter_of,
    group_of,
    use_bytes,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.signals import Signals

if TYPE_CHECKING:
    from moldau.cli.console.formatters import Output, RawRecord

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau console-share-consumer --topic jobs --group workers
  moldau console-share-consumer --topic jobs --release \\
    --max-messages 10 --formatter-property print.delivery=true
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_client_options(parser, "share consumer", old_config="--consumer-config")
    parser.add_deprecated("--consumer-property", instead="--command-property")
    parser.add_argument("--topic", metavar="NAME", help="topic to read")
    parser.add_argument(
        "--group", metavar="ID", help="share group (default: console-share-consumer)"
    )
    add_loop_options(parser)
    parser.add_argument(
        "--reject", action="store_true", help="reject every record: none is delivered again"
    )
    parser.add_argument(
        "--release", action="store_true", help="release every record: each is delivered again"
    )
    parser.add_argument(
        "--reject-message-on-error",
        action="store_true",
        help="reject records that cannot be printed, and continue",
    )
    add_formatter_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.topic is None:
        arguments.parser.error("--topic is a required argument")
    if arguments.reject and arguments.release:
        arguments.parser.error("At most one of --reject and --release may be specified.")
    settings = share_settings(arguments)
    formatter = formatter_of(arguments)
    wait_until_reachable(settings, idle_ms_max=arguments.timeout_ms)
    from moldau.client.share import AcknowledgeType, ShareConsumer

    kind = AcknowledgeType.ACCEPT
    if arguments.reject:
        kind = AcknowledgeType.REJECT
    elif arguments.release:
        kind = AcknowledgeType.RELEASE
    consumer = ShareConsumer(settings)

    def take(record: RawRecord, output: Output) -> None:
        try:
            formatter.write_to(record, output)
        except BrokenPipeError:
            raise
        except Exception as error:  # Custom formatters may raise anything.
            reason = reason_of(error)
            if not arguments.reject_message_on_error:
                raise ToolError(f"Unknown error when running consumer: {reason}") from error
            print(f"Error processing message, rejecting this message: {reason}", file=sys.stderr)
            consumer.acknowledge(record, AcknowledgeType.REJECT)
        else:
            consumer.acknowledge(record, kind)

    with Signals(consumer.wakeup) as signals:
        loop = RecordLoop(
            lambda timeout: consumer.poll(timeout),
            signals,
            timeout_ms=arguments.timeout_ms,
            count_max=arguments.max_messages,
        )
        try:
            consumer.subscribe([arguments.topic])
            loop.run(take)
        finally:
            consumer.close()
            formatter.close()
            print(f"Processed a total of {loop.count} messages", file=sys.stderr)
            if arguments.enable_systest_events:
                print("shutdown_complete", flush=True)
    return signals.exit_code


def share_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """The share consumer's settings by Kafka's names."""
    settings = client_settings(arguments)
    group = group_of(arguments, settings, "--consumer-config")
    settings["group.id"] = group if group is not None else "console-share-consumer"
    settings.setdefault("client.id", "console-share-consumer")
    settings["share.acknowledgement.mode"] = "explicit"
    use_bytes(settings, "deserializer")
    return settings
