"""docs/messaging.md: its examples run, and each row of its table has its test."""

from __future__ import annotations

import re

import pytest

from support.processes import ROOT, BrokerProcess

PAGE = (ROOT / "docs" / "messaging.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PRINTED = ["two dumplings 5", "1 beer: 60 Kč\n60 Kč"]
TESTS = "\n".join(
    path.read_text() for path in (ROOT / "tests/conformance/messaging").glob("test_semantics_*.py")
)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_an_example_runs(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    assert len(EXAMPLES) == len(PRINTED)
    program = EXAMPLES[number].replace("127.0.0.1:9092", broker.bootstrap)
    exec(compile(program, f"docs/messaging.md example {number + 1}", "exec"), {})
    assert capsys.readouterr().out.strip() == PRINTED[number]


def test_every_row_names_a_test_and_every_test_has_a_row() -> None:
    table = PAGE.partition("## Semantics")[2]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    named = {name for row in rows for name in re.findall(r"`(test_\w+)`", row)}
    assert all(re.search(r"`test_\w+` \|$", row) for row in rows)
    assert named == set(re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE))
