"""One consumer, many workers: records of a key keep their order, and only finished ones are
committed.

Each key belongs to one worker. Partitions are paused while the workers are behind, so `poll` keeps
the membership alive and the memory stays bounded.
"""

import queue
import random
import threading
import time

from common import begin

from moldau.client import Consumer, ConsumerRecord, Producer, TopicPartition

WORKERS, BEHIND_MAX, RECORDS = 4, 50, 200
bootstrap, topic, _ = begin(__doc__, partitions=2)
inboxes: list[queue.Queue[ConsumerRecord | None]] = [queue.Queue() for _ in range(WORKERS)]
handled: dict[bytes, list[int]] = {}
done: queue.Queue[ConsumerRecord] = queue.Queue()


def work(inbox: "queue.Queue[ConsumerRecord | None]") -> None:
    while (record := inbox.get()) is not None:
        time.sleep(random.random() / 500)
        handled.setdefault(record.key, []).append(int(record.value))
        done.put(record)


with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(RECORDS):
        producer.send(topic, str(number), key=f"key {number % 10}")
threads = [threading.Thread(target=work, args=(inbox,)) for inbox in inboxes]
for thread in threads:
    thread.start()

with Consumer(
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    max_poll_records=20,
) as consumer:
    consumer.subscribe([topic])
    open_offsets: dict[TopicPartition, list[int]] = {}
    finished = 0
    while finished < RECORDS:
        for record in consumer.poll(0.05):
            open_offsets.setdefault(TopicPartition(record.topic, record.partition), []).append(
                record.offset
            )
            inboxes[hash(record.key) % WORKERS].put(record)
        while not done.empty():
            record = done.get()
            open_offsets[TopicPartition(record.topic, record.partition)].remove(record.offset)
            finished += 1
        # The oldest record that is still open is where another member would have to begin.
        marks = {
            each: min(offsets, default=consumer.position(each))
            for each, offsets in open_offsets.items()
        }
        consumer.commit_async(marks)
        behind = sum(map(len, open_offsets.values())) > BEHIND_MAX
        (consumer.pause if behind else consumer.resume)(consumer.assignment())
    consumer.commit_sync()
for inbox in inboxes:
    inbox.put(None)
print("in order:", all(values == sorted(values) for values in handled.values()))
print("handled:", sum(map(len, handled.values())), "records of", len(handled), "keys")
