"""Moves money between two accounts: both records are visible, or none."""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer

bootstrap, topic, _ = begin(__doc__, partitions=2)


class InsufficientFunds(Exception):
    pass


def transfer(producer: Producer, amount: int, balance: int) -> None:
    with producer.transaction():  # commits at the end, aborts on any exception
        producer.send(topic, f"alice -{amount}", partition=0)
        producer.send(topic, f"bob +{amount}", partition=1)
        if amount > balance:
            raise InsufficientFunds(amount)


with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
    transfer(producer, 10, balance=100)
    try:
        transfer(producer, 500, balance=90)
    except InsufficientFunds as error:
        print("aborted:", error)
    transfer(producer, 20, balance=90)

with Consumer(
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    isolation_level="read_committed",
    value_deserializer="string",
) as consumer:
    consumer.subscribe([topic])
    seen: list[str] = []
    while len(seen) < 4:
        seen += [record.value for record in consumer.poll(SECONDS_MAX)]
print(sorted(seen))
