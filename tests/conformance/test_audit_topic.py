"""Audit events in the topic `__moldau_audit`, read by librdkafka, on one node and on three."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from moldau.client import Admin, Producer
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    NewTopic,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from moldau.client.admin import ConfigResourceType as Configured
from moldau.client.errors import KafkaError, SaslAuthenticationFailedError
from support.cluster import ClusterUnderTest, Shape
from support.cluster_node import BROKER, CONTROLLER
from support.secured import USERS, client_settings, secured_moldau
from support.waiting import eventually

TOPIC = "__moldau_audit"
AUDITED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "moldau.audit.topic.enable": "true",
}


def admin_settings(bootstrap: str) -> dict[str, str]:
    return client_settings(bootstrap, "PLAIN", "admin", "admin-secret")


class Reader:
    """Reads the topic from its beginning with librdkafka, and keeps every event."""

    def __init__(self, bootstrap: str) -> None:
        self.events: list[dict[str, Any]] = []
        with Admin(admin_settings(bootstrap)) as admin:
            eventually(lambda: TOPIC in admin.list_topics(), what="the topic")
        self._consumer = ConfluentConsumer(
            {
                "bootstrap.servers": bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": "admin-secret",
                "group.id": f"auditors-{uuid.uuid4()}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> int:
        """How many events came."""
        messages = [each for each in self._consumer.consume(1000, 1.0) if each.error() is None]
        self.events += [json.loads(each.value()) for each in messages]
        return len(messages)

    def until(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            self.poll()
            return next((each for each in self.events if wanted(each)), None)

        event = eventually(found, what=what)
        assert event is not None
        return event

    def close(self) -> None:
        self._consumer.close()


def is_like(facts: Mapping[str, Any]) -> Callable[[dict[str, Any]], bool]:
    return lambda event: facts.items() <= event.items()


def denied_write(bootstrap: str, topic: str) -> None:
    alice = client_settings(bootstrap, "PLAIN", "alice", "alice-secret")
    with Producer(alice) as producer, pytest.raises(KafkaError):
        producer.send(topic, b"x").result(60)


def test_one_node(tmp_path: Path) -> None:
    with (
        secured_moldau(tmp_path / "data", AUDITED) as broker,
        Admin(admin_settings(broker.bootstrap)) as admin,
    ):
        admin.create_topics([NewTopic("payments", 1)])
        denied_write(broker.bootstrap, "payments")
        wrong = client_settings(broker.bootstrap, "PLAIN", "alice", "a-wrong-password")
        with Admin(wrong) as stranger, pytest.raises(SaslAuthenticationFailedError):
            stranger.list_topics()
        reader = Reader(broker.bootstrap)
        alice = {"principal": "User:alice", "host": "127.0.0.1", "node": 1}
        reader.until(is_like({"event": "authenticated", "principal": "User:admin"}), "login")
        reader.until(is_like({"event": "rejected", "mechanism": "PLAIN"}), "failed login")
        reader.until(is_like({"event": "allowed", "api": "CreateTopics"}), "allowed")
        denied = {"event": "denied", "resourceType": "TOPIC", "resource": "payments"}
        reader.until(is_like(denied | alice), "denied")
        assert "a-wrong-password" not in json.dumps(reader.events)
        # Neither its writes nor its readers keep the log going: they would cause an event with
        # each batch of events, which is ten per second. Heartbeats cause one in three.
        eventually(lambda: reader.poll() + reader.poll() + reader.poll() < 5, what="silence")
        assert not [
            each
            for each in reader.events
            if each.get("api") in ("Produce", "Fetch") and each.get("resource") == TOPIC
        ]
        reader.close()
        configs = admin.describe_configs([ConfigResource(Configured.TOPIC, TOPIC)])
        (described,) = configs.values()
        assert described["retention.ms"].value == str(7 * 86_400_000)
        assert described["cleanup.policy"].value == "delete"


def test_nobody_forges_events(tmp_path: Path) -> None:
    with secured_moldau(tmp_path / "data", AUDITED) as broker:
        reader = Reader(broker.bootstrap)
        reader.until(is_like({"event": "authenticated"}), "the reader's own login")
        with Admin(admin_settings(broker.bootstrap)) as admin:
            everything = ResourcePattern(ResourceType.TOPIC, "*", PatternType.LITERAL)
            may_all = AccessControlEntry(
                "User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW
            )
            admin.create_acls([AclBinding(everything, may_all)])
        denied_write(broker.bootstrap, TOPIC)
        forged = {"event": "denied", "principal": "User:alice", "operation": "CLUSTER_ACTION"}
        reader.until(is_like(forged), "the attempt")
        reader.close()


def test_filters_hold_and_both_places_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    more = AUDITED | {"moldau.audit.events": "denied", "moldau.audit.file": str(path)}
    with secured_moldau(tmp_path / "data", more) as broker:
        with Admin(admin_settings(broker.bootstrap)) as admin:
            admin.create_topics([NewTopic("payments", 1)])
        denied_write(broker.bootstrap, "payments")
        reader = Reader(broker.bootstrap)
        reader.until(is_like({"event": "denied", "resource": "payments"}), "denied")
        eventually(lambda: reader.poll() == 0, what="everything was read")
        reader.close()
    assert {each["event"] for each in reader.events} == {"denied"}
    assert [json.loads(each) for each in path.read_text().splitlines()] == reader.events


NODES = AUDITED | {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": USERS,
    "listener.name.controller.plain.sasl.jaas.config": USERS,
}


@pytest.mark.long("kills a node; separate controllers show that several nodes write")
@pytest.mark.slow("three nodes, one of them killed")
def test_three_nodes_one_of_which_dies(tmp_path_factory: pytest.TempPathFactory) -> None:
    cluster = ClusterUnderTest("moldau", tmp_path_factory.mktemp("audited"), NODES)
    cluster.format()
    try:
        for node in cluster.nodes.values():
            node.spawn()
        settings = admin_settings(cluster.bootstrap) | {"default.api.timeout.ms": "120000"}
        with Admin(settings) as admin:
            eventually(lambda: len(admin.describe_cluster().nodes) == 3, what="three brokers")
            admin.create_topics([NewTopic("payments", 3, 3)])
            denied_write(cluster.bootstrap, "payments")
            reader = Reader(cluster.bootstrap)
            denied = {"event": "denied", "resource": "payments", "principal": "User:alice"}
            reader.until(is_like(denied), "denied before")
            for node_id in cluster.nodes:
                reader.until(is_like({"node": node_id}), f"an event of node {node_id}")
            described = admin.describe_topics([TOPIC])[TOPIC]
            assert {len(each.replicas) for each in described.partitions} == {3}
            leader = described.partitions[0].leader
            assert leader is not None
            cluster.nodes[leader.id].kill()
            admin.create_topics([NewTopic("refunds", 3, 2)])
            denied_write(cluster.bootstrap, "refunds")
            reader.until(is_like(denied | {"resource": "refunds"}), "denied afterwards")
            assert not [each for each in reader.events if each["event"] == "dropped"]
            # What nodes write to one another's partitions, and replicate, causes no events.
            copied = {"operation": "CLUSTER_ACTION", "event": "allowed"}
            apis = {each["api"] for each in reader.events if is_like(copied)(each)}
            assert "BrokerHeartbeat" in apis
            assert not apis & {"Produce", "Fetch"}
            reader.close()
    finally:
        for node in cluster.nodes.values():
            node.kill()


@pytest.mark.slow("three nodes")
def test_controllers_on_their_own_write_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    """They decide about forwarded requests, such as the creation of topics."""
    shape = Shape(roles={1: (BROKER,), 2: (BROKER,), 101: (CONTROLLER,)})
    settings = NODES | {"offsets.topic.replication.factor": "2"}
    cluster = ClusterUnderTest("moldau", tmp_path_factory.mktemp("roles"), settings, shape)
    cluster.format()
    try:
        for node in cluster.nodes.values():
            node.spawn()
        patient = {"default.api.timeout.ms": "120000"}
        with Admin(admin_settings(cluster.bootstrap) | patient) as admin:
            admin.create_topics([NewTopic("payments", 1, 1)])
        reader = Reader(cluster.bootstrap)
        created = {"event": "allowed", "api": "CreateTopics", "node": 101}
        reader.until(is_like(created | {"principal": "User:admin"}), "the creation")
        reader.close()
    finally:
        for node in cluster.nodes.values():
            node.kill()
