"""`kafka-streams-application-reset`: resets a Kafka Streams application.

Moves the committed offsets of input topics, and deletes the internal topics of the
application. Exit codes: 1 if a topic is missing or something failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from moldau.cli.groups.group_queries import GroupCluster
from moldau.cli.groups.machine.internal_topics import is_inferred_internal
from moldau.cli.groups.machine.offsets import (
    OffsetPlanError,
    parse_csv_plan,
    parse_datetime_ms,
    parse_duration_argument_ms,
)
from moldau.cli.groups.options import has, refuse_together
from moldau.cli.support.arguments import Parser
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.reporting import message_of
from moldau.client.errors import GroupIdNotFoundError, KafkaError, UnknownMemberIdError
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["add_arguments", "run"]

_SCENARIOS = (
    "--to-offset",
    "--to-datetime",
    "--by-duration",
    "--to-earliest",
    "--to-latest",
    "--from-file",
    "--shift-by",
)
_TIMEOUT_MS = 60_000
_REMOVALS_MAX = 4

_DESCRIPTION = """\
reset a Kafka Streams application so that it processes its input again

The offsets of the input topics are set to the earliest (or as given), and the internal topics of
the application are deleted. Output topics are not changed, nor are the state stores on the disks of
the application: delete those as well, else the output will be wrong.

Deleted topics cannot be restored. Run the command with --dry-run first."""

_EXAMPLES = """\
examples:
  moldau streams-application-reset --application-id app \\
    --input-topics orders,customers --dry-run
