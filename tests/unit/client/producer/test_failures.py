"""What is said about records that could not be sent."""

from __future__ import annotations

from moldau.client.errors import KafkaError, KafkaTimeoutError
from moldau.client.metrics import Metrics, ProducerMetrics
from moldau.client.producer.failures import FailedSends
from moldau.client.topics import TopicPartition

OUT = TopicPartition("out", 0)


def errors(metrics: Metrics) -> float:
    return next(
        metric.value
        for name, metric in metrics.metrics().items()
        if name.name == "record-error-total" and name.group == "producer-metrics"
    )


def test_failures_are_counted_and_told() -> None:
    metrics = Metrics()
    failures = FailedSends(ProducerMetrics(metrics))
    failures.add(OUT, 3, KafkaTimeoutError("nobody listens yet"))
    told: list[tuple[TopicPartition, KafkaError]] = []
    failures.listener = lambda where, error: told.append((where, error))
    error = KafkaTimeoutError("the broker is away")
    failures.add(OUT, 2, error)
    assert told == [(OUT, error)]
    assert errors(metrics) == 5


def test_a_listener_that_fails_does_not_stop_the_producer() -> None:
    def listener(where: TopicPartition, error: KafkaError) -> None:
        raise ValueError(where)

    metrics = Metrics()
    failures = FailedSends(ProducerMetrics(metrics))
    failures.listener = listener
    failures.add(OUT, 1, KafkaTimeoutError("the broker is away"))
    assert errors(metrics) == 1
