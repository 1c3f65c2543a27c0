"""Commits chosen offsets while a large batch is processed, here after every 10 records.

A committed offset is the one to read next: the offset of the last processed record plus one.
"""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, OffsetAndMetadata, Producer, TopicPartition

bootstrap, topic, _ = begin(__doc__)
partition = TopicPartition(topic, 0)
with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(25):
        producer.send(topic, str(number))

with Consumer(
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
) as consumer:
    consumer.subscribe([topic])
    count = 0
    while count < 25:
        for record in consumer.poll(SECONDS_MAX):
            count += 1
            if count % 10 == 0:
                mark = OffsetAndMetadata(record.offset + 1, f"after record {count}")
                consumer.commit_sync({TopicPartition(record.topic, record.partition): mark})
    committed = consumer.committed([partition])[partition]
    print("committed:", committed.offset, f"({committed.metadata})")
    print("position:", consumer.position(partition))
