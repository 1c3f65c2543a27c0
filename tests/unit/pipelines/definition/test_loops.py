"""A pipeline whose sink is one of its own sources is refused, unless its user asks for it."""

from __future__ import annotations

import pytest

from moldau.pipelines import DefinitionError, Pipeline, Topic
from moldau.pipelines.definition.pipeline import loads
from moldau.pipelines.definition.topic_options import sink_options


def definition(source: str, sink: str = "{topic: orders}", more: str = "") -> Pipeline:
    return loads(f"name: p\nsource: {source}\nsink: {sink}\n{more}", file="p.yaml")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{topic: orders, format: string}", id="the topic"),
        pytest.param("{topics: [payments, orders], format: string}", id="one of several"),
        pytest.param("{pattern: 'ord.*', format: string}", id="a pattern"),
        pytest.param("{assign: {orders: [0, 1]}, format: string}", id="partitions"),
    ],
)
def test_a_sink_that_is_also_the_source_is_refused(source: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        definition(source)
    (mistake,) = caught.value.mistakes
    assert "sink: topic 'orders' is also read by source" in str(mistake)
    assert "allowLoop: true" in str(mistake)
    with pytest.raises(DefinitionError, match="dead_letter: is also the source"):
        definition(source, "{topic: results}", "dead_letter: orders\n")


def test_the_source_is_named_if_there_are_several() -> None:
    text = (
        "name: p\nsources:\n  a: {topic: a, format: string}\n  b: {topic: b, format: string}\n"
        "steps:\n  - sql: SELECT * FROM a JOIN b USING (value)\nsink: {topic: b}\n"
    )
    with pytest.raises(DefinitionError, match=r"is also read by sources\.b"):
        loads(text)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{topic: orders2, format: string}", id="another topic"),
        pytest.param("{pattern: 'ord', format: string}", id="only a part of its name"),
        pytest.param("{assign: {orders2: [0]}, format: string}", id="partitions of another"),
        pytest.param("{json: orders, schema: id INT}", id="a folder of the same name"),
    ],
)
def test_other_sources_are_accepted(source: str) -> None:
    definition(source)


def test_a_loop_that_is_asked_for_is_accepted_and_spark_is_not_given_the_option() -> None:
    source = "{topic: orders, format: string}"
    made = definition(source, "{topic: orders, allowLoop: true}")
    assert Pipeline.from_json(made.to_json()) == made
    assert isinstance(made.sink, Topic)
    assert "allowLoop" not in sink_options(made.sink, {}, bootstrap="b:1")
    with pytest.raises(DefinitionError, match="is also read by"):
        definition(source, "{topic: orders, allowLoop: false}")
    with pytest.raises(DefinitionError, match="allowLoop: expected true or false, got 'yess'"):
        definition("{topic: other, format: string}", "{topic: orders, allowLoop: yess}")
