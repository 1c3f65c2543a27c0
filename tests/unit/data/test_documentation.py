"""The examples in docs/data.md run, and nothing in the package touches the world outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import tidy

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "data.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(example: str) -> None:
    exec(compile(example, "docs/data.md", "exec"), {})


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 2


def test_the_package_is_pure() -> None:
    tree = tidy.Tree(ROOT / "src" / "moldau", generated=("moldau.wire.messages",))
    impure = tree.pure({})
    assert {name: why for name, why in impure.items() if name.startswith("moldau.data")} == {}
