"""Consume, transform, produce: each input makes one output, exactly once with the offset."""

from __future__ import annotations

from moldau.sim.clients.actor import Refused
from moldau.sim.clients.groups import fetch_offset
from moldau.sim.clients.history import History, Transaction
from moldau.sim.clients.transactions import BeginAnew, TransactionalProducer
from moldau.sim.cluster import Cluster
from moldau.sim.world import Invariant, require
from moldau.wire.errors import ErrorCode

TopicPartition = tuple[str, int]

RECORDS_MAX = 4


class Pipeline(TransactionalProducer):
    """Several of one transactional id fence each other, and must not disturb the result."""

    def __init__(
        self,
        cluster: Cluster,
        history: History,
        name: str,
        *,
        source: TopicPartition,
        target: TopicPartition,
        group: str,
        transactional_id: str,
        version: int,
    ) -> None:
        super().__init__(
            cluster, history, name, [target], transactional_id=transactional_id, version=version
        )
        self._source = source
        self._target = target
        self._group = group

    async def work(self, transaction: Transaction) -> None:
        try:
            offset = await self.patiently(
                lambda: fetch_offset(self, self._group, self._source, stable=True)
            )
            position = max(offset, 0)
            fetched = await self.patiently(
                lambda: self.fetch(self._source, position, committed=True)
            )
        except Refused as error:
            if error.code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
                # Its own last transaction, or that of the producer that had the id before.
                return
            raise self.surprised("reading the input", error) from None
        # What was not acknowledged may be gone after a power failure; see faults.py.
        acknowledged = self.history.acknowledged.get(self._source, {})
        inputs = [offset for offset in sorted(fetched.records) if offset in acknowledged][
            :RECORDS_MAX
        ]
        if not inputs:
            return
        values = [
            f"{self.name}:{self._source[1]}@{offset}/{number}".encode()
            for offset, number in zip(inputs, self.numbers(len(inputs)), strict=True)
        ]
        await self.send(transaction, self._target, values)
        await self.send_offset(self._group, self._source, inputs[-1] + 1)
        if self.random.random() < 0.1:
            raise BeginAnew("it crashed")
        await self.end(transaction, commit=self.random.random() < 0.85)

    def numbers(self, count: int) -> range:
        first = self._count
        self._count += count
        return range(first, first + count)


def check_exactly_once(
    source: TopicPartition, inputs: dict[int, bytes], outputs: dict[int, bytes], offset: int
) -> None:
    """`outputs` are what committed readers see of what was made of `inputs`."""
    made = [int(value.partition(b"@")[2].partition(b"/")[0]) for value in outputs.values()]
    wanted = [each for each in sorted(inputs) if each < offset]
    require(
        made == wanted,
        Invariant.EXACTLY_ONCE,
        lambda: (
            f"of {source[0]}-{source[1]} the group has committed {offset}; missing outputs"
            f" {sorted(set(wanted) - set(made))}, too many {sorted(set(made) - set(wanted))},"
            f" {len(made)} for {len(wanted)} in the order {made[:60]}"
        ),
    )
