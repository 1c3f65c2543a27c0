"""SIGKILLs of a mirror and of the nodes of both its clusters, while groups move over and back.

    python -m support.mirror_kills --count 50 --seed 7

Topics keep their names and are copied both ways, exactly once. A writer sends numbered records to
the cluster in use; a worker reads them as a group and writes each into the topic `done` of that
cluster, in a transaction with its offsets. Between kills writer and worker move to the other
cluster by `failover` and back by `failback`. In the end every acknowledged record must be in both
clusters once, and in one of the two `done` topics once; the first difference ends the run with
exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from moldau.client import Admin, Consumer, KafkaError, NewTopic, Producer, TopicPartition
from moldau.mirror.moving import Moved, move_groups
from moldau.mirror.runner import read_flows
from support.cluster import BROKER, CONTROLLER, ClusterUnderTest, Shape
from support.mirrors import exactly_once, properties, write
from support.waiting import eventually

PARTITIONS = 2
GROUP = "workers"
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
ONE_NODE = Shape(roles={1: (BROKER, CONTROLLER)})
THREE_NODES = Shape()
# Long: a node that is killed again and again takes its time on a busy machine.
WAIT_S = 400.0


class Broken(Exception):
    """A promise was broken; the message says which."""


class _Client:
    """Runs `_turn` again and again in a thread; what a cluster refuses is tried again."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.last_error: KafkaError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._session()
            except KafkaError as error:
                self.last_error = error
                self._stop.wait(0.3)

    def _session(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_S)
        if self._thread.is_alive():
            raise Broken(f"{type(self).__name__} does not end")


class Writer(_Client):
    """Sends numbered records, each of which is acknowledged before the writer ends."""

    def __init__(self, bootstrap: str, origin: str) -> None:
        self._origin = origin
        self.acknowledged: list[str] = []
        super().__init__(bootstrap)

    def _session(self) -> None:
        number = 0
        settings = {"bootstrap.servers": self._bootstrap, "delivery.timeout.ms": "600000"}
        with Producer(settings) as producer:
            while not self._stop.is_set():
                texts = [f"{self._origin}-{number + each}" for each in range(20)]
                number += len(texts)
                sent = [
                    producer.send("orders", text.encode(), partition=index % PARTITIONS)
                    for index, text in enumerate(texts)
                ]
                for text, future in zip(texts, sent, strict=True):
                    future.result(600)
                    self.acknowledged.append(text)
                self._stop.wait(0.02)


