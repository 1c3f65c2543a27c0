"""A topic as tests hold it: its name, for any client, with a few things to do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

if TYPE_CHECKING:
    from moldau.client.consumer_record import ConsumerRecord
    from moldau.testing.cluster import Cluster
    from moldau.testing.nodes import Node

__all__ = ["RecordOptions", "Topic"]


class RecordOptions(TypedDict, total=False):
    """What `Cluster.records` takes besides the topic."""

    count: int | None
    timeout: float
    partition: int | None
    isolation_level: Literal["read_committed", "read_uncommitted"]


class Topic(str):
    """Is its name: it can be given to any client wherever that wants a text."""

    cluster: Cluster

    def __new__(cls, name: str, cluster: Cluster) -> Topic:
        topic = super().__new__(cls, name)
        topic.cluster = cluster
        return topic

    @property
    def name(self) -> str:
        return str(self)

    def produce(self, *values: Any, key: Any = None, partition: int = 0) -> list[int]:
        """Write records; their offsets."""
        return self.cluster.produce(self, *values, key=key, partition=partition)

    def records(self, **options: Unpack[RecordOptions]) -> list[ConsumerRecord]:
        """All records; options as of `Cluster.records`."""
        return self.cluster.records(self, **options)

    def values(self, **options: Unpack[RecordOptions]) -> list[bytes | None]:
        """Of all records; options as of `Cluster.records`."""
        return self.cluster.values(self, **options)

    def end_offsets(self) -> dict[int, int]:
        return self.cluster.end_offsets(self)

    def leader(self, partition: int = 0) -> Node:
        return self.cluster.leader(self, partition)

    def delete(self) -> None:
        self.cluster.delete_topic(self)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # In another process it is a name and nothing else.
        return str, (str(self),)
