"""Schema validation at the broker: a producer with a wrong schema is refused, others are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.errors import InvalidRecordError, KafkaError
from moldau.serde import AvroSerializer, Schema, SchemaRegistryClient
from moldau.testing import Broker
from support.certificates import Authority
from support.ports import free_port
from support.registry.stage import RegistryStage, registry_on

VALUE = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
CHECKED = {"confluent.value.schema.validation": "true"}


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(port: int) -> Iterator[Broker]:
    settings = {
        "confluent.schema.registry.url": f"http://127.0.0.1:{port}",
        "confluent.missing.id.cache.ttl.sec": "1",
    }
    with Broker(config=settings) as found:
        yield found


@pytest.fixture(scope="module")
def registry(broker: Broker, port: int) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap_servers, listeners=f"http://127.0.0.1:{port}") as found:
        yield found


@pytest.fixture
def topic(broker: Broker, registry: RegistryStage, request: pytest.FixtureRequest) -> str:
    name = "t" + str(abs(hash(request.node.name)))[:8]
    make(broker, name, CHECKED)
    return name


def make(broker: Broker, name: str, configs: dict[str, str]) -> None:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1, configs=configs)])


def count(broker: Broker, topic: str) -> int:
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        return consumer.end_offsets([(topic, 0)])[(topic, 0)]


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd", "gzip", "snappy"])
def test_a_wrong_schema_is_refused_and_a_right_one_is_not(
    broker: Broker, registry: RegistryStage, topic: str, codec: str
) -> None:
    with Producer(
        bootstrap_servers=broker.bootstrap_servers, compression_type=codec, linger_ms=50
    ) as producer:
        futures = [producer.send(topic, b"no schema %d" % each) for each in range(3)]
        for future in futures:
            with pytest.raises(InvalidRecordError):
                future.result(30)
        with pytest.raises(InvalidRecordError):
            producer.send(topic, b"\x00\x00\x0f\x00\x00x").result(30)
        assert producer.send(topic, None, key=b"tombstone").result(30).offset == 0
    with Producer(
        bootstrap_servers=broker.bootstrap_servers,
        compression_type=codec,
        value_serializer=AvroSerializer(VALUE, registry=registry.running.url),
    ) as producer:
        sent = [producer.send(topic, {"id": each}) for each in range(100)]
        assert [each.result(30).offset for each in sent] == list(range(1, 101))
    assert count(broker, topic) == 101


def test_a_schema_of_another_topic_is_refused_until_it_is_registered_here(
    broker: Broker, registry: RegistryStage, topic: str
) -> None:
    with SchemaRegistryClient(registry.running.url) as client:
        schema_id = client.register("elsewhere-value", Schema(VALUE))
        data = b"\x00" + schema_id.to_bytes(4, "big") + b"\x02"
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            with pytest.raises(InvalidRecordError, match="is not one of subject"):
                producer.send(topic, data).result(30)
            assert client.register(f"{topic}-value", Schema(VALUE)) == schema_id
            producer.send(topic, data).result(30)


@pytest.mark.parametrize("strategy", ["TopicNameStrategy", "RecordNameStrategy"])
def test_ids_in_headers_count(broker: Broker, registry: RegistryStage, strategy: str) -> None:
    """The guid of another topic's schema does not, nor a guid that the registry does not have."""
    topic = f"headers-{strategy}"
    make(broker, topic, {**CHECKED, "confluent.value.subject.name.strategy": strategy})
    config = {
        "value.schema.id.serializer": "HeaderSchemaIdSerializer",
        "value.subject.name.strategy": strategy,
    }
    url = registry.running.url
    with Producer(
        bootstrap_servers=broker.bootstrap_servers,
        value_serializer=AvroSerializer(VALUE, registry=url, config=config),
    ) as producer:
        assert producer.send(topic, {"id": 1}).result(30).offset == 0
    other = VALUE.replace("Order", "Other")
    foreign: list[tuple[str, bytes | None]] = []
    AvroSerializer(
        other, registry=url, config={**config, "value.subject.name.strategy": "TopicNameStrategy"}
    ).serialize("unrelated", {"id": 1}, foreign)
    unknown: list[tuple[str, bytes | None]] = [("__value_schema_id", b"\x01" + bytes(16))]
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        with pytest.raises(InvalidRecordError, match="is not one of subject"):
            producer.send(topic, b"\x02", headers=foreign).result(30)
        with pytest.raises(InvalidRecordError, match="has no schema 00000000-"):
            producer.send(topic, b"\x02", headers=unknown).result(30)
        with pytest.raises(InvalidRecordError, match="does not begin with"):
            producer.send(topic, b"\x02", headers=[("__value_schema_id", b"\x01")]).result(30)
        with pytest.raises(InvalidRecordError):
            producer.send(topic, b"\x02", headers=[("other", b"\x01")]).result(30)


def test_librdkafka_gets_the_same_refusal(broker: Broker, topic: str) -> None:
    results: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"bad", on_delivery=lambda error, _: results.append(error))
    assert producer.flush(30) == 0
    assert results[0] is not None
    assert results[0].code() == confluent_kafka.KafkaError.INVALID_RECORD


