"""`kafka-consumer-groups`: list, describe and delete consumer groups, reset and delete offsets.

Exit codes are Kafka's: bad usage is 1; what the cluster refuses is an `Error:` line on standard
output, and 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from moldau.cli.groups.consumer_groups_views import (
    PartitionRow,
    group_json,
    is_worth_showing,
    member_json,
    offset_rows,
    show_listing,
    show_members,
    show_offsets,
    show_state,
)
from moldau.cli.groups.group_queries import GroupCluster
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
from moldau.cli.groups.service import perform
from moldau.cli.support.arguments import Parser
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.java_errors import print_error
from moldau.cli.support.tables import print_json
from moldau.client.errors import GroupIdNotFoundError, KafkaError
from moldau.client.topics import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import ConsumerGroupDescription, GroupListing, GroupType

__all__ = ["add_arguments", "run"]

_ACTIONS = (
    "--list",
    "--describe",
    "--delete",
    "--reset-offsets",
    "--delete-offsets",
    "--validate-regex",
)
_STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)

_EXAMPLES = """\
examples:
  moldau consumer-groups --list --state
  moldau consumer-groups --describe --group shop
  moldau consumer-groups --group shop --topic orders:0,1 \\
    --reset-offsets --to-datetime 2026-01-31T12:00:00.000 --dry-run
  moldau consumer-groups --group shop --all-topics \\
    --reset-offsets --to-current --dry-run --export > offsets.csv
  moldau consumer-groups --group shop \\
    --reset-offsets --from-file offsets.csv --execute
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_actions(parser, "consumer", required_server=False)
    parser.add_argument(
        "--validate-regex",
        metavar="REGEX",
        help="check whether a regular expression can be used to subscribe to topics",
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:0,1,...]",
        help="topic, or partitions of it, whose offsets to reset or delete; may be repeated",
    )
    parser.add_argument(
        "--all-topics", action="store_true", help="reset the offsets of all topics of the group"
    )
    add_describe_options(parser, types=True)
    add_reset_options(parser, SCENARIOS, export=True)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    action = check_action(arguments, _ACTIONS)
    if action == "--validate-regex":
        _validate_regex(arguments.validate_regex)
        return 0
    states = parse_states(arguments, _STATES) if action == "--list" else frozenset()
    types = _types(arguments)
    with open_admin(arguments) as admin:
        service = _Service(GroupCluster(admin, arguments.timeout), arguments)
        actions: dict[str, Callable[[], None]] = {
            "--list": partial(service.list_groups, states, types),
            "--describe": service.describe,
            "--delete": service.delete,
            "--reset-offsets": service.reset,
            "--delete-offsets": service.delete_offsets,
        }
        perform(actions[action], arguments, "consumer")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    if not has(arguments, "--validate-regex") and not arguments.bootstrap_server:
        parser.error('Missing required argument "[bootstrap-server]"')
    refuse_elsewhere(arguments, ("--members", "--offsets", "--verbose"), ("--describe",))
    refuse_elsewhere(arguments, ("--state",), ("--describe", "--list"))
    refuse_elsewhere(arguments, ("--type",), ("--list",))
    groups_given = given(arguments, ("--group", "--all-groups"))
    if arguments.describe:
        check_describe(arguments)
    if arguments.delete:
        if not groups_given:
            parser.error("Option [delete] takes one of these options: [group], [all-groups]")
        if arguments.topic:
            parser.error(
                "The consumer does not support topic-specific offset deletion from a consumer group"
            )
    if arguments.delete_offsets and not (arguments.group and arguments.topic):
        parser.error("Option [delete-offsets] takes the following options: [group], [topic]")
    if arguments.reset_offsets:
        _check_reset(arguments, groups_given)
    refuse_together(arguments, "--group", ("--all-groups", "--list"))
    refuse_together(arguments, "--topic", ("--list", "--describe"))


