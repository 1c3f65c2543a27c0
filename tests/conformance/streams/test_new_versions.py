"""A program changes: names keep its state, or it reprocesses its input beside the old version."""

from __future__ import annotations

from typing import Any

from moldau.streams import KafkaStreams, StreamsBuilder, Topology
from support.streams_counting import updates
from support.streams_embedded import Stage

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}


def counting(prefix: str, output: str, *, has_new_steps: bool = False) -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(f"{prefix}text", **TEXT)
    if has_new_steps:
        # They take numbers, so that generated names behind them would be others.
        words = words.filter_not(lambda key, word: word == "the").map_values(str.lower)
    grouped = words.group_by(lambda key, word: word, name="by-word", **TEXT)
    counts = grouped.count(store="counts")
    counts.to_stream().to(prefix + output, key_serde="string", value_serde="long")
    return builder.build()


def running(
    stage: Stage, topology: Topology, name: str, config: dict[str, Any] | None = None
) -> KafkaStreams:
    return KafkaStreams(
        topology,
        config,
        application_id=name,
        bootstrap_servers=stage.bootstrap,
        state_dir=str(stage.folder / name),
    )


def send(stage: Stage, topic: str, *words: str) -> None:
    for word in words:
        stage.producer.send(topic, word.encode())
    stage.producer.flush()


def test_a_version_with_more_steps_goes_on_with_the_state_of_named_operators(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"])
    named = {"ensure.explicit.internal.resource.naming": True}
    send(stage, f"{prefix}text", "river", "the", "river")
    with running(stage, counting(prefix, "counts"), f"{prefix}app", config=named):
        updates(stage.bootstrap, f"{prefix}counts", 1, 3)
    newer = counting(prefix, "counts", has_new_steps=True)
    send(stage, f"{prefix}text", "RIVER", "the")
    with running(stage, newer, f"{prefix}app", config=named):
        found = updates(stage.bootstrap, f"{prefix}counts", 1, 4)
    assert {word: counts[-1] for word, counts in found.items()} == {"river": 3, "the": 1}


def test_a_version_reprocesses_its_input_beside_the_running_one(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts", f"{prefix}counts-2"])
    send(stage, f"{prefix}text", "river", "the", "River")
    with running(stage, counting(prefix, "counts"), f"{prefix}app"):
        updates(stage.bootstrap, f"{prefix}counts", 1, 3)
        newer = counting(prefix, "counts-2", has_new_steps=True)
        with running(stage, newer, f"{prefix}app-2"):
            updates(stage.bootstrap, f"{prefix}counts-2", 1, 2)
            send(stage, f"{prefix}text", "river")
            old = updates(stage.bootstrap, f"{prefix}counts", 1, 4)
            new = updates(stage.bootstrap, f"{prefix}counts-2", 1, 3)
    assert {word: counts[-1] for word, counts in old.items()} == {"river": 2, "the": 1, "River": 1}
    assert {word: counts[-1] for word, counts in new.items()} == {"river": 3}
