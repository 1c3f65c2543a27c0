"""Kills instances of a word count and a windowed join while they run, and compares their results
with a recomputation.

PYTHONPATH=tests python -m support.streams_kills --count 50 [--nodes] [--on-spark]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support.cluster import ClusterUnderTest
from support.processes import moldau
from support.streams_counting import (
    INPUT,
    OUTPUT,
    WITH_JOIN,
    Instance,
    check,
    recomputed,
    updates,
)
from support.streams_embedded import Stage
from support.streams_joining import JOINED, LEFT, RIGHT, Sides, joined
from support.waiting import eventually

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
}
PARTITIONS = 3
INSTANCES = 2


def committed_count(stage: Stage, group: str) -> int:
    """How many offsets the group has committed, in all partitions."""
    found = stage.admin.list_consumer_group_offsets({group: None}, check=False)
    if group in found.errors:
        return 0
    return sum(each.offset for each in found[group].values() if each is not None)


class Run:
    """A word count and a windowed join in two instances, of which some are killed.

    In a cluster its nodes are killed too.
    """

    def __init__(
        self, stage: Stage, chance: random.Random, protocol: str, cluster: ClusterUnderTest | None
    ) -> None:
        self._stage = stage
        self._chance = chance
        self._cluster = cluster
        self._prefix = f"{stage.new_id()}-"
        self._lines: list[str] = []
        self._sides = Sides(chance, time.time_ns() // 1_000_000)
        topics = [self._prefix + name for name in (INPUT, OUTPUT, LEFT, RIGHT, JOINED)]
        stage.create(topics, PARTITIONS, replicas=1 if cluster is None else 3)
        self._instances = [
            Instance(
                stage.bootstrap,
                self._prefix,
                stage.folder / f"{self._prefix}{number}",
                WITH_JOIN,
                f"num.stream.threads={number + 1}",
                f"group.protocol={protocol}",
                # Who does not come back is noticed soon.
                "consumer.session.timeout.ms=6000",
            ).start()
            for number in range(INSTANCES)
        ]

    def send_and_kill(self) -> str:
        """Send some records, wait until some of them are committed, and kill; who was killed."""
        stage, chance = self._stage, self._chance
        for _ in range(chance.randrange(200, 2000)):
            self._lines.append(" ".join(f"w{chance.randrange(40)}" for _ in range(3)))
            stage.producer.send(self._prefix + INPUT, self._lines[-1].encode())
        self._sides.send(stage.producer, self._prefix, chance.randrange(100, 1000))
        stage.producer.flush()
        group = f"{self._prefix}app"
        before = committed_count(stage, group)
        eventually(
            lambda: committed_count(stage, group) > before,
            what="the application goes on",
            seconds_max=60,
        )
        # Somewhere between two commits.
        time.sleep(chance.uniform(0, 0.15))
        if self._cluster is not None and chance.random() < 0.5:
            return self._kill_node(self._cluster)
        number = chance.randrange(INSTANCES)
        self._instances[number].kill()
        self._instances[number].start()
        return f"instance {number}"

    def _kill_node(self, cluster: ClusterUnderTest) -> str:
        node = self._chance.choice(cluster.brokers)
        cluster.kill(node)
        cluster.start_node(node)
        # Two of three replicas have to remain when the next node is killed.
        cluster.wait_until_whole()
        return f"node {node}"

    def check(self) -> tuple[int, int]:
        """Every word and every pair is there once; how many of them there are."""
        stage = self._stage
        expected = recomputed(self._lines)
        words = sum(expected.values())
        check(updates(stage.bootstrap, self._prefix + OUTPUT, PARTITIONS, words), expected)
        pairs = self._sides.pairs()
        count = sum(map(len, pairs.values()))
        assert joined(stage.bootstrap, self._prefix + JOINED, PARTITIONS, count) == pairs
        assert all(each.is_running for each in self._instances)
        return words, count

    def outputs(self) -> str:
        return "\n".join(each.output()[-5000:] for each in self._instances)

    def close(self) -> None:
        for each in self._instances:
            each.kill()


def count_under_kills(
    stage: Stage,
    *,
    kills: int,
    seed: int,
    protocol: str = "classic",
    cluster: ClusterUnderTest | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[int, int]:
    """Kill one after the other; how many words and pairs there were."""
    run = Run(stage, random.Random(seed), protocol, cluster)
    try:
        for number in range(kills):
            report(f"{number + 1} of {kills} kills: {run.send_and_kill()}")
        return run.check()
    except BaseException:
        sys.stderr.write(run.outputs())
        raise
    finally:
        run.close()


SPARK_PROGRAM = f"""\
import sys

sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from moldau.streams import StreamsBuilder
from support.streams_joining import add_windowed_join

builder = StreamsBuilder()
(
    builder.stream("killed-in", key_serde="string", value_serde="string")
    .group_by(lambda key, word: word, key_serde="string", value_serde="string")
    .count(store="counts")
    .to_stream()
    .to("killed-out", key_serde="string", value_serde="long")
)
add_windowed_join(builder, "killed-")
"""


def count_on_spark_under_kills(
    bootstrap: str, folder: Path, *, kills: int, seed: int
) -> tuple[int, int]:
    """The same with instances that Spark hosts; how many words and pairs there were."""
    # Only here: whoever kills plain instances needs no Spark.
    from spark.conftest import SMALL
    from support.streams_on_spark import PARTITIONS as SPREAD
    from support.streams_on_spark import SparkApplication, spark_deployment

    chance = random.Random(seed)
    words: list[str] = []
    sides = Sides(chance, time.time_ns() // 1_000_000)
    stage = Stage(bootstrap, folder)
    stage.create([f"killed-{name}" for name in (LEFT, RIGHT, JOINED)], SPREAD)
    with spark_deployment(folder, bootstrap, SMALL) as deployment:
        application = SparkApplication(deployment, "killed", SPARK_PROGRAM)
        application.start()
        for number in range(kills):
            more = [f"w{chance.randrange(40)}" for _ in range(chance.randrange(200, 2000))]
            words += more
            application.send((word, word) for word in more)
            sides.send(stage.producer, "killed-", chance.randrange(100, 1000))
            stage.producer.flush()
            began = time.monotonic()
            application.kill_one(chance)
            spent = time.monotonic() - began
            print(f"{number + 1} of {kills} kills, all run after {spent:.1f} s", flush=True)
        application.check(recomputed(words))
        pairs = sides.pairs()
        count = sum(map(len, pairs.values()))
        assert joined(bootstrap, f"killed-{JOINED}", SPREAD, count) == pairs
        application.stop()
    stage.close()
    return len(words), count


def run_embedded(options: argparse.Namespace, folder: Path) -> str:
    """In processes of their own, on one broker or on a cluster whose nodes are killed too."""

    def kill(bootstrap: str, cluster: ClusterUnderTest | None) -> str:
        stage = Stage(bootstrap, folder)
        words, pairs = count_under_kills(
            stage,
            kills=options.count,
            seed=options.seed,
            protocol=options.protocol,
            cluster=cluster,
            report=lambda text: print(text, flush=True),
        )
        stage.close()
        return f"{words} words and {pairs} pairs"

    if options.nodes:
        with ClusterUnderTest("moldau", folder / "cluster", SETTINGS) as cluster:
            return kill(cluster.bootstrap, cluster)
    with moldau(folder / "broker", [f"{name}={value}" for name, value in SETTINGS.items()]) as one:
        return kill(one.bootstrap, None)


def run_on_spark(options: argparse.Namespace, folder: Path) -> str:
    with moldau(folder / "broker", [f"{name}={value}" for name, value in SETTINGS.items()]) as one:
        words, pairs = count_on_spark_under_kills(
            one.bootstrap, folder, kills=options.count, seed=options.seed
        )
    return f"{words} words and {pairs} pairs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--protocol", default="classic", choices=("classic", "streams"))
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--nodes", action="store_true", help="a cluster, and kill its nodes too")
    parser.add_argument("--on-spark", action="store_true", help="instances that Spark hosts")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = run_on_spark if options.on_spark else run_embedded
        found = run(options, Path(folder))
    spent = time.monotonic() - started
    print(f"{options.count} kills, {found}, each there once, {spent:.0f} s")


if __name__ == "__main__":
    main()