def _check_reset(arguments: argparse.Namespace, groups_given: list[str]) -> None:
    parser = arguments.parser
    check_one_scenario(arguments, SCENARIOS)
    if not groups_given:
        parser.error("Option [reset-offsets] takes one of these options: [group], [all-groups]")
    if not given(arguments, SCENARIOS):
        listed = ", ".join(f"[{option[2:]}]" for option in SCENARIOS)
        parser.error(f"Option '[reset-offsets]' requires one of the following scenarios: {listed}")
    if not given(arguments, ("--topic", "--all-topics", "--from-file")):
        parser.error("One of the reset scopes should be defined: --all-topics, --topic.")
    if not arguments.dry_run and not arguments.execute:
        print(
            "WARN: No action will be performed as the --execute option is missing. "
            "In version 5.0, this command will require either --dry-run or --execute to be "
            "specified. You should add the --dry-run option explicitly if you are scripting "
            "this command and want to keep the current default behavior without prompting.",
            file=sys.stderr,
        )


def _types(arguments: argparse.Namespace) -> frozenset[GroupType]:
    from moldau.client.admin import GroupType

    if not arguments.type:
        return frozenset()
    types = frozenset(GroupType.parse(part.strip()) for part in arguments.type.split(","))
    if not types <= {GroupType.CLASSIC, GroupType.CONSUMER}:
        arguments.parser.error(
            f"Invalid types list '{arguments.type}'. Valid types are: Classic, Consumer"
        )
    return types


def _validate_regex(text: str) -> None:
    """With the engine that matches subscriptions in the broker, which has no look-around."""
    from moldau.broker.coordinator.group.machine.regular_expressions import check_pattern
    from moldau.wire.errors import ApiError

    try:
        check_pattern(text)
    except ApiError as error:
        reason = str(error).rpartition(" is not a valid regular expression: ")[2].rstrip(".")
        print(f"The regular expression `{text}` is invalid: {reason}.")
    else:
        print(f"The regular expression `{text}` is valid.")


