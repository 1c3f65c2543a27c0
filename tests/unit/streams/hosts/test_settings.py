"""Kafka Streams' keys: read, refused, or named as having no effect."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from moldau.client.errors import ConfigError
from moldau.config.no_effect import reason_for
from moldau.streams import skip_on_error
from moldau.streams.hosts.settings import StreamsSettings, streams_settings
from moldau.streams.hosts.settings_keys import NO_EFFECT, REFUSED, STREAMS_KEYS
from support.reference import PROTOCOL

SOURCES = Path(__file__).parents[4] / "src" / "moldau" / "streams"


def settings(config: dict[str, Any] | None = None, **keywords: Any) -> StreamsSettings:
    given = {"application_id": "app", "bootstrap_servers": "127.0.0.1:9092", **keywords}
    return streams_settings(config, given)


def kafkas_keys() -> dict[str, dict[str, Any]]:
    path = PROTOCOL.parent / "configs" / "streams.json"
    if not path.is_file():
        pytest.skip(f"no reference in {path}")
    return {key["name"]: key for key in json.loads(path.read_text())["configs"]}


def test_every_key_of_kafka_streams_is_known() -> None:
    for name in kafkas_keys():
        settings({name: None} if name not in ("application.id", "bootstrap.servers") else {})


def test_defaults_are_kafkas() -> None:
    # Different on purpose: exactly once, and Java's classes have no meaning here.
    differs = {"processing.guarantee", "state.dir"}
    for name, key in kafkas_keys().items():
        ours = STREAMS_KEYS.get(name)
        if ours is None or ours.required or name in differs or key["type"] == "class":
            continue
        default = tuple(key["default"]) if isinstance(key["default"], list) else key["default"]
        assert ours.default == default, name


def test_every_key_is_read_refused_or_has_no_effect() -> None:
    text = "".join(
        path.read_text() for path in SOURCES.rglob("*.py") if path.name != "settings_keys.py"
    )
    fields = {name: field for field, name in StreamsSettings.KEYS.items()}
    for name in STREAMS_KEYS:
        known = reason_for(name, NO_EFFECT) or name in REFUSED
        read = rf'"{re.escape(name)}"' + (rf"|\.{fields[name]}\b" if name in fields else "")
        assert known or re.search(read, text), f"nothing reads {name}"


def test_commit_interval_depends_on_the_guarantee() -> None:
    assert settings().commit_interval_ms == 100
    assert settings(processing_guarantee="at_least_once").commit_interval_ms == 30_000
    assert settings(commit_interval_ms=7).commit_interval_ms == 7


def test_keys_without_effect_are_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings(log_summary_interval_ms=5)
    assert "log.summary.interval.ms" in caplog.text


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"num.stream.thread": 2}, "Did you mean num.stream.threads"),
        ({"num.stream.threads": 0}, "num.stream.threads"),
        ({"processing.guarantee": "exactly_once"}, "exactly_once_v2"),
        ({"group.id": "mine"}, "group.id is set by the application"),
        ({"consumer.enable.auto.commit": True}, "consumer.enable.auto.commit is set"),
        ({"producer.transactional.id": "mine"}, "producer.transactional.id is set"),
        ({"consumer.linger.ms": 5}, "Unknown configuration consumer.linger.ms"),
        ({"application.server": "here"}, "host:port"),
        ({"dsl.store.format": "PLAIN"}, "dsl.store.format"),
        ({"processing.exception.handler": "no.such.module"}, "cannot be imported"),
    ],
)
def test_wrong_settings_are_explained(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        settings(config)


def test_an_application_needs_an_id() -> None:
    with pytest.raises(ConfigError, match=r"application\.id"):
        streams_settings(None, {"bootstrap_servers": "127.0.0.1:9092"})


def test_settings_reach_the_clients() -> None:
    made = settings(
        {
            "consumer.max.poll.records": 5,
            "restore.consumer.max.poll.records": 6,
            "producer.linger.ms": 7,
            "topic.segment.ms": 8,
            "security.protocol": "SSL",
        },
        fetch_max_wait_ms=9,
        main_consumer_fetch_min_bytes=10,
    )
    main, restore = made.consumer("main"), made.consumer("restore")
    assert (main["max.poll.records"], restore["max.poll.records"]) == (5, 6)
    assert main["fetch.max.wait.ms"] == 9
    assert main["fetch.min.bytes"] == 10
    assert "fetch.min.bytes" not in restore
    assert main["isolation.level"] == "read_committed"
    producer = made.producer("p", "txn")
    assert producer["linger.ms"] == 7
    assert producer["transaction.timeout.ms"] == 10_000
    assert made.admin("a")["security.protocol"] == "SSL"
    assert made.topic_configs == {"segment.ms": "8"}


def test_handlers_by_kafkas_names() -> None:
    made = settings(
        {
            "deserialization.exception.handler": (
                "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"
            ),
            "errors.dead.letter.queue.topic.name": "errors",
        }
    )
    assert made.handlers.deserialization is skip_on_error
    assert made.handlers.dead_letter_topic == "errors"
