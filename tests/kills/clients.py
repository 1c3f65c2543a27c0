"""Clients that never stop while their broker dies and returns, and what must hold of them.

Records of a partition are numbered 0, 1, 2, ..., so the number of a record is its offset, and one
that is lost, doubled or out of order is recognised at once, with nothing to remember.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

TOPIC, GROUP = "numbers", "readers"
PARTITIONS = 3
IN_FLIGHT_MAX = 2_000
WAIT_SECONDS_MAX = 120.0
# The broker is away for a moment only, and what is measured is not the patience of clients.
SETTINGS: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "error_cb": lambda _: None,
}


class Broken(Exception):
    """A promise was broken; the message says which, and where."""


class Client:
    """Runs `_turn` in a thread until it is stopped or breaks."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_SECONDS_MAX)
        self.check()

    def check(self) -> None:
        if self.failure is not None:
            raise Broken(str(self.failure)) from self.failure

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise Broken(f"not within {WAIT_SECONDS_MAX:.0f} s: {what}")
            time.sleep(0.002)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._turn()
            self._end()
        except Exception as error:
            self.failure = error

    def _turn(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        """What is left to do after the last turn."""


class Writer(Client):
    """An idempotent producer; a record that is acknowledged is at the offset of its number."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.sent = [0] * PARTITIONS
        self.acknowledged = [0] * PARTITIONS
        self.last_s = time.monotonic()
        self.silence_s = 0.0
        self._producer = Producer(
            {
                **SETTINGS,
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 300_000,
            }
        )

    @property
    def count(self) -> int:
        return sum(self.acknowledged)

    def longest_silence_s(self) -> float:
        """Since it was last asked."""
        silence, self.silence_s = self.silence_s, 0.0
        return silence

    def _turn(self) -> None:
        for partition in range(PARTITIONS):
            if self.sent[partition] - self.acknowledged[partition] < IN_FLIGHT_MAX:
                number = self.sent[partition]
                self._producer.produce(
                    TOPIC, b"%d" % number, partition=partition, on_delivery=self._on_delivery
                )
                self.sent[partition] += 1
        self._producer.poll(0.001)

    def _end(self) -> None:
        if self._producer.flush(WAIT_SECONDS_MAX):
            raise Broken("records were never acknowledged")

    def _on_delivery(self, error: Any, message: Message) -> None:
        partition, offset = message.partition() or 0, message.offset()
        number = int(message.value() or b"-1")
        if error is not None:
            self.failure = Broken(f"record {number} of partition {partition} failed: {error}")
        elif offset not in (number, None, -1001):
            # A duplicate that the broker no longer remembers is acknowledged without an offset.
            self.failure = Broken(f"record {number} of partition {partition} is at {offset}")
        now_s = time.monotonic()
        self.silence_s = max(self.silence_s, now_s - self.last_s)
        self.last_s = now_s
        self.acknowledged[partition] += 1


class Reader(Client):
    """Reads every partition from its start: all numbers come, each once and in order."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.next = [0] * PARTITIONS
        self._consumer = Consumer(
            {**SETTINGS, "bootstrap.servers": bootstrap, "group.id": "all", "check.crcs": True}
        )
        self._consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])

    def _turn(self) -> None:
        for message in self._consumer.consume(1000, 0.05):
            if message.error() is not None:
                continue
            partition, number = message.partition() or 0, int(message.value() or b"-1")
            expected = self.next[partition]
            if number != expected or message.offset() != expected:
                raise Broken(
                    f"partition {partition}: record {number} came at offset {message.offset()} "
                    f"where record {expected} was next"
                )
            self.next[partition] += 1

    def _end(self) -> None:
        self._consumer.close()


class Progress:
    """How far a group is, by partition: offsets that never go back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offsets = [0] * PARTITIONS

    def reach(self, partition: int, offset: int) -> None:
        with self._lock:
            self._offsets[partition] = max(self._offsets[partition], offset)

    def offsets(self) -> list[int]:
        with self._lock:
            return list(self._offsets)


class Group:
    """What all members know together."""

    def __init__(self) -> None:
        self.delivered = Progress()
        #: As far as a member was told so.
        self.committed = Progress()


class Member(Client):
    """One of a consumer group: it goes on where the group has committed, and skips nothing."""

    def __init__(self, bootstrap: str, group: Group) -> None:
        super().__init__()
        self._group = group
        # By partition that is assigned: the offset that comes next, None before the first record.
        self._next: dict[int, int | None] = {}
        self._floors: dict[int, int] = {}
        self._consumer = Consumer(
            {
                **SETTINGS,
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10_000,
            }
        )
        self._consumer.subscribe([TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, _: Consumer, assigned: list[TopicPartition]) -> None:
        offsets = self._group.committed.offsets()
        for each in assigned:
            self._next[each.partition] = None
            self._floors[each.partition] = offsets[each.partition]

    def _on_revoke(self, _: Consumer, revoked: list[TopicPartition]) -> None:
        for each in revoked:
            self._next.pop(each.partition, None)

    def _turn(self) -> None:
        messages = [each for each in self._consumer.consume(500, 0.05) if each.error() is None]
        for message in messages:
            self._take(message.partition() or 0, message.offset() or 0)
        if messages:
            self._commit()

    def _take(self, partition: int, offset: int) -> None:
        expected, delivered = self._next.get(partition), self._group.delivered
        if expected is None:
            floor, top = self._floors[partition], delivered.offsets()[partition]
            if not floor <= offset <= top:
                raise Broken(
                    f"partition {partition}: the group had committed {floor} and was given all "
                    f"before {top}, and goes on at {offset}"
                )
        elif offset != expected:
            raise Broken(f"partition {partition}: {offset} came where {expected} was next")
        self._next[partition] = offset + 1
        delivered.reach(partition, offset + 1)

    def _commit(self) -> None:
        try:
            done = self._consumer.commit(asynchronous=False)
        except KafkaException:
            # The broker is away, or the group has a new generation: nothing was promised.
            return
        for each in done or ():
            if each.error is None:
                self._group.committed.reach(each.partition, each.offset)

    def _end(self) -> None:
        self._consumer.close()
