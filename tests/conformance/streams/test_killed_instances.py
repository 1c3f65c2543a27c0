"""Instances are killed with SIGKILL during a word count: every word is counted exactly once."""

from __future__ import annotations

import random

from support.streams_counting import Instance, check, recomputed, updates
from support.streams_embedded import Stage
from support.streams_kills import count_under_kills


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
