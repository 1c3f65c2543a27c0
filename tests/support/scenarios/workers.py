"""Members at work in threads, the load they work on, and the book of what they processed."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient

from support.scenarios.members import Change, Client, Member, Membership, Place, Seen
from support.waiting import eventually

SECONDS_MAX = 90.0


class Ledger:
    """What was processed, by place and offset; a record may come again, but never another value."""

    def __init__(self) -> None:
        self.times: Counter[tuple[Place, int]] = Counter()
        self.values: dict[tuple[Place, int], bytes] = {}
        self._lock = threading.Lock()

    def add(self, records: Sequence[Seen]) -> None:
        with self._lock:
            for place, offset, value in records:
                known = self.values.setdefault((place, offset), value)
                assert known == value, f"{place} {offset} was {known!r}, now {value!r}"
                self.times[place, offset] += 1

    def count(self) -> int:
        return len(self.values)


class Worker:
    """One member in a thread: polls, enters records in the ledger, commits; until it is stopped."""

    def __init__(self, client: Client, membership: Membership, ledger: Ledger) -> None:
        self.ledger = ledger
        self.owned: frozenset[Place] = frozenset()
        self.changes: list[Change] = []
        self.failure: BaseException | None = None
        self.at_work = threading.Event()
        self._client = client
        self._membership = membership
        self._stop = threading.Event()
        self._errands: queue.SimpleQueue[Callable[[Member], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            member = self._client.join(self._membership)
            self.changes = member.changes
            self.at_work.set()
            try:
                self._serve(member)
            finally:
                member.close()
        except BaseException as failure:
            self.failure = failure
        finally:
            self.owned = frozenset()

    def _serve(self, member: Member) -> None:
        uncommitted = False
        while not self._stop.is_set() or uncommitted:
            while not self._errands.empty():
                self._errands.get()(member)
            records = member.poll()
            self.ledger.add(records)
            uncommitted = (uncommitted or bool(records)) and not member.commit()
            self.owned = member.owned()

    def ask(self, errand: Callable[[Member], None]) -> None:
        """Run `errand` in the member's thread, before its next poll."""
        self._errands.put(errand)

    def check(self) -> None:
        if self.failure is not None:
            raise AssertionError(f"a member ended: {self.failure!r}") from self.failure

    def stop(self) -> None:
        self.quit()
        self.check()

    def quit(self) -> None:
        self._stop.set()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive(), "a member does not end"

    def revoked(self) -> frozenset[Place]:
        return frozenset().union(*(each.places for each in self.changes if each.what == "revoked"))


class Team:
    """Workers of one group, and the wish to see their partitions shared among them."""

    def __init__(self, client: Client, membership: Membership) -> None:
        self.client = client
        self.membership = membership
        self.ledger = Ledger()
        self.workers: list[Worker] = []

    def join(self, instance_id: str | None = None) -> Worker:
        membership = self.membership
        if instance_id is not None:
            membership = membership.named(instance_id)
        worker = Worker(self.client, membership, self.ledger)
        self.workers.append(worker)
        eventually(lambda: worker.failure or worker.at_work.is_set(), what="a client starts")
        return worker

    def leave(self, worker: Worker) -> None:
        worker.stop()
        self.workers.remove(worker)

    def shared(self, places: frozenset[Place]) -> bool:
        """Each place has one owner, and no worker has two more than another."""
        for worker in self.workers:
            worker.check()
        sizes = [len(worker.owned) for worker in self.workers]
        union: frozenset[Place] = frozenset().union(*(worker.owned for worker in self.workers))
        return union == places and sum(sizes) == len(places) and max(sizes) - min(sizes) <= 1

    def wait_until_shared(self, places: frozenset[Place]) -> None:
        what = f"{len(self.workers)} members of {self.membership.group} share the partitions"
        try:
            eventually(lambda: self.shared(places), seconds_max=SECONDS_MAX, what=what)
        except AssertionError as error:
            states = [
                f"owns {sorted(worker.owned)} after {worker.changes[-4:]}"
                for worker in self.workers
            ]
            raise AssertionError("\n".join([str(error), *states])) from error

    def wait_for_records(self, count: int) -> None:
        """Wait until `count` different records were processed."""

        def enough() -> bool:
            for worker in self.workers:
                worker.check()
            return self.ledger.count() >= count

        eventually(enough, what=f"{count} records are processed", seconds_max=SECONDS_MAX)

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.workers:
            worker._stop.set()
        for worker in self.workers:
            worker.quit()
            if kind is None:
                worker.check()


class Load:
    """A producer that writes numbered records to all places, a few at a time, until stopped."""

    def __init__(self, bootstrap: str, places: frozenset[Place]) -> None:
        self.delivered: dict[tuple[Place, int], bytes] = {}
        self.failures: list[KafkaError] = []
        self._places = sorted(places)
        self._stop = threading.Event()
        self._producer = Producer({
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 1,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "log_level": 2,
            "error_cb": lambda _: None,
        })  # fmt: skip
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            for place in self._places:
                value = b"%d" % number
                self._producer.produce(
                    place.topic, value, partition=place.partition, on_delivery=self._delivered
                )
                number += 1
            self._producer.flush(SECONDS_MAX)
            # A pace, not a wait: consumers of all kinds keep up with it.
            self._stop.wait(0.01)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        place = Place(str(message.topic()), int(message.partition() or 0))
        self.delivered[place, int(message.offset() or 0)] = bytes(message.value() or b"")

    def finish(self) -> dict[tuple[Place, int], bytes]:
        self._stop.set()
        self._thread.join()
        assert self.failures == []
        return self.delivered

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def write(bootstrap: str, places: Sequence[Place], count: int, mark: str = "record") -> set[bytes]:
    """`count` records, to each place in turn, in batches of ten; their values."""
    config = {"bootstrap.servers": bootstrap, "log_level": 2, "batch.num.messages": 10}
    producer = Producer(config)
    values = [f"{mark} {number}".encode() for number in range(count)]
    failures: list[KafkaError] = []
    for number, value in enumerate(values):
        place = places[number % len(places)]
        producer.produce(
            place.topic, value, partition=place.partition,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )  # fmt: skip
    assert producer.flush(SECONDS_MAX) == 0
    assert failures == []
    return set(values)


def committed(bootstrap: str, group: str) -> dict[Place, int]:
    """The offsets that a group has committed, as an administrator sees them."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    asked = [ConsumerGroupTopicPartitions(group)]
    answer = admin.list_consumer_group_offsets(asked)[group].result(SECONDS_MAX)
    return {
        Place(each.topic, each.partition): each.offset for each in answer.topic_partitions or ()
    }
