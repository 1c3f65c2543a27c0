"""A consumer without a group: reads everything from the first record on, again and again."""

from __future__ import annotations

from moldau.sim.clients.actor import Actor, Fetched, Refused
from moldau.sim.clients.history import History
from moldau.sim.cluster import Cluster
from moldau.sim.world import Invariant, Violation
from moldau.wire.errors import ErrorCode

TopicPartition = tuple[str, int]

FINAL_S_MAX = 180.0


class Reader(Actor):
    def __init__(
        self,
        cluster: Cluster,
        history: History,
        name: str,
        partitions: list[TopicPartition],
        *,
        committed: bool,
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions
        self._committed = committed

    async def run(self) -> None:
        positions = dict.fromkeys(self._partitions, 0)
        while not self.stopping:
            where = self.random.choice(self._partitions)
            if self.random.random() < 0.03:
                positions[where] = 0
            try:
                fetched = await self.patiently(lambda where=where: self._step(where, positions))  # type: ignore[misc]
            except Refused as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and self.history.power_fails:
                    positions[where] = 0
                    continue
                raise self.surprised(f"reading {where}", error) from None
            positions[where] = fetched.next_offset
            await self.rest(0.5)

    async def _step(self, where: TopicPartition, positions: dict[TopicPartition, int]) -> Fetched:
        offset = positions[where]
        boots = self.cluster.boots
        fetched = await self.fetch(where, offset, committed=self._committed)
        if self.history.power_fails and boots != self.cluster.boots:
            # What it says may be of a log that has lost its end since.
            return Fetched(offset, {}, fetched)
        self.history.on_read(
            where, offset, fetched.next_offset, fetched.records, committed=self._committed
        )
        return fetched

    async def read_to_the_end(self) -> dict[TopicPartition, dict[int, bytes]]:
        """Everything there is, once all writers have stopped."""
        deadline = self.cluster.loop.time() + FINAL_S_MAX
        found: dict[TopicPartition, dict[int, bytes]] = {}
        for where in self._partitions:
            records = found[where] = {}
            position = 0
            while True:
                fetched = await self.patiently(
                    lambda where=where, position=position: self._step(where, {where: position})  # type: ignore[misc]
                )
                records.update(fetched.records)
                position = fetched.next_offset
                if position >= fetched.high_watermark:
                    break
                if self.cluster.loop.time() > deadline:
                    raise Violation(
                        Invariant.SETTLES,
                        f"{self.name} cannot read {where[0]}-{where[1]} beyond {position}: high"
                        f" watermark {fetched.high_watermark}, last stable offset"
                        f" {fetched.last_stable_offset}",
                    )
        return found
