"""Every setting of a secured client goes through the source and the sink, and none is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.client.config import ADMIN_KEYS, PRODUCER_KEYS, parse_settings
from moldau.client.network_settings import NetworkSettings
from moldau.spark.sink.machine.options import parse as parse_sink
from moldau.spark.source.machine.options import OptionError
from moldau.spark.source.machine.options import parse_options as parse_source
from moldau.spark.source.mirror import admin_config

WHERE = {"kafka.bootstrap.servers": "b:9093", "subscribe": "t"}
SECURITY = [
    name for name in PRODUCER_KEYS if name.startswith(("sasl.", "ssl.", "security.protocol"))
]
GIVEN = {
    "security.protocol": "SASL_SSL",
    "ssl.endpoint.identification.algorithm": "",
    "sasl.oauthbearer.assertion.algorithm": "ES256",
}


def options(**kafka: str) -> dict[str, str]:
    return {**WHERE, **{f"kafka.{name}": value for name, value in kafka.items()}}


def of_source(given: dict[str, str]) -> dict[str, str]:
    return dict(parse_source(given, streaming=True).config)


def of_sink(given: dict[str, str]) -> dict[str, str]:
    return dict(parse_sink(given | {"checkpointLocation": "/c"}, is_stream=True).config)


@pytest.mark.parametrize("name", SECURITY)
def test_a_setting_reaches_the_clients(name: str) -> None:
    if name == "ssl.engine.factory.class":
        pytest.skip("a Java class")
    default = PRODUCER_KEYS[name].default
    shown = ",".join(default) if isinstance(default, list | tuple) else str(default)
    value = GIVEN.get(name, shown if default is not None else "a")
    value = value.lower() if value in ("True", "False") else value
    if default is None and PRODUCER_KEYS[name].type.name in ("INT", "LONG", "SHORT"):
        value = "7"
    # As Spark hands them over: in lower case, and with options of the other end.
    given = options(**{name: value}) | {"kafka.acks": "all", "kafka.max.poll.records": "5"}
    for config in (of_source(given), of_sink(given)):
        assert config[name] == value
        parsed = parse_settings(PRODUCER_KEYS, config | {"max.poll.records": "5"})
        network = NetworkSettings.of(parsed)
        if name != "security.protocol":
            assert network.security[name] == parsed[name]
        else:
            assert network.security_protocol == "SASL_SSL"
    assert admin_config(parse_source(given))[name] == value
    assert name in ADMIN_KEYS


def test_values_may_come_from_files_that_the_workers_read(tmp_path: Path) -> None:
    (tmp_path / "f.properties").write_text("jaas=the secret\n")
    given = options(
        **{
            "config.providers": "file",
            "config.providers.file.param.allowed.paths": str(tmp_path),
            "sasl.jaas.config": f"${{file:{tmp_path}/f.properties:jaas}}",
        }
    )
    for config in (of_source(given), of_sink(given), admin_config(parse_source(given))):
        assert "the secret" not in str(config)
        assert parse_settings(PRODUCER_KEYS, config)["sasl.jaas.config"].value == "the secret"


def test_secrets_are_not_in_what_is_printed() -> None:
    given = options(**{"sasl.jaas.config": "tip top", "ssl.key.password": "tip top"})
    assert "tip top" not in repr(parse_source(given, streaming=True))
    sink = parse_sink(given | {"checkpointLocation": "/c"}, is_stream=True)
    assert "tip top" not in repr(sink)


@pytest.mark.parametrize(
    ("kafka", "message"),
    [
        ({"security.protocol": "SASL"}, "Option 'kafka.security.protocol'"),
        ({"sasl.mechanisms": "PLAIN"}, "Did you mean 'kafka.sasl.mechanism'"),
        ({"ssl.trustore.password": "tip top"}, "Did you mean 'kafka.ssl.truststore.password'"),
    ],
)
def test_a_mistake_is_named_without_its_value(kafka: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        parse_source(options(**kafka), streaming=True)
    assert "tip top" not in str(raised.value)
