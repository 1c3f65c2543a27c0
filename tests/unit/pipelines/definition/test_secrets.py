"""Secrets of a pipeline: named in its definition, read when it starts, shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.client.config import CONSUMER_KEYS, parse_settings
from moldau.pipelines import Jdbc, Pipeline, PipelineError, Topic
from moldau.pipelines.build.environment import with_environment, with_references
from moldau.pipelines.definition.secrets import stored_secrets, without_secrets
from moldau.pipelines.definition.topic_options import producer_config, sink_options, source_options
from moldau.spark.sink.machine.options import parse as parse_sink
from moldau.spark.source.machine.options import parse_options as parse_source

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="p";'


def orders(**more: Any) -> Pipeline:
    fields: dict[str, Any] = {
        "source": Topic("orders", schema="id STRING, amount DOUBLE"),
        "sink": Topic("big-orders", key="id"),
    }
    return Pipeline("big-orders", **{**fields, **more})


class Provider:
    """A config provider of a user's own."""

    def configure(self, configs: dict[str, Any]) -> None:
        self._word = configs["word"]

    def get(self, path: str, keys: set[str]) -> dict[str, str]:
        return {key: f"{self._word} {key}" for key in keys}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "client.properties").write_text("truststore=from a file\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "jaas").write_text(JAAS)
    return tmp_path


@pytest.mark.parametrize(
    ("kafka", "started"),
    [
        pytest.param({"ssl.key.password": "${env:KEY}"}, {"ssl.key.password": "of env"}, id="env"),
        pytest.param(
            {"ssl.truststore.password": "${file:client.properties:truststore}"},
            {"ssl.truststore.password": "from a file"},
            id="a file beside the definition",
        ),
        pytest.param(
            {"sasl.jaas.config": "${dir:{base}/run:jaas}"}, {"sasl.jaas.config": JAAS}, id="dir"
        ),
        pytest.param(
            {"ssl.truststore.location": "ca.pem", "ssl.keystore.location": "/k.pem"},
            {"ssl.truststore.location": "{base}/ca.pem", "ssl.keystore.location": "/k.pem"},
            id="stores are beside the definition",
        ),
        pytest.param(
            {
                "config.providers": "own",
                "config.providers.own.class": f"{__name__}.Provider",
                "config.providers.own.param.word": "ask for",
                "ssl.key.password": "${own:key}",
            },
            {"ssl.key.password": "ask for key"},
            id="a class of one's own",
        ),
        pytest.param({"client.id": "${other:x}"}, {"client.id": "${other:x}"}, id="not ours"),
    ],
)
def test_variables_are_replaced_when_it_starts(
    base: Path, kafka: dict[str, str], started: dict[str, str]
) -> None:
    given = {name: value.replace("{base}", str(base)) for name, value in kafka.items()}
    expected = {name: value.replace("{base}", str(base)) for name, value in started.items()}
    pipeline = orders(kafka=given, base=base)
    assert pipeline.to_json()["kafka"] == given
    assert dict(with_environment(pipeline, {"KEY": "of env"}).kafka) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:NONE}", "kafka: the environment has no variable NONE"),
        ("${file:client.properties:none}", "kafka: client.properties has no none"),
        ("${file:none.properties:none}", "kafka: Could not read properties from file"),
    ],
)
def test_what_is_not_there_is_named(base: Path, value: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        with_environment(orders(kafka={"ssl.key.password": value}, base=base), {})


def test_spark_gets_references_to_files_that_only_the_owner_reads(tmp_path: Path) -> None:
    folder = tmp_path / "secrets" / "big-orders"
    kafka = {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": JAAS, "linger.ms": "5"}
    source = Topic("orders", schema="id STRING", **{"kafka.ssl.key.password": "k\ney"})
    pipeline = with_references(orders(kafka=kafka, source=source), folder)
    assert not {JAAS, "k\ney"} & set(json.dumps(pipeline.to_json()).split('"'))
    assert folder.stat().st_mode & 0o077 == 0
    assert {path.name: path.stat().st_mode & 0o077 for path in folder.iterdir()} == {
        "kafka.sasl.jaas.config": 0,
        "source.kafka.ssl.key.password": 0,
    }

    made = source_options(pipeline.sources["input"], pipeline.kafka, bootstrap="b:1", group="g")  # type: ignore[arg-type]
    read = parse_settings(CONSUMER_KEYS, parse_source(made, streaming=True).config)
    assert read["sasl.jaas.config"].value == JAAS
    assert read["ssl.key.password"].value == "k\ney"
    assert isinstance(pipeline.sink, Topic)
    made = sink_options(pipeline.sink, pipeline.kafka, bootstrap="b:1")
    written = parse_sink(made | {"checkpointLocation": "/c"}, is_stream=True)
    assert parse_settings(CONSUMER_KEYS, written.config)["sasl.jaas.config"].value == JAAS
    letters = producer_config(pipeline.kafka, bootstrap="b:1")
    assert parse_settings(CONSUMER_KEYS, letters)["sasl.jaas.config"].value == JAAS
    assert with_references(orders(), folder) == orders()


def test_what_a_definition_would_leave_in_the_registry() -> None:
    pipeline = orders(
        kafka={"sasl.jaas.config": JAAS, "ssl.key.password": "${env:X}", "acks": "all"},
        source=Topic("orders", schema="id STRING", **{"kafka.ssl.keystore.key": "PEM"}),
        sink=Jdbc("jdbc:postgresql://h/d", table="t", password="secret"),
    )
    fields = pipeline.to_json()
    assert stored_secrets(fields) == [
        "kafka.sasl.jaas.config",
        "source.kafka.ssl.keystore.key",
        "sink.password",
    ]
    shown = without_secrets(fields)
    assert shown["kafka"] == {
        "sasl.jaas.config": "[hidden]",
        "ssl.key.password": "${env:X}",
        "acks": "all",
    }
    assert shown["source"]["kafka.ssl.keystore.key"] == shown["sink"]["password"] == "[hidden]"
    assert stored_secrets(orders().to_json()) == []
