"""QueueBrowser: looks at the messages of a queue without taking them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from moldau.client import Consumer, KafkaError, TopicPartition
from moldau.messaging.context import Context, now_ms
from moldau.messaging.machine.destinations import Queue
from moldau.messaging.machine.errors import MessageFormatError, MessagingError
from moldau.messaging.machine.groups import queue_group
from moldau.messaging.machine.messages import Message
from moldau.messaging.machine.records import read_message
from moldau.messaging.machine.selector import Selector

__all__ = ["QueueBrowser"]


class QueueBrowser:
    """Made by `Session.create_browser`. Each iteration begins with the queue as it is then.

    It shows as many of the last messages as are left; so where messages were acknowledged out of
    order, some that are shown are acknowledged, and earlier ones are not shown.
    """

    def __init__(self, context: Context, queue: Queue, selector: Selector | None) -> None:
        self._context = context
        self.queue = queue
        self._selector = selector

    def __iter__(self) -> Iterator[Message]:
        settings = {
            **self._context.client_settings,
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
        try:
            with Consumer(settings) as consumer:
                yield from self._messages(consumer)
        except KafkaError as error:
            raise MessagingError(f"{self.queue} cannot be browsed: {error}") from error

    def _messages(self, consumer: Consumer[Any, Any]) -> Iterator[Message]:
        partitions = self._context.partitions(self.queue.name)
        group = queue_group(self.queue.name)
        found = self._context.admin.list_share_group_offsets(group, check=False)
        starts = found.values_by_key.get(group) or {}
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for key in partitions:
            start = starts.get(key)
            if start is not None and start.start_offset >= 0:
                # The stored start is behind the acknowledgements; how many are left is not.
                left_from = ends[key] - start.lag if start.lag is not None else 0
                consumer.seek(key, max(start.start_offset, left_from))
            else:
                consumer.seek_to_beginning([key])
        left = {key for key in partitions if consumer.position(key) < ends[key]}
        while left:
            for record in consumer.poll(1.0):
                if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                    message = self._read(record)
                    if message is not None:
                        yield message
            left = {key for key in left if consumer.position(key) < ends[key]}

    def _read(self, record: Any) -> Message | None:
        try:
            message = read_message(
                record.value,
                record.headers or (),
                timestamp=record.timestamp,
                delivery_count=0,
                pickling=self._context.pickling,
            )
        except MessageFormatError:
            return None
        message.destination = message.destination or self.queue
        if message.expiration and message.expiration <= now_ms():
            return None
        if self._selector is not None and not self._selector(message.selector_values()):
            return None
        return message

    def close(self) -> None:
        """Nothing is held between iterations."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
