"""The random programs of the tests on Spark mean what their recomputation says."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from moldau.streams import TopologyTestDriver
from moldau.streams.hosts.programs import load_topology
from support.random_topologies import RandomProgram, random_rows


@pytest.mark.parametrize("seed", range(1, 13))
def test_a_program_counts_what_its_steps_leave(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    program = RandomProgram("some", chance)
    file = tmp_path / "program.py"
    file.write_text(program.source)
    rows = random_rows(chance, 60)
    with TopologyTestDriver(load_topology(str(file))) as driver:
        driver.input_topic("some-in").pipe_key_values(rows)
        found = dict(driver.output_topic("some-out").read_key_values())
    assert found == program.expected(rows)
