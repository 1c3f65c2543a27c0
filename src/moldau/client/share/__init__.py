"""Share groups (KIP-932): several consumers take records of the same partitions, each record is
locked for one of them until that one says what became of it."""

from moldau.client.share.asynchronous import AsyncShareConsumer
from moldau.client.share.blocking import ShareConsumer
from moldau.client.share.machine.acknowledgements import AcknowledgeType, TopicIdPartition

__all__ = ["AcknowledgeType", "AsyncShareConsumer", "ShareConsumer", "TopicIdPartition"]
