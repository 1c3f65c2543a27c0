"""Feeds: threads that read for the consumers of a connection.

`ShareFeed` is one share consumer for all consumers of one queue or subscription in a connection.
Each message goes to a consumer that selects it. A message that nobody here selects is put back at
the end of its topic, for consumers elsewhere, with growing pauses. Messages that consumers have are
renewed while they have them; those before their delivery time are held here.

`TopicFeed` is a consumer without a group, for one subscription that is not durable.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Final

from moldau.client import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    ShareConsumer,
    TopicPartition,
    WakeupError,
)
from moldau.messaging.context import Context, now_ms
from moldau.messaging.machine.buffer import Buffer, Timed
from moldau.messaging.machine.destinations import Destination
from moldau.messaging.machine.errors import MessageFormatError, MessagingError
from moldau.messaging.machine.messages import Message
from moldau.messaging.machine.notes import note_key
from moldau.messaging.machine.records import ATTEMPTS, CONNECTION, DELIVERY_TIME, read_message
from moldau.messaging.machine.selector import Selector

__all__ = ["Receiver", "ShareFeed", "Token", "TopicFeed"]

#: Messages that wait for their delivery time; more wait in the log.
HELD_MAX: Final = 1000
_RENEW_S: Final = 8.0
_LOST_S: Final = 60.0
_POLL_S: Final = 1.0
_PAUSE_S: Final = 0.02
_PAUSE_S_MAX: Final = 0.25
_RETRY_S: Final = 0.5
_JOIN_S: Final = 15.0
_PUT_BACK_MS: Final = 100
_PUT_BACK_MS_MAX: Final = 10_000


class Token:
    """A message that was read, and what became of it. Settled once, by any thread."""

    def __init__(self, feed: ShareFeed | TopicFeed, record: Any, message: Message) -> None:
        self._feed = feed
        self.record = record
        self.message = message
        self.receiver: Receiver | None = None
        self.outcome: AcknowledgeType | None = None
        #: The acknowledgement was given to the client.
        self.passed = False
        #: Since when it is being renewed; until the client returns it, it cannot be acknowledged.
        self.renewing_s = 0.0

    def settle(self, *, accepted: bool) -> None:
        self._feed.settle(self, accepted)


class Receiver:
    """The end of a feed at one MessageConsumer."""

    def __init__(self, size: int, selector: Selector | None, *, no_local: bool = False) -> None:
        self.selector = selector
        self.no_local = no_local
        self.buffer: Buffer[Token] = Buffer(size)

    def wants(self, message: Message) -> bool:
        return self.selector is None or self.selector(message.selector_values())


class _Feed:
    """What both have: a thread, a condition, and receivers."""

    def __init__(self, context: Context, destination: Destination) -> None:
        self.context = context
        self.destination = destination
        self.changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(
            target=self._run, name=f"messaging {destination}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def take(self, receiver: Receiver, timeout: float | None) -> Token | None:
        """The next message; None after the timeout, or when the feed is closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.changed:
            while not self._closing:
                if self.context.started.is_set():
                    token = receiver.buffer.take()
                    if token is not None:
                        self.changed.notify_all()
                        return token
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self.changed.wait(0.5 if left is None else min(left, 0.5))
        return None

    def _read(self, record: Any, delivery_count: int) -> Message:
        message = read_message(
            record.value,
            record.headers or (),
            timestamp=record.timestamp,
            delivery_count=delivery_count,
            pickling=self.context.pickling,
        )
        if message.destination is None:
            message.destination = self.destination
        return message

    def _is_expired(self, message: Message) -> bool:
        return bool(message.expiration) and message.expiration <= now_ms()

    def _run(self) -> None:
        raise NotImplementedError

    def _join(self) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)


