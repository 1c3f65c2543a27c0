"""OTLP bytes, as OpenTelemetry's own classes read them (checked with those in Kafka's jar)."""

from __future__ import annotations

import pytest

from moldau.metrics.otlp import Point, encode_metrics, telemetry_name


@pytest.mark.parametrize(
    ("group", "name", "told"),
    [
        ("producer-metrics", "batch-size-avg", "org.apache.kafka.producer.batch.size.avg"),
        ("producer-topic-metrics", "record-send-total",
         "org.apache.kafka.producer.topic.record.send.total"),
        ("app-info", "start-time-ms", "org.apache.kafka.app.info.start.time.ms"),
    ],
)  # fmt: skip
def test_names(group: str, name: str, told: str) -> None:
    assert telemetry_name(group, name) == told


def message(number: int, *parts: str) -> str:
    """A field that holds a message, in hexadecimal digits."""
    body = "".join(parts)
    return f"{number << 3 | 2:02x}{len(body) // 2:02x}{body}"


def text(number: int, value: str) -> str:
    return message(number, value.encode().hex())


def attribute(number: int, key: str, value: str) -> str:
    return message(number, text(1, key), message(2, text(1, value)))


ONE_SECOND = "00ca9a3b00000000"
TWO_SECONDS = "0094357700000000"


def encoded(*points: Point) -> str:
    return encode_metrics(points, {"client_rack": "r"}).hex()


def wrapped(metric: str) -> str:
    return message(1, message(1, attribute(1, "client_rack", "r")), message(2, message(2, metric)))


def test_gauges_of_both_kinds_of_numbers() -> None:
    point = Point("g", {"client-id": "left out", "topic-name": "t"}, 1.5, 1000)
    data = f"19{ONE_SECOND}21000000000000f83f" + attribute(7, "topic_name", "t")
    assert encoded(point) == wrapped(text(1, "g") + message(5, message(1, data)))
    data = f"19{ONE_SECOND}31ffffffffffffffff"
    assert encoded(Point("g", {}, -1, 1000)) == wrapped(text(1, "g") + message(5, message(1, data)))


@pytest.mark.parametrize(("is_delta", "temporality"), [(False, "02"), (True, "01")])
def test_sums_tell_since_when(is_delta: bool, temporality: str) -> None:
    point = Point("s", {}, 3.0, 2000, 1000, is_delta)
    data = f"11{ONE_SECOND}19{TWO_SECONDS}210000000000000840"
    whole = message(1, data) + f"10{temporality}1801"
    assert encoded(point) == wrapped(text(1, "s") + message(7, whole))


def test_long_parts_have_longer_lengths() -> None:
    whole = encode_metrics([Point("n" * 300, {}, 1, 1)], {})
    assert b"n" * 300 in whole
    assert whole[0] == 0x0A
    # Two bytes of a varint, seven bits each, lower ones first.
    assert whole[1] & 0x7F | whole[2] << 7 == len(whole) - 3
