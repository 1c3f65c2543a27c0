"""Deltas to whole images: everything there is, and everything that is gone."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.broker.metadata.machine.comparison import delta_between, whole_image_delta
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ResourceType
from moldau.wire.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

ONE, TWO = UUID(int=1, version=4), UUID(int=2, version=4)
FIRST = [
    FeatureLevelRecord(name="metadata.version", feature_level=25),
    FeatureLevelRecord(name="group.version", feature_level=1),
    RegisterBrokerRecord(broker_id=1, broker_epoch=5, incarnation_id=ONE, log_dirs=[ONE]),
    RegisterBrokerRecord(broker_id=2, broker_epoch=6, incarnation_id=TWO, log_dirs=[TWO]),
    TopicRecord(name="gone", topic_id=ONE),
    PartitionRecord(partition_id=0, topic_id=ONE, replicas=[1], isr=[1], leader=1),
    ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="1"),
    ConfigRecord(resource_type=4, resource_name="1", name="num.io.threads", value="3"),
]
LATER = [
    RemoveTopicRecord(topic_id=ONE),
    UnregisterBrokerRecord(broker_id=2, broker_epoch=6),
    ConfigRecord(resource_type=4, resource_name="1", name="num.io.threads", value=None),
    FeatureLevelRecord(name="group.version", feature_level=0),
    TopicRecord(name="new", topic_id=TWO),
    PartitionRecord(partition_id=0, topic_id=TWO, replicas=[1], isr=[1], leader=1),
]


def images() -> tuple[MetadataImage, MetadataImage]:
    old = MetadataImage()
    old.replay_all(FIRST)
    new = old.copy()
    new.replay_all(LATER)
    return old, new


def test_what_is_gone_is_named_with_what_was_there() -> None:
    old, new = images()
    delta = delta_between(old, new)
    assert delta.from_snapshot
    assert delta.deleted_topics == {ONE: old.topics_by_id[ONE]}
    assert delta.brokers == {1: old.brokers[1], 2: old.brokers[2]}
    assert delta.topics[TWO].created
    assert delta.topics[TWO].before == {0: None}
    assert delta.features == {"metadata.version", "group.version"}
    assert delta.configs == {(ResourceType.BROKER, "1"): {"num.io.threads"}}


def test_a_topic_made_anew_under_its_name_is_both_gone_and_new() -> None:
    old, new = images()
    renamed = [
        TopicRecord(name="gone", topic_id=UUID(int=9, version=4)),
        ConfigRecord(resource_type=2, resource_name="gone", name="segment.ms", value="9"),
    ]
    new.replay_all(renamed)
    delta = delta_between(old, new)
    assert list(delta.deleted_topics) == [ONE]
    assert {change.topic.name for change in delta.topics.values()} == {"new", "gone"}
    assert "segment.ms" in delta.configs[ResourceType.TOPIC, "gone"]


@pytest.mark.parametrize("at", [0, 1])
def test_who_knows_nothing_hears_of_all(at: int) -> None:
    image = images()[at]
    delta = whole_image_delta(image)
    assert delta.topics.keys() == image.topics_by_id.keys()
    assert all(change.created for change in delta.topics.values())
    assert delta.brokers == dict.fromkeys(image.brokers)
    assert delta.configs.keys() == image.configs.keys()
    assert delta.deleted_topics == {}


def test_an_image_compared_with_itself_names_every_partition_as_it_was() -> None:
    old, _ = images()
    delta: MetadataDelta = delta_between(old, old.copy())
    change = delta.topics[ONE]
    assert not change.created
    assert change.before == old.topics_by_id[ONE].partitions
    assert delta.deleted_topics == {}
