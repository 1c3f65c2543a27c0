"""Where a group continues in another cluster.

Two maps know: that of the flow out (records of the cluster that is left, and their copies in the
other one) and that of the flow back (records of the other cluster, and their copies in the one that
is left). With names that stay the same, a partition holds both kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.mirror.machine.offset_map import OffsetMap, PartitionMap, Translation
from moldau.mirror.machine.policies import ReplicationPolicy
from moldau.mirror.machine.settings import FlowName

__all__ = ["Atlas", "Move", "continued_at", "moves_of"]


@dataclass(frozen=True, slots=True)
class Move:
    """One partition of a group; `to_offset` is None where nothing is known."""

    group_id: str
    left: TopicPartition
    left_offset: int
    reached: TopicPartition
    to_offset: int | None
    is_exact: bool
    behind: int = 0
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Atlas:
    """The maps between two clusters, and how topics are named in each direction."""

    out: FlowName
    out_policy: ReplicationPolicy
    out_map: OffsetMap
    back_policy: ReplicationPolicy | None = None
    back_map: OffsetMap | None = None
    out_position: Callable[[TopicPartition], int | None] = lambda left: None
    """How far the flow out has read a partition, whether it copied or left out what is there."""

    def reached(self, left: TopicPartition) -> TopicPartition:
        """The partition of the other cluster that a partition of this one belongs to."""
        if self._is_copy_of_the_other(left.topic):
            original = (self.back_policy or self.out_policy).upstream_topic(left.topic)
            return TopicPartition(original or left.topic, left.partition)
        remote = self.out_policy.format_remote_topic(self.out.source, left.topic)
        return TopicPartition(remote, left.partition)

    def _is_copy_of_the_other(self, topic: str) -> bool:
        policy = self.back_policy or self.out_policy
        return policy.upstream_topic(topic) != topic and (
            policy.topic_source(topic) == self.out.target
        )

    def translated(self, left: TopicPartition, offset: int) -> Translation | None:
        out = self.out_map.partition(left) if left in self.out_map else None
        back = None
        if self.back_map is not None:
            reached = self.reached(left)
            back = self.back_map.partition(reached) if reached in self.back_map else None
        return continued_at(out, back, offset, position=self.out_position(left))


def continued_at(
    out: PartitionMap | None,
    back: PartitionMap | None,
    offset: int,
    *,
    position: int | None = None,
) -> Translation | None:
    """Where a reader that has read everything below `offset` continues in the other cluster, if
    the flow out has read its partition up to `position`."""
    own = None if out is None else out.downstream(offset)
    others = None
    if back is not None:
        unread = next((run for run in back.runs if run.downstream_end > offset), None)
        if unread is not None:
            skipped = max(0, offset - unread.downstream)
            others = Translation(unread.upstream + skipped, True)
        elif own is None and back.runs:
            # Everything that came from there is read, and nothing of here was copied: there is
            # nothing but markers to copy, or the flow out has not come so far yet.
            seen = max(
                position or 0, back.runs[-1].downstream_end, -1 if out is None else out.position
            )
            return Translation(back.position, seen >= offset, behind=max(0, offset - seen))
    if own is None or others is None:
        return own or others
    # Both kinds of records are unread: begin at the first of them, nothing is left out.
    first = min(own, others, key=lambda each: each.offset)
    return Translation(first.offset, own.offset == others.offset, own.behind)


def moves_of(
    group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], atlas: Atlas
) -> list[Move]:
    """What a group's offsets are in the other cluster."""
    found = []
    for left, committed in sorted(offsets.items()):
        if committed is None or atlas.out_policy.is_internal_topic(left.topic):
            continue
        translated = atlas.translated(left, committed.offset)
        found.append(
            Move(
                group_id,
                left,
                committed.offset,
                atlas.reached(left),
                None if translated is None else translated.offset,
                translated is not None and translated.is_exact,
                0 if translated is None else translated.behind,
                committed.metadata or "",
            )
        )
    return found
