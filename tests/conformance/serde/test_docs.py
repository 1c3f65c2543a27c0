"""The examples of docs/serdes.md run as they are printed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from moldau.testing import Broker
from support.processes import ROOT
from support.registry.stage import RegistryStage, registry_on

PAGE = (ROOT / "docs" / "serdes.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PRINTED = [
    "{'id': 1, 'customer': 'ada'}",
    "refused: True",
    "{'from': 'ada', 'amount': 2.5}",
    "refused: only adults sign up",
]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.fixture(scope="module")
def stage(broker: Broker) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap_servers) as found:
        yield found


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_an_example_runs(
    broker: Broker, stage: RegistryStage, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    assert len(EXAMPLES) == len(PRINTED)
    program = EXAMPLES[number].replace("127.0.0.1:9092", broker.bootstrap_servers)
    program = program.replace("http://127.0.0.1:8081", stage.running.url)
    exec(compile(program, f"docs/serdes.md example {number + 1}", "exec"), {})
    assert capsys.readouterr().out.strip() == PRINTED[number]
