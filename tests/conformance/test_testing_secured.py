"""A secured broker in a test, in one line."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer as ConfluentProducer

from moldau.client import Admin, Producer
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from moldau.client.errors import (
    KafkaError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
)
from moldau.testing import AsyncBroker, Broker, Cluster


@pytest.mark.moldau(security="SSL")
def test_a_broker_with_tls(moldau_broker: Broker) -> None:
    with Producer(moldau_broker.client_config) as producer:
        producer.send("orders", value=b"first").result(30)
    assert moldau_broker.certificates is not None
    other = ConfluentProducer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(moldau_broker.certificates.ca),
        }
    )
    other.produce("orders", b"second")
    assert other.flush(30) == 0
    assert [record.value for record in moldau_broker.records("orders", count=2)] == [
        b"first",
        b"second",
    ]
    with (
        Producer(bootstrap_servers=moldau_broker.bootstrap_servers, max_block_ms=500) as plain,
        pytest.raises(KafkaError),
    ):
        plain.send("orders", value=b"in the clear").result(30)


@pytest.mark.long("kills a node; one broker with TLS is above")
def test_a_cluster_with_tls_survives_a_node() -> None:
    with Cluster(security="SSL", topics={"orders": 3}) as cluster:
        with Producer(cluster.client_config) as producer:
            producer.send("orders", value=b"first").result(30)
            cluster.nodes[1].kill()
            producer.send("orders", value=b"second").result(30)
        assert len(cluster.records("orders", count=2)) == 2


def test_from_asyncio() -> None:
    async def main() -> None:
        async with AsyncBroker(security="SSL") as broker:
            assert broker.client_config["security.protocol"] == "SSL"

    asyncio.run(main())


USERS = {"alice": 'quotes " and \\ are fine', "bob": "bob-secret"}


@pytest.mark.moldau(security="SASL_SSL", users=USERS, topics=["orders"])
def test_a_broker_with_users_and_acls(moldau_broker: Broker) -> None:
    binding = AclBinding(
        ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL),
        AccessControlEntry("User:alice", "*", AclOperation.WRITE, AclPermissionType.ALLOW),
    )
    with Admin(moldau_broker.client_config) as admin:
        admin.create_acls([binding])
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        with Producer(moldau_broker.client_config_of("alice", mechanism=mechanism)) as producer:
            producer.send("orders", value=mechanism.encode()).result(30)
    with (
        Producer(moldau_broker.client_config_of("bob")) as producer,
        pytest.raises(TopicAuthorizationFailedError),
    ):
        producer.send("orders", value=b"denied").result(30)
    # What has no ACL is open.
    with Producer(moldau_broker.client_config_of("bob")) as producer:
        producer.send("elsewhere", value=b"allowed").result(30)
    wrong = moldau_broker.client_config_of("bob")
    wrong["sasl.jaas.config"] = wrong["sasl.jaas.config"].replace("bob-secret", "guessed")
    with Admin(wrong) as admin, pytest.raises(SaslAuthenticationFailedError):
        admin.list_topics()
    assert len(moldau_broker.records("orders", count=3)) == 3
    assert "bob-secret" not in moldau_broker.logs


@pytest.mark.moldau(security="SASL_PLAINTEXT", users={"alice": "alice-secret"})
def test_librdkafka_logs_in(moldau_broker: Broker) -> None:
    other = ConfluentProducer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
        }
    )
    other.produce("orders", b"hello")
    assert other.flush(30) == 0
    assert [record.value for record in moldau_broker.records("orders", count=1)] == [b"hello"]


@pytest.mark.long("kills a node; one broker with users is above")
def test_a_cluster_with_users_survives_a_node() -> None:
    options = {"alice": "alice-secret"}
    with Cluster(security="SASL_SSL", users=options, topics={"orders": 3}) as cluster:
        with Producer(cluster.client_config_of("alice", mechanism="SCRAM-SHA-512")) as producer:
            producer.send("orders", value=b"first").result(30)
            cluster.nodes[1].kill()
            producer.send("orders", value=b"second").result(30)
        assert len(cluster.records("orders", count=2)) == 2


def test_another_security_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        Broker(security="KERBEROS")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="only with security='SASL_SSL'"):
        Broker(security="SSL", users={"alice": "x"})
    with pytest.raises(ValueError, match="this cluster has no users"):
        Broker(security="SSL").client_config_of("alice")
    with pytest.raises(ValueError, match="the users of this cluster are admin, alice"):
        Broker(security="SASL_SSL", users={"alice": "x"}).client_config_of("bob")
