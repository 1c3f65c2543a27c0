"""Members of consumer groups that poll in threads of their own, and what they must never do.

An `Ownership` is shared by the members of a group: it notes who has which partition as listeners
hear of it, and that nobody was given what another had. What members read goes into one list.
"""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType
from typing import Any

from moldau.client.consumer import Consumer, ConsumerRebalanceListener, GroupMembershipOperation
from moldau.client.topics import TopicPartition
from support.waiting import eventually


class Ownership:
    """Who has what."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.owners: dict[TopicPartition, str] = {}
        self.faults: list[str] = []
        self.read: list[tuple[str, int, int]] = []

    def give(self, name: str, partitions: list[TopicPartition]) -> None:
        with self._lock:
            for key in partitions:
                other = self.owners.get(key)
                if other is not None:
                    self.faults.append(f"{key} was given to {name} while {other} had it")
                self.owners[key] = name

    def take(self, name: str, partitions: list[TopicPartition]) -> None:
        with self._lock:
            for key in partitions:
                if self.owners.get(key) != name:
                    self.faults.append(f"{key} was taken from {name}, which did not have it")
                else:
                    del self.owners[key]

    def lose(self, name: str, partitions: list[TopicPartition]) -> None:
        """Others may have it already: that is why it is lost."""
        with self._lock:
            for key in partitions:
                if self.owners.get(key) == name:
                    del self.owners[key]

    def note_read(self, records: Any) -> None:
        with self._lock:
            self.read.extend((each.topic, each.partition, each.offset) for each in records)

    def of(self, name: str) -> set[TopicPartition]:
        with self._lock:
            return {key for key, owner in self.owners.items() if owner == name}

    def counts(self) -> Counter[str]:
        with self._lock:
            return Counter(self.owners.values())


class Member(ConsumerRebalanceListener):
    """A consumer that polls in its own thread until it is stopped."""

    def __init__(
        self, ownership: Ownership, name: str, topics: Any, *, start: bool = True, **settings: Any
    ) -> None:
        self.ownership = ownership
        self.name = name
        self.events: list[tuple[str, list[int]]] = []
        self.error: BaseException | None = None
        self.consumer = Consumer(client_id=name, auto_offset_reset="earliest", **settings)
        self.consumer.subscribe(topics, self)
        self.generation = -1
        #: Set to keep it from polling until the event comes.
        self.busy_until: threading.Event | None = None
        self.is_busy = False
        self._operation = GroupMembershipOperation.DEFAULT
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        if start:
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self.ownership.note_read(self.consumer.poll(0.1))
                self.generation = self.consumer.group_metadata().generation_id
                if self.busy_until is not None:
                    self.is_busy = True
                    self.busy_until.wait(60)
                    self.busy_until = None
                    self.is_busy = False
        except BaseException as error:
            self.error = error
        finally:
            self.consumer.close(operation=self._operation)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        # Before the ownership: who waits for that compares generations next.
        self.generation = self.consumer.group_metadata().generation_id
        self.events.append(("assigned", [key.partition for key in partitions]))
        self.ownership.give(self.name, partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("revoked", [key.partition for key in partitions]))
        self.ownership.take(self.name, partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("lost", [key.partition for key in partitions]))
        self.ownership.lose(self.name, partitions)

    def stop(self, operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT) -> None:
        """Close it, in its own thread; raises what ended it before."""
        self._operation = operation
        self._stopped.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        if self.error is not None:
            raise self.error

    def __enter__(self) -> Member:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self._stopped.set()
            self._thread.join(60)


def await_shares(ownership: Ownership, shares: list[int], *, what: str = "") -> None:
    """Until so many partitions are owned by so many members, in any order."""
    wanted = sorted(shares)
    try:
        eventually(lambda: sorted(ownership.counts().values()) == wanted, what=f"shares {wanted}")
    except AssertionError as error:
        raise AssertionError(f"{what}: {ownership.owners}") from error


def check_read_once(ownership: Ownership, topic: str, counts: dict[int, int]) -> None:
    """All records, each once, came to the members together."""
    wanted = [
        (topic, partition, offset) for partition in counts for offset in range(counts[partition])
    ]
    eventually(lambda: len(ownership.read) >= len(wanted), what="all records were read")
    assert sorted(ownership.read) == sorted(wanted)
