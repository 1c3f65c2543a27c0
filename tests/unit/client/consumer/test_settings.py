"""Which settings a consumer takes together."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client.consumer.machine.positions import ResetKind, ResetStrategy
from moldau.client.consumer.settings import ConsumerSettings, consumer_settings
from moldau.client.errors import ConfigError


def settings(**given: Any) -> ConsumerSettings:
    return consumer_settings({"bootstrap.servers": "a:1"}, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group_protocol": "consumer", "session_timeout_ms": 10}, "session.timeout.ms cannot be"),
        (
            {
                "group_protocol": "consumer",
                "heartbeat_interval_ms": 3,
                "partition_assignment_strategy": "range",
            },
            "partition.assignment.strategy, heartbeat.interval.ms cannot be set when "
            "group.protocol=CONSUMER",
        ),
        ({"group_remote_assignor": "uniform"}, "cannot be set when group.protocol=CLASSIC"),
        ({"enable_auto_commit": True}, "enable.auto.commit cannot be set to true"),
        ({"group_id": " "}, "group.id"),
        ({"auto_offset_reset": "by_duration:soon"}, "auto.offset.reset"),
        ({"isolation_level": "some"}, "isolation.level"),
        ({"max_poll_records": 0}, "max.poll.records"),
        ({"max_poll_recrods": 5}, "max_poll_records"),
        ({"security_protocol": "nonsense"}, "security.protocol"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**given)
    assert message in str(caught.value)


def test_defaults_are_kafkas() -> None:
    found = settings(group_id="g")
    assert found.enable_auto_commit
    assert found.auto_commit_interval_ms == 5000
    assert found.auto_offset_reset == ResetStrategy(ResetKind.LATEST)
    assert (found.fetch_min_bytes, found.fetch_max_wait_ms) == (1, 500)
    assert (found.fetch_max_bytes, found.max_partition_fetch_bytes) == (52_428_800, 1_048_576)
    assert (found.max_poll_records, found.max_poll_interval_ms) == (500, 300_000)
    assert not found.read_committed
    assert not found.is_consumer_protocol
    assert found.client_id.startswith("consumer-g-")


def test_without_a_group_nothing_is_committed_automatically() -> None:
    assert not settings().enable_auto_commit
    assert not settings(enable_auto_commit=False).enable_auto_commit
    assert settings().client_id.startswith("consumer-null-")


def test_reset_strategies() -> None:
    assert settings(auto_offset_reset="by_duration:PT1H").auto_offset_reset == ResetStrategy(
        ResetKind.BY_DURATION, 3_600_000
    )
    assert settings(auto_offset_reset="none").auto_offset_reset.kind is ResetKind.NONE


def test_the_consumer_protocol() -> None:
    found = settings(group_id="g", group_protocol="Consumer", group_remote_assignor="range")
    assert found.is_consumer_protocol