class _Service:
    """One action on one cluster."""

    def __init__(self, cluster: GroupCluster, arguments: argparse.Namespace) -> None:
        self._cluster = cluster
        self._admin = cluster.admin
        self._timeout = cluster.timeout
        self._arguments = arguments

    def list_groups(self, states: frozenset[str], types: frozenset[GroupType]) -> None:
        listings = self._listings(states, types)
        if self._arguments.json:
            print_json(
                [
                    {
                        "group": each.group_id,
                        "type": str(each.type or "Unknown"),
                        "state": str(each.group_state or "Unknown"),
                    }
                    for each in listings
                ]
            )
            return
        show_listing(
            listings,
            with_type=has(self._arguments, "--type"),
            with_state=has(self._arguments, "--state"),
        )

    def _listings(
        self, states: frozenset[str] = frozenset(), types: frozenset[GroupType] = frozenset()
    ) -> list[GroupListing]:
        from moldau.client.admin import GroupState, GroupType

        return list(
            self._admin.list_consumer_groups(
                group_states={GroupState.parse(state) for state in states},
                types=types or {GroupType.CLASSIC, GroupType.CONSUMER},
                timeout=self._timeout,
            )
        )

    def _group_ids(self) -> list[str]:
        if self._arguments.all_groups:
            return [each.group_id for each in self._listings()]
        return list(dict.fromkeys(self._arguments.group))

    def describe(self) -> None:
        ids = self._group_ids()
        if not ids:
            if self._arguments.json:
                print_json([])
            return
        found = self._admin.describe_consumer_groups(ids, timeout=self._timeout)
        groups = [found[group_id] for group_id in sorted(ids)]
        rows = self._rows(groups)
        if self._arguments.json:
            print_json([self._json(group, rows) for group in groups])
            return
        for group in groups:
            self._show(group, rows)

    def _rows(self, groups: list[ConsumerGroupDescription]) -> dict[str, list[PartitionRow]]:
        """The offsets of all groups, in one query: there may be thousands of groups."""
        if self._arguments.members or has(self._arguments, "--state"):
            return {}
        committed = self._committed(*(group.group_id for group in groups))
        assigned = {
            partition
            for group in groups
            for member in group.members
            for partition in member.assignment.topic_partitions
        }
        ends = self._cluster.known_ends(assigned.union(*committed.values()))
        return {
            group.group_id: offset_rows(group, committed[group.group_id], ends) for group in groups
        }

    def _show(
        self, group: ConsumerGroupDescription, rows_by_group: dict[str, list[PartitionRow]]
    ) -> None:
        verbose = self._arguments.verbose
        state = str(group.group_state)
        if self._arguments.members:
            # Kafka's tool prints the headers even if there are no members.
            is_worth_showing(group.group_id, state, len(group.members))
            show_members(group, verbose=verbose)
        elif has(self._arguments, "--state"):
            if is_worth_showing(group.group_id, state, 1):
                show_state(group, verbose=verbose)
        else:
            rows = rows_by_group[group.group_id]
            if is_worth_showing(group.group_id, state, len(rows)):
                show_offsets(group.group_id, rows, verbose=verbose)

    def _json(
        self, group: ConsumerGroupDescription, rows_by_group: dict[str, list[PartitionRow]]
    ) -> dict[str, object]:
        shown = group_json(group)
        if self._arguments.members:
            shown["members"] = [member_json(member) for member in group.members]
        elif not has(self._arguments, "--state"):
            shown["offsets"] = [row._asdict() for row in rows_by_group[group.group_id]]
        return shown

    def _committed(self, *group_ids: str) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        found = self._admin.list_consumer_group_offsets(
            dict.fromkeys(group_ids), timeout=self._timeout
        )
        return {
            group_id: {p: offset for p, offset in found[group_id].items() if offset is not None}
            for group_id in group_ids
        }

    def reset(self) -> None:
        ids = self._group_ids()
        plan: dict[str, dict[TopicPartition, int]] = {}
        found = self._admin.describe_consumer_groups(ids, timeout=self._timeout, check=False)
        for group_id in ids:
            error = found.errors.get(group_id)
            if error is not None and not isinstance(error, GroupIdNotFoundError):
                raise error
            state = "Dead" if error is not None else str(found[group_id].group_state)
            if state in ("Empty", "Dead"):
                plan[group_id] = self._reset_one(group_id)
            else:
                print_error(
                    f"Assignments can only be reset if the group '{group_id}' is inactive, but "
                    f"the current state is {state}."
                )
                plan[group_id] = {}
        if self._arguments.json:
            print_json(_plan_json(plan))
        elif self._arguments.export:
            print(export_csv(plan, with_group=len(self._arguments.group) != 1))
        else:
            print_reset_plan(plan)

    def _reset_one(self, group_id: str) -> dict[TopicPartition, int]:
        partitions: list[TopicPartition] = []
        if self._arguments.all_topics:
            partitions = sorted(self._committed(group_id)[group_id])
        elif self._arguments.topic:
            partitions = self._cluster.named_partitions(self._arguments.topic)
        self._cluster.check_valid(partitions)

        def committed() -> dict[TopicPartition, int]:
            found = self._committed(group_id)[group_id]
            return {partition: each.offset for partition, each in found.items()}

        offsets = new_offsets(self._cluster, self._arguments, group_id, partitions, committed)
        if self._arguments.execute and offsets:
            self._admin.alter_consumer_group_offsets(
                group_id,
                {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()},
                timeout=self._timeout,
            )
        return offsets

    def delete_offsets(self) -> None:
        group_id = self._arguments.group[0]
        partitions, unknown = named_partitions_or_errors(self._cluster, self._arguments.topic)
        results = self._admin.delete_consumer_group_offsets(
            group_id, partitions, timeout=self._timeout, check=False
        )
        print_deleted_offsets(group_id, partitions, results.errors, unknown)

    def delete(self) -> None:
        ids = self._group_ids()
        results = self._admin.delete_consumer_groups(ids, timeout=self._timeout, check=False)
        deleted = [group_id for group_id in ids if group_id not in results.errors]
        print_deleted_groups("consumer", deleted, results.errors)


def named_partitions_or_errors(
    cluster: GroupCluster, topic_arguments: list[str]
) -> tuple[list[TopicPartition], dict[str, KafkaError]]:
    """The partitions of `--topic` arguments, and the topics that could not be looked up."""
    whole = sorted({argument for argument in topic_arguments if ":" not in argument})
    unknown: dict[str, KafkaError] = {}
    if whole:
        found = cluster.admin.describe_topics(whole, timeout=cluster.timeout, check=False)
        unknown = {str(topic): error for topic, error in found.errors.items()}
    known = [argument for argument in topic_arguments if argument not in unknown]
    return cluster.named_partitions(known), unknown


def _plan_json(plan: dict[str, dict[TopicPartition, int]]) -> list[dict[str, object]]:
    return [
        {"group": group, **partition._asdict(), "offset": offset}
        for group, offsets in plan.items()
        for partition, offset in sorted(offsets.items())
    ]
