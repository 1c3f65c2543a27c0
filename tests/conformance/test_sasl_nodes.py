"""Logins between nodes: among brokers, from brokers to controllers, and among controllers."""

from __future__ import annotations

import time

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.client.admin import (
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from moldau.client.errors import SaslAuthenticationFailedError
from support.cluster import ClusterUnderTest
from support.secured import SCRAM_MODULE, USERS, client_settings
from support.waiting import eventually

SESSION_S = 10
PROPERTIES = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": USERS,
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": USERS,
    # Sessions between nodes end as well, and go on. A peer begins to log in again when 85 to 95 %
    # of its session are over: the rest must be enough on a busy machine.
    "connections.max.reauth.ms": str(SESSION_S * 1000),
}


@pytest.mark.slow("three nodes, one of them killed")
def test_three_nodes_log_in_to_one_another(tmp_path_factory: pytest.TempPathFactory) -> None:
    cluster = ClusterUnderTest("moldau", tmp_path_factory.mktemp("nodes"), PROPERTIES)
    cluster.format()
    try:
        for node in cluster.nodes.values():
            node.spawn()
        alice = client_settings(cluster.bootstrap, "PLAIN", "alice", "alice-secret")
        with Admin(alice | {"default.api.timeout.ms": "120000"}) as admin:
            eventually(lambda: len(admin.describe_cluster().nodes) == 3, what="three brokers")
            admin.create_topics([NewTopic("copied", 3, 3)])
            info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("eve", info, b"e")])
        eve = client_settings(cluster.bootstrap, "SCRAM-SHA-512", "eve", "e") | {"acks": "all"}
        with Producer(eve) as producer:
            values = set()
            deadline = time.monotonic() + SESSION_S + 1
            while time.monotonic() < deadline:
                values.add(f"{len(values)}".encode())
                producer.send("copied", f"{len(values) - 1}".encode()).result(60)
            with Admin(alice) as admin:
                leader = admin.describe_topics(["copied"])["copied"].partitions[0].leader
            assert leader is not None
            cluster.nodes[leader.id].kill()
            producer.send("copied", b"after").result(60)
            values.add(b"after")
        assert not any("has expired" in node.log.read_text() for node in cluster.nodes.values())
        config = alice | {"group.id": "g", "auto.offset.reset": "earliest"}
        found: set[object] = set()
        with Consumer(config) as consumer:
            consumer.subscribe(["copied"])
            while not values <= found:
                found |= {record.value for record in consumer.poll(30.0)}
        wrong = client_settings(cluster.bootstrap, "PLAIN", "alice", "wrong")
        with Admin(wrong) as admin, pytest.raises(SaslAuthenticationFailedError):
            admin.list_topics()
    finally:
        for node in cluster.nodes.values():
            node.kill()