class Worker(_Client):
    """Takes each record into `done` once, with its offsets."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        super().__init__(bootstrap)

    def _session(self) -> None:
        common = {"bootstrap.servers": self._bootstrap}
        reading = {
            **common,
            "group.id": GROUP,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": "10000",
        }
        with ExitStack() as stack:
            consumer: Consumer[Any, Any] = stack.enter_context(Consumer(reading))
            producer = Producer({**common, "transactional.id": GROUP})
            stack.callback(producer.close, timeout=2.0)
            producer.init_transactions()
            consumer.subscribe(["orders"])
            while not self._stop.is_set():
                found = consumer.poll(0.2)
                if found:
                    producer.begin_transaction()
                    for record in found:
                        producer.send("done", record.value)
                    producer.send_offsets_to_transaction(
                        found.next_offsets(), consumer.group_metadata()
                    )
                    producer.commit_transaction()
                    self.count += len(found)


class Drill:
    """Two clusters, a mirror between them, a writer and a worker."""

    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        self._chance = random.Random(seed)
        self._stack = ExitStack()
        factor = len(shape.roles)
        settings = SETTINGS | {
            "offsets.topic.replication.factor": str(factor),
            "transaction.state.log.replication.factor": str(factor),
            "transaction.state.log.min.isr": str((factor + 1) // 2),
            "min.insync.replicas": str((factor + 1) // 2),
            "default.replication.factor": str(factor),
        }
        self.clusters = {
            name: self._stack.enter_context(
                ClusterUnderTest("moldau", folder / name, settings, shape)
            )
            for name in ("A", "B")
        }
        for cluster in self.clusters.values():
            with Admin({"bootstrap.servers": cluster.bootstrap}) as admin:
                admin.create_topics(
                    [NewTopic(each, PARTITIONS, factor) for each in ("orders", "done")]
                )
        self._made = exactly_once(
            properties(
                {name: each.bootstrap for name, each in self.clusters.items()},
                "A->B",
                "B->A",
                topics="orders",
                groups=GROUP,
            )
            | {"replication.policy.class": "IdentityReplicationPolicy"}
        )
        for key in [each for each in self._made if each.endswith("replication.factor")]:
            self._made[key] = str(factor)
        self._file = write(folder / "mm2.properties", self._made)
        self._log = folder / "mirror.log"
        self._mirror = self._start_mirror()
        self.active = "A"
        self.acknowledged: list[str] = []
        self.moves_s: list[float] = []
        self._rounds = 0
        self._begin()

    def _start_mirror(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "moldau.cli", "mirror", "start", str(self._file)],
                stdout=log,
                stderr=log,
            )

    def _begin(self) -> None:
        """Writer and worker in the active cluster."""
        bootstrap = self.clusters[self.active].bootstrap
        self._rounds += 1
        self._writer = Writer(bootstrap, f"{self.active}{self._rounds}")
        self._worker = Worker(bootstrap)

    def kill(self) -> str:
        """The mirror or a node, at a moment that differs; back at once. What it was."""
        self._progress()
        time.sleep(self._chance.random())
        victim = self._chance.choice(["mirror", "mirror", "A", "B"])
        if victim == "mirror":
            self._mirror.kill()
            self._mirror.wait()
            self._mirror = self._start_mirror()
            return victim
        cluster = self.clusters[victim]
        node = self._chance.choice(list(cluster.nodes))
        cluster.kill(node)
        cluster.start_node(node)
        return f"{victim}{node}"

    def _progress(self) -> None:
        """Writer and worker were seen to continue."""
        written, worked = len(self._writer.acknowledged), self._worker.count
        _wait(lambda: len(self._writer.acknowledged) > written + 50, "the writer continues")
        try:
            _wait(lambda: self._worker.count > worked, "the worker continues")
        except AssertionError as error:
            raise Broken(f"{error}: {self._worker.last_error}") from error

    def move(self) -> Moved:
        """Writer and worker to the other cluster, at the same record."""
        self._progress()
        left, reached = self.active, "B" if self.active == "A" else "A"
        began = time.monotonic()
        self._writer.stop()
        self.acknowledged += self._writer.acknowledged
        self._worker.stop()

        reasons: list[object] = []

        def moved() -> Moved | None:
            try:
                found = asyncio.run(
                    move_groups(read_flows(self._made), left=left, reached=reached, wait_s=WAIT_S)
                )
                if not found.refused and found.moves:
                    return found
                reasons.append(found)
            except KafkaError as error:
                reasons.append(error)
            return None

        try:
            found: Moved | None = eventually(moved, what="the move", seconds_max=WAIT_S)
        except AssertionError as error:
            raise Broken(f"{error}: {reasons[-1]}\n{self._log.read_text()[-3000:]}") from error
        if found is None or not all(each.is_exact for each in found.moves):
            raise Broken(f"not exact: {found}")
        self.active = reached
        self.moves_s.append(time.monotonic() - began)
        self._begin()
        return found

    def finish(self) -> int:
        """How many records were acknowledged, copied once and worked on once."""
        self._writer.stop()
        self.acknowledged += self._writer.acknowledged
        wanted = Counter(self.acknowledged)
        for name, cluster in self.clusters.items():
            found: Counter[str] = Counter()
            _wait(
                lambda: len(_all(cluster.bootstrap, "orders")) >= len(self.acknowledged),  # noqa: B023
                f"all records in {name}",
            )
            found.update(_all(cluster.bootstrap, "orders"))
            _compare(f"orders of {name}", wanted, found)

        def done() -> list[str]:
            return [each for c in self.clusters.values() for each in _all(c.bootstrap, "done")]

        # What is missing then is named by the comparison.
        with suppress(AssertionError):
            _wait(lambda: len(done()) >= len(self.acknowledged), "all records worked on")
        self._worker.stop()
        _compare("done", wanted, Counter(done()))
        return len(self.acknowledged)

    def close(self) -> None:
        with suppress(Exception):
            self._writer.stop()
            self._worker.stop()
        self._mirror.kill()
        self._mirror.wait()
        self._stack.close()


def _compare(what: str, wanted: Counter[str], found: Counter[str]) -> None:
    lost, more = wanted - found, found - wanted
    if lost or more:
        raise Broken(
            f"{what}: {lost.total()} lost ({list(lost)[:5]}), {more.total()} doubled "
            f"({list(more)[:5]}) of {wanted.total()}"
        )


def _all(bootstrap: str, topic: str) -> list[str]:
    """The committed records of a topic."""
    settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed",
                "auto.offset.reset": "earliest"}  # fmt: skip
    found: list[str] = []
    with Consumer(settings) as consumer:
        places = [TopicPartition(topic, each) for each in range(PARTITIONS)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            found += [record.value.decode() for record in consumer.poll(0.2)]
    return found


def _wait(probe: Callable[[], Any], what: str) -> None:
    def tried() -> Any:
        try:
            return probe()
        except KafkaError:
            return False

    eventually(tried, what=what, seconds_max=WAIT_S)


def run(folder: Path, *, count: int, seed: int, shape: Shape, moves_every: int) -> str:
    """Kill so often, move now and then; what to print."""
    drill = Drill(folder, shape, seed)
    victims: Counter[str] = Counter()
    try:
        for number in range(1, count + 1):
            victims[drill.kill()] += 1
            if number % moves_every == 0:
                drill.move()
        records = drill.finish()
    finally:
        drill.close()
    moved = ", ".join(f"{each:.1f}" for each in drill.moves_s)
    return (
        f"{count} kills, seed {seed} ({dict(sorted(victims.items()))}), {len(drill.moves_s)} moves "
        f"({moved} s): {records:,} records acknowledged, each in both clusters once and worked on "
        "once"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m support.mirror_kills", description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="how many kills (%(default)s)")
    parser.add_argument("--seed", type=int, help="which moments; another one each time if not set")
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=3, help="of each cluster")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    shape = THREE_NODES if options.nodes == 3 else ONE_NODE
    with tempfile.TemporaryDirectory(prefix="moldau-mirror-kills-") as name:
        try:
            print(run(Path(name), count=options.count, seed=seed, shape=shape, moves_every=5))
        except (Broken, AssertionError) as error:
            print(f"BROKEN: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
