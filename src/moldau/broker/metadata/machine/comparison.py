"""Deltas between whole images, where single changes are not known.

Invariant: such a delta has everything that is in the new image, and everything of the old one that
is gone, each with its previous value. A listener that has no image yet, or only the old one, is
complete after it.
"""

from __future__ import annotations

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ResourceType


def whole_image_delta(image: MetadataImage) -> MetadataDelta:
    """Everything in `image`, for a listener that has no image yet."""
    return delta_between(MetadataImage(), image)


def delta_between(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """From `old` to `new`, which has taken its place."""
    delta = MetadataDelta(from_snapshot=True)
    _compare_topics(old, new, delta)
    for broker_id in [*old.brokers, *new.brokers]:
        delta.on_broker_changed(broker_id, old.brokers.get(broker_id))
    # A deleted topic's configs vanish with it.
    gone = {(ResourceType.TOPIC, topic.name) for topic in delta.deleted_topics.values()}
    for resource in [key for key in old.configs if key not in gone] + list(new.configs):
        for name in {**old.configs.get(resource, {}), **new.configs.get(resource, {})}:
            delta.on_config_changed(resource, name)
    delta.features.update(old.features, new.features)
    delta.producer_ids_changed = delta.quotas_changed = delta.acls_changed = True
    delta.scram_changed = delta.tokens_changed = delta.controllers_changed = True
    return delta


def _compare_topics(old: MetadataImage, new: MetadataImage, delta: MetadataDelta) -> None:
    for topic_id, topic in old.topics_by_id.items():
        if topic_id not in new.topics_by_id:
            delta.on_topic_removed(topic)
    for topic_id, topic in new.topics_by_id.items():
        before = old.topics_by_id.get(topic_id)
        if before is None:
            delta.on_topic_created(topic)
        for index in topic.partitions:
            was = None if before is None else before.partitions.get(index)
            delta.on_partition_changed(topic, index, was)
