"""Feeds: threads that read for the consumers of a connection.

`ShareFeed` is one share consumer for all consumers of one queue or subscription in a connection.
Each message goes to a consumer that selects it. A message that nobody here selects is put back at
the end of its topic, for consumers elsewhere, with growing pauses. The share consumer keeps what
it has read until it is settled, and its locks are renewed meanwhile; messages before their delivery
time are held here.

`topic_feed.py` has the feed of one subscription that is not durable.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from moldau.client import (
    AcknowledgeType,
    KafkaError,
    ShareConsumer,
    WakeupError,
)
from moldau.client.errors import IllegalStateError as NotGivenError
from moldau.client.errors import InvalidRecordStateError, InvalidRequestError
from moldau.messaging.context import Context, now_ms
from moldau.messaging.machine.buffer import Buffer, Timed
from moldau.messaging.machine.destinations import Destination
from moldau.messaging.machine.errors import MessageFormatError, MessagingError
from moldau.messaging.machine.messages import Message
from moldau.messaging.machine.notes import note_key
from moldau.messaging.machine.records import ATTEMPTS, DELIVERY_TIME, read_message
from moldau.messaging.machine.rounds import Rounds
from moldau.messaging.machine.selector import Selector

__all__ = ["Feed", "Receiver", "ShareFeed", "Token"]

#: Messages that wait for their delivery time; more wait in the log.
HELD_MAX: Final = 1000
#: Less if locks are short: a third of their duration.
_RENEW_S: Final = 8.0
POLL_S: Final = 1.0
#: While consumers have messages, which they may acknowledge at any time.
_BUSY_POLL_S: Final = 0.05
_PAUSE_S: Final = 0.02
_BUSY_PAUSE_S_MAX: Final = 0.1
PAUSE_S_MAX: Final = 0.25
_COMMIT_S: Final = 10.0
_RETRY_S: Final = 0.5
_JOIN_S: Final = 15.0
_PUT_BACK_MS: Final = 100
_PUT_BACK_MS_MAX: Final = 10_000


class Token:
    """A message that was read, and what became of it. Settled once, by any thread."""

    def __init__(self, feed: Feed, record: Any, message: Message) -> None:
        self._feed = feed
        self.record = record
        self.message = message
        self.receiver: Receiver | None = None
        self.outcome: AcknowledgeType | None = None
        #: When its lock began, at the latest.
        self.locked_s = 0.0
        #: Its lock is lost: what becomes of it here does not count.
        self.is_void = False

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


class Feed(ABC):
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

    @abstractmethod
    def settle(self, token: Token, accepted: bool) -> None:
        """Say what became of a message."""

    def settle_all(self, tokens: Iterable[Token], accepted: bool) -> None:
        for token in tokens:
            self.settle(token, accepted)

    @abstractmethod
    def flush(self, timeout: float) -> bool:
        """Wait until everything that was settled is acknowledged to the broker."""

    def take(self, receiver: Receiver, timeout: float | None) -> Token | None:
        """The next message; None after the timeout, or when the feed is closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.changed:
            while not self._closing:
                if self.context.started.is_set():
                    token = receiver.buffer.take()
                    while token is not None and token.is_void:
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
        while not self._closing:
            try:
                self._turn()
            except WakeupError:
                continue
            except (KafkaError, MessagingError) as error:
                self.context.report(error)
                with self.changed:
                    self.changed.wait(_RETRY_S)
        try:
            self._finish()
        except (KafkaError, WakeupError) as error:
            self.context.report(error)

    @abstractmethod
    def _turn(self) -> None:
        """Read and hand out what there is, or wait for a moment."""

    @abstractmethod
    def _finish(self) -> None:
        """Close the consumer, on the feed's thread."""

    def _join(self) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)


