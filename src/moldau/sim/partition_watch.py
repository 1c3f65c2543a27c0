"""What must hold of replicated partitions, looked at after every moment in which a node did
anything.

The watch knows what was ever committed in each partition, by batch: whatever lay below a high
watermark, of a leader or of a follower. What a node says is compared when it is news. A machine
that lost power may lack what it had until the controller knows its new registration: only then is
it judged as a member of the ISR again. As a leader it is judged at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.replication.manager import ReplicaManager
from moldau.broker.replication.partition import Partition
from moldau.sim.quorum_watch import READ_BYTES, Entry
from moldau.sim.world import Invariant, Violation, require
from moldau.wire.records import iterate_headers

PartitionKey = tuple[UUID, int]


class Committed:
    """What one partition has ever committed."""

    __slots__ = ("end_offset", "entries", "last_base", "leaders", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[int, Entry] = {}
        self.end_offset = 0
        self.last_base = -1
        self.leaders: dict[int, int] = {}

    def add(self, base: int, entry: Entry, node_id: int) -> None:
        known = self.entries.setdefault(base, entry)
        require(
            known == entry,
            Invariant.REPLICAS_AGREE,
            lambda: f"{self.name}: node {node_id} has {entry} at {base}, committed was {known}",
        )
        if entry.next_offset > self.end_offset:
            self.end_offset, self.last_base = entry.next_offset, base


class _Seen:
    """What was last seen of one replica in one life of its process."""

    __slots__ = ("epoch", "high_watermark", "led")

    def __init__(self) -> None:
        self.high_watermark = 0
        self.epoch = -1
        self.led = False


class PartitionWatch:
    def __init__(
        self,
        newest_image: Callable[[], MetadataImage | None],
        replicas: Callable[[int], ReplicaManager | None],
        excused: Callable[[int], bool],
    ) -> None:
        """`replicas` gives those of a node that runs; `excused` who has lost power and is not
        known to have."""
        self._newest_image = newest_image
        self._replicas = replicas
        self._excused = excused
        self.committed: dict[PartitionKey, Committed] = {}
        self.leader_changes = 0
        self._isr: dict[PartitionKey, tuple[int, ...]] = {}
        self._seen: dict[int, tuple[int, dict[Partition, _Seen]]] = {}

    def look(self, node_id: int, boot: int, replicas: ReplicaManager) -> None:
        known = self._seen.get(node_id)
        if known is None or known[0] != boot:
            known = self._seen[node_id] = (boot, {})
        seen_by = known[1]
        for partition in replicas.partitions():
            seen = seen_by.get(partition)
            if seen is None:
                seen = seen_by[partition] = _Seen()
            log = partition.log
            led = partition.leadership is not None
            if led and (not seen.led or partition.leader_epoch != seen.epoch):
                self._on_leader(node_id, partition)
            seen.led, seen.epoch = led, partition.leader_epoch
            if log.high_watermark != seen.high_watermark:
                self._on_watermark(node_id, partition, seen)

    def _of(self, partition: Partition) -> Committed:
        key = (partition.topic_id, partition.index)
        found = self.committed.get(key)
        if found is None:
            name = f"{partition.topic}-{partition.index}"
            found = self.committed[key] = Committed(name)
        return found

    def _on_leader(self, node_id: int, partition: Partition) -> None:
        committed, epoch = self._of(partition), partition.leader_epoch
        if epoch not in committed.leaders:
            self.leader_changes += 1
        known = committed.leaders.setdefault(epoch, node_id)
        require(
            known == node_id,
            Invariant.LEADER_ONE,
            lambda: f"{committed.name} in epoch {epoch} is led by {known} and by {node_id}",
        )
        if epoch < max(committed.leaders):
            # It does not know yet that there is another one.
            return
        self._check_complete(node_id, partition, Invariant.LEADER_COMPLETE)

    def _check_complete(self, node_id: int, partition: Partition, invariant: Invariant) -> None:
        committed, log = self._of(partition), partition.log
        require(
            log.log_end_offset >= committed.end_offset,
            invariant,
            lambda: (
                f"{committed.name}: node {node_id} ends at {log.log_end_offset},"
                f" {committed.end_offset} was committed"
            ),
        )
        base = committed.last_base
        if base >= log.log_start_offset:
            found = entries(partition, base, committed.end_offset).get(base)
            require(
                found == committed.entries[base],
                invariant,
                lambda: (
                    f"{committed.name}: node {node_id} has {found} at {base}, committed was"
                    f" {committed.entries[base]}"
                ),
            )

    def _on_watermark(self, node_id: int, partition: Partition, seen: _Seen) -> None:
        committed, log = self._of(partition), partition.log
        high_watermark = log.high_watermark
        require(
            high_watermark > seen.high_watermark,
            Invariant.WATERMARK_KEPT,
            lambda: (
                f"{committed.name} at node {node_id}: from {seen.high_watermark} to"
                f" {high_watermark}"
            ),
        )
        require(
            high_watermark <= log.log_end_offset,
            Invariant.HIGH_WATERMARK_WITHIN,
            lambda: f"{committed.name} at node {node_id}: {high_watermark} of {log.log_end_offset}",
        )
        before = committed.end_offset
        first = max(seen.high_watermark, log.log_start_offset)
        for base, entry in entries(partition, first, high_watermark).items():
            committed.add(base, entry, node_id)
        seen.high_watermark = high_watermark
        if committed.end_offset > before:
            self._check_in_sync(partition)

    def look_at_image(self) -> None:
        """The newest metadata has changed: a replica may have joined an ISR."""
        image = self._newest_image()
        if image is None:
            return
        for topic in image.topics_by_id.values():
            for index, state in topic.partitions.items():
                key = topic.id, index
                if self._isr.get(key) != state.isr:
                    self._isr[key] = state.isr
                    self._check_members(topic.name, index, state.isr)

    def _check_in_sync(self, partition: Partition) -> None:
        """More is committed now."""
        image = self._newest_image()
        topic = None if image is None else image.topics_by_id.get(partition.topic_id)
        if topic is not None:
            isr = topic.partitions[partition.index].isr
            self._check_members(partition.topic, partition.index, isr)

    def _check_members(self, topic: str, index: int, isr: tuple[int, ...]) -> None:
        """Every member of the ISR that can be looked at has what is committed."""
        for node_id in isr:
            replicas = self._replicas(node_id)
            if replicas is None or self._excused(node_id):
                continue
            replica = replicas.find(topic, index)
            if replica is not None:
                self._check_complete(node_id, replica, Invariant.IN_SYNC_COMPLETE)

    def check_same(self, nodes: dict[int, ReplicaManager], image: MetadataImage) -> None:
        """In the end: all replicas hold the same, and all of it is committed."""
        for topic in image.topics_by_id.values():
            for index, state in topic.partitions.items():
                replicas = {
                    node_id: replica
                    for node_id in state.replicas
                    if (replica := nodes[node_id].find(topic.name, index)) is not None
                }
                # What clients deleted goes from followers a moment later.
                start = max((each.log.log_start_offset for each in replicas.values()), default=0)
                found = {
                    node_id: entries(replica, start, replica.log.log_end_offset)
                    for node_id, replica in replicas.items()
                }
                differing = [i for i, each in found.items() if each != found[min(found)]]
                if differing:
                    raise Violation(
                        Invariant.REPLICAS_AGREE,
                        f"in the end {topic.name}-{index} differs between {min(found)} and"
                        f" {differing}",
                    )


def entries(partition: Partition, first: int, end: int) -> dict[int, Entry]:
    """The batches from `first` on that begin before `end`."""
    found: dict[int, Entry] = {}
    log, offset = partition.log, max(first, partition.log.log_start_offset)
    while offset < end:
        read = log.read(offset, READ_BYTES, upper_offset=log.log_end_offset, min_one_batch=True)
        data = b"".join(bytes(buffer) for buffer in read.buffers)
        before = offset
        for _, header in iterate_headers(data):
            if header.base_offset >= end:
                return found
            found[header.base_offset] = Entry(
                header.next_offset, header.partition_leader_epoch, header.crc
            )
            offset = header.next_offset
        if offset == before:
            break
    return found
