"""`moldau get-offsets`: offsets of partitions, first, last or by time, as kafka-get-offsets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from moldau.cli.support.arguments import Parser, int64
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import message_of, reporting_as
from moldau.cli.support.tables import Table, print_json
from moldau.cli.topics.machine.topic_filter import (
    PartitionFilter,
    partition_filter,
    partition_rules,
)
from moldau.client.admin import Admin, OffsetSpec
from moldau.client.topics import TopicPartition
from moldau.wire.constants import UNKNOWN_OFFSET

__all__ = ["add_arguments", "parse_time", "run"]

_SPECS = {
    "latest": (-1, OffsetSpec.latest),
    "earliest": (-2, OffsetSpec.earliest),
    "max-timestamp": (-3, OffsetSpec.max_timestamp),
    "earliest-local": (-4, OffsetSpec.earliest_local),
    "latest-tiered": (-5, OffsetSpec.latest_tiered),
    "earliest-pending-upload": (-6, OffsetSpec.earliest_pending_upload),
}

_EXAMPLES = """\
examples:
  moldau get-offsets --topic orders
  moldau get-offsets --topic orders --time earliest
  moldau get-offsets --topic-partitions 'orders:0-3,payments:5-'
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser)
    parser.add_argument(
        "--topic", metavar="REGEX", help="topics, as a regular expression (default: all)"
    )
    parser.add_argument("--partitions", metavar="N,...", help="partitions (default: all)")
    parser.add_argument(
        "--topic-partitions",
        metavar="RULES",
        help="topics with partitions, e.g. t1:1,t2:0-3,t3,t4:5-,t5:-3; a range lacks its end",
    )
    parser.add_argument(
        "--time",
        default="latest",
        metavar="TIME",
        help="milliseconds since 1970, or "
        + ", ".join(f"{number} or {name}" for name, (number, _) in _SPECS.items())
        + " (latest)",
    )
    parser.add_argument(
        "--exclude-internal-topics", action="store_true", help="leave out internal topics"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with reporting_as("Error occurred: "):
        spec = parse_time(arguments.time)
        wanted = _filter(arguments)
        with open_admin(arguments, client_id="GetOffsetShell") as admin:
            partitions = _partitions(admin, wanted, arguments.exclude_internal_topics)
            if not partitions:
                raise Refused("Could not match any topic-partitions with the specified filters")
            found = admin.list_offsets(dict.fromkeys(partitions, spec), check=False)
    offsets = {}
    # Kafka sorts them as strings.
    for partition in sorted(partitions, key=str):
        error = found.errors.get(partition)
        if error is not None:
            print(
                f"Skip getting offsets for topic-partition {partition} due to error: "
                f"{message_of(error)}",
                file=sys.stderr,
            )
        elif found[partition].offset != UNKNOWN_OFFSET:
            offsets[partition] = found[partition].offset
    _show(offsets, as_json=arguments.json)
    return 0


def _filter(arguments: argparse.Namespace) -> PartitionFilter:
    if arguments.topic_partitions is None:
        return partition_filter(arguments.topic, arguments.partitions)
    if arguments.topic is not None or arguments.partitions is not None:
        raise Refused("--topic-partitions cannot be used with --topic or --partitions")
    return partition_rules(arguments.topic_partitions)


def parse_time(text: str) -> OffsetSpec:
    """The offset that a word, its number or a time stands for."""
    for name, (number, make) in _SPECS.items():
        if text in (name, str(number)):
            return make()
    try:
        return OffsetSpec.for_timestamp(int64(text))
    except argparse.ArgumentTypeError:
        known = " / ".join(f"{number} or {name}" for name, (number, _) in _SPECS.items())
        raise Refused(
            f"Malformed time argument {text}. Please use {known}, or a specified long format "
            "timestamp"
        ) from None


def _partitions(
    admin: Admin, wanted: PartitionFilter, exclude_internal: bool
) -> list[TopicPartition]:
    listed = admin.list_topics(list_internal=not exclude_internal)
    described = admin.describe_topics(list(listed)) if listed else {}
    return [
        TopicPartition(topic.name, info.partition)
        for topic in described.values()
        for info in topic.partitions
        if wanted(topic.name, info.partition)
    ]


def _show(offsets: dict[TopicPartition, int], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"topic": key.topic, "partition": key.partition, "offset": offset}
                for key, offset in offsets.items()
            ]
        )
        return
    table = Table("Topic", "Partition", "Offset", plain=_plain)
    for key, offset in offsets.items():
        table.add(key.topic, key.partition, offset)
    table.show()


def _plain(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in rows:
        yield ":".join(row)