class ShareFeed(Feed):
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
                # The feed does not poll as long as its consumers have enough.
                "max.poll.interval.ms": str(2**31 - 1),
            }
        )
        self._consumer.subscribe([destination.name])
        self._tokens: dict[tuple[int, int], Token] = {}
        self._held: Timed[Token] = Timed()
        #: To be copied to another place, which has failed; with the reason of a dead letter.
        self._unsent: list[tuple[Token, str]] = []
        self._unsent_s = 0.0
        #: Tokens that have an outcome and no answer.
        self._settled = 0
        #: Messages that were accepted here and not by the broker: they come again.
        self.refused = 0
        self._renewed_s = 0.0
        self._polling = False
        self._poll_after_s = 0.0
        self._pause_s = _PAUSE_S

    # Called by sessions.

    def add(self, receiver: Receiver) -> None:
        with self.changed:
            self.receivers.append(receiver)
            self.changed.notify_all()

    def remove(self, receiver: Receiver) -> None:
        with self.changed:
            self.receivers.remove(receiver)
            buffered = receiver.buffer.clear()
        self.settle_all(buffered, accepted=False)

    def settle(self, token: Token, accepted: bool) -> None:
        with self.changed:
            if token.outcome is None:
                token.outcome = AcknowledgeType.ACCEPT if accepted else AcknowledgeType.RELEASE
                if token.is_void:
                    self.refused += accepted
                else:
                    self._settled += 1
            self.changed.notify_all()

    def settle_all(self, tokens: Iterable[Token], accepted: bool) -> None:
        """Together: else the first could be delivered again before the others."""
        with self.changed:
            for token in tokens:
                self.settle(token, accepted)

    def flush(self, timeout: float) -> bool:
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
            self.changed.notify_all()
            if self._polling:
                # Nothing else is to be woken: the answers to acknowledgements would be unknown.
                self._consumer.wakeup()
        self._join()

    # The thread.

    def _turn(self) -> None:
        self._hand_out_due()
        self._tell()
        if self._is_wanted() and time.monotonic() >= self._poll_after_s:
            self._poll()
        self._pause()

    def _finish(self) -> None:
        with self.changed:
            settled = [(each.record, each.outcome) for each in self._tokens.values()]
        for record, outcome in settled:
            if outcome is not None:
                with suppress(NotGivenError):
                    self._consumer.acknowledge(record, outcome)
        self._consumer.close(10)

    def _is_wanted(self) -> bool:
        with self.changed:
            return (
                self.context.started.is_set()
                and len(self._held) < HELD_MAX
                and any(each.buffer.room for each in self.receivers)
            )

    def _pause(self) -> None:
        with self.changed:
            if self._closing or self._settled:
                return
            if not self._is_wanted():
                self.changed.wait(self._idle_s(PAUSE_S_MAX))
                return
            left_s = self._poll_after_s - time.monotonic()
            if left_s > 0:
                # A fetch holds up acknowledgements: consumers that are quick go first.
                self.changed.wait_for(lambda: self._settled or self._closing, self._idle_s(left_s))

    def _idle_s(self, limit_s: float) -> float:
        """How long there is nothing to renew and no message becomes due, up to the limit."""
        if self._tokens:
            limit_s = min(limit_s, self._renewed_s + self._renew_s() - time.monotonic())
        due_ms = self._held.next_ms()
        if due_ms is not None:
            limit_s = min(limit_s, (due_ms - now_ms()) / 1000)
        return max(limit_s, 0.001)

    # Acknowledging and renewing.

    def _lock_s(self) -> float | None:
        lock_ms = self._consumer.acquisition_lock_timeout_ms()
        return None if lock_ms is None else lock_ms / 1000

    def _renew_s(self) -> float:
        return min(_RENEW_S, (self._lock_s() or _RENEW_S * 3) / 3)

    def _tell(self) -> None:
        """Acknowledge what was settled and, if it is time, renew the locks of the rest."""
        now_s = time.monotonic()
        renews = now_s >= self._renewed_s + self._renew_s()
        if renews:
            self._renewed_s = now_s
        self._give_up_expired(now_s)
        groups: dict[int, list[tuple[Token, AcknowledgeType]]] = {}
        with self.changed:
            for (partition, _), token in self._tokens.items():
                if token.outcome is not None or renews:
                    kind = token.outcome or AcknowledgeType.RENEW
                    groups.setdefault(partition, []).append((token, kind))
        rounds = Rounds(groups)
        while asked := rounds.next():
            self._ask(rounds, asked)

    def _ask(
        self,
        rounds: Rounds[tuple[Token, AcknowledgeType]],
        asked: dict[int, list[tuple[Token, AcknowledgeType]]],
    ) -> None:
        asked_s = time.monotonic()
        for group in asked.values():
            for token, kind in list(group):
                try:
                    self._consumer.acknowledge(token.record, kind)
                except NotGivenError as lost:
                    # Another node leads the partition.
                    group.remove((token, kind))
                    self._give_up(token, lost)
        results = self._consumer.commit_sync(_COMMIT_S)
        errors = {key.partition: error for key, error in results.items()}
        for partition, group in asked.items():
            error = errors.get(partition)
            if isinstance(error, InvalidRecordStateError | InvalidRequestError) and group:
                found = rounds.refused(partition, group)
                if found is not None:
                    self._give_up(found[0], error)
                continue
            for token, kind in group:
                if kind is AcknowledgeType.RENEW:
                    # If that failed it is tried again, as long as the lock may hold.
                    token.locked_s = asked_s if error is None else token.locked_s
                elif error is None:
                    self._forget(token)
                else:
                    self._give_up(token, error)

    def _forget(self, token: Token) -> None:
        with self.changed:
            if self._tokens.pop((token.record.partition, token.record.offset), None) is not None:
                self._settled -= token.outcome is not None
            self.changed.notify_all()

    def _give_up(self, token: Token, error: Exception) -> None:
        """Its lock is lost: it is delivered again, to whomever."""
        self._consumer.drop(token.record)
        self._held.drop(token)
        with self.changed:
            token.is_void = True
            self.refused += token.outcome is AcknowledgeType.ACCEPT
            self._forget(token)
        self.context.report(error)

    def _give_up_expired(self, now_s: float) -> None:
        """A broker would refuse them, and with them others of their partitions."""
        lock_s = self._lock_s() or 0.0
        for token in list(self._tokens.values()):
            if now_s - token.locked_s > lock_s:
                text = f"{token.message.message_id or 'a message'} was not renewed in time"
                self._give_up(token, MessagingError(f"{text}: it is delivered again"))

    # Reading.

    def _poll(self) -> None:
        """Messages are kept at once, so that no poll waits for them."""
        is_busy = len(self._tokens) > len(self._held)
        with self.changed:
            if self._closing:
                return
            self._polling = True
        try:
            records = list(self._consumer.poll(self._idle_s(_BUSY_POLL_S if is_busy else POLL_S)))
        finally:
            with self.changed:
                self._polling = False
        now_s = time.monotonic()
        if records and not self._tokens:
            self._renewed_s = now_s
        for record in records:
            self._consumer.keep(record)
        for record in records:
            key = (record.partition, record.offset)
            known = self._tokens.get(key)
            if known is None:
                self._take_in(key, record)
            else:
                # Its lock was lost, and nobody else was quicker.
                known.record = record
            self._tokens[key].locked_s = now_s
        self._pause_s = _PAUSE_S if records else min(self._pause_s * 2, _BUSY_PAUSE_S_MAX)
        is_full = len(records) >= self.context.settings.prefetch
        waits = len(self._tokens) > len(self._held) and not is_full
        self._poll_after_s = now_s + self._pause_s if waits else 0.0

    def _take_in(self, key: tuple[int, int], record: Any) -> None:
        count = record.delivery_count or 1
        try:
            message = self._read(record, count)
        except MessageFormatError as error:
            token = self._tokens[key] = Token(self, record, Message())
            self._copy(token, str(error))
            return
        token = self._tokens[key] = Token(self, record, message)
        if count > 1 and self._is_consumed(token):
            return
        if message.delivery_count > self.context.settings.max_deliveries:
            text = f"delivered {message.delivery_count - 1} times without an acknowledgement"
            self._copy(token, text)
        elif self._is_expired(message):
            self.settle(token, accepted=True)
        elif message.delivery_time > now_ms():
            self._held.put(token)
        else:
            self._hand_out(token)

    def note_of(self, token: Token) -> bytes:
        record = token.record
        return note_key(self.group, record.topic, record.partition, record.offset)

    def _is_consumed(self, token: Token) -> bool:
        """Whether a transaction has consumed it and its program died before it acknowledged, or
        that is not known yet; then it is settled here."""
        try:
            if not self.context.consumed.contains(self.note_of(token)):
                return False
        except MessagingError as error:
            self.context.report(error)
            self.settle(token, accepted=False)
            return True
        self.settle(token, accepted=True)
        return True

    def _hand_out_due(self) -> None:
        for token in self._held.due(now_ms()):
            self._hand_out(token)
        if self._unsent and time.monotonic() >= self._unsent_s:
            unsent, self._unsent = self._unsent, []
            for token, dead_letter in unsent:
                self._copy(token, dead_letter)

    def _hand_out(self, token: Token) -> None:
        if token.is_void:
            return
        with self.changed:
            able = [each for each in self.receivers if each.wants(token.message)]
            if able:
                chosen = max(able, key=lambda each: each.buffer.room)
                token.receiver = chosen
                chosen.buffer.put(token)
                self.changed.notify_all()
                return
        self._copy(token)

    def _copy(self, token: Token, dead_letter: str = "") -> None:
        """To the dead-letter queue for this reason, or else back to the topic, and then it is
        done with. What cannot be written now is tried again, and stays locked."""
        if token.is_void:
            return
        try:
            if dead_letter:
                self.context.dead_letter(token.record, dead_letter)
            else:
                self._put_back(token)
        except MessagingError as error:
            self.context.report(error)
            self._unsent.append((token, dead_letter))
            self._unsent_s = time.monotonic() + _RETRY_S
            return
        self.settle(token, accepted=True)

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
