"""What clients push is decoded and kept, within bounds."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.broker import telemetry_store
from moldau.broker.machine.telemetry import Client, Payload
from moldau.broker.telemetry_store import ClientMetrics
from moldau.metrics import Registry, prometheus
from moldau.metrics.otlp import Point, encode_metrics
from moldau.metrics.parsing import parse
from moldau.wire.compression import Compression, compress
from moldau.wire.errors import ApiError

WHO = Client("shop", "apache-kafka-java", "4.3.0", "127.0.0.1", 1234)


def push(number: int, data: bytes, codec: Compression = Compression.NONE) -> Payload:
    return Payload(UUID(int=number), WHO, 1_000, False, int(codec), data)


def metrics(**values: float) -> bytes:
    points = [Point(f"org.apache.kafka.{name}", {}, value, 1) for name, value in values.items()]
    return encode_metrics(points, {})


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD, Compression.GZIP])
def test_the_newest_values_count(codec: Compression) -> None:
    store = ClientMetrics()
    for value in (1.0, 2.0):
        data = metrics(rate=value)
        store.receive(push(7, data if codec is Compression.NONE else bytes(compress(codec, data)),
                           codec))  # fmt: skip
    (client,) = store.shown()
    assert client["client_id"] == "shop"
    assert client["values"] == [{"name": "org.apache.kafka.rate", "tags": {}, "value": 2.0}]
    ((spec, values, reading),) = store.collect()
    assert spec.mbean(values).startswith("kafka:type=client,name=rate,client_instance_id=")
    assert reading == 2.0


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(ApiError, match="cannot be read"):
        ClientMetrics().receive(push(1, b"\xff\xff"))


def test_a_clients_words_do_not_spoil_the_page() -> None:
    store = ClientMetrics()
    tags = {"a-b": "1", "a_b": "2", "0": "3", "": "4", "client_id": "somebody else", "x{": 'q"\n'}
    point = Point('evil\n# TYPE x counter\nprocess_open_fds{"', tags, 1.0, 1)
    store.receive(push(1, encode_metrics([point], {})))
    registry = Registry(lambda: 0.0)
    registry.collector(store.collect)
    text = "".join(prometheus.lines(registry.collect()))
    assert [line.split("{")[0] for line in text.splitlines()[2:]] == [
        "kafka_client_evil_type_x_counter_process_open_fds_"
    ]
    (line,) = parse(text)
    labels = [name for name, _ in line.labels]
    assert len(labels) == len(set(labels))
    assert line.label("client_id") == "shop"


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry_store, "CLIENTS_MAX", 2)
    monkeypatch.setattr(telemetry_store, "VALUES_MAX", 3)
    store = ClientMetrics()
    for number in (1, 2, 1, 3):
        store.receive(push(number, metrics(**{f"m{number}{each}": 1.0 for each in range(5)})))
    assert len(store) == 2
    assert [len(client["values"]) for client in store.shown()] == [3, 3]
