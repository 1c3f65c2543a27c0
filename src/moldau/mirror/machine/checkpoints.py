"""Groups in the target: which checkpoints are new, and which offsets are committed for a group.

Offsets are translated by the exact map where it reaches, and by offset syncs elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.mirror.machine.offset_map import OffsetMap, Translation
from moldau.mirror.machine.offset_syncs import OffsetSyncs
from moldau.mirror.machine.policies import ReplicationPolicy
from moldau.mirror.machine.records import Checkpoint
from moldau.mirror.machine.settings import FlowName

__all__ = ["Checkpoints", "Translator"]

Offsets = Mapping[TopicPartition, OffsetAndMetadata | None]


@dataclass(frozen=True, slots=True)
class Translator:
    """From partitions and offsets of the source to those of the target."""

    name: FlowName
    policy: ReplicationPolicy
    runs: OffsetMap
    syncs: OffsetSyncs

    def remote(self, partition: TopicPartition) -> TopicPartition:
        """A topic that came from the target is there under its own name."""
        topic = partition.topic
        if self.policy.topic_source(topic) == self.name.target:
            return TopicPartition(self.policy.original_topic(topic), partition.partition)
        remote = self.policy.format_remote_topic(self.name.source, topic)
        return TopicPartition(remote, partition.partition)

    def downstream(self, partition: TopicPartition, upstream: int) -> Translation | None:
        """None if nothing is known of the partition, or not so far back."""
        exact = self.runs.downstream(partition, upstream)
        if exact is not None:
            return exact
        guessed = self.syncs.downstream(partition, upstream)
        return None if guessed is None or guessed < 0 else Translation(guessed, False)


class Checkpoints:
    """The newest checkpoint of each group and partition. `replay` is the only mutator."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        self.apply(Checkpoint.parse(key, value))

    def apply(self, checkpoint: Checkpoint) -> None:
        known = self._by_group.setdefault(checkpoint.group_id, {})
        known[checkpoint.partition] = checkpoint

    def groups(self) -> list[str]:
        return sorted(self._by_group)

    def of(self, group_id: str) -> dict[TopicPartition, Checkpoint]:
        return dict(self._by_group.get(group_id, {}))

    def new(
        self,
        group_id: str,
        offsets: Offsets,
        translator: Translator,
        takes_topic: Callable[[str], bool],
    ) -> list[Checkpoint]:
        """Checkpoints that are due for what a group has committed in the source."""
        found = []
        for partition, committed in offsets.items():
            if committed is None or not takes_topic(partition.topic):
                continue
            translated = translator.downstream(partition, committed.offset)
            if translated is None:
                continue
            checkpoint = Checkpoint(
                group_id,
                translator.remote(partition),
                committed.offset,
                translated.offset,
                committed.metadata or "",
            )
            if self._is_due(checkpoint):
                found.append(checkpoint)
        return found

    def _is_due(self, checkpoint: Checkpoint) -> bool:
        """Not if it says the same again, or would take a group back that did not go back."""
        last = self._by_group.get(checkpoint.group_id, {}).get(checkpoint.partition)
        return (
            last is None
            or checkpoint.upstream_offset < last.upstream_offset
            or checkpoint.downstream_offset > last.downstream_offset
        )

    def to_commit(self, group_id: str, present: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit for a group without members in the target; never backwards."""
        found = {}
        for partition, checkpoint in self._by_group.get(group_id, {}).items():
            now = present.get(partition)
            if now is None or now.offset < checkpoint.downstream_offset:
                found[partition] = OffsetAndMetadata(
                    checkpoint.downstream_offset, checkpoint.metadata
                )
        return found
