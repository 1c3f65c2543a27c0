"""The foreign clients of the conformance tests behind one small interface."""

from __future__ import annotations

from collections.abc import Callable

from support.clients.aiokafka_client import AiokafkaClient
from support.clients.base import Client, Row
from support.clients.confluent_client import ConfluentClient
from support.clients.kafka_python_client import KafkaPythonClient
from support.clients.kcat_client import KcatClient

CLIENTS: dict[str, Callable[[str], Client]] = {
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
    "kcat": KcatClient,
}

__all__ = ["CLIENTS", "Client", "Row"]
