"""Reads records again: from the beginning, and from a point in time.

A group that is stopped can also be moved from outside:
moldau consumer-groups --group G --topic T --reset-offsets --to-earliest --execute
"""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer, TopicPartition

bootstrap, topic, _ = begin(__doc__)
partition = TopicPartition(topic, 0)
NOON = 1_773_316_800_000  # 12 March 2026, 12:00 UTC

with Producer(bootstrap_servers=bootstrap) as producer:
    for minute in range(10):
        producer.send(topic, f"12:0{minute}", timestamp=NOON + minute * 60_000)


def read(consumer: Consumer) -> list[str]:
    values: list[str] = []
    while consumer.position(partition) < consumer.end_offsets([partition])[partition]:
        values += [record.value for record in consumer.poll(SECONDS_MAX)]
    return values


with Consumer(
    bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest",
    value_deserializer="string",
) as consumer:  # fmt: skip
    consumer.assign([partition])
    print("first time:", len(read(consumer)))
    print("nothing new:", len(read(consumer)))
    consumer.seek_to_beginning([partition])
    print("from the beginning:", len(read(consumer)))
    found = consumer.offsets_for_times({partition: NOON + 7 * 60_000})[partition]
    consumer.seek(partition, found.offset)
    print("from 12:07:", " ".join(read(consumer)))
