"""Reads, doubles and writes numbers; results and offsets are committed in one transaction.

After a crash the open transaction is aborted, and its input is read again: each number is in the
output once, for readers with isolation.level=read_committed.
"""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer

bootstrap, topic, _ = begin(__doc__)
doubled = f"{topic}-doubled"
reading = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}


def double(crash: bool) -> None:
    with (
        Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer,
        Consumer(
            reading, group_id=topic, enable_auto_commit=False, value_deserializer="int"
        ) as consumer,
    ):
        producer.init_transactions()
        consumer.subscribe([topic])
        done = 0
        while done < 5:
            records = consumer.poll(SECONDS_MAX)
            producer.begin_transaction()
            for record in records:
                producer.send(doubled, str(record.value * 2))
            producer.send_offsets_to_transaction(records.next_offsets(), consumer.group_metadata())
            if crash:
                return  # closing the producer aborts the transaction, as a timeout would
            producer.commit_transaction()
            done += len(records)


with Producer(bootstrap_servers=bootstrap, value_serializer="int") as numbers:
    for number in range(5):
        numbers.send(topic, number)
double(crash=True)
double(crash=False)
for level in ("read_committed", "read_uncommitted"):
    with Consumer(reading, group_id=f"{topic}-{level}", isolation_level=level) as reader:
        reader.subscribe([doubled])
        values = [record.value.decode() for record in reader.poll(SECONDS_MAX)]
    print(f"{level}:", " ".join(values[-5:]), "in", len(values), "records")
