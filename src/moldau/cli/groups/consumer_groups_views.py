"""The views of consumer groups: what --list and --describe show, as rows and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.groups.machine.layout import BARE, assignment_text, fixed, growing, spaced
from moldau.cli.groups.reports import or_dash
from moldau.cli.support.java_errors import print_error
from moldau.cli.support.tables import Table
from moldau.client.topics import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import ConsumerGroupDescription, GroupListing, MemberDescription

__all__ = [
    "PartitionRow",
    "group_json",
    "is_worth_showing",
    "member_json",
    "offset_rows",
    "show_listing",
    "show_members",
    "show_offsets",
    "show_state",
]

_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class PartitionRow(NamedTuple):
    """A partition that a group reads or has read."""

    topic: str
    partition: int
    leader_epoch: int | None
    offset: int | None
    end: int | None
    lag: int | None
    consumer_id: str = "-"
    host: str = "-"
    client_id: str = "-"


def show_listing(listings: Sequence[GroupListing], *, with_type: bool, with_state: bool) -> None:
    """One line per group; columns only where they were asked for."""
    if not with_type and not with_state:
        for each in listings:
            print(each.group_id)
        return
    headers = ["GROUP"] + ["TYPE"] * with_type + ["STATE"] * with_state
    columns = [growing(15, extra=10)] + [fixed(20)] * (len(headers) - 1)
    table = Table(*headers, plain=spaced(*columns, lead=False))
    for each in listings:
        cells = [each.group_id]
        if with_type:
            cells.append(str(each.type or "Unknown"))
        if with_state:
            cells.append(str(each.group_state or "Unknown"))
        table.add(*cells)
    table.show()


def offset_rows(
    group: ConsumerGroupDescription,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
) -> list[PartitionRow]:
    """Members with the most partitions first, then partitions with commits but without a member."""
    members = sorted(
        (member for member in group.members if member.assignment.topic_partitions),
        key=lambda member: -len(member.assignment.topic_partitions),
    )
    assigned = {p for member in members for p in member.assignment.topic_partitions}

    def row(partition: TopicPartition, *consumer: str) -> PartitionRow:
        found = committed.get(partition)
        offset = None if found is None else found.offset
        epoch = None if found is None else found.leader_epoch
        end = ends.get(partition)
        lag = end - offset if end is not None and offset is not None and offset != -1 else None
        return PartitionRow(*partition, epoch, offset, end, lag, *consumer)

    rows = [
        row(partition, member.consumer_id, member.host, member.client_id)
        for member in members
        for partition in sorted(member.assignment.topic_partitions)
    ]
    return rows + [row(partition) for partition in sorted(committed.keys() - assigned)]


def is_worth_showing(group_id: str, state: str, row_count: int) -> bool:
    """Prints a note on unusual states; returns whether there is a table to show."""
    if state == "Dead":
        print_error(f"Consumer group '{group_id}' does not exist.")
        return False
    if state == "Empty":
        print(f"\nConsumer group '{group_id}' has no active members.", file=sys.stderr)
    elif state in _REBALANCING:
        print(f"\nWarning: Consumer group '{group_id}' is rebalancing.", file=sys.stderr)
    return row_count > 0


def show_offsets(group_id: str, rows: Sequence[PartitionRow], *, verbose: bool) -> None:
    headers = ["GROUP", "TOPIC", "PARTITION"]
    columns = [growing(15), growing(15), fixed(10)]
    if verbose:
        headers.append("LEADER-EPOCH")
        columns.append(fixed(15))
    headers += ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    columns += [fixed(15)] * 3 + [growing(15), growing(15), BARE]
    table = Table(*headers, plain=spaced(*columns))
    for row in rows:
        epoch = [or_dash(row.leader_epoch)] if verbose else []
        figures = map(or_dash, (row.offset, row.end, row.lag))
        consumer = (row.consumer_id, row.host, row.client_id)
        table.add(group_id, row.topic, row.partition, *epoch, *figures, *consumer)
    table.show()


def show_members(group: ConsumerGroupDescription, *, verbose: bool) -> None:
    members = group.members
    with_instance = any(member.group_instance_id for member in members)
    # Only while a group moves to the new protocol there are members of both kinds.
    mixed = {member.upgraded for member in members} >= {True, False}
    headers = ["GROUP", "CONSUMER-ID"]
    columns = [growing(15), growing(15)]
    if with_instance:
        headers.append("GROUP-INSTANCE-ID")
        columns.append(growing(17))
    headers += ["HOST", "CLIENT-ID", "#PARTITIONS"]
    columns += [growing(15), growing(15), fixed(15)]
    if verbose:
        headers += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        columns += [fixed(15), growing(20), fixed(15), growing(20)]
        if mixed:
            headers.append("UPGRADED")
            columns.append(BARE)
    tail = "" if verbose else " "
    table = Table(*headers, plain=spaced(*columns, tail=tail))
    for member in members:
        cells: list[object] = [group.group_id, member.consumer_id]
        if with_instance:
            cells.append(member.group_instance_id or "")
        cells += [member.host, member.client_id, len(member.assignment.topic_partitions)]
        if verbose:
            cells += _assignments(group, member)
            if mixed:
                cells.append("-" if member.upgraded is None else str(member.upgraded).lower())
        table.add(*cells)
    table.show()


def _assignments(group: ConsumerGroupDescription, member: MemberDescription) -> list[str]:
    target = member.target_assignment
    return [
        or_dash(member.member_epoch),
        assignment_text(list(member.assignment.topic_partitions)) or "-",
        or_dash(group.target_assignment_epoch),
        (assignment_text(list(target.topic_partitions)) if target is not None else "") or "-",
    ]


def show_state(group: ConsumerGroupDescription, *, verbose: bool) -> None:
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    columns = [growing(15), growing(25), fixed(20), fixed(20)]
    cells: list[object] = [
        group.group_id,
        f"{node.host}:{node.port}  ({node.id})",
        group.partition_assignor or "-",
        group.group_state,
    ]
    if verbose:
        headers += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        columns += [fixed(15), fixed(25)]
        cells += [or_dash(group.group_epoch), or_dash(group.target_assignment_epoch)]
    table = Table(*headers, "#MEMBERS", plain=spaced(*columns, BARE))
    table.add(*cells, len(group.members))
    table.show()


def member_json(member: MemberDescription) -> dict[str, object]:
    target = member.target_assignment
    return {
        "consumer_id": member.consumer_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "member_epoch": member.member_epoch,
        "assignment": _partitions_json(member.assignment.topic_partitions),
        "target_assignment": None if target is None else _partitions_json(target.topic_partitions),
    }


def _partitions_json(partitions: Collection[TopicPartition]) -> list[dict[str, object]]:
    return [partition._asdict() for partition in sorted(partitions)]


def group_json(group: ConsumerGroupDescription) -> dict[str, object]:
    return {
        "group": group.group_id,
        "type": str(group.type),
        "state": str(group.group_state),
        "coordinator": {
            "id": group.coordinator.id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
        "assignment_strategy": group.partition_assignor,
        "group_epoch": group.group_epoch,
        "target_assignment_epoch": group.target_assignment_epoch,
        "member_count": len(group.members),
    }
