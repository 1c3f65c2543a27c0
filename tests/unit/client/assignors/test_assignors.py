"""What a leader gives its group, where Kafka's own classes cannot be asked."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from moldau.client.consumer.assignors import (
    Assignment,
    CooperativeStickyAssignor,
    PartitionAssignor,
    RangeAssignor,
    RebalanceProtocol,
    StickyAssignor,
    Subscription,
)
from moldau.client.consumer.assignors.assignor import common_protocol
from moldau.client.consumer.assignors.embedded import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from moldau.client.consumer.assignors.resolve import resolve_assignors
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.errors import ConfigError, IllegalStateError
from moldau.client.machine.metadata import EMPTY, ClusterMetadata, PartitionView, TopicView
from moldau.client.topics import Node, TopicPartition
from moldau.wire.errors import WireError
from moldau.wire.uuids import ZERO_UUID

NODE = Node(0, "h", 1)


def cluster(**counts: int) -> ClusterMetadata:
    views = {
        topic: TopicView(
            topic,
            ZERO_UUID,
            False,
            {index: PartitionView(0, 1, (0,), (0,), ()) for index in range(count)},
        )
        for topic, count in counts.items()
    }
    return EMPTY._replace(nodes={0: NODE}, topics=views)


def keys(topic: str, *indexes: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, index) for index in indexes)


def test_a_partition_that_is_gone_does_not_count_for_its_owner() -> None:
    # t was deleted and made anew with two partitions instead of four.
    members = {
        "a": Subscription(("t",), None, keys("t", 2, 3), 5),
        "b": Subscription(("t",), None, (), None),
    }
    assigned = CooperativeStickyAssignor().assign(cluster(t=2), members)
    assert sorted(len(each.partitions) for each in assigned.values()) == [1, 1]


def test_cooperative_sticky_withholds_what_must_be_given_up_first() -> None:
    members = {
        "a": Subscription(("t",), None, keys("t", 0, 1, 2, 3), 5),
        "b": Subscription(("t",), None, (), None),
    }
    first = CooperativeStickyAssignor().assign(cluster(t=4), members)
    assert len(first["a"].partitions) == 2
    assert first["b"].partitions == ()
    members["a"] = members["a"]._replace(owned_partitions=first["a"].partitions)
    second = CooperativeStickyAssignor().assign(cluster(t=4), members)
    assert second["a"].partitions == first["a"].partitions
    assert len(second["b"].partitions) == 2


def test_sticky_remembers_through_its_user_data() -> None:
    member = StickyAssignor()
    assert member.subscription_user_data(frozenset({"t"})) is None
    member.on_assignment(Assignment(keys("t", 3, 1)), ConsumerGroupMetadata("g", 7, "a"))
    said = member.subscription_user_data(frozenset({"t"}))
    members = {"a": Subscription(("t",), said), "b": Subscription(("t",))}
    assigned = StickyAssignor().assign(cluster(t=4), members)
    assert set(assigned["a"].partitions) == set(keys("t", 1, 3))
    assert set(assigned["b"].partitions) == set(keys("t", 0, 2))


@pytest.mark.parametrize("said", [b"\x00", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x01\x00\x09ab"])
def test_user_data_that_is_none_of_sticky_is_as_good_as_none(said: bytes) -> None:
    members = {"a": Subscription(("t",), said), "b": Subscription(("t",))}
    assigned = StickyAssignor().assign(cluster(t=2), members)
    assert sorted(len(each.partitions) for each in assigned.values()) == [1, 1]


@pytest.mark.parametrize(
    "entry",
    [
        "range",
        " range ",
        "RangeAssignor",
        "org.apache.kafka.clients.consumer.RangeAssignor",
        "moldau.client.consumer.assignors.range.RangeAssignor",
        RangeAssignor,
        RangeAssignor(),
    ],
    ids=["short", "spaces", "simple name", "Java's name", "Python's name", "class", "object"],
)
def test_an_assignor_is_named_in_many_ways(entry: Any) -> None:
    (assignor,) = resolve_assignors([entry], {})
    assert assignor.name == "range"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("rang", "Did you mean range?"),
        ("org.apache.kafka.clients.consumer.StickyAssigner", "Did you mean StickyAssignor?"),
        ("no.such.module.Assignor", "cannot be imported"),
        (object(), "has a name"),
    ],
)
def test_what_is_no_assignor_is_refused(entry: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")) as caught:
        resolve_assignors([entry], {})
    assert caught.value.key == "partition.assignment.strategy"


class EverythingToTheFirst:
    """Custom, without the base class."""

    name = "first"
    supported_protocols: ClassVar = ["eager", "cooperative"]

    def __init__(self) -> None:
        self.config: Any = None

    def configure(self, config: Any) -> None:
        self.config = config

    def assign(self, metadata: ClusterMetadata, subscriptions: Any) -> Any:
        first = min(subscriptions)
        topics = subscriptions[first].topics
        every = [(topic, index) for topic in topics for index in metadata.topics[topic].partitions]
        return {member_id: every if member_id == first else [] for member_id in subscriptions}


def test_a_custom_assignor() -> None:
    given = EverythingToTheFirst()
    (assignor,) = resolve_assignors([given], {"group.id": "g"})
    assert given.config == {"group.id": "g"}
    assert assignor.subscription_user_data(frozenset()) is None
    assigned = assignor.assign(cluster(t=2), {"b": Subscription(("t",)), "a": Subscription(("t",))})
    assert assigned == {"a": Assignment(keys("t", 0, 1)), "b": Assignment(())}


def test_members_that_nobody_knows_get_nothing() -> None:
    class Confused(PartitionAssignor):
        name = "confused"

        def assign(self, metadata: Any, subscriptions: Any) -> Any:
            return {"stranger": []}

    (assignor,) = resolve_assignors([Confused], {})
    with pytest.raises(IllegalStateError, match="stranger"):
        assignor.assign(cluster(t=1), {"a": Subscription(("t",))})


@pytest.mark.parametrize(
    ("entries", "protocol"),
    [
        (["range", "cooperative-sticky"], RebalanceProtocol.EAGER),
        (["cooperative-sticky"], RebalanceProtocol.COOPERATIVE),
        (["cooperative-sticky", EverythingToTheFirst], RebalanceProtocol.COOPERATIVE),
    ],
)
def test_the_best_common_protocol_is_used(entries: Any, protocol: RebalanceProtocol) -> None:
    assert common_protocol(resolve_assignors(entries, {})) is protocol


def test_assignors_without_a_common_protocol_are_refused() -> None:
    class OnlyCooperative(PartitionAssignor):
        name = "only"
        supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    with pytest.raises(ConfigError, match="no rebalance protocol in common"):
        common_protocol(resolve_assignors([OnlyCooperative, "range"], {}))


def test_two_of_the_same_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two assignors"):
        resolve_assignors(["range", "RangeAssignor"], {})


def test_subscriptions_and_assignments_survive_the_wire() -> None:
    subscription = Subscription(("a", "b"), b"x", keys("a", 1, 2) + keys("b", 0), 3, "r1", "i")
    assert read_subscription(write_subscription(subscription), "i") == subscription
    assignment = Assignment(keys("a", 0), b"y")
    assert read_assignment(write_assignment(assignment)) == assignment


def test_a_later_version_is_read_as_the_newest_known() -> None:
    data = b"\x00\x09" + write_assignment(Assignment(keys("a", 0)))[2:] + b"more"
    assert read_assignment(data).partitions == keys("a", 0)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x00\x00\x00\x00\x05"])
def test_bytes_that_are_no_assignment_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        read_assignment(data)
