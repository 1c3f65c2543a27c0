"""`kafka-streams-groups`: list, describe and delete streams groups, reset and delete offsets.

Exit codes are Kafka's: 1 for bad usage and for what the cluster refuses as a whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moldau.cli.groups.consumer_groups import named_partitions_or_errors
from moldau.cli.groups.group_queries import GroupCluster
from moldau.cli.groups.machine.internal_topics import (
    inferred_internal_topics,
    is_inferred_internal,
)
from moldau.cli.groups.machine.layout import fixed, spaced
from moldau.cli.groups.machine.offsets import export_csv
from moldau.cli.groups.options import (
    SCENARIOS,
    add_actions,
    add_describe_options,
    add_reset_options,
    check_action,
    check_describe,
    check_one_scenario,
    given,
    has,
    parse_states,
    refuse_elsewhere,
    refuse_together,
)
from moldau.cli.groups.reports import (
    print_deleted_groups,
    print_deleted_offsets,
    print_reset_plan,
)
from moldau.cli.groups.reset import new_offsets
from moldau.cli.groups.service import GroupService, perform
from moldau.cli.groups.streams_groups_views import (
    active_partitions,
    offset_rows,
    show_members,
    show_offsets,
    show_state,
    tasks_text,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.java_errors import as_java, print_error
from moldau.cli.support.tables import print_json
from moldau.client.errors import (
    GroupIdNotFoundError,
    KafkaError,
    UnknownTopicOrPartitionError,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import GroupListing, GroupState, StreamsGroupDescription

__all__ = ["add_arguments", "run"]

_ACTIONS = ("--list", "--describe", "--delete", "--reset-offsets", "--delete-offsets")
_STATES = ("Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady")

_EXAMPLES = """\
examples:
  moldau streams-groups --list
  moldau streams-groups --describe --group app --members
  moldau streams-groups --group app --all-input-topics \\
    --reset-offsets --to-earliest --execute --delete-all-internal-topics
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_actions(parser, "streams")
    parser.add_argument(
        "--input-topic",
        action="append",
        default=[],
        metavar="TOPIC[:0,1,...]",
        help="input topic whose offsets to reset or delete; may be repeated",
    )
    parser.add_argument(
        "--all-input-topics",
        action="store_true",
        help="reset or delete the offsets of all input topics of the group",
    )
    add_describe_options(parser)
    add_reset_options(parser, SCENARIOS, export=True)
    parser.add_argument(
        "--delete-internal-topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="also delete this internal topic; may be repeated (reset-offsets)",
    )
    parser.add_argument(
        "--delete-all-internal-topics",
        action="store_true",
        help="also delete all internal topics (reset-offsets, delete)",
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    action = check_action(arguments, _ACTIONS, "or ")
    states = parse_states(arguments, _STATES) if action == "--list" else frozenset()
    with open_admin(arguments) as admin:
        service = _Service(GroupCluster(admin, arguments.timeout), arguments, states)
        done = perform(service.actions[action], arguments, service.kind)
    return 0 if done else 1


def _check(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    refuse_elsewhere(arguments, ("--members", "--offsets", "--verbose"), ("--describe",))
    refuse_elsewhere(arguments, ("--state",), ("--describe", "--list"))
    topics = given(arguments, ("--input-topic", "--all-input-topics"))
    if arguments.describe:
        check_describe(arguments)
    if arguments.delete:
        if not given(arguments, ("--group", "--all-groups")):
            parser.error("Option [delete] takes one of these options: [all-groups], [group]")
        if topics:
            parser.error(
                "Kafka Streams does not support topic-specific offset deletion from a streams "
                "group."
            )
    if arguments.delete_offsets:
        if not topics or not arguments.group:
            parser.error(
                "Option [delete-offsets] takes the [group] and one of these options: "
                "[all-input-topics], [input-topic]"
            )
        if len(arguments.group) > 1:
            parser.error(
                "Option [delete-offsets] supports only one [group] at a time, but found: "
                f"[{', '.join(arguments.group)}]"
            )
    if arguments.reset_offsets:
        _check_reset(arguments, topics)
    _check_internal_topics(arguments)
    if given(arguments, ("--dry-run", "--execute")) and not arguments.reset_offsets:
        parser.error("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    refuse_together(arguments, "--group", ("--all-groups", "--list"))
    refuse_together(arguments, "--input-topic", ("--list", "--describe", "--delete"))


def _check_reset(arguments: argparse.Namespace, topics: list[str]) -> None:
    parser = arguments.parser
    if not arguments.dry_run and not arguments.execute:
        parser.error("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not given(arguments, ("--group", "--all-groups")):
        parser.error("Option [reset-offsets] takes one of these options: [all-groups], [group]")
    check_one_scenario(arguments, SCENARIOS)
    if not given(arguments, SCENARIOS):
        listed = ", ".join(f"[{option[2:]}]" for option in SCENARIOS)
        parser.error(f"Option '[reset-offsets]' requires one of the following scenarios: {listed}")
    if not topics and not has(arguments, "--from-file"):
        parser.error(
            "One of the reset scopes should be defined: --all-input-topics, --input-topic."
        )


def _check_internal_topics(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    if arguments.delete_all_internal_topics:
        if not given(arguments, ("--reset-offsets", "--delete")):
            parser.error(
                "Option [delete-all-internal-topics] takes one of these options: [delete], "
                "[reset-offsets]"
            )
        if arguments.reset_offsets and not arguments.execute:
            parser.error(
                "Option [delete-all-internal-topics] takes [execute] when [reset-offsets] is used."
            )
    elif arguments.delete_internal_topic and not (arguments.reset_offsets and arguments.execute):
        parser.error("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


class _Service(GroupService):
    kind = "streams"
    not_one = "does not exist or is not a streams group."

    def _listed(self, states: set[GroupState]) -> Iterable[GroupListing]:
        return self._admin.list_streams_groups(group_states=states, timeout=self._timeout)

    def _described(self, group_id: str) -> StreamsGroupDescription:
        return self._admin.describe_streams_groups([group_id], timeout=self._timeout)[group_id]

    def describe(self) -> None:
        groups = [self._described(group_id) for group_id in self._group_ids()]
        if self._arguments.json:
            print_json([self._json(group) for group in groups])
            return
        verbose = self._arguments.verbose
        for group in groups:
            if self._arguments.members:
                show_members(group, verbose=verbose)
            elif has(self._arguments, "--state"):
                show_state(group, verbose=verbose)
            else:
                show_offsets(group, self._rows(group), verbose=verbose)

    def _rows(self, group: StreamsGroupDescription) -> list[Any]:
        partitions = active_partitions(group)
        return offset_rows(
            partitions,
            self._committed(group, with_repartition=True),
            self._cluster.starts(partitions),
            self._cluster.ends(partitions),
        )

    def _json(self, group: StreamsGroupDescription) -> dict[str, object]:
        shown: dict[str, object] = {
            "group": group.group_id,
            "state": str(group.group_state),
            "coordinator": {
                "id": group.coordinator.id,
                "host": group.coordinator.host,
                "port": group.coordinator.port,
            },
            "group_epoch": group.group_epoch,
            "target_assignment_epoch": group.target_assignment_epoch,
            "topology_epoch": group.topology_epoch,
            "member_count": len(group.members),
        }
        if self._arguments.members:
            shown["members"] = [
                {
                    "member_id": member.member_id,
                    "process_id": member.process_id,
                    "client_id": member.client_id,
                    "member_epoch": member.member_epoch,
                    "protocol": "classic" if member.is_classic else "streams",
                    "assignment": tasks_text(member.assignment, None).strip(),
                    "target_assignment": tasks_text(member.target_assignment, None).strip(),
                }
                for member in group.members
            ]
        elif not has(self._arguments, "--state"):
            shown["offsets"] = [row._asdict() for row in self._rows(group)]
        return shown

    def _all_committed(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        from moldau.client.admin import ListStreamsGroupOffsetsSpec

        spec = ListStreamsGroupOffsetsSpec()
        found = self._admin.list_streams_group_offsets({group_id: spec}, timeout=self._timeout)
        return {p: offset for p, offset in found[group_id].items() if offset is not None}

    def _committed(
        self, group: StreamsGroupDescription, *, with_repartition: bool
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of the group's input topics."""
        topics = {topic for each in group.subtopologies for topic in each.source_topics}
        if with_repartition:
            topics |= {
                topic for each in group.subtopologies for topic in each.repartition_source_topics
            }
        committed = self._all_committed(group.group_id)
        return {p: offset for p, offset in committed.items() if p.topic in topics}

    def reset(self) -> None:
        ids = self._group_ids()
        plan: dict[str, dict[TopicPartition, int]] = {}
        found = self._admin.describe_streams_groups(ids, timeout=self._timeout, check=False)
        for group_id in ids:
            error = found.errors.get(group_id)
            if error is not None and not isinstance(error, GroupIdNotFoundError):
                raise error
            state = "Dead" if error is not None else str(found[group_id].group_state)
            if state not in ("Empty", "Dead"):
                print_error(
                    f"Assignments can only be reset if the group '{group_id}' is inactive, but "
                    f"the current state is {state}."
                )
                plan[group_id] = {}
                continue
            plan[group_id] = self._reset_one(group_id)
            if self._arguments.execute and error is None:
                self._delete_topics_after_reset(found[group_id])
        if self._arguments.json:
            print_json(
                [
                    {"group": group, **partition._asdict(), "offset": offset}
                    for group, offsets in plan.items()
                    for partition, offset in sorted(offsets.items())
                ]
            )
        elif self._arguments.export:
            print(export_csv(plan, with_group=len(self._arguments.group) != 1))
        else:
            layout = spaced(fixed(30), fixed(30), fixed(10), fixed(15))
            print_reset_plan(plan, layout)

    def _reset_one(self, group_id: str) -> dict[TopicPartition, int]:
        partitions: list[TopicPartition] = []
        if self._arguments.all_input_topics:
            group = self._described(group_id)
            partitions = sorted(self._committed(group, with_repartition=False))
        elif self._arguments.input_topic:
            partitions = self._cluster.named_partitions(self._arguments.input_topic)
            self._cluster.check_valid(partitions)
            if not self._all_committed(group_id).keys() >= set(partitions):
                print_error(f"One or more topics are not part of the group '{group_id}'.")
                partitions = []

        def committed() -> dict[TopicPartition, int]:
            found = self._committed(self._described(group_id), with_repartition=True)
            return {partition: each.offset for partition, each in found.items()}

        offsets = new_offsets(self._cluster, self._arguments, group_id, partitions, committed)
        if self._arguments.execute and offsets:
            self._admin.alter_streams_group_offsets(
                group_id,
                {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()},
                timeout=self._timeout,
            )
        return offsets

    def _delete_topics_after_reset(self, group: StreamsGroupDescription) -> None:
        topics = list(self._arguments.delete_internal_topic)
        if self._arguments.delete_all_internal_topics:
            topics = self._internal_topics(group)
        if not topics:
            return
        results = self._admin.delete_topics(topics, timeout=self._timeout, check=False)
        first = next(iter(results.errors.values()), None)
        if isinstance(first, UnknownTopicOrPartitionError):
            print_error(
                f"Deleting internal topics for group '{group.group_id}' failed because the topics "
                "do not exist."
            )
        elif first is not None:
            print_error(
                f"Deleting internal topics for group '{group.group_id}' failed due to "
                f"{as_java(first)}"
            )

    def _internal_topics(self, group: StreamsGroupDescription) -> list[str]:
        """Topics of the group's topology whose names show that they are internal."""
        topics = []
        for topic in inferred_internal_topics(group):
            if is_inferred_internal(topic, group.group_id):
                topics.append(topic)
            else:
                print_error(
                    f"The internal topic '{topic}' is not inferred as internal and thus will not "
                    f"be deleted with the group '{group.group_id}'."
                )
        return topics

    def delete_offsets(self) -> None:
        group_id = self._arguments.group[0]
        unknown: dict[str, KafkaError] = {}
        if self._arguments.all_input_topics:
            group = self._described(group_id)
            partitions = sorted(self._committed(group, with_repartition=False))
        else:
            partitions, unknown = named_partitions_or_errors(
                self._cluster, self._arguments.input_topic
            )
        results = self._admin.delete_streams_group_offsets(
            group_id, partitions, timeout=self._timeout, check=False
        )
        print_deleted_offsets(group_id, partitions, results.errors, unknown)

    def delete(self) -> None:
        wanted, failed = self._deletable()
        topics: dict[str, list[str]] = {}
        if wanted:
            if self._arguments.delete_all_internal_topics:
                topics = self._topics_of(wanted)
            results = self._admin.delete_streams_groups(wanted, timeout=self._timeout, check=False)
            failed.update(results.errors)
        deleted = [group_id for group_id in wanted if group_id not in failed]
        problems = self._delete_internal_topics(deleted, topics)
        print_deleted_groups("streams", deleted, failed)
        if topics and deleted:
            _tell_topics(deleted, topics, problems)

    def _topics_of(self, ids: list[str]) -> dict[str, list[str]]:
        found = self._admin.describe_streams_groups(ids, timeout=self._timeout)
        by_group = {group_id: self._internal_topics(found[group_id]) for group_id in ids}
        return {group_id: topics for group_id, topics in by_group.items() if topics}

    def _delete_internal_topics(
        self, deleted: list[str], topics: dict[str, list[str]]
    ) -> dict[str, KafkaError]:
        problems: dict[str, KafkaError] = {}
        for group_id in deleted:
            if group_id not in topics:
                continue
            results = self._admin.delete_topics(
                topics[group_id], timeout=self._timeout, check=False
            )
            for topic, error in results.errors.items():
                print(f"Failed to delete internal topic: {topic}")
                problems.setdefault(group_id, error)
        return problems


def _tell_topics(
    deleted: list[str], topics: dict[str, list[str]], problems: dict[str, KafkaError]
) -> None:
    if problems:
        print("Deletion of some associated internal topics failed:")
        for group_id, error in problems.items():
            print(
                f"* Internal topics of the streams group '{group_id}' could not be deleted due "
                f"to: {as_java(error)}"
            )
        return
    names = "', '".join(group_id for group_id in deleted if group_id in topics)
    print(
        f"Deletion of associated internal topics of the streams groups ('{names}') was successful."
    )
