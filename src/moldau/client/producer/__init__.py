"""Sending records: the blocking and the asyncio producer."""

from moldau.client.producer._batch import RecordFuture
from moldau.client.producer.asynchronous import AsyncProducer
from moldau.client.producer.blocking import Producer
from moldau.client.producer.machine.partitioners import (
    Partitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
)
from moldau.client.producer.machine.records import ProducerRecord, RecordMetadata

__all__ = [
    "AsyncProducer",
    "Partitioner",
    "Producer",
    "ProducerRecord",
    "RecordFuture",
    "RecordMetadata",
    "RoundRobinPartitioner",
    "UniformStickyPartitioner",
]
