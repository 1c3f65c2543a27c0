"""A processor that a test calls by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.streams import (
    CapturedForward,
    MockProcessorContext,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsError,
    key_value_store,
)


class Totals(Processor):
    """Adds up values by key, and lets a flush pass them on."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.totals = context.state_store("totals")
        self.flushing = context.schedule(60_000, PunctuationType.WALL_CLOCK_TIME, self.flush)
        self.sales = context.metrics.add_rate_total_sensor("shop", "prague", "sale")

    def process(self, record: Record[str, int]) -> None:
        self.sales.record()
        if record.value < 0:
            self.context.forward(record, "refunds")
            self.flushing.cancel()
            return
        total = (self.totals.get(record.key) or 0) + record.value
        self.totals.put(record.key, total)
        if total > 100:
            self.context.commit()

    def flush(self, now_ms: int) -> None:
        for key, total in self.totals.all():
            self.context.forward(Record(key, total, now_ms))


def started() -> tuple[Totals, MockProcessorContext]:
    context = MockProcessorContext(config={"shop.name": "prague", "other": 1})
    context.add_state_store(key_value_store("totals", key_serde="string", value_serde="long"))
    processor = Totals()
    processor.init(context)
    return processor, context


def test_what_is_forwarded_is_seen() -> None:
    processor, context = started()
    processor.process(Record("a", 2, 0))
    processor.process(Record("a", 3, 1))
    assert context.state_store("totals").get("a") == 5
    refund = Record("a", -3, 2)
    processor.process(refund)
    (punctuator,) = context.scheduled_punctuators()
    assert (punctuator.interval_ms, punctuator.kind) == (60_000, PunctuationType.WALL_CLOCK_TIME)
    assert punctuator.cancelled
    punctuator.callback(7)
    everywhere = CapturedForward(Record("a", 5, 7))
    assert context.forwarded() == [CapturedForward(refund, "refunds"), everywhere]
    assert context.forwarded("refunds") == context.forwarded()
    assert context.forwarded("totals") == [everywhere]
    context.reset_forwards()
    assert context.forwarded() == []


def test_commits() -> None:
    processor, context = started()
    processor.process(Record("a", 100, 0))
    assert not context.committed
    processor.process(Record("a", 1, 0))
    assert context.committed
    context.reset_commit()
    assert not context.committed


def test_metrics_of_its_own() -> None:
    processor, context = started()
    for _ in range(3):
        processor.process(Record("a", 1, 0))
    found = {name.name: name for name in context.metrics.metrics()}
    assert found["sale-total"].group == "stream-shop-metrics"
    assert found["sale-total"].tags == {"thread-id": "MainThread", "shop-id": "prague"}
    assert context.metrics.metrics()[found["sale-total"]].value == 3
    context.metrics.remove_sensor(processor.sales)
    assert found["sale-total"] not in context.metrics.metrics()


def test_times_are_set_before_they_are_asked_for() -> None:
    _, context = started()
    with pytest.raises(StreamsError, match="Stream time must be set"):
        context.current_stream_time_ms()
    with pytest.raises(StreamsError, match="System time must be set"):
        context.current_system_time_ms()
    context.set_current_stream_time_ms(5)
    context.set_current_system_time_ms(7)
    assert (context.current_stream_time_ms(), context.current_system_time_ms()) == (5, 7)


def test_what_is_around_the_processor(tmp_path: Path) -> None:
    context = MockProcessorContext(
        application_id="sales",
        task_id="1_2",
        config={"shop.name": "prague"},
        default_key_serde="string",
        state_dir=tmp_path,
    )
    assert (context.application_id, context.task_id, context.state_dir) == (
        "sales",
        "1_2",
        tmp_path,
    )
    assert context.app_configs["application.id"] == "sales"
    assert context.app_configs_with_prefix("shop.") == {"name": "prague"}
    assert context.key_serde.serialize("t", "a") == b"a"
    assert context.value_serde.serialize("t", b"a") == b"a"
    context.set_record_metadata("orders", 3, 9)
    where = context.record_context
    assert (where.topic, where.partition, where.offset) == ("orders", 3, 9)
    assert context.state_store("none") is None
