"""What a Spark worker keeps from being looked through after every use."""

import os
import subprocess
import sys

import pytest

_USES = """
import gc
from moldau.spark import workers
# Python 3.12 freezes some of its own.
first = gc.get_freeze_count()
counts = []
for _ in range(3):
    workers.used()
    counts.append(gc.get_freeze_count())
class Node: pass
node = Node()
node.itself = node
del node
print([count > first for count in counts], counts[1] == counts[2], gc.collect() >= 1)
"""


@pytest.mark.parametrize(
    ("reuse", "is_frozen"),
    [
        pytest.param("1", [False, True, True], id="a worker's modules, at its second use"),
        pytest.param("", [False, False, False], id="nothing in other processes"),
    ],
)
def test_only_a_workers_long_lived_objects_leave_the_collector(
    reuse: str, is_frozen: list[bool]
) -> None:
    environ = {**os.environ, "SPARK_REUSE_WORKER": reuse}
    found = subprocess.run(
        [sys.executable, "-c", _USES],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == f"{is_frozen} True True"
