"""A rebalance listener: commits what is done before partitions leave, rewinds those that arrive.

A second consumer joins and takes a partition; both keep their place.
"""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, ConsumerRebalanceListener, Producer, TopicPartition

bootstrap, topic, _ = begin(__doc__, partitions=2)
settings = {"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False}


class Rewind(ConsumerRebalanceListener):
    """Reads the last two records of each partition again when it is assigned."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.events: list[str] = []

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.consumer.commit_sync()
        self.events.append(f"revoked {len(partitions)}")

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        ends = self.consumer.end_offsets(partitions)
        for partition in partitions:
            self.consumer.seek(partition, max(0, ends[partition] - 2))
        self.events.append(f"assigned {len(partitions)}")


with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(20):
        producer.send(topic, str(number), partition=number % 2)

with Consumer(settings) as first, Consumer(settings) as second:
    listeners = Rewind(first), Rewind(second)
    first.subscribe([topic], listeners[0])
    read: list[str] = []
    while len(read) < 4:
        read += [record.value.decode() for record in first.poll(SECONDS_MAX)]
    print("first read:", " ".join(sorted(read)))
    second.subscribe([topic], listeners[1])
    while not (len(first.assignment()) == len(second.assignment()) == 1):
        first.poll(0.1)
        second.poll(0.1)
for name, listener in zip(("first", "second"), listeners, strict=True):
    print(f"{name}:", ", ".join(listener.events))
