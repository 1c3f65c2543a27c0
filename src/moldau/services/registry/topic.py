"""The registry's topic: created if it is missing, checked if it is there."""

from __future__ import annotations

import logging
from typing import Final

from moldau.client import AsyncAdmin, ConfigResource, NewTopic, TopicExistsError
from moldau.services.registry.config import RegistryConfig

__all__ = ["StoreError", "ensure_topic"]

logger = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"


class StoreError(Exception):
    """The topic cannot be used; the message says why, and what to do."""


async def ensure_topic(admin: AsyncAdmin, config: RegistryConfig, topic: str) -> None:
    """Raises StoreError for a topic that would lose schemas."""
    if config.skip_topic_validation:
        return
    missing = topic not in await admin.list_topics(list_internal=True)
    if missing and await _create(admin, config, topic):
        return
    await _verify(admin, config, topic)


async def _create(admin: AsyncAdmin, config: RegistryConfig, topic: str) -> bool:
    """False if another instance was quicker."""
    brokers = len((await admin.describe_cluster()).nodes)
    replicas = min(brokers, config.replication_factor)
    if replicas < config.replication_factor:
        logger.warning(
            "the topic %s is created with %d replicas, fewer than the %d of "
            "kafkastore.topic.replication.factor, because there are only %d brokers",
            topic,
            replicas,
            config.replication_factor,
            brokers,
        )
    wanted = NewTopic(
        topic,
        num_partitions=1,
        replication_factor=replicas,
        configs={**config.topic_configs, _POLICY: _COMPACT},
    )
    try:
        await admin.create_topics([wanted])
    except TopicExistsError:
        return False
    return True


async def _verify(admin: AsyncAdmin, config: RegistryConfig, topic: str) -> None:
    found = (await admin.describe_topics([topic]))[topic]
    if len(found.partitions) != 1:
        raise StoreError(
            f"The schema topic {topic} should have only 1 partition but has "
            f"{len(found.partitions)}. Choose another topic with kafkastore.topic"
        )
    replicas = len(found.partitions[0].replicas)
    if replicas < config.replication_factor:
        logger.warning(
            "the topic %s has %d replicas, fewer than the %d of "
            "kafkastore.topic.replication.factor",
            topic,
            replicas,
            config.replication_factor,
        )
    resource = ConfigResource.topic(topic)
    values = (await admin.describe_configs([resource]))[resource]
    policy = values[_POLICY].value
    if policy != _COMPACT:
        raise StoreError(
            f"The retention policy of the schema topic {topic} is incorrect. Expected "
            f"cleanup.policy to be 'compact' but it is {policy}. Change it with kafka-configs, "
            "else the broker deletes schemas after a while"
        )
