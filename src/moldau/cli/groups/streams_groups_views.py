"""The views of streams groups: what --describe shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.groups.machine.layout import BARE, fixed, growing, spaced
from moldau.cli.groups.reports import or_dash
from moldau.cli.support.java_errors import print_error
from moldau.cli.support.tables import Table
from moldau.client.topics import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import (
        StreamsGroupDescription,
        StreamsGroupMemberAssignment,
        StreamsGroupTaskIds,
    )

__all__ = [
    "OffsetRow",
    "active_partitions",
    "offset_rows",
    "show_members",
    "show_offsets",
    "show_state",
    "tasks_text",
]


class OffsetRow(NamedTuple):
    """A partition of a streams group's input, and how far behind the group is there."""

    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    end: int
    lag: int


def active_partitions(group: StreamsGroupDescription) -> set[TopicPartition]:
    """The partitions that active tasks read."""
    topics = {
        each.subtopology_id: (*each.source_topics, *each.repartition_source_topics)
        for each in group.subtopologies
    }
    return {
        TopicPartition(topic, partition)
        for member in group.members
        for task in member.assignment.active_tasks
        for topic in topics.get(task.subtopology_id, ())
        for partition in task.partitions
    }


def offset_rows(
    partitions: Collection[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[OffsetRow]:
    """Without a commit the lag is all that the log holds."""
    rows = []
    for partition in sorted(partitions):
        found = committed.get(partition)
        end = ends[partition]
        reached = starts[partition] if found is None else found.offset
        offset = None if found is None else found.offset
        epoch = None if found is None else found.leader_epoch
        rows.append(OffsetRow(*partition, offset, epoch, end, end - reached))
    return rows


def _tell_state(group: StreamsGroupDescription) -> None:
    state = str(group.group_state)
    if state == "Dead":
        print_error(f"Streams group '{group.group_id}' does not exist.")
    elif state == "Empty":
        print_error(f"Streams group '{group.group_id}' has no active members.")


def _has_rows(group: StreamsGroupDescription) -> bool:
    return str(group.group_state) != "Dead" and bool(group.members)


def show_offsets(
    group: StreamsGroupDescription, rows: Sequence[OffsetRow], *, verbose: bool
) -> None:
    if not _has_rows(group):
        return
    _tell_state(group)
    if not verbose:
        table = Table(
            "GROUP",
            "TOPIC",
            "PARTITION",
            "OFFSET-LAG",
            plain=spaced(growing(15), growing(15), fixed(10), BARE, lead=False),
        )
        for row in rows:
            table.add(group.group_id, row.topic, row.partition, row.lag)
        table.show()
        return
    columns = [growing(15), growing(15), fixed(10)] + [fixed(15)] * 4
    headers = ("CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG")
    table = Table("GROUP", "TOPIC", "PARTITION", *headers, plain=spaced(*columns, lead=False))
    for row in rows:
        known = (or_dash(row.offset), or_dash(row.leader_epoch))
        table.add(group.group_id, row.topic, row.partition, *known, row.end, row.lag)
    table.show()


def show_state(group: StreamsGroupDescription, *, verbose: bool) -> None:
    _tell_state(group)
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "STATE"]
    columns = [growing(15), growing(25), fixed(25)]
    cells: list[object] = [
        group.group_id,
        f"{node.host}:{node.port} ({node.id})",
        group.group_state,
    ]
    if verbose:
        headers += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        columns += [fixed(15), fixed(25)]
        cells += [group.group_epoch, group.target_assignment_epoch]
    table = Table(*headers, "#MEMBERS", plain=spaced(*columns, BARE, lead=False))
    table.add(*cells, len(group.members))
    table.show()


def show_members(group: StreamsGroupDescription, *, verbose: bool) -> None:
    if not _has_rows(group):
        return
    _tell_state(group)
    headers = ["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
    columns = [growing(15), growing(15), growing(15), growing(15), BARE]
    if verbose:
        headers[1:2] = [
            "TARGET-ASSIGNMENT-EPOCH",
            "TOPOLOGY-EPOCH",
            "MEMBER",
            "MEMBER-PROTOCOL",
            "MEMBER-EPOCH",
        ]
        # Kafka's tool leaves no blank behind the epoch of the topology.
        columns[1:2] = [fixed(25), fixed(15, gap=""), growing(15), fixed(15), fixed(15)]
    table = Table(*headers, plain=spaced(*columns, lead=False))
    for member in group.members:
        cells: list[object] = [group.group_id, member.member_id]
        if verbose:
            cells[1:1] = [group.target_assignment_epoch, group.topology_epoch]
            cells += ["classic" if member.is_classic else "streams", member.member_epoch]
        target = member.target_assignment if verbose else None
        tasks = tasks_text(member.assignment, target)
        table.add(*cells, member.process_id, member.client_id, tasks)
    table.show()


def tasks_text(
    assignment: StreamsGroupMemberAssignment, target: StreamsGroupMemberAssignment | None
) -> str:
    """`ACTIVE: 0:[0,1]; STANDBY: 1:[2]; `, and the target behind it where it is wanted."""
    text = _kinds_text(assignment, "")
    return text if target is None else text + _kinds_text(target, "TARGET-")


def _kinds_text(assignment: StreamsGroupMemberAssignment, prefix: str) -> str:
    return "".join(
        _tasks_of_kind(tasks, prefix + kind)
        for kind, tasks in (
            ("ACTIVE", assignment.active_tasks),
            ("STANDBY", assignment.standby_tasks),
            ("WARMUP", assignment.warmup_tasks),
        )
    )


def _tasks_of_kind(tasks: Sequence[StreamsGroupTaskIds], kind: str) -> str:
    if not tasks:
        return ""
    listed = "".join(
        f"{task.subtopology_id}:[{','.join(map(str, task.partitions))}]; " for task in tasks
    )
    return f"{kind}: {listed}"
