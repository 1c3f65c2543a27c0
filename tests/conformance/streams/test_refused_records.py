"""Records that cannot be sent, and sources without a committed offset: the application decides."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.client import Consumer, TopicPartition
from moldau.client.errors import RecordTooLargeError
from moldau.streams import (
    KafkaStreams,
    Processor,
    ProcessorContext,
    Record,
    State,
    StreamsBuilder,
    StreamsError,
    key_value_store,
    skip_on_error,
)
from support.streams_embedded import Stage
from support.waiting import eventually

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}


def streams(stage: Stage, builder: StreamsBuilder, name: str, **settings: Any) -> KafkaStreams:
    return KafkaStreams(
        builder.build(),
        application_id=name,
        bootstrap_servers=stage.bootstrap,
        state_dir=str(stage.folder / name),
        commit_interval_ms=50,
        **settings,
    )


def rows(stage: Stage, topic: str, count: int) -> list[tuple[str, str]]:
    """Keys and values, once there are so many."""
    found: list[tuple[str, str]] = []
    with Consumer(
        bootstrap_servers=stage.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def read() -> bool:
            found.extend((each.key.decode(), each.value.decode()) for each in consumer.poll(0.2))
            return len(found) >= count

        eventually(read, what=f"{count} records in {topic}")
    return found


def test_a_handler_skips_records_that_are_too_large(stage: Stage) -> None:
    name = stage.new_id()
    stage.create([f"{name}-in", f"{name}-out", f"{name}-errors"])
    asked = []

    def skip(topic: str, record: Record[Any, Any], error: Exception) -> str:
        asked.append((topic, record.key, len(record.value), type(error)))
        return "continue"

    builder = StreamsBuilder()
    stream = builder.stream(f"{name}-in", **TEXT)
    stream.map_values(lambda value: value * 100).to(f"{name}-out", **TEXT)
    made = streams(
        stage,
        builder,
        name,
        processing_guarantee="at_least_once",
        producer_max_request_size=2_000,
        production_exception_handler=skip,
        errors_dead_letter_queue_topic_name=f"{name}-errors",
    )
    with made:
        for key, value in (("a", "x"), ("b", "x" * 50), ("c", "y")):
            stage.producer.send(f"{name}-in", value.encode(), key.encode())
        assert [key for key, _ in rows(stage, f"{name}-out", 2)] == ["a", "c"]
        assert asked == [(f"{name}-out", b"b", 5_000, RecordTooLargeError)]
        assert rows(stage, f"{name}-errors", 1) == [("b", "x" * 50)]
        stage.wait_until_read(made, [f"{name}-in"])
    assert made.state is State.NOT_RUNNING
    assert made.error is None


def test_a_source_begins_where_its_policy_says(stage: Stage) -> None:
    name = stage.new_id()
    stage.create([f"{name}-in", f"{name}-out"])
    now_ms = time.time_ns() // 1_000_000
    for hours in (3, 2, 0):
        value = f"{hours} h ago".encode()
        stage.producer.send(f"{name}-in", value, b"k", timestamp=now_ms - hours * 3_600_000)
    stage.producer.flush()
    builder = StreamsBuilder()
    builder.stream(f"{name}-in", offset_reset="by_duration:PT2H30M", **TEXT).to(
        f"{name}-out", **TEXT
    )
    with streams(stage, builder, name):
        found = rows(stage, f"{name}-out", 2)
    assert [value for _, value in found] == ["2 h ago", "0 h ago"]

    builder = StreamsBuilder()
    builder.stream(f"{name}-in", offset_reset="none", **TEXT).to(f"{name}-out", **TEXT)
    with streams(stage, builder, f"{name}-none") as made:
        eventually(lambda: made.state is State.ERROR, what="the application stops")
    assert isinstance(made.error, StreamsError)
    assert "reset policy none" in str(made.error)


class OnlyDigits(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        assert context.key_serde.serialize("digits", "a") == b"a"
        self.puts = context.metrics.add_rate_total_sensor("digits", "all", "put")

    def process(self, record: Record[str, str]) -> None:
        self.context.state_store("digits").put(record.key, str(int(record.value)))
        self.puts.record()


def test_errors_of_a_global_store_are_handled_where_that_is_asked_for(stage: Stage) -> None:
    name = stage.new_id()
    stage.create([f"{name}-global", f"{name}-in", f"{name}-errors"])
    for key, value in ((b"a", b"x"), (b"b", b"2"), (b"\xff", b"3")):
        stage.producer.send(f"{name}-global", value, key)
    stage.producer.flush()

    def made(number: int, **settings: Any) -> KafkaStreams:
        builder = StreamsBuilder()
        store = key_value_store("digits", key_serde="string", value_serde="string")
        builder.add_global_store(store, f"{name}-global", OnlyDigits, **TEXT)
        builder.stream(f"{name}-in", **TEXT).foreach(lambda key, value: None)
        return streams(
            stage,
            builder,
            f"{name}-{number}",
            default_key_serde="string",
            processing_exception_handler=skip_on_error,
            deserialization_exception_handler=skip_on_error,
            errors_dead_letter_queue_topic_name=f"{name}-errors",
            **settings,
        )

    with made(1, processing_exception_handler_global_enabled=True) as running:
        assert running.wait_for(State.RUNNING, 30), running.error
        assert list(running.store("digits").all()) == [("b", "2")]
        puts = [each.value for name, each in running.metrics().items() if name.name == "put-total"]
        assert puts == [1.0]
    with pytest.raises(StreamsError, match="Exception caught in process"), made(2):
        pass
