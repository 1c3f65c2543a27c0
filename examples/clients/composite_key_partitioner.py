"""Keys of two parts: customer and order date. All orders of a customer go to one partition.

The default partitioner would hash the whole key and spread a customer's orders.
"""

from collections import defaultdict
from typing import NamedTuple

from common import begin

from moldau.client import Consumer, Producer
from moldau.client.producer import partition_for_key


class OrderKey(NamedTuple):
    customer: str
    date: str


def by_customer(topic, key, key_bytes, value, value_bytes, cluster):
    return partition_for_key(key.customer.encode(), cluster.partition_count(topic))


bootstrap, topic, _ = begin(__doc__, partitions=3)
with Producer(
    bootstrap_servers=bootstrap,
    partitioner_class=by_customer,
    key_serializer=lambda key: f"{key.customer}|{key.date}".encode(),
) as producer:
    for day in range(1, 10):
        for customer in ("ada", "bob", "cyd", "dee"):
            producer.send(topic, "order", key=OrderKey(customer, f"2026-03-0{day}"))

places: dict[str, set[int]] = defaultdict(set)
with Consumer(
    bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest"
) as consumer:
    consumer.subscribe([topic])
    for count, record in enumerate(consumer, 1):
        places[record.key.decode().split("|")[0]].add(record.partition)
        if count == 36:
            break
for customer, partitions in sorted(places.items()):
    print(customer, "is in", len(partitions), "partition")
