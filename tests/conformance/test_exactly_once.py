"""A consume-transform-produce job, its processes and its broker killed again and again, counts
each input exactly once under read_committed.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.scenarios.members import Place
from support.scenarios.stage import Stage, stage_for
from support.scenarios.transforming import GROUP, INPUT, OUTPUT, TransformingWorker, transform
from support.scenarios.workers import committed
from support.waiting import eventually

WORKERS, INPUTS, OUTPUTS = 3, 6, 4
# After these kills of a worker the broker is killed as well. A member of the consumer protocol that
# was killed is missed only when its session has ended, so fewer of those are killed.
BROKER_KILLS = (5, 20, 45, 70)
STEPS_MAX = 24
SEED = 3_848
# Waited out after every kill, and yet no worker that lives is missed on a busy machine.
SESSIONS = {
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "3000",
}


class Feeder:
    """Writes 0, 1, 2, ... to the input partitions in turn, until it is told to finish."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        self._stop = threading.Event()
        self._producer = Producer({
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
            "error_cb": lambda _: None,
        })  # fmt: skip
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        while not self._stop.is_set():
            for _ in range(INPUTS):
                self._producer.produce(INPUT, b"%d" % self.count, partition=self.count % INPUTS)
                self.count += 1
            self._producer.flush(60)
            # A pace, not a wait: the job shall have work to do, and an end to it.
            self._stop.wait(0.02)

    def finish(self) -> int:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        return self.count

    def stop(self) -> None:
        """Without waiting for a broker that may be gone."""
        self._stop.set()


def begin_at_the_beginning(bootstrap: str) -> None:
    """Give the job a committed offset for each input partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.commit(
        offsets=[TopicPartition(INPUT, index, 0) for index in range(INPUTS)], asynchronous=False
    )
    consumer.close()


def read_output(bootstrap: str, isolation: str) -> Counter[bytes]:
    """All values in the output topic up to the ends that this isolation level shows."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused",
                         "isolation.level": isolation, "enable.partition.eof": True,
                         "enable.auto.commit": False})  # fmt: skip
    consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(OUTPUTS)])
    values: Counter[bytes] = Counter()
    ended: set[int] = set()
    while len(ended) < OUTPUTS:
        message = consumer.poll(60)
        assert message is not None, "the output does not come to an end"
        if message.error() is None:
            values[bytes(message.value() or b"")] += 1
        else:
            ended.add(int(message.partition() or 0))
    consumer.close()
    return values


def kill_at_random(stage: Stage, workers: list[TransformingWorker], kills: int) -> None:
    chance = random.Random(SEED)
    for number in range(kills):
        worker = chance.choice(workers)
        target = chance.randrange(STEPS_MAX)
        eventually(lambda w=worker, t=target: w.step >= t, what="a worker works", seconds_max=90)
        worker.kill()
        if number in BROKER_KILLS:
            stage.disturb("killed")
        worker.start()


OTHER_PROTOCOL = pytest.mark.long("the same with the other protocol")
MORE_KILLS = pytest.mark.long("the same with more kills")


@pytest.mark.slow("a killed member is missed only when its session has ended")
@pytest.mark.parametrize(
    ("protocol", "kills"),
    [
        ("classic", 10),
        pytest.param("classic", 25, marks=MORE_KILLS),
        pytest.param("consumer", 6, marks=OTHER_PROTOCOL),
        pytest.param("classic", 100, marks=MORE_KILLS),
        pytest.param("consumer", 15, marks=MORE_KILLS),
    ],
)
def test_each_input_is_counted_once_whoever_is_killed(
    request: pytest.FixtureRequest, tmp_path: Path, protocol: str, kills: int
) -> None:
    with stage_for(request, tmp_path, **SESSIONS) as stage:
        stage.topic(INPUT, INPUTS)
        stage.topic(OUTPUT, OUTPUTS)
        begin_at_the_beginning(stage.bootstrap)
        feeder = Feeder(stage.bootstrap)
        workers = [TransformingWorker(stage.bootstrap, protocol, each, OUTPUTS)
                   for each in range(WORKERS)]  # fmt: skip
        try:
            kill_at_random(stage, workers, kills)
            count = feeder.finish()
            ends = {Place(INPUT, index): len(range(index, count, INPUTS))
                    for index in range(INPUTS)}  # fmt: skip

            def all_done() -> bool:
                # Looking at a worker replaces it if it has ended.
                assert all(worker.step >= 0 for worker in workers)
                return committed(stage.bootstrap, GROUP) == ends

            eventually(all_done, what="every input is committed", seconds_max=90)
        finally:
            feeder.stop()
            for worker in workers:
                worker.kill()
        seen = read_output(stage.bootstrap, "read_committed")
        everything = read_output(stage.bootstrap, "read_uncommitted")

    expected = {transform(b"%d" % number) for number in range(count)}
    assert expected - seen.keys() == set(), "inputs were lost"
    assert [value for value, times in seen.items() if times > 1] == [], "inputs were counted twice"
    assert seen.keys() == expected
    if kills == 100:
        # So many kills did meet transactions: some of what was written is not to be seen.
        assert everything.total() > seen.total()
