"""What the log may look like after compaction and under other releases."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from moldau.broker.coordinator.group.machine.consumer import records
from moldau.broker.coordinator.group.machine.consumer.member import (
    ClassicMemberMetadata,
    ConsumerMember,
    MemberState,
)
from moldau.broker.coordinator.group.machine.consumer.subscriptions import ResolvedRegularExpression
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)

T = UUID(int=1)


def busy_log(stage: Any) -> None:
    """A history with all kinds of records in it."""
    stage.topics.create("u", 3)
    stage.join("m1")
    stage.join("m2", regex="u|t")
    stage.advance(0)
    stage.join("s1", ["t", "u"], instance="s")
    kept = stage.shown(stage.heartbeat("m1", 2, owned={"t": [0, 1, 2, 3]}))
    stage.heartbeat("m1", 2, owned=kept)
    stage.heartbeat("m2", stage.group().members["m2"].member_epoch)
    stage.heartbeat("s1", -2, instance="s")
    stage.join("s2", ["u"], instance="s")
    stage.heartbeat("m2", -1)
    stage.join("m3", group="other")
    stage.heartbeat("m3", -1, group="other")


def compacted(written: list[Any], until: int) -> list[Any]:
    """Without the records of the first part that have a later one in it."""
    last = {key: index for index, (key, _) in enumerate(written[:until])}
    head = [pair for index, pair in enumerate(written[:until]) if last[pair[0]] == index]
    return head + written[until:]


def without_tombstones(written: list[Any], until: int) -> list[Any]:
    """Compacted, and the tombstones of the first part have had their time too."""
    cut = len(written) - until
    kept = compacted(written, until)
    tail = kept[len(kept) - cut :] if cut else []
    head = kept[: len(kept) - cut] if cut else kept
    return [pair for pair in head if pair[1] is not None] + tail


def test_whatever_compaction_leaves_makes_the_same_groups(stage: Any, snapshot: Any) -> None:
    busy_log(stage)
    live = stage.state()
    assert live.keys() == {"g", "other"}
    for until in range(len(stage.written) + 1):
        for cleaned in (compacted(stage.written, until), without_tombstones(stage.written, until)):
            section = stage.replayed(cleaned)
            assert {each: snapshot(group) for each, group in section.groups.items()} == live


def test_a_deleted_group_leaves_nothing(stage: Any) -> None:
    busy_log(stage)
    group = stage.group()
    tombstones = [record.encode() for record in group.tombstones()]
    kinds = [type(record.key).__name__ for record in group.tombstones()]
    assert kinds[-2:] == ["ConsumerGroupPartitionMetadataKey", "ConsumerGroupMetadataKey"]
    written = stage.written + tombstones
    assert "g" not in stage.replayed(written).groups
    for until in range(len(written) + 1):
        assert "g" not in stage.replayed(compacted(written, until)).groups
    assert "g" not in stage.replayed(tombstones).groups, "tombstones alone make no group"


def test_records_in_any_order_do_not_stop_a_load(stage: Any) -> None:
    busy_log(stage)
    written = stage.written + [record.encode() for record in stage.group().tombstones()]
    shuffle = random.Random(1)
    for _ in range(50):
        shuffle.shuffle(written)
        stage.replayed(written)


def test_partitions_without_epochs_count_from_the_members_epoch(stage: Any) -> None:
    """Releases before 4.3 wrote no assignment epochs."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        assigned_partitions=[
            ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
                topic_id=T, partitions=[0, 1], assignment_epochs=None
            )
        ],
        partitions_pending_revocation=[
            ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
                topic_id=T, partitions=[2], assignment_epochs=[1, 2]
            )
        ],
        state=99,
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    section = stage.replayed([CoordinatorRecord(key, value).encode()])
    member = section.groups["g"].members["m"]
    assert member.assigned == {T: {0: 7, 1: 7}}
    assert member.pending_revocation == {T: {2: 7}}
    assert member.state is MemberState.UNKNOWN
    assert section.groups["g"].owners == {T: {0: "m", 1: "m", 2: "m"}}

    value.member_epoch = -2
    gone = stage.replayed([CoordinatorRecord(key, value).encode()]).groups["g"].members["m"]
    assert gone.assigned == {T: {0: 0, 1: 0}}


def test_a_member_survives_its_records(stage: Any) -> None:
    member = ConsumerMember(
        "m",
        member_epoch=3,
        previous_member_epoch=2,
        state=MemberState.UNREVOKED_PARTITIONS,
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=5,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=frozenset({"b", "a"}),
        subscribed_topic_regex="x.*",
        server_assignor="range",
        assigned={T: {3: 1, 1: 2}},
        pending_revocation={T: {0: 3}},
        classic=ClassicMemberMetadata(9, (("range", b"1"), ("roundrobin", b"2"))),
    )
    resolved = ResolvedRegularExpression(frozenset({"xa"}), 5, 6)
    written = [
        records.member_record("g", member),
        records.current_record("g", member),
        records.target_record("g", "m", {T: frozenset({1, 3})}),
        records.target_epoch_record("g", 3, 12),
        records.group_epoch_record("g", 4, -5),
        records.regex_record("g", "x.*", resolved),
        CoordinatorRecord(
            ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue()
        ),
    ]
    group = stage.replayed([record.encode() for record in written]).groups["g"]
    assert group.members == {"m": member}
    assert group.target == {"m": {T: frozenset({1, 3})}}
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (3, 12)
    assert (group.group_epoch, group.metadata_hash) == (4, -5)
    assert group.subscriptions.resolved == {"x.*": resolved}
    assert group.classic_member_count == 1
    assert group.has_partition_metadata


def test_the_bytes_of_records_are_kafkas() -> None:
    """Written down from what Kafka 4.3 writes for the same members."""
    member = ConsumerMember(
        "m", member_epoch=2, previous_member_epoch=1, assigned={T: {0: 2}}, client_id="c"
    )
    key, value = records.current_record("g", member).encode()
    assert key == b"\x00\x08\x00\x01g\x00\x01m"
    assert value is not None
    # version, epochs, state, one topic with id, one partition, a tag with its epoch, no others.
    assert value == (
        b"\x00\x00" + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x01" + b"\x00"
        + b"\x02" + T.bytes + b"\x02\x00\x00\x00\x00" + b"\x01\x00\x05\x02\x00\x00\x00\x02"
        + b"\x01" + b"\x00"
    )  # fmt: skip
    # No instance and rack, the client, no host, no names, no regex, no timeout, no assignor, and
    # a tag that says there is no classic metadata: without it Kafka would see a classic member.
    assert records.member_record("g", member).encode()[1] == (
        b"\x00\x00" + b"\x00\x00" + b"\x02c" + b"\x01" + b"\x01" + b"\x01"
        + b"\xff\xff\xff\xff" + b"\x00" + b"\x01\x00\x01\x00"
    )  # fmt: skip
    assert records.target_epoch_record("g", 2, 1).encode() == (
        b"\x00\x06\x00\x01g",
        b"\x00\x00" + b"\x00\x00\x00\x02" + b"\x01\x00\x08" + b"\x00" * 7 + b"\x01",
    )
