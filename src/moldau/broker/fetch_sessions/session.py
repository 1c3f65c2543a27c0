"""One incremental fetch session: the partitions a client follows without naming them again.

Kafka walks all partitions of a session at every poll. Here a partition with nothing to return
leaves the candidates and comes back when it changes, so a poll costs what has changed.

Transitions: `update` applies an incremental request and raises the epoch; `settle` records
what was sent and sorts the slots that were read into candidates and watchers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.broker.fetch_sessions.slot import FetchSlot, SlotOwner
from moldau.broker.replication.machine.fetch_data import FetchBody, PartitionData
from moldau.broker.replication.machine.names import TopicKey
from moldau.times import ElapsedMs
from moldau.wire.constants import Buffer

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1

SlotKey = tuple[TopicKey, int]


def next_epoch(epoch: int) -> int:
    """The epoch of the request after one with `epoch`; 0 and -1 mean a full fetch, so skip them."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1


class WaitingFetch(SlotOwner, Protocol):
    """The session's request that waits for bytes."""

    def on_timeout(self) -> None: ...

    def supersede(self, reply: list[Buffer]) -> None: ...


class FetchSession:
    """The state of one session; the cache decides how long it lives."""

    __slots__ = (
        "candidates",
        "created_ms",
        "epoch",
        "id",
        "last_used_ms",
        "noted_ms",
        "privileged",
        "slots",
        "uses_topic_ids",
        "waiting",
    )

    def __init__(
        self,
        session_id: int,
        slots: dict[SlotKey, FetchSlot],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: ElapsedMs,
    ) -> None:
        self.id = session_id
        self.slots = slots
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        # When the follower was last recorded at all partitions.
        self.noted_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        # In the order they are read next; a dict because order and membership both matter.
        self.candidates: dict[FetchSlot, None] = dict.fromkeys(slots.values())
        self.waiting: WaitingFetch | None = None
        for slot in slots.values():
            slot.owner = self

    def on_slot_changed(self, slot: FetchSlot) -> None:
        self.candidates[slot] = None
        if self.waiting is not None:
            self.waiting.on_slot_changed(slot)

    def update(self, body: FetchBody) -> None:
        """Add and change the partitions that the request names, then drop those it forgets."""
        for key, partitions in body.topics:
            for wanted in partitions:
                slot_key = (key, wanted.partition)
                slot = self.slots.get(slot_key)
                if slot is None:
                    slot = self.slots[slot_key] = FetchSlot(
                        key, wanted, from_follower=body.replica_id >= 0
                    )
                    slot.owner = self
                else:
                    slot.want(wanted)
                self.candidates[slot] = None
        for key, indexes in body.forgotten:
            for index in indexes:
                slot = self.slots.pop((key, index), None)
                if slot is not None:
                    self._drop(slot)

    def settle(
        self, results: Sequence[tuple[FetchSlot, PartitionData]], read_committed: bool
    ) -> list[tuple[FetchSlot, PartitionData]]:
        """The part of `results` that an incremental response must contain; it counts as sent."""
        to_send = []
        for slot, data in results:
            if slot.must_send(data):
                to_send.append((slot, data))
                slot.note_sent(data)
        self.sort(results, read_committed)
        return to_send

    def sort(
        self, results: Sequence[tuple[FetchSlot, PartitionData]], read_committed: bool
    ) -> None:
        """Keep as candidates only those that have something to return at the next read."""
        candidates = self.candidates
        for slot, data in results:
            if data.records_size:
                # A slot that was served goes to the end of the queue, so that all get their turn.
                candidates.pop(slot, None)
                candidates[slot] = None
            elif not slot.has_more(data, read_committed) and not slot.must_send(data):
                candidates.pop(slot, None)
                slot.watch()

    def close(self) -> None:
        """Answer the fetch that still waits, if any, and stop watching all partitions."""
        if self.waiting is not None:
            self.waiting.on_timeout()
        for slot in self.slots.values():
            self._drop(slot)
        self.slots = {}

    def _drop(self, slot: FetchSlot) -> None:
        slot.owner = None
        slot.unwatch()
        self.candidates.pop(slot, None)


def slots_of(body: FetchBody) -> dict[SlotKey, FetchSlot]:
    """The slots of a full request in its order; of a partition named twice the last one counts."""
    slots: dict[SlotKey, FetchSlot] = {}
    from_follower = body.replica_id >= 0
    for key, partitions in body.topics:
        for wanted in partitions:
            slots[key, wanted.partition] = FetchSlot(key, wanted, from_follower)
    return slots


def grouped(
    results: Sequence[tuple[FetchSlot, PartitionData]],
) -> list[tuple[TopicKey, list[PartitionData]]]:
    """Results grouped as in the response: neighbours of one topic together."""
    topics: list[tuple[TopicKey, list[PartitionData]]] = []
    last: TopicKey | None = None
    for slot, data in results:
        if slot.key == last:
            topics[-1][1].append(data)
        else:
            last = slot.key
            topics.append((last, [data]))
    return topics
