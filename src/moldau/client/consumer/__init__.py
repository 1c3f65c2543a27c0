"""The consumer: `Consumer` for threads, `AsyncConsumer` for asyncio."""

from moldau.client.consumer.asynchronous import AsyncConsumer
from moldau.client.consumer.blocking import Consumer
from moldau.client.consumer.face import SubscriptionPattern
from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.consumer.membership_interface import (
    ConsumerGroupMetadata,
    GroupMembershipOperation,
)
from moldau.client.consumer.rebalance_listener import ConsumerRebalanceListener

__all__ = [
    "AsyncConsumer",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "ConsumerRecords",
    "GroupMembershipOperation",
    "SubscriptionPattern",
]
