"""The two requests of KIP-714 as a client sends them."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.broker.handlers.get_telemetry_subscriptions import GetTelemetrySubscriptionsHandler
from moldau.broker.handlers.push_telemetry import DroppedTelemetry, PushTelemetryHandler
from moldau.broker.machine.telemetry import ClientTelemetry, Payload
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)


class Broker:
    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.received: list[Payload] = []
        self.telemetry = ClientTelemetry(telemetry_max_bytes=1_048_576)
        self.telemetry.update_subscription(
            "basic",
            {"metrics": "org.apache.kafka.", "interval.ms": "5000", "match": "client_id=app"},
        )
        self.get = GetTelemetrySubscriptionsHandler(
            self.telemetry, elapsed_ms=lambda: self.now_ms, random_bytes=lambda size: b"r" * size
        ).handle
        self.push = PushTelemetryHandler(
            self.telemetry, elapsed_ms=lambda: self.now_ms, receive=self.received.append
        ).handle


def context(key: ApiKey) -> RequestContext:
    connection = ConnectionInfo(client_host="10.0.0.9", client_port=4444)
    connection.client_software_name = "tester"
    return RequestContext(key, 0, client_id="app", client_host="10.0.0.9", connection=connection)


def subscribe(broker: Broker) -> GetTelemetrySubscriptionsResponse:
    return broker.get(
        context(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS), GetTelemetrySubscriptionsRequest()
    )


def push_of(granted: GetTelemetrySubscriptionsResponse) -> PushTelemetryRequest:
    return PushTelemetryRequest(
        client_instance_id=granted.client_instance_id,
        subscription_id=granted.subscription_id,
        compression_type=4,
        metrics=b"otlp",
    )


def test_subscribe_and_push() -> None:
    broker = Broker()
    granted = subscribe(broker)
    assert granted.client_instance_id == UUID(bytes=b"r" * 16, version=4)
    assert granted.requested_metrics == ["org.apache.kafka."]
    assert granted.push_interval_ms == 5000
    assert granted.accepted_compression_types == [4, 3, 1, 2]
    assert granted.telemetry_max_bytes == 1_048_576
    assert granted.delta_temporality is True
    assert broker.push(context(ApiKey.PUSH_TELEMETRY), push_of(granted)) == PushTelemetryResponse()
    (payload,) = broker.received
    assert payload.metrics == b"otlp"
    assert payload.client_instance_id == granted.client_instance_id
    assert (payload.client.software_name, payload.client.source_address) == ("tester", "10.0.0.9")
    assert payload.client.source_port == 4444


def test_refusals_reach_the_dispatcher_with_their_code() -> None:
    broker = Broker()
    request = push_of(subscribe(broker))
    request.subscription_id += 1
    with pytest.raises(ApiError) as raised:
        broker.push(context(ApiKey.PUSH_TELEMETRY), request)
    assert raised.value.code is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert broker.received == []


def test_a_failing_receiver_is_reported_as_a_bad_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker()

    def fail(payload: Payload) -> None:
        raise OSError("the collector is gone")

    handler = PushTelemetryHandler(broker.telemetry, elapsed_ms=lambda: 0, receive=fail)
    with pytest.raises(ApiError) as raised:
        handler.handle(context(ApiKey.PUSH_TELEMETRY), push_of(subscribe(broker)))
    assert raised.value.code is ErrorCode.INVALID_RECORD
    assert "the collector is gone" in caplog.text


def test_unwanted_metrics_are_counted() -> None:
    broker = Broker()
    dropped = DroppedTelemetry()
    handler = PushTelemetryHandler(broker.telemetry, elapsed_ms=lambda: 0, receive=dropped)
    handler.handle(context(ApiKey.PUSH_TELEMETRY), push_of(subscribe(broker)))
    assert (dropped.payloads, dropped.bytes) == (1, 4)
