"""What the views of groups show where a live group is hard to get into that state."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.groups.consumer_groups_views import (
    is_worth_showing,
    offset_rows,
    show_members,
    show_offsets,
)
from moldau.cli.groups.group_queries import GroupCluster
from moldau.cli.groups.streams_groups_views import tasks_text
from moldau.cli.support.java_errors import UnusablePartitionsError
from moldau.client.admin import (
    ConsumerGroupDescription,
    GroupState,
    GroupType,
    MemberAssignment,
    MemberDescription,
    StreamsGroupMemberAssignment,
    StreamsGroupTaskIds,
    TopicDescription,
    TopicPartitionInfo,
)
from moldau.client.errors import UnknownTopicOrPartitionError
from moldau.client.results import Results
from moldau.client.topics import Node, OffsetAndMetadata, TopicPartition

NODE = Node(1, "host", 9092)
A, B, C = (TopicPartition("t", number) for number in range(3))


def member(name: str, *partitions: TopicPartition, **fields: Any) -> MemberDescription:
    return MemberDescription(
        name, None, None, "client", "/host", MemberAssignment(frozenset(partitions)), **fields
    )


def group(*members: MemberDescription) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        "g", False, members, "range", GroupType.CONSUMER, GroupState.STABLE, NODE, None, 4, 5
    )


def test_the_busiest_member_comes_first_and_what_nobody_reads_last() -> None:
    described = group(member("small", B), member("big", A, C), member("idle"))
    committed = {A: OffsetAndMetadata(3, "", 7), TopicPartition("u", 0): OffsetAndMetadata(1)}
    rows = offset_rows(described, committed, {A: 10, B: 5})
    assert [(row.topic, row.partition, row.consumer_id) for row in rows] == [
        ("t", 0, "big"),
        ("t", 2, "big"),
        ("t", 1, "small"),
        ("u", 0, "-"),
    ]
    assert [(row.offset, row.end, row.lag, row.leader_epoch) for row in rows] == [
        (3, 10, 7, 7),
        # Without a commit there is no lag, without a leader no end.
        (None, None, None, None),
        (None, 5, None, None),
        (1, None, None, None),
    ]


def test_unknown_figures_are_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    show_offsets("g", offset_rows(group(member("m", A)), {}, {}), verbose=True)
    assert capsys.readouterr().out.splitlines()[2].split() == [
        *("g", "t", "0", "-", "-", "-", "-", "m", "/host", "client"),
    ]


def test_a_group_on_its_way_to_the_new_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    new = member("new", A, target_assignment=MemberAssignment(frozenset({A, B})), member_epoch=4,
                 upgraded=True)  # fmt: skip
    show_members(group(new, member("old", B, upgraded=False)), verbose=True)
    header, first, second = (line.split() for line in capsys.readouterr().out.splitlines()[1:])
    assert header[-5:] == [
        "CURRENT-EPOCH",
        "CURRENT-ASSIGNMENT",
        "TARGET-EPOCH",
        "TARGET-ASSIGNMENT",
        "UPGRADED",
    ]
    assert first[-5:] == ["4", "t:0", "5", "t:0,1", "true"]
    assert second[-5:] == ["-", "t:1", "5", "-", "false"]


@pytest.mark.parametrize(
    ("state", "is_shown", "told"),
    [
        ("Stable", True, ""),
        ("Empty", True, "\nConsumer group 'g' has no active members.\n"),
        ("Reconciling", True, "\nWarning: Consumer group 'g' is rebalancing.\n"),
        ("Dead", False, "\nError: Consumer group 'g' does not exist.\n"),
    ],
)
def test_states_are_told(
    state: str, is_shown: bool, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert is_worth_showing("g", state, 1) is is_shown
    printed = capsys.readouterr()
    assert printed.out + printed.err == told


def test_tasks_of_a_streams_member() -> None:
    tasks = StreamsGroupMemberAssignment(
        active_tasks=(StreamsGroupTaskIds("0", (0, 1)), StreamsGroupTaskIds("1", (2,))),
        standby_tasks=(StreamsGroupTaskIds("0", (3,)),),
    )
    assert tasks_text(tasks, None) == "ACTIVE: 0:[0,1]; 1:[2]; STANDBY: 0:[3]; "
    target = StreamsGroupMemberAssignment(warmup_tasks=(StreamsGroupTaskIds("1", (0,)),))
    assert tasks_text(tasks, target).endswith("TARGET-WARMUP: 1:[0]; ")


class FakeAdmin:
    """A topic with a leader in its first partition only, and no other topic."""

    def describe_topics(self, topics: Any, *, timeout: float, check: bool = True) -> Any:
        infos = (
            TopicPartitionInfo(0, NODE, (NODE,), (NODE,)),
            TopicPartitionInfo(1, None, (NODE,), ()),
        )
        known = TopicDescription("t", None, False, infos)  # type: ignore[arg-type]
        unknown = {name: UnknownTopicOrPartitionError(name) for name in topics if name != "t"}
        results: Results[str, TopicDescription] = Results({"t": known}, unknown)
        return results.check() if check else results

    def list_offsets(self, wanted: Any, *, timeout: float) -> Any:
        class Found:
            offset = 9

        return dict.fromkeys(wanted, Found())


def test_ends_are_asked_for_only_where_somebody_can_answer() -> None:
    cluster = GroupCluster(FakeAdmin(), 1000)  # type: ignore[arg-type]
    assert cluster.known_ends({A, B, TopicPartition("gone", 0)}) == {A: 9}
    assert cluster.known_ends(set()) == {}


@pytest.mark.parametrize(
    ("partitions", "problem"),
    [
        ([A, B, C], 'The partitions "t-2" do not exist'),
        ([A, B], 'The partitions "t-1" have no leader'),
    ],
)
def test_partitions_that_cannot_be_reset(partitions: Any, problem: str) -> None:
    cluster = GroupCluster(FakeAdmin(), 1000)  # type: ignore[arg-type]
    with pytest.raises(UnusablePartitionsError) as raised:
        cluster.check_valid(partitions)
    assert str(raised.value) == problem
    cluster.check_valid([A])
