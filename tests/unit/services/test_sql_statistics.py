"""Messages per topic as DESCRIBE EXTENDED shows them."""

from __future__ import annotations

from moldau.services.sql.machine.statistics import Counted, TopicStatistics, shown

_READ = Counted("consumer-total-messages", "orders")
_BYTES = Counted("consumer-total-bytes", "orders")
_WRITTEN = Counted("total-messages", "big")


def _values(statistics: TopicStatistics, topic: str, now_ms: int) -> dict[str, float]:
    return {each.name: each.value for each in statistics.stats(topic, now_ms)}


def test_totals_rates_and_the_time_of_the_last_message() -> None:
    statistics = TopicStatistics()
    statistics.take("q", {"a": (_READ, 0), "b": (_BYTES, 0), "c": (_WRITTEN, 0)}, 10_000)
    statistics.take("q", {"a": (_READ, 40), "b": (_BYTES, 400), "c": (_WRITTEN, 7)}, 14_000)
    statistics.take("q", {"a": (_READ, 40), "b": (_BYTES, 400), "c": (_WRITTEN, 7)}, 20_000)
    assert _values(statistics, "orders", 20_000) == {
        "consumer-messages-per-sec": 4.0,
        "consumer-total-messages": 40,
        "consumer-total-bytes": 400,
    }
    assert _values(statistics, "big", 20_000) == {"messages-per-sec": 0.7, "total-messages": 7}
    assert {each.timestamp_ms for each in statistics.stats("orders", 20_000)} == {14_000}
    assert statistics.stats("other", 20_000) == []


def test_a_rate_forgets_what_was_long_ago() -> None:
    statistics = TopicStatistics()
    for second in range(60):
        statistics.take("q", {"a": (_READ, min(second, 10) * 100)}, second * 1000)
    assert _values(statistics, "orders", 59_000)["consumer-messages-per-sec"] == 0
    assert _values(statistics, "orders", 500_000)["consumer-messages-per-sec"] == 0


def test_a_metric_that_starts_again_goes_on() -> None:
    statistics = TopicStatistics()
    statistics.take("q", {"task 0": (_READ, 50)}, 1000)
    # The task has moved here and there: its metric is another one, or starts at 0.
    statistics.take("q", {"task 0": (_READ, 3), "task 1": (_READ, 4)}, 2000)
    statistics.forget("q")
    statistics.take("q", {"task 0": (_READ, 5)}, 3000)
    statistics.take("other query", {"task 0": (_READ, 1)}, 3000)
    assert _values(statistics, "orders", 3000)["consumer-total-messages"] == 50 + 3 + 4 + 5 + 1


def test_errors_and_texts() -> None:
    statistics = TopicStatistics()
    assert shown(statistics.errors("orders", 0), "last-failed") == ""
    statistics.failed("orders", 1_000)
    statistics.failed("orders", 2_000)
    text = shown(statistics.errors("orders", 4_000), "last-failed")
    assert " ".join(text.split()) == (
        "consumer-failed-messages-per-sec: 0.67 consumer-failed-messages: 2 "
        "last-failed: 1970-01-01T00:00:02.000Z"
    )
    statistics.take("q", {"a": (_READ, 0)}, 1000)
    assert shown(statistics.stats("orders", 1000), "last-message").endswith(
        "last-message:       n/a"
    )
