"""Producer, consumer, share consumer and admin for any Kafka cluster.

    from moldau.client import Admin, Consumer, Producer

Each comes as a blocking class and as one for asyncio (`AsyncProducer`, ...), with Kafka's settings
by their names. The most common errors can be imported from here, all of them from
`moldau.client.errors`. A name is imported when it is first used: a program that only sends does not
pay for the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau.collecting import keeping_all

if TYPE_CHECKING:
    from moldau.client.admin import (
        Admin,
        AlterConfigOp,
        AsyncAdmin,
        ConfigResource,
        NewPartitions,
        NewTopic,
        OffsetSpec,
    )
    from moldau.client.consumer import (
        AsyncConsumer,
        Consumer,
        ConsumerGroupMetadata,
        ConsumerRebalanceListener,
        ConsumerRecords,
        SubscriptionPattern,
    )
    from moldau.client.consumer.assignors import (
        Assignment,
        PartitionAssignor,
        RebalanceProtocol,
        Subscription,
    )
    from moldau.client.consumer_record import ConsumerRecord
    from moldau.client.errors import (
        CommitFailedError,
        ConfigError,
        KafkaError,
        KafkaTimeoutError,
        ProducerFencedError,
        RetriableError,
        SerializationError,
        TopicExistsError,
        UnknownTopicOrPartitionError,
        WakeupError,
    )
    from moldau.client.producer import (
        AsyncProducer,
        Partitioner,
        Producer,
        ProducerRecord,
        RecordFuture,
        RecordMetadata,
    )
    from moldau.client.results import Results
    from moldau.client.share import (
        AcknowledgeType,
        AsyncShareConsumer,
        ShareConsumer,
        TopicIdPartition,
    )
    from moldau.client.topics import (
        Node,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        PartitionInfo,
        TopicPartition,
    )

__all__ = [
    "AcknowledgeType",
    "Admin",
    "AlterConfigOp",
    "Assignment",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncShareConsumer",
    "CommitFailedError",
    "ConfigError",
    "ConfigResource",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerRecords",
    "KafkaError",
    "KafkaTimeoutError",
    "NewPartitions",
    "NewTopic",
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "PartitionAssignor",
    "PartitionInfo",
    "Partitioner",
    "Producer",
    "ProducerFencedError",
    "ProducerRecord",
    "RebalanceProtocol",
    "RecordFuture",
    "RecordMetadata",
    "Results",
    "RetriableError",
    "SerializationError",
    "ShareConsumer",
    "Subscription",
    "SubscriptionPattern",
    "TopicExistsError",
    "TopicIdPartition",
    "TopicPartition",
    "UnknownTopicOrPartitionError",
    "WakeupError",
]

_MODULES = {
    "admin.asynchronous": ("AsyncAdmin",),
    "admin.blocking": ("Admin",),
    "admin.config_values": ("AlterConfigOp", "ConfigResource"),
    "admin.offset_values": ("OffsetSpec",),
    "admin.topic_values": ("NewPartitions", "NewTopic"),
    "consumer": (
        "AsyncConsumer",
        "Consumer",
        "ConsumerGroupMetadata",
        "ConsumerRebalanceListener",
        "ConsumerRecords",
        "SubscriptionPattern",
    ),
    "consumer.assignors": (
        "Assignment",
        "PartitionAssignor",
        "RebalanceProtocol",
        "Subscription",
    ),
    "consumer_record": ("ConsumerRecord",),
    "errors": (
        "CommitFailedError",
        "ConfigError",
        "KafkaError",
        "KafkaTimeoutError",
        "ProducerFencedError",
        "RetriableError",
        "SerializationError",
        "TopicExistsError",
        "UnknownTopicOrPartitionError",
        "WakeupError",
    ),
    "producer": (
        "AsyncProducer",
        "Partitioner",
        "Producer",
        "ProducerRecord",
        "RecordFuture",
        "RecordMetadata",
    ),
    "results": ("Results",),
    "share": ("AcknowledgeType", "AsyncShareConsumer", "ShareConsumer", "TopicIdPartition"),
    "topics": (
        "Node",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "PartitionInfo",
        "TopicPartition",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with keeping_all():
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
