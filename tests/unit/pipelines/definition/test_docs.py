"""The definitions in the documents and the examples are right as they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines import Pipeline
from moldau.pipelines.definition.pipeline import loads
from support.processes import ROOT

EXAMPLES = ROOT / "examples" / "pipelines"
PAGE = (ROOT / "docs" / "pipelines.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
YAML = [
    text for kind, text in BLOCKS if kind == "yaml" and re.search(r"^(source|sources):", text, re.M)
]


@pytest.mark.parametrize("text", YAML, ids=range(len(YAML)))
def test_yaml_of_the_page(text: str) -> None:
    for part, rest in (("name", "name: p\n"), ("sinks?", "sink: {topic: out}\n")):
        if not re.search(rf"^{part}:", text, re.M):
            text = rest + text
    pipeline = loads(text, file="pipelines.md", base=EXAMPLES)
    assert Pipeline.from_json(pipeline.to_json()) == pipeline


def test_python_of_the_page_is_the_same_as_its_yaml() -> None:
    text = next(text for kind, text in BLOCKS if kind == "python")
    names: dict[str, Any] = {"__name__": "page"}
    exec(text, names)
    declared = loads(YAML[0], file="pipelines.md", base=EXAMPLES)
    made = names["big_orders"]
    assert made.sources == declared.sources
    assert made.sink == declared.sink
    assert made.trigger == declared.trigger
    assert made.dead_letter == declared.dead_letter
    assert [type(step) for step in made.steps] == [type(step) for step in declared.steps]
    row = {"id": "a", "amount": 100.0, "currency": "CZK"}
    expected = {"id": "a", "amount": 4.0, "currency": "EUR"}
    assert made.steps[0].function.load()(row) == expected
    assert declared.steps[0].function.load()(row) == expected  # type: ignore[union-attr]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    assert Pipeline.load(path).name == path.stem
