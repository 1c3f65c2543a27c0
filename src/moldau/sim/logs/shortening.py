"""Steps that roll, retain, delete records and truncate."""

from __future__ import annotations

from moldau.sim.logs.stage import LogStage
from moldau.sim.world import Invariant, require

__all__ = ["Shortening"]


class Shortening:
    """Removes records from either end of a log."""

    def __init__(self, stage: LogStage) -> None:
        self._stage = stage
        self._world = stage.world
        self._random = stage.world.random

    def roll(self) -> None:
        picked = self._stage.pick()
        if picked is not None and picked[1].segments.active.size:
            partition, log = picked
            self._world.note(f"{partition.name}: roll at {partition.end}")
            self._stage.guarded(partition, lambda: log.roll(self._world.now_ms()))

    def retain(self) -> None:
        try:
            self._stage.node.manager.delete_old_segments()
        finally:
            self._note_retention()

    def _note_retention(self) -> None:
        for partition in self._stage.partitions.values():
            log = self._stage.log(partition)
            if log is None or log.log_start_offset == partition.start:
                continue
            if log.offline:
                # It may have come as far as to forget the epochs of what was to go.
                partition.start_max = max(partition.start_max, log.log_start_offset)
                continue
            self._world.note(f"{partition.name}: retention moves start to {log.log_start_offset}")
            require(
                partition.start < log.log_start_offset <= partition.high_watermark,
                Invariant.START_NOT_BACK,
                lambda p=partition, log=log: (  # type: ignore[misc]
                    f"{p.name}: retention moved {p.start} to {log.log_start_offset}, high "
                    f"watermark {p.high_watermark}"
                ),
            )
            partition.set_start(log.log_start_offset)

    def delete_records(self) -> None:
        picked = self._stage.pick()
        if picked is None:
            return
        partition, log = picked
        offset = self._random.randint(partition.start, partition.high_watermark)
        self._world.note(f"{partition.name}: delete records below {offset}")
        self._stage.guarded(partition, lambda: log.advance_log_start_offset(offset))
        partition.set_start(log.log_start_offset)

    def truncate(self) -> None:
        picked = self._stage.pick()
        if picked is None:
            return
        partition, log = picked
        # What cleaning has gone by (the outcome of transactions, what producers sent last) is
        # not cut here: it would have been committed.
        floor = max(partition.start, min(partition.clean_end, partition.end))
        offsets = [b.base_offset for b in partition.batches if b.base_offset >= floor]
        if not offsets or self._stage.future(partition) is not None:
            return
        offset = self._random.choice(offsets[-8:])
        self._world.note(f"{partition.name}: truncate to {offset}")
        # Whole segments go one by one, so a crash may leave anything in between.
        batches = partition.batches
        in_doubt = [batches[:n] for n in range(len(batches)) if batches[n].base_offset >= offset]
        in_doubt.append(list(batches))
        # Followers cut what another leader has not.
        partition.epoch += 1
        partition.generation += 1
        partition.cutting_at = offset
        partition.durable = min(partition.durable, offset)
        if self._stage.guarded(
            partition, lambda: log.truncate_to(offset, now_ms=self._world.now_ms()), in_doubt
        ):
            partition.cut(offset)

    def truncate_fully(self) -> None:
        """A follower that was away for too long starts over at the leader's log start."""
        picked = self._stage.pick()
        if picked is None or self._stage.future(picked[0]) is not None:
            return
        partition, log = picked
        offset = partition.end + self._random.randint(0, 20)
        self._world.note(f"{partition.name}: start over at {offset}")
        partition.epoch += 1
        partition.generation += 1
        partition.end_in_doubt = True
        partition.cutting_at = partition.durable = 0
        if self._stage.guarded(
            partition,
            lambda: log.truncate_fully_and_start_at(offset, now_ms=self._world.now_ms()),
            [[]],
        ):
            partition.cut(offset)
            partition.replace([])
            partition.set_start(offset)
            partition.high_watermark = offset
