"""The examples of docs/streams.md run, and what its guide names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau import streams
from moldau.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from moldau.streams.stores.versioned import VersionedKeyValueStore
from moldau.streams.stores.windowed import SessionStore, WindowStore

DOCUMENT = Path(__file__).parents[3] / "docs" / "streams.md"
STORES = [
    KeyValueStore,
    SessionStore,
    TimestampedKeyValueStore,
    VersionedKeyValueStore,
    WindowStore,
]
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int) -> None:
    exec(compile(EXAMPLES[number], f"{DOCUMENT}[{number}]", "exec"), {})


def test_the_document_has_a_test_of_ten_lines() -> None:
    lines = [line for line in EXAMPLES[0].splitlines() if line.strip()]
    assert any("TopologyTestDriver" in line for line in lines)


def test_every_name_in_the_table_of_stores_exists() -> None:
    text = DOCUMENT.read_text().partition("| store | reads | writes |")[2].partition("\n\n")[0]
    names = re.findall(r"`(\w+)", text)
    assert len(names) > 25
    known = {name for each in STORES for name in dir(each)} | {"backward_"}
    assert set(names) <= known


def test_every_name_of_the_guide_from_java_exists() -> None:
    places = [getattr(streams, name) for name in streams.__all__] + STORES
    known = {name for place in places for name in dir(place)} | set(streams.__all__)
    text = DOCUMENT.read_text()
    guide = text.partition("## From Java to Python")[2].partition("Durations are")[0]
    rows = [line.split(" | ") for line in guide.splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    for row in rows:
        for code in re.findall(r"`([^`]*)`", row[-1]):
            for name in re.findall(r"(?:^|(?<!re)\.)([a-z_]+)(?=\(|$)", code):
                assert name in known, f"{name} in {code}"
