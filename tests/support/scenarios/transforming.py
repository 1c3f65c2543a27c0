"""A consume-transform-produce job of several processes, made to be killed.

Each worker owns some input partitions and writes, in one transaction, an output record for each
input record and its input offsets. Whatever goes wrong ends the process: another one starts, with
the same transactional id and group instance id, and does what was not committed.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from ctypes import c_int
from multiprocessing.process import BaseProcess
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

INPUT, OUTPUT, GROUP = "input", "output", "job"
BATCH_RECORDS = 20
CALL_SECONDS_MAX = 10.0
_LOST_ITS_PLACE = 2
STILL_SECONDS_MAX = 20.0
# Ready-made processes are forked from one that has imported all this: a start costs little.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])

_QUICK = {
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    # A call that got lost with a killed broker is given up before the test loses patience.
    "socket.timeout.ms": 10_000,
    "log_level": 0,
    "error_cb": lambda _: None,
}


def transform(value: bytes) -> bytes:
    return b"seen " + value


def work(bootstrap: str, protocol: str, number: int, outputs: int, step: Any) -> None:
    """Transform until killed, or until the cluster refuses something."""
    try:
        _transform_for_ever(bootstrap, protocol, number, outputs, step)
    except KafkaException as failure:
        # Its successor begins where the last commit was; closing politely would only take time.
        os._exit(_LOST_ITS_PLACE if _is_out_of_range(failure) else 1)


def _is_out_of_range(failure: KafkaException) -> bool:
    """Whether the broker does not know an offset that it handed out."""
    return "out of range" in str(failure).lower()


def _transform_for_ever(
    bootstrap: str, protocol: str, number: int, outputs: int, step: Any
) -> None:
    """`step.value` tells how far this process has come."""
    common = {"bootstrap.servers": bootstrap, **_QUICK}
    producer = Producer(
        common | {"transactional.id": f"{GROUP}-{number}", "transaction.timeout.ms": 30_000}
    )
    producer.init_transactions(CALL_SECONDS_MAX)
    step.value += 1
    consumer = Consumer(common | _reading(protocol, number))
    # With callbacks, librdkafka changes the assignment in `consume` only: no partition can go to
    # another worker, and the group's metadata tell of the next generation, before the commit below.
    consumer.subscribe([INPUT], on_assign=_noted, on_revoke=_noted, on_lost=_noted)
    step.value += 1
    while True:
        messages = consumer.consume(BATCH_RECORDS, 0.05)
        ends: dict[int, int] = {}
        if not messages:
            continue
        step.value += 1
        producer.begin_transaction()
        for message in messages:
            error = message.error()
            if error is not None and error.code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT):
                continue
            if error is not None:
                raise KafkaException(error)
            value = message.value() or b""
            producer.produce(OUTPUT, transform(value), partition=int(value) % outputs)
            ends[message.partition() or 0] = (message.offset() or 0) + 1
        step.value += 1
        offsets = [TopicPartition(INPUT, index, end) for index, end in ends.items()]
        producer.send_offsets_to_transaction(
            offsets, consumer.consumer_group_metadata(), CALL_SECONDS_MAX
        )
        step.value += 1
        producer.commit_transaction(CALL_SECONDS_MAX)
        step.value += 1


def _noted(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
    """The default, assigning what was given and giving up what was taken, follows."""


def _reading(protocol: str, number: int) -> dict[str, Any]:
    config: dict[str, Any] = {
        "group.id": GROUP,
        "group.protocol": protocol,
        # Every partition has a committed offset from the start. librdkafka 2.16 may forget, when
        # it is told UNSTABLE_OFFSET_COMMIT in the middle of a rebalance, to ask for it again, and
        # takes its reset policy instead: "earliest" would process everything twice.
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 20,
    }
    if protocol == "classic":
        # A static member's successor takes over at once. The consumer protocol would have it wait
        # for the end of its predecessor's session, so there a member that comes is a new one.
        config |= {
            "group.instance.id": f"{GROUP}-{number}",
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 100,
        }
    return config


class TransformingWorker:
    """One worker's place in the job; whoever holds it is started anew when it has ended."""

    def __init__(self, bootstrap: str, protocol: str, number: int, outputs: int) -> None:
        self._arguments = (bootstrap, protocol, number, outputs)
        self._step: Any = None
        self._process: BaseProcess | None = None
        self._seen, self._seen_at, self._looked_at = -1, 0.0, 0.0
        self.start()

    def start(self) -> None:
        self._seen = -1
        # Without a lock: a process killed while it holds one would keep it for ever.
        self._step = _CONTEXT.Value(c_int, 0, lock=False)
        self._process = _CONTEXT.Process(target=work, args=(*self._arguments, self._step))
        self._process.start()

    @property
    def step(self) -> int:
        """How far the process has come; one that ended by itself or stands still is replaced.

        librdkafka 2.16 may wait in send_offsets_to_transaction for ever, for a broker that was gone
        for a while, with Apache Kafka too: docs/transactions.md has the cause.
        """
        assert self._process is not None
        now = time.monotonic()
        unwatched = now - self._looked_at > STILL_SECONDS_MAX / 2
        self._looked_at = now
        if self._step.value != self._seen or unwatched:
            self._seen, self._seen_at = self._step.value, now
        elif now - self._seen_at > STILL_SECONDS_MAX:
            self.kill()
            self.start()
            return 0
        if self._process.exitcode is not None:
            assert self._process.exitcode != _LOST_ITS_PLACE, "a committed offset is out of range"
            self._process.join()
            self.start()
        return int(self._step.value)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.join()
