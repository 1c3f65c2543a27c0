"""Processors whose suppliers bring stores of their own."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.streams import (
    Processor,
    Record,
    StoreBuilder,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    key_value_store,
)

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}


class Last(Processor):
    """Forwards the value before, which a store has that comes with the class."""

    @staticmethod
    def stores() -> list[StoreBuilder]:
        return [key_value_store("last", **TEXT)]

    def init(self, context: Any) -> None:
        super().init(context)
        self.last = context.state_store("last")

    def process(self, record: Record[str, str]) -> None:
        before = self.last.get(record.key)
        self.last.put(record.key, record.value)
        self.context.forward(record.with_value(f"{before}"))


class Shared:
    """A supplier that gives all its processors the same store."""

    def __init__(self) -> None:
        self._store = key_value_store("last", **TEXT)

    def stores(self) -> list[StoreBuilder]:
        return [self._store]

    def __call__(self) -> Last:
        return Last()


def run(topology: Topology) -> list[tuple[Any, Any]]:
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_key_values([("a", "1"), ("a", "2")])
        assert driver.state_store("last").get("a") == "2"
        return driver.output_topic("out").read_key_values()


@pytest.mark.parametrize("step", ["process", "process_values"])
def test_a_step_adds_and_connects_the_stores_of_its_supplier(step: str) -> None:
    builder = StreamsBuilder()
    getattr(builder.stream("in", **TEXT), step)(Last).to("out", **TEXT)
    topology = builder.build()
    assert "(stores: [last])" in topology.describe()
    assert run(topology) == [("a", "None"), ("a", "1")]


def test_a_topology_by_hand_does_the_same() -> None:
    topology = Topology().add_source("source", ["in"], **TEXT)
    topology.add_processor("last", Last, "source").add_sink("sink", "out", "last", **TEXT)
    assert run(topology) == [("a", "None"), ("a", "1")]


def test_processors_of_one_supplier_share_its_stores_and_run_together() -> None:
    supplier = Shared()
    for _ in range(2):  # The same store may be in several topologies.
        builder = StreamsBuilder()
        builder.stream("in", **TEXT).process(supplier, name="one").to("out", **TEXT)
        builder.stream("other", **TEXT).process(supplier, name="two").to("out2", **TEXT)
        topology = builder.build()
        assert "Sub-topology: 1" not in topology.describe()
        assert run(topology) == [("a", "None"), ("a", "1")]


def test_another_store_of_the_same_name_is_refused() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", **TEXT)
    stream.process(Last)
    stream.process(Last)
    with pytest.raises(TopologyError, match="A different StateStore has already been added"):
        builder.build()
