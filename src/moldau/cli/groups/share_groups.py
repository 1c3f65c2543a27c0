"""`kafka-share-groups`: list, describe and delete share groups, reset and delete their offsets.

Exit codes are Kafka's: bad usage, and a reset of a group with members, are 1; what the cluster
refuses otherwise is an `Error:` line on standard output, and 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.cli.groups.group_queries import GroupCluster
from moldau.cli.groups.machine.layout import BARE, assignment_text, fixed, growing, spaced
from moldau.cli.groups.options import (
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
from moldau.cli.groups.reports import or_dash, print_deleted_groups, print_reset_plan
from moldau.cli.groups.reset import new_offsets
from moldau.cli.groups.service import GroupService, perform
from moldau.cli.support.arguments import Parser
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.java_errors import as_java, default_text, print_error
from moldau.cli.support.tables import Table, print_json
from moldau.client.errors import GroupIdNotFoundError, KafkaError
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.admin import (
        GroupListing,
        GroupState,
        ShareGroupDescription,
        SharePartitionOffsetInfo,
    )

__all__ = ["add_arguments", "run"]

_ACTIONS = ("--list", "--describe", "--delete", "--reset-offsets", "--delete-offsets")
_SCENARIOS = ("--to-datetime", "--to-earliest", "--to-latest")
_STATES = ("Stable", "Dead", "Empty")
_GROUP_LEVEL = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
_TOPIC_LEVEL = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

_EXAMPLES = """\
examples:
  moldau share-groups --list --state
  moldau share-groups --describe --group workers --members
  moldau share-groups --group workers --topic jobs \\
    --reset-offsets --to-earliest --execute
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_actions(parser, "share")
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="topic whose offsets to reset or delete; may be repeated",
    )
    parser.add_argument(
        "--all-topics", action="store_true", help="reset the offsets of all topics of the group"
    )
    add_describe_options(parser)
    add_reset_options(parser, _SCENARIOS, export=False)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    action = check_action(arguments, _ACTIONS)
    states = parse_states(arguments, _STATES) if action == "--list" else frozenset()
    with open_admin(arguments) as admin:
        service = _Service(GroupCluster(admin, arguments.timeout), arguments, states)
        perform(service.actions[action], arguments, service.kind)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    refuse_elsewhere(arguments, ("--members", "--offsets", "--verbose"), ("--describe",))
    refuse_elsewhere(arguments, ("--state",), ("--describe", "--list"))
    if arguments.describe:
        check_describe(arguments)
    if arguments.delete:
        if not given(arguments, ("--group", "--all-groups")):
            parser.error("Option [delete] takes the options [group] or [all-groups]")
        if arguments.all_groups and arguments.group:
            parser.error("Option [delete] takes either [group] or [all-groups], not both.")
        if arguments.topic:
            parser.error("Option [delete] does not take the option: [topic]")
    if arguments.delete_offsets and not (arguments.group and arguments.topic):
        parser.error("Option [delete-offsets] takes the following options: [group], [topic]")
    if arguments.reset_offsets:
        _check_reset(arguments)
    refuse_together(arguments, "--group", ("--all-groups", "--list"))
    refuse_together(arguments, "--topic", ("--list", "--describe"))


