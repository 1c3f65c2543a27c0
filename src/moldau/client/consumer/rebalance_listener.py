"""What an application implements to take part in rebalances."""

from __future__ import annotations

from typing import Any

from moldau.client.topics import TopicPartition

__all__ = ["ConsumerRebalanceListener"]


class ConsumerRebalanceListener:
    """Called inside `poll`, `unsubscribe` and `close`; may call the consumer. An object with some
    of these methods does as well. With the asyncio consumer they may be coroutine functions."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These came to the assignment; their positions can be asked for and changed."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These are about to leave the assignment: the last moment to commit for them."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These belong to others already: a commit for them would fail."""
        return self.on_partitions_revoked(partitions)
