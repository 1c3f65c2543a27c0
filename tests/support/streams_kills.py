"""Kills instances of a word count while it runs, and compares its result with a recomputation.

PYTHONPATH=tests python -m support.streams_kills --count 50 [--on-spark]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from support.processes import moldau
from support.streams_counting import Instance, check, recomputed, updates
from support.streams_embedded import Stage
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


def count_under_kills(stage: Stage, *, kills: int, seed: int, protocol: str = "classic") -> int:
    """Run two instances, kill one after the other; how many words there were."""
    chance = random.Random(seed)
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=PARTITIONS)
    instances = [
        Instance(
            stage.bootstrap,
            prefix,
            stage.folder / f"{prefix}{number}",
            f"num.stream.threads={number + 1}",
            f"group.protocol={protocol}",
            # Who does not come back is noticed soon.
            "consumer.session.timeout.ms=6000",
        ).start()
        for number in range(INSTANCES)
    ]
    lines: list[str] = []
    group = f"{prefix}app"
    try:
        for _ in range(kills):
            for _ in range(chance.randrange(200, 2000)):
                lines.append(" ".join(f"w{chance.randrange(40)}" for _ in range(3)))
                stage.producer.send(f"{prefix}text", lines[-1].encode())
            stage.producer.flush()
            before = committed_count(stage, group)
            eventually(
                lambda before=before: committed_count(stage, group) > before,
                what="the application goes on",
                seconds_max=60,
            )
            # Somewhere between two commits.
            time.sleep(chance.uniform(0, 0.15))
            victim = chance.choice(instances)
            victim.kill()
            victim.start()
        expected = recomputed(lines)
        found = updates(stage.bootstrap, f"{prefix}counts", PARTITIONS, sum(expected.values()))
        check(found, expected)
        assert all(each.is_running for each in instances)
    except BaseException:
        for each in instances:
            sys.stderr.write(each.output()[-5000:])
        raise
    finally:
        for each in instances:
            each.kill()
    return sum(recomputed(lines).values())


SPARK_PROGRAM = """\
from moldau.streams import StreamsBuilder

builder = StreamsBuilder()
(
    builder.stream("killed-in", key_serde="string", value_serde="string")
    .group_by(lambda key, word: word, key_serde="string", value_serde="string")
    .count(store="counts")
    .to_stream()
    .to("killed-out", key_serde="string", value_serde="long")
)
"""


def count_on_spark_under_kills(bootstrap: str, folder: Path, *, kills: int, seed: int) -> int:
    """The same with instances that Spark hosts."""
    # Only here: whoever kills plain instances needs no Spark.
    from spark.conftest import SMALL
    from support.streams_on_spark import SparkApplication, spark_deployment

    chance = random.Random(seed)
    words: list[str] = []
    with spark_deployment(folder, bootstrap, SMALL) as deployment:
        application = SparkApplication(deployment, "killed", SPARK_PROGRAM)
        application.start()
        for number in range(kills):
            more = [f"w{chance.randrange(40)}" for _ in range(chance.randrange(200, 2000))]
            words += more
            application.send((word, word) for word in more)
            application.kill_one(chance)
            print(f"{number + 1} of {kills} kills", flush=True)
        application.check(recomputed(words))
        application.stop()
    return len(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--protocol", default="classic", choices=("classic", "streams"))
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--on-spark", action="store_true", help="instances that Spark hosts")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    with (
        tempfile.TemporaryDirectory() as folder,
        moldau(Path(folder) / "broker", settings) as broker,
    ):
        started = time.monotonic()
        if options.on_spark:
            words = count_on_spark_under_kills(
                broker.bootstrap, Path(folder), kills=options.count, seed=options.seed
            )
        else:
            stage = Stage(broker.bootstrap, Path(folder))
            words = count_under_kills(
                stage, kills=options.count, seed=options.seed, protocol=options.protocol
            )
            stage.close()
        spent = time.monotonic() - started
        print(f"{options.count} kills, {words} words, each counted once, {spent:.0f} s")


if __name__ == "__main__":
    main()
