"""An asyncio consumer whose polls are cancelled, wherever they stand, skips nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from moldau.client import AsyncConsumer, Producer, TopicPartition
from support.processes import BrokerProcess

COUNT = 300
PARTITION = TopicPartition("cancelled", 0)


def test_a_cancelled_poll_loses_no_records(broker: BrokerProcess) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(COUNT):
            producer.send(PARTITION.topic, str(number), partition=0)

    async def read() -> list[int]:
        offsets: list[int] = []
        async with AsyncConsumer(bootstrap_servers=broker.bootstrap, max_poll_records=7) as reader:
            reader.assign([PARTITION])
            reader.seek_to_beginning([PARTITION])
            turns = 0
            while await reader.position(PARTITION) < COUNT:
                poll = asyncio.ensure_future(reader.poll(10))
                # Another number of turns each time: it is cancelled wherever it may stand.
                turns = (turns + 1) % 5
                for _ in range(turns):
                    await asyncio.sleep(0)
                if turns != 4:
                    poll.cancel()
                with suppress(asyncio.CancelledError):
                    offsets += [record.offset for record in await poll]
        return offsets

    assert asyncio.run(read()) == list(range(COUNT))
