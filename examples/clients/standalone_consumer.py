"""One consumer that takes all partitions itself: no group, no rebalances, no committed offsets.

New partitions are not noticed: look at `partitions_for` again from time to time.
"""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer, TopicPartition

bootstrap, topic, _ = begin(__doc__, partitions=3)
with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(30):
        producer.send(topic, str(number), partition=number % 3)

with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
    partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
    consumer.assign(partitions)
    counts = dict.fromkeys(partitions, 0)
    ends = consumer.end_offsets(partitions)
    while any(consumer.position(each) < ends[each] for each in partitions):
        for record in consumer.poll(SECONDS_MAX):
            counts[TopicPartition(record.topic, record.partition)] += 1
for partition, count in sorted(counts.items()):
    print("partition", partition.partition, "has", count, "records")
