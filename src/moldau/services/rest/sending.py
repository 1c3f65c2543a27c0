"""Sending records: all of a request first, then waiting for all."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from moldau.client import AsyncProducer
from moldau.client.errors import KafkaError
from moldau.client.producer import RecordFuture
from moldau.services.rest.machine.errors import partition_not_found

__all__ = ["Outgoing", "check_partitions", "send_all"]


#: Value, key, partition, timestamp and headers of a record, in the order of `AsyncProducer.send`.
Outgoing = tuple[
    bytes | None, bytes | None, int | None, int | None, list[tuple[str, bytes | None]] | None
]


async def send_all(
    producer: AsyncProducer, topic: str, records: Iterable[Outgoing]
) -> list[RecordFuture | KafkaError]:
    """What became of each: a future that is done without error, or the error."""
    sent: list[RecordFuture | KafkaError] = []
    send = producer.send
    for value, key, partition, timestamp, headers in records:
        try:
            sent.append(await send(topic, value, key, partition, timestamp, headers))
        except KafkaError as error:
            sent.append(error)
    for index, each in enumerate(sent):
        if isinstance(each, KafkaError):
            continue
        if not each.done():
            # Whoever is in the same batch is done with it: most are not waited for.
            with suppress(KafkaError):
                await each
        error_of_record = each.exception(0)
        if error_of_record is not None:
            sent[index] = error_of_record
    return sent


async def check_partitions(
    producer: AsyncProducer, topic: str, partitions: set[int | None]
) -> None:
    """Raises HttpError for a partition that the topic does not have, which a producer would wait
    for."""
    wanted = {each for each in partitions if each is not None}
    if not wanted:
        return
    if min(wanted) < 0:
        raise partition_not_found()
    known = {each.partition for each in await producer.partitions_for(topic)}
    if not wanted <= known:
        raise partition_not_found()
