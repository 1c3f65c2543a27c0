"""Commit log: a store that writes every change to a compacted topic, and restores itself from it.

Two replicas follow the same log. One that begins with nothing has the same state when it has read
the log.
"""

import random

from stage import Stage

from moldau.client import Consumer, TopicPartition


class Replica:
    """A key-value store that has no other memory than the log."""

    def __init__(self, bootstrap: str) -> None:
        self.state: dict[str, int] = {}
        self.applied = 0
        self.log = TopicPartition("inventory-log", 0)
        self.consumer = Consumer(
            bootstrap_servers=bootstrap, key_deserializer="string", value_deserializer="json"
        )
        self.consumer.assign([self.log])
        self.consumer.seek_to_beginning([self.log])

    def catch_up(self) -> None:
        end = self.consumer.end_offsets([self.log])[self.log]
        while self.consumer.position(self.log) < end:
            for record in self.consumer.poll(1.0):
                self.applied += 1
                if record.value is None:
                    self.state.pop(record.key, None)
                else:
                    self.state[record.key] = record.value


with Stage(__doc__) as stage:

    def keep(truth: dict[str, int]) -> bool:
        truth["item-0"] = truth.get("item-0", 0) + 1
        stage.producer.send("inventory-log", truth["item-0"], key="item-0").result(30)
        return True

    stage.topics(
        "inventory-log",
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="100",
    )
    random.seed(11)
    changes = 2000 if stage.short else 50_000
    truth: dict[str, int] = {}
    first = Replica(stage.bootstrap)
    stage.fact("changes", lambda: changes)
    stage.fact("items", lambda: len(first.state))
    for number in range(changes):
        item = f"item-{random.randint(1, 50)}"
        if random.random() < 0.05:
            truth.pop(item, None)
            stage.send("inventory-log", item, None)
        else:
            truth[item] = number
            stage.send("inventory-log", item, number)
    stage.producer.flush()
    first.catch_up()
    stage.check("a replica that follows the log has the state", first.state == truth)
    first.consumer.close()

    def restored() -> Replica:
        replica = Replica(stage.bootstrap)
        replica.catch_up()
        replica.consumer.close()
        return replica

    # A change closes the segment before it; the cleaner then keeps the last change of each item.
    stage.until(lambda: keep(truth) and restored().applied < changes, "the log is compacted")
    second = restored()
    stage.check(
        f"one that begins with nothing has it after {second.applied} records",
        second.state == truth,
    )
