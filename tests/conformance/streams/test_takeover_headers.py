"""Stores with headers are taken over from Kafka Streams (Java) by their changelogs, and given back.

And where only the setting changes: by what the run before has left on disk.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

from moldau.streams import (
    KafkaStreams,
    Materialized,
    SessionWindows,
    State,
    StreamsBuilder,
    TimestampedKeyQuery,
    Topology,
    TopologyTestDriver,
)
from moldau.streams.errors import InvalidStateStoreError
from moldau.streams.hosts.store_queries import StateQueryRequest
from support.processes import kafka_missing
from support.streams_embedded import Stage
from support.streams_headers import LONG_TIME, Step, build
from support.streams_takeover import java_instance, python_instance

TRACE = (("trace", b"7"), ("none", None))
OTHER = (("trace", b"8"),)
#: Each part is of another run: what a part finds was kept by those before it.
PARTS: tuple[tuple[Step, ...], ...] = (
    (("a", "b1", 10, TRACE), ("c", "b2", 20, ()), ("c", None, 21, OTHER), ("d", "b3", 22, OTHER)),
    (("a", "a1", 60, OTHER), ("d", None, 61, ()), ("c", "a2", 62, TRACE)),
    (("a", "a3", 110, ()), ("d", "a4", 111, TRACE), ("c", None, 120, ())),
)


def expected() -> list[list[str | None]]:
    """What the processor says in each part, when one run processes all."""
    found = []
    with TopologyTestDriver(build()) as driver:
        for part in PARTS:
            for key, value, time, headers in part:
                driver.input_topic("in").pipe_input(key, value, timestamp=time, headers=headers)
            found.append(driver.output_topic("out").read_values())
    return found


def in_java(stage: Stage, prefix: str) -> AbstractContextManager[None]:
    return java_instance("StreamsHeaders.java", stage, prefix)


def in_python(stage: Stage, prefix: str) -> AbstractContextManager[None]:
    return python_instance(build(prefix), stage, prefix)


def send(stage: Stage, topic: str, part: tuple[Step, ...]) -> None:
    for key, value, time, headers in part:
        data = None if value is None else value.encode()
        stage.producer.send(topic, data, key.encode(), timestamp=time, headers=list(headers))
    stage.producer.flush()


@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
@pytest.mark.long("three virtual machines that join a group each")
def test_each_finds_the_headers_of_the_other(stage: Stage) -> None:
    parts = expected()
    assert any("b1@10[trace=x37,none=-]" in str(text) for text in parts[1])
    for order in ((in_java, in_python, in_java), (in_python, in_java, in_python)):
        prefix = f"{stage.new_id()}-"
        stage.create([f"{prefix}in", f"{prefix}out"])
        wanted: list[Any] = []
        for part, texts, language in zip(PARTS, parts, order, strict=True):
            send(stage, f"{prefix}in", part)
            wanted += texts
            with language(stage, prefix):
                rows = stage.outputs(build(prefix), [f"{prefix}out"], len(wanted))
            assert [row["value"] for row in rows[f"{prefix}out"]] == wanted, language


def counting(prefix: str) -> Topology:
    builder = StreamsBuilder()
    text: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
    grouped = builder.stream(f"{prefix}in", **text).group_by_key()
    grouped.count(store="counts").to_stream().to(
        f"{prefix}out", key_serde="string", value_serde="long"
    )
    sessions = Materialized(name="sessions", retention=LONG_TIME)
    grouped.windowed_by(SessionWindows(inactivity_gap=100)).count(store=sessions)
    return builder.build()


def test_the_setting_changes_between_two_runs(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}in", f"{prefix}out"])
    topology = counting(prefix)

    def instance(chosen: str) -> KafkaStreams:
        return KafkaStreams(
            topology,
            application_id=f"{prefix}app",
            bootstrap_servers=stage.bootstrap,
            state_dir=str(stage.folder / f"{prefix}state"),
            dsl_store_format=chosen,
        )

    for number, chosen in enumerate(("DEFAULT", "HEADERS", "HEADERS", "DEFAULT"), start=1):
        if number == 4:
            # The way back needs the state again, from the changelog.
            with instance(chosen) as made:
                assert made.wait_for(State.ERROR, 30)
                assert "has headers on disk" in str(made.error)
            instance(chosen).clean_up()
        send(stage, f"{prefix}in", (("a", "x", 10 * number, TRACE),))
        with instance(chosen) as made:
            assert made.wait_for(State.RUNNING, 30), made.error
            rows = stage.outputs(topology, [f"{prefix}out"], number)[f"{prefix}out"]
            assert [row["value"] for row in rows] == list(range(1, number + 1))
            assert made.store("counts").get("a") == (number, 10 * number)
            [(session, count)] = made.store("sessions").find_sessions("a", 0, 1000)
            assert (session.window, count) == ((10, 10 * number), number)
            query = StateQueryRequest(store="counts", query=TimestampedKeyQuery("a"))
            found = made.query(query).only_partition_result
            assert found is not None
            assert found.result == (number, 10 * number)
            with_headers = made.store("counts", headers=True)
            if chosen == "HEADERS":
                assert with_headers.get("a") == (number, 10 * number, ())
            else:
                with pytest.raises(InvalidStateStoreError, match="counts has no headers"):
                    with_headers.get("a")
