"""The examples of examples/streams give what their documentation says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from moldau.streams import TopologyTestDriver

EXAMPLES = Path(__file__).parents[3] / "examples" / "streams"


def program(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(
    name: str, inputs: list[tuple[str, str, Any, int]], output: str
) -> list[tuple[Any, Any]]:
    config = {"statestore.cache.max.bytes": 0}
    with TopologyTestDriver(program(name).build(), config=config) as driver:
        for topic, key, value, timestamp in inputs:
            driver.input_topic(topic).pipe_input(key, value, timestamp=timestamp)
        return driver.output_topic(output).read_key_values()


@pytest.mark.parametrize(
    ("name", "inputs", "output", "expected"),
    [
        pytest.param(
            "word_count",
            [("text", None, "Hello hello", 0)],
            "counts",
            [("hello", 1), ("hello", 2)],
            id="word count",
        ),
        pytest.param(
            "click_enrichment",
            [
                ("clicks", "ann", {"page": "/"}, 0),
                ("users", "ann", {"country": "CZ"}, 1),
                ("clicks", "ann", {"page": "/beer"}, 2),
            ],
            "enriched-clicks",
            [
                ("ann", {"page": "/", "country": "unknown"}),
                ("ann", {"page": "/beer", "country": "CZ"}),
            ],
            id="click enrichment",
        ),
        pytest.param(
            "card_fraud",
            [("payments", "card", {}, time) for time in (0, 100, 200, 300, 20_000)],
            "suspicious-cards",
            [("card", 4)],
            id="card fraud",
        ),
        pytest.param(
            "order_totals",
            [
                ("orders", "1", {"customer": "ann", "amount": 5}, 0),
                ("orders", "2", {"customer": "ann", "amount": 7}, 1),
                ("orders", "1", {"customer": "bob", "amount": 5}, 2),
            ],
            "customer-totals",
            [("ann", 5), ("ann", 12), ("ann", 7), ("bob", 5)],
            id="order totals",
        ),
        pytest.param(
            "posts_per_ten_minutes",
            [("posts", "a", "#Kafka and #kafka", 0), ("posts", "b", "#kafka", 700_000)],
            "posts-per-hashtag",
            [("kafka@0", 1), ("kafka@600000", 1)],
            id="posts per ten minutes",
        ),
    ],
)
def test_an_example(
    name: str,
    inputs: list[tuple[str, str, Any, int]],
    output: str,
    expected: list[tuple[Any, Any]],
) -> None:
    assert run(name, inputs, output) == expected


def test_stock_statistics() -> None:
    prices = ((10, 5000), (20, 5500))
    trades = [("trades", "ACME", {"price": price}, time) for price, time in prices]
    found = run("stock_statistics", trades, "stock-statistics")
    assert found[-1] == ("ACME", {"start": 5000, "trades": 2, "lowest": 10, "average": 15})
    assert len(found) == 10


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f"({path.name})" in listed
        assert program(path.stem).build().describe().startswith("Topologies:")
