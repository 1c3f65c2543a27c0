"""Random topologies on Spark, whose instances are killed: the result is that of a recomputation."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from support.random_topologies import RandomProgram, random_rows
from support.streams_on_spark import SparkApplication, SparkDeployment, spark_deployment

SEEDS = range(1, 6)
KILLS = 2


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, bootstrap: str, small: dict[str, str]
) -> Iterator[SparkDeployment]:
    with spark_deployment(tmp_path_factory.mktemp("random"), bootstrap, small) as made:
        yield made


@pytest.mark.long("a Spark server of its own, and two killed instances per topology")
@pytest.mark.parametrize("seed", SEEDS)
def test_counts_of_a_random_topology(deployment: SparkDeployment, seed: int) -> None:
    chance = random.Random(seed)
    name = f"random-{seed}"
    program = RandomProgram(name, chance)
    application = SparkApplication(deployment, name, program.source)
    rows = random_rows(chance, 100)
    application.send(rows)
    application.start()
    try:
        for _ in range(KILLS):
            more = random_rows(chance, 100)
            application.send(more)
            application.kill_one(chance)
            rows += more
        application.check(program.expected(rows))
    finally:
        application.stop()
