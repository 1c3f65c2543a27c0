"""The programs of docs/migration.md run as they are printed, and each pair prints the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from moldau.testing import Broker
from support.processes import ROOT

PAGE = (ROOT / "docs" / "migration.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PRINTED = ["from-confluent hello", "0 b'hello'", "1", "b'hello'"]


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


@pytest.mark.parametrize("pair", range(len(PRINTED)))
def test_before_and_after_do_the_same(node: Broker, pair: int) -> None:
    assert len(PROGRAMS) == 2 * len(PRINTED)
    for program in PROGRAMS[2 * pair : 2 * pair + 2]:
        ended = subprocess.run(
            [sys.executable, "-c", program.replace("127.0.0.1:9092", node.bootstrap_servers)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ended.returncode, ended.stdout.strip()) == (0, PRINTED[pair]), ended.stderr


def test_ours_come_second() -> None:
    for before, after in zip(PROGRAMS[::2], PROGRAMS[1::2], strict=True):
        assert "moldau" not in before.partition("(")[0]
        assert "from moldau.client import" in after
