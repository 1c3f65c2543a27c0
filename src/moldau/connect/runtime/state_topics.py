"""The compacted topics of a worker: configurations, offsets, states; and connectors' own ones."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client import NewTopic
from moldau.connect.runtime.clients import worker_client
from moldau.connect.runtime.topic_log import Apply, TopicLog
from moldau.connect.runtime.worker_config import WorkerConfig

_OWN = frozenset({"topic", "replication.factor", "partitions"})


def state_log(config: WorkerConfig, kind: str, apply: Apply, *, partitions: int) -> TopicLog:
    """The worker's own topic of a kind: config, offset or status."""
    settings = config.settings
    consumer = worker_client(settings, "consumer")
    if config.exactly_once:
        consumer["isolation.level"] = "read_committed"
    topic = config.values[f"{kind}.storage.topic"]
    return TopicLog(
        topic,
        apply,
        producer=worker_client(settings, "producer"),
        consumer=consumer,
        admin=worker_client(settings, "admin"),
        create=_new_topic(config, kind, topic, partitions),
    )


def connector_offset_log(
    config: WorkerConfig, topic: str, apply: Apply, clients: Mapping[str, Mapping[str, str]]
) -> TopicLog:
    """A connector's own offset topic, which is created as the worker's is."""
    return TopicLog(
        topic,
        apply,
        producer=clients["producer"],
        consumer=clients["consumer"],
        admin=clients["admin"],
        create=_new_topic(config, "offset", topic, config.values["offset.storage.partitions"]),
    )


def _new_topic(config: WorkerConfig, kind: str, topic: str, partitions: int) -> NewTopic:
    prefix = f"{kind}.storage."
    replicas = config.values[f"{prefix}replication.factor"]
    configs = {
        key.removeprefix(prefix): value
        for key, value in config.settings.items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in _OWN
    }
    return NewTopic(
        topic,
        num_partitions=None if partitions == -1 else partitions,
        replication_factor=None if replicas == -1 else replicas,
        configs={**configs, "cleanup.policy": "compact"},
    )
