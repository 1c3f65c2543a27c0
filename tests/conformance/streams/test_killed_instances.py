"""Instances are killed with SIGKILL during a word count: every word is counted exactly once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.processes import moldau
from support.streams_counting import Instance, check, recomputed, updates
from support.streams_embedded import Stage
from support.streams_kills import SETTINGS, count_under_kills


def test_killed_instances_count_every_word_once(stage: Stage, protocol: str) -> None:
    count_under_kills(stage, kills=3, seed=1, protocol=protocol)


def test_a_stopped_instance_leaves_at_once(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=2)
    instance = Instance(
        stage.bootstrap, prefix, stage.folder / f"{prefix}one", "group.protocol=classic"
    ).start()
    lines = [f"word{random.Random(number).randrange(9)}" for number in range(50)]
    for line in lines:
        stage.producer.send(f"{prefix}text", line.encode())
    updates(stage.bootstrap, f"{prefix}counts", 2, len(lines))
    assert instance.stop() == 0, instance.output()
    group = f"{prefix}app"
    described = stage.admin.describe_consumer_groups([group])[group]
    assert not described.members
    check(updates(stage.bootstrap, f"{prefix}counts", 2, len(lines)), recomputed(lines))


@pytest.mark.long("a broker that is killed three times; brokers have tests of their own for that")
def test_a_killed_broker_loses_no_word(tmp_path: Path, protocol: str) -> None:
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    with moldau(tmp_path / "broker", settings) as broker:
        stage = Stage(broker.bootstrap, tmp_path)
        stage.create(["text", "counts"], partitions=2)
        instance = Instance(
            broker.bootstrap, "", tmp_path / "state", f"group.protocol={protocol}"
        ).start()
        lines = [f"w{number % 13} x{number % 7}" for number in range(4000)]
        try:
            for part in range(4):
                for line in lines[part * 1000 : (part + 1) * 1000]:
                    stage.producer.send("text", line.encode())
                words = sum(recomputed(lines[: part * 1000 + 1]).values())
                updates(broker.bootstrap, "counts", 2, words)
                if part < 3:
                    broker.kill()
                    broker.start()
            expected = recomputed(lines)
            check(updates(broker.bootstrap, "counts", 2, sum(expected.values())), expected)
        finally:
            instance.kill()
            stage.close()
