"""Which settings go together."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client.errors import ConfigError
from moldau.client.producer.machine.partitioners import RoundRobinPartitioner
from moldau.client.producer.settings import ProducerSettings, producer_settings
from moldau.wire.compression import Compression


def settings(config: dict[str, Any] | None = None, **arguments: Any) -> ProducerSettings:
    return producer_settings({"bootstrap.servers": "a:1", **(config or {})}, arguments)


def test_defaults_are_kafkas() -> None:
    found = settings()
    assert (found.acks, found.enable_idempotence, found.retries) == (-1, True, 2**31 - 1)
    assert (found.batch_size, found.linger_ms, found.max_in_flight) == (16384, 5, 5)
    assert (found.buffer_memory, found.max_block_ms) == (33_554_432, 60_000)
    assert (found.delivery_timeout_ms, found.request_timeout_ms) == (120_000, 30_000)
    assert (found.compression, found.max_request_size) == (Compression.NONE, 1_048_576)
    assert (found.transactional_id, found.transaction_timeout_ms) == (None, 60_000)
    assert (found.partitioner, found.partitioner_adaptive) == (None, True)
    assert found.client_id.startswith("producer-")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"enable.idempotence": True, "acks": "1"}, "acks to all"),
        ({"enable.idempotence": "true", "retries": 0}, "retries to non-zero"),
        ({"max.in.flight.requests.per.connection": 6}, "at most 5"),
        ({"transactional.id": "x", "enable.idempotence": False}, "without also enabling"),
        ({"transactional.id": "x", "acks": 0}, "without also enabling"),
        ({"delivery.timeout.ms": 30_000}, r"linger\.ms \+ request\.timeout\.ms"),
        ({"delivery.timeout.ms": 1000, "request.timeout.ms": 1000}, "less than 1005"),
        (
            {"transaction.two.phase.commit.enable": True, "transaction.timeout.ms": 5},
            "do not expire",
        ),
        ({"transaction.two.phase.commit.enable": True}, "not supported"),
        ({"config.providers": "vault"}, "config.providers.vault.class"),
        ({"acks": "2"}, "acks"),
        ({"compression.type": "brotli"}, "compression.type"),
        ({"compression.lz4.level": 18}, "compression.lz4.level"),
        ({"partitioner.class": "round_robbin"}, "partitioner.class"),
        ({"partitioner.class": 5}, "partitioner.class"),
        ({"interceptor.classes": "no.such.Interceptor"}, "interceptor.classes"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        settings(config)


@pytest.mark.parametrize("name", ["sasl.username", "sasl_password"])
def test_names_of_other_clients_are_explained(name: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config\. Write: .*ScramLoginModule"):
        settings({name: "alice"})


def test_what_has_no_effect_is_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    default = {"ssl.protocol": "TLSv1.3"}
    settings({"ssl.provider": "BC", "sasl.kerberos.kinit.cmd": "kinit", **default})
    assert [record.getMessage() for record in caplog.records] == [
        "These settings have no effect: sasl.kerberos.kinit.cmd, ssl.provider"
    ]


@pytest.mark.parametrize("config", [{"acks": 1}, {"acks": "0"}, {"retries": 0}])
def test_idempotence_that_nobody_asked_for_gives_way(config: dict[str, Any]) -> None:
    assert not settings(config).enable_idempotence


def test_a_delivery_timeout_that_was_not_set_gives_way() -> None:
    found = settings({"linger.ms": 100_000, "request.timeout.ms": 60_000})
    assert found.delivery_timeout_ms == 160_000


def test_the_client_id_tells_the_transactional_id() -> None:
    assert settings(transactional_id="x").client_id == "producer-x"
    assert settings(client_id="mine").client_id == "mine"
    assert settings().client_id != settings().client_id


def test_more_in_flight_without_idempotence() -> None:
    assert settings(max_in_flight_requests_per_connection=9, enable_idempotence=False)


def test_levels_are_those_of_the_codec() -> None:
    levels = {"compression.gzip.level": 2, "compression.zstd.level": 7}
    assert settings({**levels, "compression.type": "zstd"}).compression_level == 7
    assert settings({**levels, "compression.type": "gzip"}).compression_level == 2
    assert settings({**levels, "compression.type": "lz4"}).compression_level == 9
    assert settings({**levels, "compression.type": "snappy"}).compression_level is None


def test_partitioners_by_name() -> None:
    assert isinstance(settings(partitioner_class="round-robin").partitioner, RoundRobinPartitioner)
    sticky = settings(partitioner_class="uniform-sticky")
    assert (sticky.partitioner, sticky.partitioner_ignore_keys) == (None, True)
    assert settings(partitioner_class="").partitioner is None


def test_a_misspelt_argument_is_refused_with_a_guess() -> None:
    with pytest.raises(ConfigError, match="linger_ms"):
        settings(lingerms=5)
