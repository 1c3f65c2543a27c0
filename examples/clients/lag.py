"""How far each group is behind: end offsets minus committed offsets, for all groups of a cluster.

moldau consumer-groups --describe --all-groups prints the same; moldau monitor watches it.
"""

from common import begin

from moldau.client import Admin, OffsetAndMetadata, OffsetSpec, Producer, TopicPartition

bootstrap, topic, _ = begin(__doc__, partitions=2)
with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(50):
        producer.send(topic, str(number), partition=number % 2)

with Admin(bootstrap_servers=bootstrap) as admin:
    # Stands for a group that has read 20 records of one partition and 25 of the other.
    places = {
        TopicPartition(topic, 0): OffsetAndMetadata(20),
        TopicPartition(topic, 1): OffsetAndMetadata(25),
    }
    admin.alter_consumer_group_offsets(topic, places)

    committed = admin.list_consumer_group_offsets(topic)[topic]
    ends = admin.list_offsets({partition: OffsetSpec.latest() for partition in committed})
    total = 0
    for partition, mark in sorted(committed.items()):
        lag = ends[partition].offset - mark.offset
        total += lag
        print(f"partition {partition.partition}: lag {lag}")
    print("lag of the group:", total)