"""


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--application-id", required=True, metavar="ID", help="application.id of the application"
    )
    parser.add_argument(
        "--bootstrap-server",
        default="localhost:9092",
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster (default: localhost:9092)",
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help="properties file with settings of the clients"
    )
    parser.add_deprecated("--config-file", instead="--command-config")
    parser.add_argument(
        "--input-topics",
        action="extend",
        type=_names,
        default=[],
        metavar="TOPIC,...",
        help="input topics of the application",
    )
    parser.add_argument(
        "--intermediate-topics",
        action="extend",
        type=_names,
        default=[],
        metavar="TOPIC,...",
        help="deprecated: intermediate topics, whose unread records are skipped",
    )
    parser.add_argument(
        "--internal-topics",
        action="extend",
        type=_names,
        default=[],
        metavar="TOPIC,...",
        help="delete only these internal topics (default: all)",
    )
    parser.add_argument("--to-offset", type=int, metavar="N", help="reset to this offset")
    parser.add_argument(
        "--shift-by",
        type=int,
        metavar="N",
        help="move the committed offsets by N, backwards if it is negative",
    )
    parser.add_argument(
        "--to-datetime",
        metavar="YYYY-MM-DDThh:mm:ss.sss",
        help="set offsets to the first record at this time or later",
    )
    parser.add_argument(
        "--by-duration",
        metavar="PnDTnHnMnS",
        help="set offsets to the first record of the time this long ago",
    )
    parser.add_argument("--to-earliest", action="store_true", help="reset to the start")
    parser.add_argument("--to-latest", action="store_true", help="reset to the end")
    parser.add_argument("--from-file", metavar="CSV", help="set offsets as in a CSV file")
    parser.add_argument("--force", action="store_true", help="remove active members from the group")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be done")


def run(arguments: argparse.Namespace) -> int:
    for option in _SCENARIOS:
        refuse_together(arguments, option, (other for other in _SCENARIOS if other != option))
    if arguments.intermediate_topics:
        print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    with open_admin(arguments) as admin:
        reset = _Reset(GroupCluster(admin, _TIMEOUT_MS), arguments)
        try:
            reset.remove_members()
            topics = list(admin.list_topics(timeout=_TIMEOUT_MS / 1000))
            if arguments.dry_run:
                print(
                    "----Dry run displays the actions which will be performed when running "
                    "Streams Reset Tool----"
                )
            status = reset.move_offsets(topics)
            reset.delete_internal_topics(topics)
        except (KafkaError, OffsetPlanError) as error:
            raise ToolError(f"ERROR: {message_of(error)}") from None
    return status


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _listed(names: Collection[str]) -> str:
    return f"[{', '.join(names)}]"


class _Reset:
    def __init__(self, cluster: GroupCluster, arguments: argparse.Namespace) -> None:
        self._cluster = cluster
        self._admin = cluster.admin
        self._arguments = arguments
        self._group = arguments.application_id

    def remove_members(self) -> None:
        """The group must have no members while offsets move."""
        for attempt in range(_REMOVALS_MAX):
            try:
                found = self._admin.describe_consumer_groups([self._group], timeout=10)
                members = found[self._group].members
                if not members:
                    return
                if not self._arguments.force:
                    listed = ", ".join(member.consumer_id for member in members)
                    raise ToolError(
                        f"ERROR: Consumer group '{self._group}' is still active and has following "
                        f"members: [{listed}]. Make sure to stop all running application instances "
                        "before running the reset tool. You can use option '--force' to remove "
                        "active members from the group."
                    )
                print(f"Force deleting all active members in the group: {self._group}")
                self._admin.remove_members_from_consumer_group(self._group)
                return
            except GroupIdNotFoundError:
                return
            except UnknownMemberIdError:
                # The member has left in the meantime: query again.
                if attempt == _REMOVALS_MAX - 1:
                    raise

    def move_offsets(self, topics: Collection[str]) -> int:
        given, intermediate = self._arguments.input_topics, self._arguments.intermediate_topics
        if not given and not intermediate:
            print("No input or intermediate topics specified. Skipping seek.")
            return 0
        if given:
            print(f"Reset-offsets for input topics {_listed(given)}")
        if intermediate:
            print(f"Seek-to-end for intermediate topics {_listed(intermediate)}")
        status = _tell_missing(given, topics, "input", "Topic: ")
        status |= _tell_missing(intermediate, topics, "intermediate", "Topic:")
        known = [topic for topic in dict.fromkeys(given) if topic in topics]
        passed = [t for t in dict.fromkeys(intermediate) if t in topics and t not in known]
        if not known and not passed:
            return status
        offsets = self._input_offsets(known) | self._end_offsets(passed)
        if not self._arguments.dry_run:
            self._admin.alter_consumer_group_offsets(
                self._group,
                {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()},
            )
        print("Done.")
        return status

    def _input_offsets(self, topics: list[str]) -> dict[TopicPartition, int]:
        if not topics:
            return {}
        print(f"Following input topics offsets will be reset to (for consumer group {self._group})")
        partitions = sorted(self._cluster.named_partitions(topics))
        offsets = self._wanted(partitions)
        for partition in partitions:
            print(
                f"Topic: {partition.topic} Partition: {partition.partition} "
                f"Offset: {offsets[partition]}"
            )
        return offsets

    def _end_offsets(self, topics: list[str]) -> dict[TopicPartition, int]:
        if not topics:
            return {}
        print(
            "Following intermediate topics offsets will be reset to end (for consumer group "
            f"{self._group})"
        )
        partitions = self._cluster.named_partitions(topics)
        for partition in partitions:
            print(f"Topic: {partition.topic}")
        return self._cluster.ends(partitions)

    def _wanted(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        arguments, cluster = self._arguments, self._cluster
        if has(arguments, "--to-offset"):
            return self._within(dict.fromkeys(partitions, arguments.to_offset))
        if arguments.to_latest:
            return cluster.ends(partitions)
        if has(arguments, "--shift-by"):
            positions = self._positions(partitions)
            return self._within({p: positions[p] + arguments.shift_by for p in partitions})
        if arguments.to_datetime is not None:
            return self._at(partitions, parse_datetime_ms(arguments.to_datetime))
        if arguments.by_duration is not None:
            ago_ms = parse_duration_argument_ms(arguments.by_duration)
            return self._at(partitions, time.time_ns() // 1_000_000 - ago_ms)
        if arguments.from_file is not None:
            return self._within(self._planned(partitions))
        return cluster.starts(partitions)

    def _positions(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the group would continue: at its commits, else at the ends."""
        try:
            found = self._admin.list_consumer_group_offsets(self._group)[self._group]
        except GroupIdNotFoundError:
            found = {}
        committed = {p: each.offset for p, each in found.items() if each is not None}
        rest = self._cluster.ends(p for p in partitions if p not in committed)
        return committed | rest

    def _at(self, partitions: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found = self._cluster.at_time(partitions, timestamp)
        empty = [partition for partition in partitions if found[partition] < 0]
        for partition in empty:
            print(
                f"Partition {partition.partition} from topic {partition.topic} is empty, without "
                "a committed record. Falling back to latest known offset."
            )
        return found | self._cluster.ends(empty)

    def _planned(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        try:
            text = Path(self._arguments.from_file).read_text(encoding="utf-8")
        except OSError as error:
            raise ToolError(
                f"ERROR: cannot read {self._arguments.from_file}: {error.strerror}"
            ) from None
        plan = parse_csv_plan(text, [self._group]).get(self._group, {})
        missing = [partition for partition in partitions if partition not in plan]
        if missing:
            raise OffsetPlanError(f"The file with the offsets has none for {missing[0]}")
        return {partition: plan[partition] for partition in partitions}

    def _within(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets inside the logs; prints, as Kafka's tool does, which ones were out of range."""
        starts, ends = self._cluster.starts(wanted), self._cluster.ends(wanted)
        offsets = {}
        for partition, offset in wanted.items():
            start, end = starts[partition], ends[partition]
            if offset >= end:
                print(
                    f"New offset ({offset}) is higher than latest offset. Value will be set to "
                    f"{end}"
                )
                offset = end
            elif offset <= start:
                print(
                    f"New offset ({offset}) is lower than earliest offset. Value will be set to "
                    f"{start}"
                )
                offset = start
            offsets[partition] = offset
        return offsets

    def delete_internal_topics(self, topics: Collection[str]) -> None:
        arguments = self._arguments
        read = {*arguments.input_topics, *arguments.intermediate_topics}
        inferred = [
            topic
            for topic in topics
            if topic not in read and is_inferred_internal(topic, self._group)
        ]
        wanted = inferred
        if arguments.internal_topics:
            if not set(arguments.internal_topics) <= set(inferred):
                raise ToolError(
                    "ERROR: Invalid topic specified in the --internal-topics option. Ensure that "
                    "the topics specified are all internal topics. Do a dry run without the "
                    "--internal-topics option to see the list of all internal topics that can be "
                    "deleted."
                )
            wanted = arguments.internal_topics
            print(f"Deleting specified internal topics {_listed(wanted)}")
        else:
            print(f"Deleting inferred internal topics {_listed(wanted)}")
        if wanted and not arguments.dry_run:
            results = self._admin.delete_topics(wanted, timeout=30, check=False)
            for topic, error in results.errors.items():
                print(f"ERROR: deleting topic {topic}: {message_of(error)}", file=sys.stderr)
            if results.errors:
                raise ToolError("ERROR: Encountered an error deleting one or more topics")
        print("Done.")


def _tell_missing(wanted: list[str], topics: Collection[str], kind: str, prefix: str) -> int:
    missing = [topic for topic in wanted if topic not in topics]
    if not missing:
        return 0
    print(f"Following {kind} topics are not found, skipping them")
    for topic in missing:
        print(f"{prefix}{topic}")
    return 1
