"""Commits before it processes: after a crash, records may be lost but none is processed twice."""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer

bootstrap, topic, _ = begin(__doc__)
processed: list[str] = []


def consume(crash_at: str | None = None) -> None:
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=4,
        value_deserializer="string",
    ) as consumer:
        consumer.subscribe([topic])
        while processed[-1:] != ["7"]:
            records = consumer.poll(SECONDS_MAX)
            consumer.commit_sync(records.next_offsets())
            for record in records:
                if record.value == crash_at:
                    return
                processed.append(record.value)


with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(8):
        producer.send(topic, str(number))
consume(crash_at="2")
consume()
print("processed:", " ".join(processed))