class ShareFeed(_Feed):
    def __init__(self, context: Context, destination: Destination, group: str) -> None:
        super().__init__(context, destination)
        self.group = group
        self.receivers: list[Receiver] = []
        self._consumer: ShareConsumer[bytes | None, bytes | None] = ShareConsumer(
            {
                **context.client_settings,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
                "share.acquire.mode": "record_limit",
                "max.poll.records": str(context.settings.prefetch),
            }
        )
        self._consumer.subscribe([destination.name])
        self._tokens: dict[tuple[int, int], Token] = {}
        self._held: Timed[Token] = Timed()
        self._settled = 0
        #: Acknowledgements that the broker refused: their messages come again.
        self.refused = 0
        self._polled_s = 0.0
        self._polling = False

    # Called by sessions.

    def add(self, receiver: Receiver) -> None:
        with self.changed:
            self.receivers.append(receiver)
        self._wake()

    def remove(self, receiver: Receiver) -> None:
        with self.changed:
            self.receivers.remove(receiver)
            buffered = receiver.buffer.clear()
        for token in buffered:
            self.settle(token, accepted=False)

    def settle(self, token: Token, accepted: bool) -> None:
        with self.changed:
            if token.outcome is None:
                kind = AcknowledgeType.ACCEPT if accepted else AcknowledgeType.RELEASE
                token.outcome = kind
                self._settled += 1
        self._wake()

    def flush(self, timeout: float) -> bool:
        """Wait until everything that was settled is acknowledged to the broker."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while self._settled and not self._closing:
                if time.monotonic() > deadline:
                    return False
                self.changed.wait(0.05)
        return True

    def close(self) -> None:
        """What was not acknowledged is delivered to others."""
        with self.changed:
            self._closing = True
        self._wake()
        self._join()

    def _wake(self) -> None:
        with self.changed:
            self.changed.notify_all()
            polling = self._polling
        if polling:
            self._consumer.wakeup()

    # The thread.

    def _run(self) -> None:
        pause_s = _PAUSE_S
        while not self._closing:
            try:
                self._hand_out_due()
                if self._is_wanted():
                    pause_s = _PAUSE_S if self._poll() else min(pause_s * 2, _PAUSE_S_MAX)
                elif self._acknowledge():
                    self._report(self._consumer.commit_sync(10))
                    self._forget_settled()
                with self.changed:
                    if (
                        not self._closing
                        and not self._settled
                        and (self._tokens or not self._is_wanted())
                    ):
                        self.changed.wait(pause_s if self._tokens else _PAUSE_S_MAX)
            except WakeupError:
                continue
            except (KafkaError, MessagingError) as error:
                self.context.report(error)
                with self.changed:
                    self.changed.wait(_RETRY_S)
        try:
            self._acknowledge()
            self._consumer.close(10)
        except (KafkaError, WakeupError) as error:
            self.context.report(error)

    def _is_wanted(self) -> bool:
        with self.changed:
            if time.monotonic() - self._polled_s > _RENEW_S and self._tokens:
                return True
            if any(each.renewing_s and each.outcome is not None for each in self._tokens.values()):
                # It can be acknowledged when the client has returned it.
                return True
            return (
                self.context.started.is_set()
                and len(self._held) < HELD_MAX
                and any(each.buffer.room for each in self.receivers)
            )

    def _acknowledge(self) -> int:
        """Pass on what was settled. Settled tokens stay until the broker has been asked."""
        count = 0
        with self.changed:
            for token in self._tokens.values():
                if token.outcome is not None and not token.passed and not token.renewing_s:
                    self._consumer.acknowledge(token.record, token.outcome)
                    token.passed = True
                    count += 1
        return count

    def _forget_settled(self) -> None:
        with self.changed:
            for key, token in list(self._tokens.items()):
                if token.passed:
                    del self._tokens[key]
                    self._settled -= 1
            self.changed.notify_all()

    def _renew(self) -> None:
        """What consumers have stays theirs. A lock that could not be renewed is lost."""
        with self.changed:
            now_s = time.monotonic()
            for key, token in list(self._tokens.items()):
                if not token.renewing_s and token.outcome is None:
                    self._consumer.acknowledge(token.record, AcknowledgeType.RENEW)
                    token.renewing_s = now_s
                elif token.renewing_s and now_s - token.renewing_s > _LOST_S:
                    del self._tokens[key]
                    self._settled -= token.outcome is not None

    def _report(self, results: Any) -> None:
        for error in results.values():
            if error is not None:
                self.refused += 1
                self.context.report(error)

    def _poll(self) -> bool:
        """Whether something new came."""
        acknowledged = self._acknowledge()
        if acknowledged:
            self._report(self._consumer.commit_sync(10))
            self._forget_settled()
        self._renew()
        with self.changed:
            timeout = 0.05 if self._tokens else _POLL_S
            self._polling = True
        try:
            records = list(self._consumer.poll(timeout))
        finally:
            self._polling = False
            self._polled_s = time.monotonic()
        is_new = False
        for record in records:
            key = (record.partition, record.offset)
            known = self._tokens.get(key)
            if known is not None:
                known.record = record
                known.renewing_s = 0.0
                continue
            is_new = True
            self._take_in(key, record)
        return is_new or bool(acknowledged)

    def _take_in(self, key: tuple[int, int], record: Any) -> None:
        count = record.delivery_count or 1
        try:
            message = self._read(record, count)
        except MessageFormatError as error:
            self._end(key, record, dead_letter=str(error))
            return
        if count > 1 and self._is_consumed(key, record):
            return
        if message.delivery_count > self.context.settings.max_deliveries:
            text = f"delivered {message.delivery_count - 1} times without an acknowledgement"
            self._end(key, record, dead_letter=text)
        elif self._is_expired(message):
            self._end(key, record)
        else:
            token = self._tokens[key] = Token(self, record, message)
            if message.delivery_time > now_ms():
                self._held.put(token)
            else:
                self._hand_out(token)

    def note_of(self, token: Token) -> bytes:
        record = token.record
        return note_key(self.group, record.topic, record.partition, record.offset)

    def _is_consumed(self, key: tuple[int, int], record: Any) -> bool:
        """Whether a transaction has consumed it and its program died before it acknowledged, or
        that is not known yet; then it is settled here."""
        note = note_key(self.group, record.topic, record.partition, record.offset)
        try:
            if not self.context.consumed.contains(note):
                return False
        except MessagingError as error:
            self.context.report(error)
            self._end(key, record, AcknowledgeType.RELEASE)
            return True
        self._end(key, record)
        return True

    def _end(
        self,
        key: tuple[int, int],
        record: Any,
        outcome: AcknowledgeType = AcknowledgeType.ACCEPT,
        *,
        dead_letter: str = "",
    ) -> None:
        token = self._tokens[key] = Token(self, record, Message())
        if dead_letter:
            self.context.dead_letter(record, dead_letter)
        with self.changed:
            token.outcome = outcome
            self._settled += 1

    def _hand_out_due(self) -> None:
        for token in self._held.due(now_ms()):
            self._hand_out(token)

    def _hand_out(self, token: Token) -> None:
        with self.changed:
            able = [each for each in self.receivers if each.wants(token.message)]
            if able:
                chosen = max(able, key=lambda each: each.buffer.room)
                token.receiver = chosen
                chosen.buffer.put(token)
                self.changed.notify_all()
                return
        self._put_back(token)

    def _put_back(self, token: Token) -> None:
        """Nobody here selects it: to the end of the topic, after a pause."""
        record = token.record
        kept = [(name, data) for name, data in record.headers or ()]
        passes = sum(1 for name, _ in kept if name == "JMSXPasses")
        pause_ms = min(_PUT_BACK_MS * 2**passes, _PUT_BACK_MS_MAX)
        headers = [each for each in kept if each[0] not in (DELIVERY_TIME, ATTEMPTS)]
        # The broker counts the deliveries of the copy from the beginning.
        headers.append((ATTEMPTS, str(max(token.message.delivery_count - 1, 0)).encode()))
        headers.append((DELIVERY_TIME, str(now_ms() + pause_ms).encode()))
        if passes < 7:
            headers.append(("JMSXPasses", b""))
        self.context.copy(record, record.topic, headers)
        self.settle(token, accepted=True)


class TopicFeed(_Feed):
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

    def _run(self) -> None:
        while not self._closing:
            try:
                for token in self._held.due(now_ms()):
                    self._hand_out(token)
                with self.changed:
                    if not self._receiver.buffer.room or len(self._held) >= HELD_MAX:
                        self.changed.wait(_PAUSE_S_MAX)
                        continue
                self._find_partitions()
                for record in self._consumer.poll(0.1 if len(self._held) else _POLL_S):
                    self._take_in(record)
            except WakeupError:
                continue
            except (KafkaError, MessagingError) as error:
                self.context.report(error)
                with self.changed:
                    self.changed.wait(_RETRY_S)
        try:
            self._consumer.close(5)
        except (KafkaError, WakeupError) as error:
            self.context.report(error)

    def _find_partitions(self) -> None:
        if time.monotonic() - self._looked_s < 10:
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
