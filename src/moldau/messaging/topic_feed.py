"""TopicFeed: a consumer without a group, for one subscription that is not durable."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Final

from moldau.client import AcknowledgeType, Consumer, TopicPartition
from moldau.messaging.context import Context, now_ms
from moldau.messaging.feed import HELD_MAX, PAUSE_S_MAX, POLL_S, Feed, Receiver, Token
from moldau.messaging.machine.buffer import Timed
from moldau.messaging.machine.destinations import Destination
from moldau.messaging.machine.errors import MessageFormatError
from moldau.messaging.machine.records import CONNECTION

__all__ = ["TopicFeed"]

_PARTITIONS_S: Final = 10.0


class TopicFeed(Feed):
    """A subscription that begins now and is gone with its consumer."""

    def __init__(self, context: Context, destination: Destination, receiver: Receiver) -> None:
        super().__init__(context, destination)
        self._receiver = receiver
        self._held: Timed[Token] = Timed()
        self._consumer: Consumer[bytes | None, bytes | None] = Consumer(
            {
                **context.client_settings,
                "isolation.level": "read_committed",
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "max.poll.records": "100",
            }
        )
        self._partitions = context.partitions(destination.name)
        self._consumer.assign(self._partitions)
        ends = self._consumer.end_offsets(self._partitions)
        for key, offset in ends.items():
            self._consumer.seek(key, offset)
        self._looked_s = time.monotonic()
        self._again: deque[Token] = deque()

    def settle(self, token: Token, accepted: bool) -> None:
        """A message that is not accepted is received again, by the same consumer."""
        with self.changed:
            if token.outcome is not None:
                return
            if accepted:
                token.outcome = AcknowledgeType.ACCEPT
                return
            token.message = self._read(token.record, token.message.delivery_count + 1)
            if token.message.delivery_count <= self.context.settings.max_deliveries:
                self._receiver.buffer.put_back(token)
                self.changed.notify_all()
                return
            token.outcome = AcknowledgeType.REJECT
        count = token.message.delivery_count - 1
        self.context.dead_letter(
            token.record, f"delivered {count} times without an acknowledgement"
        )

    def flush(self, timeout: float) -> bool:
        return True

    def close(self) -> None:
        with self.changed:
            self._closing = True
            self.changed.notify_all()
        self._consumer.wakeup()
        self._join()

    def _turn(self) -> None:
        for token in self._held.due(now_ms()):
            self._hand_out(token)
        with self.changed:
            if not self._receiver.buffer.room or len(self._held) >= HELD_MAX:
                self.changed.wait(PAUSE_S_MAX)
                return
        self._find_partitions()
        for record in self._consumer.poll(0.1 if len(self._held) else POLL_S):
            self._take_in(record)

    def _finish(self) -> None:
        self._consumer.close(5)

    def _find_partitions(self) -> None:
        if time.monotonic() - self._looked_s < _PARTITIONS_S:
            return
        self._looked_s = time.monotonic()
        found = self._consumer.partitions_for(self.destination.name)
        new = [
            TopicPartition(each.topic, each.partition)
            for each in found
            if TopicPartition(each.topic, each.partition) not in self._partitions
        ]
        if new:
            self._partitions = [*self._partitions, *new]
            self._consumer.assign(self._partitions)
            self._consumer.seek_to_beginning(new)

    def _take_in(self, record: Any) -> None:
        try:
            message = self._read(record, 1)
        except MessageFormatError as error:
            self.context.dead_letter(record, str(error))
            return
        own = (CONNECTION, self.context.id.encode()) in (record.headers or ())
        if self._is_expired(message) or (own and self._receiver.no_local):
            return
        token = Token(self, record, message)
        if message.delivery_time > now_ms():
            self._held.put(token)
        else:
            self._hand_out(token)

    def _hand_out(self, token: Token) -> None:
        if self._receiver.wants(token.message):
            with self.changed:
                self._receiver.buffer.put(token)
                self.changed.notify_all()
