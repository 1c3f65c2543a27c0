"""Keeps results and offsets in one database, in the same transaction: exactly once without Kafka's.

The program may crash anywhere: it seeks to the offsets that the database has.
"""

import sqlite3
import tempfile
from pathlib import Path

from common import SECONDS_MAX, begin

from moldau.client import Consumer, ConsumerRebalanceListener, Producer

bootstrap, topic, _ = begin(__doc__, partitions=2)
database = sqlite3.connect(Path(tempfile.mkdtemp()) / "payments.db")
database.execute("CREATE TABLE balance (account TEXT PRIMARY KEY, amount INTEGER)")
database.execute("CREATE TABLE place (topic TEXT, number INTEGER, next INTEGER, "
                 "PRIMARY KEY (topic, number))")  # fmt: skip
UPSERT = (
    "INSERT INTO balance VALUES (?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount"
)


class SeekToDatabase(ConsumerRebalanceListener):
    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    def on_partitions_assigned(self, partitions) -> None:
        for each in partitions:
            row = database.execute("SELECT next FROM place WHERE topic = ? AND number = ?", each)
            self.consumer.seek(each, (row.fetchone() or (0,))[0])


def consume(stop_after: int) -> None:
    with Consumer(
        bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False, max_poll_records=5
    ) as consumer:
        consumer.subscribe([topic], SeekToDatabase(consumer))
        done = 0
        while done < stop_after:
            records = consumer.poll(SECONDS_MAX)
            with database:  # one transaction for results and offsets
                for record in records:
                    database.execute(UPSERT, (record.key.decode(), int(record.value)))
                    place = (record.topic, record.partition, record.offset + 1)
                    database.execute("INSERT OR REPLACE INTO place VALUES (?, ?, ?)", place)
            done += len(records)


with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(20):
        producer.send(topic, "10", key=f"account {number % 3}")
consume(stop_after=10)
consume(stop_after=10)
for account, amount in database.execute("SELECT * FROM balance ORDER BY account"):
    print(account, amount)
