"""The coordinators that FindCoordinator returns."""

from __future__ import annotations

from moldau.broker.coordinator.machine.topics import ImageTopics
from moldau.broker.metadata.machine.model import Node
from support.other_brokers import FAR, LISTENER, NEAR, OtherBrokers


def test_a_coordinator_is_named_by_the_listener_that_was_asked() -> None:
    brokers = OtherBrokers()
    brokers.create_topic("__consumer_offsets", NEAR, -1)
    topics = ImageTopics(lambda: brokers.image)
    assert topics.leader("__consumer_offsets", 0, LISTENER) == Node(NEAR, "host2", 9_002)
    assert topics.leader("__consumer_offsets", 0, "EXTERNAL") == Node(NEAR, "nobody", 1)
    assert topics.leader("__consumer_offsets", 0, "UNKNOWN") is None
    assert topics.leader("__consumer_offsets", 1, LISTENER) is None
    brokers.fence(NEAR)
    assert topics.leader("__consumer_offsets", 0, LISTENER) is None
    brokers.move("__consumer_offsets", 0, FAR)
    assert topics.leader("__consumer_offsets", 0, LISTENER) == Node(FAR, "host3", 9_003)
