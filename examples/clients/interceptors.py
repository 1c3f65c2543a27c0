"""Interceptors see every record of a client without a change of the program around them.

The producer's adds a header and counts acknowledgements; the consumer's hides test records.
"""

import time

from common import SECONDS_MAX, begin

from moldau.client import Consumer, ConsumerRecords, Producer, ProducerRecord


class Stamp:
    """Settings of the client reach `configure`, also its own."""

    acknowledged = 0

    def configure(self, config):
        self.source = config["stamp.source"]

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record.headers.append(("source", self.source.encode()))
        return record

    def on_acknowledgement(self, metadata, error):
        Stamp.acknowledged += error is None


class WithoutTests:
    committed = 0

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        kept = {
            partition: [each for each in records.records(partition) if each.key != b"test"]
            for partition in records.partitions()
        }
        return ConsumerRecords(kept, records.next_offsets())

    def on_commit(self, offsets):
        WithoutTests.committed += len(offsets)


bootstrap, topic, _ = begin(__doc__)
settings = {"bootstrap.servers": bootstrap, "stamp.source": "shop"}
with Producer(settings, interceptor_classes=[Stamp]) as producer:
    for number in range(6):
        producer.send(topic, f"order {number}", key="test" if number % 2 else "live")
print("acknowledged:", Stamp.acknowledged)

with Consumer(
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    interceptor_classes=[WithoutTests],
) as consumer:
    consumer.subscribe([topic])
    seen, end = [], time.monotonic() + SECONDS_MAX
    while len(seen) < 3 and time.monotonic() < end:
        seen += list(consumer.poll(1.0))
    consumer.commit_sync()
for record in seen:
    print(record.value.decode(), dict(record.headers)["source"].decode())
print("partitions committed:", WithoutTests.committed)
