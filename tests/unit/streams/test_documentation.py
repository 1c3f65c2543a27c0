"""The examples of docs/streams.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[3] / "docs" / "streams.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int) -> None:
    exec(compile(EXAMPLES[number], f"{DOCUMENT}[{number}]", "exec"), {})


def test_the_document_has_a_test_of_ten_lines() -> None:
    lines = [line for line in EXAMPLES[0].splitlines() if line.strip()]
    assert any("TopologyTestDriver" in line for line in lines)
