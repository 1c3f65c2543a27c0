"""Sends many records at full speed and learns of each outcome in a callback.

Callbacks run in the producer's thread, in order within a partition: keep them short.
"""

from common import begin

from moldau.client import Producer, RecordMetadata

bootstrap, topic, _ = begin(__doc__, partitions=3)
written: dict[int, int] = {}
failed: list[Exception] = []


def on_delivery(metadata: RecordMetadata, error: Exception | None) -> None:
    if error is not None:
        failed.append(error)
    else:
        written[metadata.partition] = written.get(metadata.partition, 0) + 1


with Producer(bootstrap_servers=bootstrap, linger_ms=20, compression_type="lz4") as producer:
    for number in range(1000):
        producer.send(topic, f"event {number}", key=str(number), on_delivery=on_delivery)
    producer.flush()
print(f"{sum(written.values())} written to {len(written)} partitions, {len(failed)} failed")
