"""The examples of docs/producer.md run as they are printed."""

from __future__ import annotations

import re

import pytest

from support.processes import ROOT, BrokerProcess

PAGE = (ROOT / "docs" / "producer.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PRINTED = ["orders 0 0", "0", "numbers", "0", "", "", "1.0"]


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_an_example_runs(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    assert len(EXAMPLES) == len(PRINTED)
    program = EXAMPLES[number].replace("127.0.0.1:9092", broker.bootstrap)
    exec(compile(program, f"docs/producer.md example {number + 1}", "exec"), {})
    assert capsys.readouterr().out.strip() == PRINTED[number]
