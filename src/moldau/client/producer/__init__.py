"""Sending records: the blocking and the asyncio producer."""

from moldau.client.machine.producer_records import ProducerRecord, RecordMetadata
from moldau.client.producer._batch import DeliveryCallback, RecordFuture
from moldau.client.producer._murmur2 import partition_for_key
from moldau.client.producer.asynchronous import AsyncProducer
from moldau.client.producer.blocking import Producer
from moldau.client.producer.machine.partitioners import (
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
)

__all__ = [
    "AsyncProducer",
    "DeliveryCallback",
    "Partitioner",
    "Producer",
    "ProducerRecord",
    "RecordFuture",
    "RecordMetadata",
    "RoundRobinPartitioner",
    "UniformStickyPartitioner",
    "partition_for_key",
]
