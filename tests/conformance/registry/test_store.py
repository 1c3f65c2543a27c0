"""The topic behind the registry: created, checked, read back; on Moldau and on Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from moldau.client import Admin, ConfigResource, NewTopic, Producer
from moldau.services.registry.topic import StoreError
from moldau.testing import Broker
from support.processes import apache_kafka, kafka_missing
from support.registry.stage import registry_on
from support.repeats import mostly_long

STRING = '{"type":"string"}'


@pytest.fixture(scope="module", params=mostly_long(["moldau", "kafka"], "the same on Apache Kafka"))
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "moldau":
        with Broker() as broker:
            yield broker.bootstrap_servers
        return
    missing = kafka_missing()
    if missing is not None:
        pytest.skip(missing)
    with apache_kafka(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka.bootstrap


def test_what_was_registered_is_there_after_a_restart(servers: str) -> None:
    with registry_on(servers, kafkastore_topic="restarted") as stage:
        id = stage.client.register("a", STRING).json["id"]
        stage.client.ask("PUT", "/config/a", {"compatibility": "FULL"})
        stage.client.register("b", '"int"')
        stage.client.ask("DELETE", "/subjects/b")
        stage.client.register(":.c:a", STRING)
    with Admin(bootstrap_servers=servers) as admin:
        topic = ConfigResource.topic("restarted")
        assert admin.describe_configs([topic])[topic]["cleanup.policy"].value == "compact"
        assert len(admin.describe_topics(["restarted"])["restarted"].partitions) == 1
    with registry_on(servers, kafkastore_topic="restarted") as stage:
        assert stage.client.get("/subjects").json == [":.c:a", "a"]
        assert stage.client.get("/subjects?deleted=true").json == [":.c:a", "a", "b"]
        assert stage.client.get(f"/schemas/ids/{id}").json["schema"] == '"string"'
        assert stage.client.get("/config/a").json == {"compatibilityLevel": "FULL"}
        assert stage.client.register("d", '"long"').json["id"] == 3


def test_records_from_elsewhere_are_read_and_others_are_skipped(servers: str) -> None:
    with registry_on(servers, kafkastore_topic="shared") as stage:
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("shared", b"?", key=b"not the registry's")
            key = {"keytype": "SCHEMA", "subject": "by-confluent", "version": 1, "magic": 1}
            value = {"subject": "by-confluent", "version": 1, "id": 40, "schema": '"bytes"'}
            producer.send("shared", json.dumps(value).encode(), key=json.dumps(key).encode())
        assert stage.client.register("mine", STRING).status == 200
        assert stage.client.get("/subjects").json == ["by-confluent", "mine"]
        assert stage.client.get("/schemas/ids/40").json["schema"] == '"bytes"'
        assert stage.client.register("next", '"int"').json["id"] > 40


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (NewTopic("two-partitions", 2, configs={"cleanup.policy": "compact"}), "only 1 partition"),
        (NewTopic("not-compacted", 1), "Expected cleanup.policy to be 'compact'"),
    ],
)
def test_a_topic_that_would_lose_schemas_is_refused(
    servers: str, topic: NewTopic, reason: str
) -> None:
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([topic])
    with (
        pytest.raises(StoreError, match=reason),
        registry_on(servers, kafkastore_topic=topic.name),
    ):
        pass


def test_a_schema_that_does_not_fit_into_a_record_is_refused(servers: str) -> None:
    with registry_on(servers, kafkastore_topic="large") as stage:
        symbols = ",".join(f'"S{number:09}"' for number in range(100_000))
        text = f'{{"type":"enum","name":"E","symbols":[{symbols}]}}'
        refused = stage.client.register("large", text)
        assert (refused.status, refused.json["error_code"]) == (422, 42209)
        assert stage.client.register("small", STRING).status == 200


def test_a_secured_cluster_holds_the_schemas() -> None:
    with Broker(security="SSL") as broker:
        clients = {f"kafkastore.{key}": str(value) for key, value in broker.client_config.items()}
        with registry_on(broker.bootstrap_servers, **clients) as stage:
            assert stage.client.register("a", STRING).status == 200
            assert stage.client.get("/subjects").json == ["a"]
