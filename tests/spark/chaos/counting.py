"""Numbers into a topic, and how often each came out of a pipeline."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from moldau.client import Consumer, Producer, TopicPartition
from moldau.client.errors import KafkaError

if TYPE_CHECKING:
    from spark.chaos.targets import Target


class Numbers:
    """Produces 0, 1, 2, ... until told to stop; survives brokers that go away."""

    def __init__(self, bootstrap: str, topic: str, *, rate: float) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "delivery.timeout.ms": "600000",
                "max.block.ms": "600000",
                "linger.ms": "5",
            }
        )
        self._topic = topic
        self._rate = rate
        self.count = 0

    def produce_for(self, seconds: float) -> None:
        """At a rate, and wait until all is acknowledged."""
        start, first = time.monotonic(), self.count
        errors: list[Exception] = []

        def done(_: object, error: Exception | None) -> None:
            if error is not None:
                errors.append(error)

        while (elapsed := time.monotonic() - start) < seconds:
            while self.count - first < elapsed * self._rate:
                text = str(self.count).encode()
                self._producer.send(self._topic, text, text, on_delivery=done)
                self.count += 1
            time.sleep(0.02)
        self._producer.flush(600.0)
        if errors:
            raise RuntimeError(f"the input itself could not be produced: {errors[0]}")

    def start(self, seconds: float) -> threading.Thread:
        thread = threading.Thread(target=self.produce_for, args=(seconds,), daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        self._producer.close(5.0)


def await_record(bootstrap: str, topic: str, partitions: int, key: bytes) -> bool:
    """Until a record whose key begins so has been written, committed or not; False after 5 s."""
    places = [TopicPartition(topic, each) for each in range(partitions)]
    settings = {"auto.offset.reset": "latest", "fetch.max.wait.ms": "50"}
    with Consumer({"bootstrap.servers": bootstrap} | settings) as consumer:
        consumer.assign(places)
        consumer.seek_to_end(places)
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            if any((each.key or b"").startswith(key) for each in consumer.poll(0.1)):
                return True
    return False


class Counts:
    """How often each number is in a target."""

    def __init__(self, name: str, target: Target) -> None:
        self.name = name
        self.target = target

    def wait_for(self, count: int, *, seconds_max: float) -> float:
        """Until every number below `count` was seen; how long that took, or a RuntimeError."""
        start = time.monotonic()
        while len(seen := self.target.counts()) < count:
            if time.monotonic() - start > seconds_max:
                missing = [each for each in range(count) if each not in seen]
                raise RuntimeError(
                    f"{self.name}: {len(missing)} of {count} records did not arrive within"
                    f" {seconds_max:.0f} s, such as {missing[:5]}"
                )
        return time.monotonic() - start

    def problem(self, count: int) -> str | None:
        """What is wrong with all that is there, if anything is."""
        self.target.read_to_end()
        seen = self.target.counts()
        missing = [each for each in range(count) if each not in seen]
        twice = [each for each, times in seen.items() if times > 1]
        strange = [each for each in seen if not 0 <= each < count]
        found = [
            f"{len(each)} {what}, such as {sorted(each)[:5]}"
            for each, what in ((missing, "lost"), (twice, "more than once"), (strange, "unknown"))
            if each
        ]
        return f"{self.name}: {'; '.join(found)}" if found else None

    def close(self) -> None:
        self.target.close()


def closed_quietly(consumer: Consumer) -> None:
    with contextlib.suppress(KafkaError):
        consumer.close()
