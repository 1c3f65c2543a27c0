"""Writes to a partition that the program chooses, and reads that partition alone."""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer, TopicPartition

bootstrap, topic, _ = begin(__doc__, partitions=4)

with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(8):
        # A partition that is given takes precedence over the key.
        producer.send(topic, f"urgent {number}", key=str(number), partition=3)
    print("partitions of the topic:", len(producer.partitions_for(topic)))

with Consumer(bootstrap_servers=bootstrap, value_deserializer="string") as consumer:
    urgent = TopicPartition(topic, 3)
    consumer.assign([urgent])
    consumer.seek_to_beginning([urgent])
    read: list[str] = []
    while len(read) < 8:
        read += [record.value for record in consumer.poll(SECONDS_MAX)]
print(f"read from partition 3: {len(read)}, first: {read[0]}, last: {read[-1]}")
