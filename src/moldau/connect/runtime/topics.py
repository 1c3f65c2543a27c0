"""Topics that a source writes to, created with its settings before the first record."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from moldau.client import Admin, KafkaError, NewTopic, TopicExistsError
from moldau.connect.api import ConnectError
from moldau.connect.machine.topic_creation import TopicCreation

logger = logging.getLogger(__name__)


class TopicCreator:
    """Does nothing unless the connector has topic creation settings and the worker allows it."""

    def __init__(
        self, admin: Mapping[str, str], config: Mapping[str, str], *, enabled: bool
    ) -> None:
        self._admin = admin
        self._creation = (
            TopicCreation(config) if enabled and TopicCreation.is_wanted(config) else None
        )

    def ensure(self, topic: str) -> None:
        if self._creation is None:
            return
        wanted = self._creation.settings_of(topic)
        with Admin(self._admin) as admin:
            if topic in admin.list_topics():
                return
            try:
                admin.create_topics(
                    [
                        NewTopic(
                            topic,
                            num_partitions=wanted.partitions,
                            replication_factor=wanted.replication_factor,
                            configs=dict(wanted.configs),
                        )
                    ]
                )
                logger.info("created the topic %s with %s", topic, wanted)
            except TopicExistsError:
                return
            except KafkaError as error:
                raise ConnectError(
                    f"Task failed to create new topic {topic} with {wanted}: {error}. Check "
                    "topic.creation.* of the connector, or create the topic"
                ) from error