def test_keys_strategies_and_transactions(broker: Broker, registry: RegistryStage) -> None:
    name = "strategies"
    strategy = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    make(
        broker,
        name,
        {
            "confluent.key.schema.validation": "true",
            "confluent.value.schema.validation": "true",
            "confluent.value.subject.name.strategy": strategy,
        },
    )
    url = registry.running.url
    with Producer(
        {"value.subject.name.strategy": "RecordNameStrategy"},
        bootstrap_servers=broker.bootstrap_servers,
        transactional_id="checked",
        key_serializer=AvroSerializer('"string"', registry=url, is_key=True),
        value_serializer=AvroSerializer(VALUE, registry=url),
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, {"id": 1}, key="k").result(30)
        producer.commit_transaction()
    with (
        Producer(
            bootstrap_servers=broker.bootstrap_servers,
            value_serializer=AvroSerializer(VALUE, registry=url),
        ) as producer,
        pytest.raises(InvalidRecordError, match="the key does not begin with the id"),
    ):
        producer.send(name, {"id": 1}, key=b"plain").result(30)


def test_validation_can_be_switched_on_and_off(broker: Broker, registry: RegistryStage) -> None:
    from moldau.client.admin import AlterConfigOp, ConfigResource

    make(broker, "switched", {})
    with (
        Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
        Producer(bootstrap_servers=broker.bootstrap_servers) as producer,
    ):
        producer.send("switched", b"bad").result(30)
        resource = ConfigResource.topic("switched")
        described = admin.describe_configs([resource])[resource]
        assert "confluent.value.schema.validation" not in described
        admin.incremental_alter_configs(
            {resource: [AlterConfigOp.set("confluent.value.schema.validation", "true")]}
        )
        described = admin.describe_configs([resource])[resource]
        assert described["confluent.value.schema.validation"].value == "true"
        with pytest.raises(InvalidRecordError):
            producer.send("switched", b"bad").result(30)
        admin.incremental_alter_configs(
            {resource: [AlterConfigOp.delete("confluent.value.schema.validation")]}
        )
        producer.send("switched", b"bad").result(30)


def test_without_an_answer_of_the_registry_producers_retry() -> None:
    settings = {"confluent.schema.registry.url": f"http://127.0.0.1:{free_port()}"}
    with Broker(config=settings) as broker:
        make(broker, "silent", CHECKED)
        with Producer(
            bootstrap_servers=broker.bootstrap_servers,
            delivery_timeout_ms=3000,
            request_timeout_ms=2000,
            linger_ms=0,
        ) as producer:
            with pytest.raises(KafkaError) as failed:
                producer.send("silent", b"\x00\x00\x00\x00\x01x").result(30)
            assert not isinstance(failed.value, InvalidRecordError)


def test_a_secured_registry_is_asked(tmp_path: Path) -> None:
    """By https, with a password; without them the broker does not know, and producers retry."""
    authority = Authority(tmp_path)
    certificate = authority.issue("server", "/CN=localhost")
    users = tmp_path / "users"
    users.write_text("broker: secret,reader\n")
    port = free_port()
    settings = {
        "confluent.schema.registry.url": f"https://localhost:{port}",
        "confluent.ssl.truststore.location": str(authority.certificate),
        "confluent.ssl.truststore.type": "PEM",
        "confluent.basic.auth.credentials.source": "USER_INFO",
        "confluent.basic.auth.user.info": "broker:secret",
    }
    client = {
        "schema.registry.url": f"https://localhost:{port}",
        "schema.registry.ssl.truststore.location": str(authority.certificate),
        "schema.registry.ssl.truststore.type": "PEM",
        "basic.auth.user.info": "broker:secret",
    }
    with (
        Broker(config=settings) as broker,
        registry_on(
            broker.bootstrap_servers,
            listeners=f"https://127.0.0.1:{port}",
            ssl_keystore_location=certificate.pem,
            ssl_keystore_type="PEM",
            authentication_method="BASIC",
            authentication_users_file=users,
            authentication_roles="reader",
            inter_instance_protocol="https",
        ),
        Producer(
            bootstrap_servers=broker.bootstrap_servers,
            value_serializer=AvroSerializer(VALUE, config=client),
        ) as producer,
        Producer(bootstrap_servers=broker.bootstrap_servers) as plain,
    ):
        make(broker, "secured", CHECKED)
        assert producer.send("secured", {"id": 1}).result(30).offset == 0
        with pytest.raises(InvalidRecordError):
            plain.send("secured", b"plain").result(30)


def test_without_a_registry_the_reason_is_said() -> None:
    with Broker() as broker:
        make(broker, "none", CHECKED)
        with (
            Producer(bootstrap_servers=broker.bootstrap_servers) as producer,
            pytest.raises(InvalidRecordError, match=r"confluent\.schema\.registry\.url"),
        ):
            producer.send("none", b"\x00\x00\x00\x00\x01x").result(30)