def _check_reset(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    if not arguments.dry_run and not arguments.execute:
        parser.error("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not arguments.group:
        parser.error("Option [reset-offsets] takes the option: [group]")
    if not given(arguments, ("--topic", "--all-topics")):
        parser.error("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    if not given(arguments, _SCENARIOS):
        parser.error(
            "Option [reset-offsets] takes one of these options: [to-datetime], [to-earliest], "
            "[to-latest]"
        )
    check_one_scenario(arguments, _SCENARIOS)


class _Service(GroupService):
    kind = "share"
    not_one = "is not a share group."

    def _listed(self, states: set[GroupState]) -> Iterable[GroupListing]:
        return self._admin.list_share_groups(group_states=states, timeout=self._timeout)

    def describe(self) -> None:
        ids = self._group_ids()
        found = self._admin.describe_share_groups(ids, timeout=self._timeout) if ids else {}
        groups = [found[group_id] for group_id in sorted(ids)]
        if self._arguments.json:
            print_json([self._json(group) for group in groups])
            return
        for group in groups:
            if self._arguments.members:
                _show_members(group, verbose=self._arguments.verbose)
            elif has(self._arguments, "--state"):
                _show_state(group, verbose=self._arguments.verbose)
            else:
                offsets = self._offsets(group.group_id)
                _show_offsets(group.group_id, offsets, verbose=self._arguments.verbose)

    def _offsets(self, group_id: str) -> dict[TopicPartition, SharePartitionOffsetInfo | None]:
        from moldau.client.admin import ListShareGroupOffsetsSpec

        spec = ListShareGroupOffsetsSpec()
        found = self._admin.list_share_group_offsets({group_id: spec}, timeout=self._timeout)
        return dict(found[group_id])

    def _json(self, group: ShareGroupDescription) -> dict[str, object]:
        shown: dict[str, object] = {
            "group": group.group_id,
            "state": str(group.group_state),
            "coordinator": {
                "id": group.coordinator.id,
                "host": group.coordinator.host,
                "port": group.coordinator.port,
            },
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.target_assignment_epoch,
            "member_count": len(group.members),
        }
        if self._arguments.members:
            shown["members"] = [
                {
                    "consumer_id": member.consumer_id,
                    "host": member.host,
                    "client_id": member.client_id,
                    "member_epoch": member.member_epoch,
                    "assignment": [
                        partition._asdict()
                        for partition in sorted(member.assignment.topic_partitions)
                    ],
                }
                for member in group.members
            ]
        elif not has(self._arguments, "--state"):
            shown["offsets"] = [
                partition._asdict() | ({} if info is None else info._asdict())
                for partition, info in sorted(self._offsets(group.group_id).items())
            ]
        return shown

    def delete(self) -> None:
        wanted, failed = self._deletable()
        if wanted:
            results = self._admin.delete_share_groups(wanted, timeout=self._timeout, check=False)
            failed.update(results.errors)
        deleted = [group_id for group_id in wanted if group_id not in failed]
        print_deleted_groups("share", deleted, failed)

    def reset(self) -> None:
        group_id = self._arguments.group[0]
        try:
            found = self._admin.describe_share_groups([group_id], timeout=self._timeout)
            if str(found[group_id].group_state) not in ("Empty", "Dead"):
                raise ToolError(f"Share group '{group_id}' is not empty.")
        except GroupIdNotFoundError:
            # Offsets may be set before the first member comes.
            pass
        except KafkaError as error:
            raise ToolError(default_text(error) or str(error)) from None
        if self._arguments.topic:
            partitions = self._cluster.named_partitions(self._arguments.topic)
        else:
            partitions = sorted(self._offsets(group_id))
        self._cluster.check_valid(partitions)
        offsets = new_offsets(self._cluster, self._arguments, group_id, partitions, dict)
        if self._arguments.execute and offsets:
            self._admin.alter_share_group_offsets(group_id, offsets, timeout=self._timeout)
        if self._arguments.json:
            print_json(
                [
                    {"group": group_id, **partition._asdict(), "offset": offset}
                    for partition, offset in sorted(offsets.items())
                ]
            )
        else:
            print_reset_plan({group_id: offsets})

    def delete_offsets(self) -> None:
        topics = list(dict.fromkeys(self._arguments.topic))
        results = self._admin.delete_share_group_offsets(
            self._arguments.group[0], topics, timeout=self._timeout, check=False
        )
        first = next(iter(results.errors.values()), None)
        if first is not None and first.code in _GROUP_LEVEL:
            print_error(default_text(first))
        elif first is not None and first.code not in _TOPIC_LEVEL:
            print_error(f"Encounter some unknown error: {as_java(first)}")
        table = Table("TOPIC", "STATUS", plain=spaced(growing(15), BARE))
        for topic in sorted(topics):
            error = results.errors.get(topic)
            status = "Successful" if error is None else f"Error: {default_text(error)}"
            table.add(topic, status)
        table.show()


def _tell_state(group: ShareGroupDescription, row_count: int) -> bool:
    state = str(group.group_state)
    if state == "Dead":
        print_error(f"Share group '{group.group_id}' does not exist.")
    elif state == "Empty":
        print(f"\nShare group '{group.group_id}' has no active members.", file=sys.stderr)
    return state != "Dead" and row_count > 0


def _show_offsets(
    group_id: str,
    offsets: dict[TopicPartition, SharePartitionOffsetInfo | None],
    *,
    verbose: bool,
) -> None:
    if not offsets:
        print(f"\nShare group '{group_id}' has no offset information.")
        return
    headers = ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    columns = [growing(15), growing(15), fixed(10), fixed(13), BARE]
    if verbose:
        headers.insert(3, "LEADER-EPOCH")
        columns.insert(3, fixed(13))
    table = Table(*headers, plain=spaced(*columns))
    for (topic, partition), info in sorted(offsets.items()):
        start, epoch, lag = (None, None, None) if info is None else info
        cells = [or_dash(start), or_dash(lag)]
        table.add(group_id, topic, partition, *([or_dash(epoch)] if verbose else []), *cells)
    table.show()


def _show_state(group: ShareGroupDescription, *, verbose: bool) -> None:
    _tell_state(group, 1)
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "STATE"]
    columns = [growing(15), growing(25), fixed(15)]
    cells: list[object] = [
        group.group_id,
        f"{node.host}:{node.port}  ({node.id})",
        group.group_state,
    ]
    if verbose:
        headers += ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
        columns += [fixed(12), fixed(17)]
        cells += [group.group_epoch, group.target_assignment_epoch]
    table = Table(*headers, "#MEMBERS", plain=spaced(*columns, BARE))
    table.add(*cells, len(group.members))
    table.show()


def _show_members(group: ShareGroupDescription, *, verbose: bool) -> None:
    if not _tell_state(group, len(group.members)):
        return
    headers = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
    columns = [growing(15), growing(15), growing(15), growing(15), fixed(12), BARE]
    if verbose:
        headers.insert(5, "MEMBER-EPOCH")
        columns.insert(5, fixed(13))
    table = Table(*headers, plain=spaced(*columns))
    for member in sorted(group.members, key=lambda member: member.consumer_id):
        partitions = list(member.assignment.topic_partitions)
        epoch = [member.member_epoch] if verbose else []
        table.add(
            group.group_id,
            member.consumer_id,
            member.host,
            member.client_id,
            len(partitions),
            *epoch,
            assignment_text(partitions),
        )
    table.show()
