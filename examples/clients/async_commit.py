"""Commits without waiting, and retries a failed commit only if no later one was begun.

An old offset that is committed after a newer one would have records read again. The last commit,
on the way out, is a synchronous one, which retries by itself.
"""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer, RetriableError, TopicPartition

bootstrap, topic, _ = begin(__doc__)
with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(100):
        producer.send(topic, str(number))

consumer = Consumer(
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    max_poll_records=10,
)
latest = 0
outcomes = {"committed": 0, "retried": 0, "superseded": 0}


def commit(offsets) -> None:
    global latest
    latest += 1
    sequence = latest

    def on_completion(offsets, error) -> None:
        if error is None:
            outcomes["committed"] += 1
        elif isinstance(error, RetriableError) and sequence == latest:
            outcomes["retried"] += 1
            commit(offsets)
        else:
            outcomes["superseded"] += 1

    consumer.commit_async(offsets, on_completion)


with consumer:
    consumer.subscribe([topic])
    count = 0
    while count < 100:
        records = consumer.poll(SECONDS_MAX)
        count += len(records)
        commit(records.next_offsets())
    consumer.commit_sync()
    partition = TopicPartition(topic, 0)
    print("committed offset:", consumer.committed([partition])[partition].offset)
print(f"{sum(outcomes.values())} of {latest} asynchronous commits ended")
