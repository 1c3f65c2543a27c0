"""A live cluster changes from PLAINTEXT to SASL_SSL with ACLs, node by node, and loses no record.

The order is that of Kafka's documentation ("Incorporating Security Features in a Running Cluster"):
the secured listeners are added; clients move to them; so do brokers and controllers; the authorizer
is turned on, leniently until its ACLs are made; the PLAINTEXT listeners go. A producer and a group
work all the time. Only to move, once, is each of them closed and opened with other settings.
"""

from __future__ import annotations

import datetime
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    PatternType,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from moldau.client.errors import KafkaError, TopicAuthorizationFailedError
from moldau.security.certificates import Authority
from support.cluster import ClusterUnderTest, Shape
from support.cluster_node import ClusterNode
from support.ports import free_port
from support.processes import write_properties
from support.secured import jaas
from support.waiting import eventually

TOPIC, GROUP, PARTITIONS = "orders", "readers", 3
MECHANISM = "SCRAM-SHA-512"
USERS = ("admin", "broker", "alice", "eve")
Settings = dict[str, str]


class Changing:
    """The cluster, and what its nodes' files say in each phase."""

    def __init__(self, folder: Path) -> None:
        shape = Shape(static_voters=True, racks=False)
        self.cluster = ClusterUnderTest("moldau", folder, shape=shape)
        self.nodes = self.cluster.nodes
        self._ca = folder / "ca.pem"
        authority = Authority("Test CA", life=datetime.timedelta(days=1))
        self._ca.write_bytes(authority.certificate)
        self._secured: dict[int, dict[str, int]] = {}
        for node in self.nodes.values():
            subject = {"CN": f"node-{node.node_id}", "OU": "brokers"}
            store = authority.issue(subject, ["127.0.0.1"])
            node.folder.mkdir(parents=True, exist_ok=True)
            (node.folder / "node.pem").write_bytes(store)
            self._secured[node.node_id] = {"SECURE": free_port(), "CONTROLLER_SSL": free_port()}
        self.admin_settings: Settings = {"bootstrap.servers": self.cluster.bootstrap}

    def client_settings(self, user: str) -> Settings:
        ports = [ports["SECURE"] for ports in self._secured.values()]
        return {
            "bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in ports),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": jaas(MECHANISM, user, f"{user}-secret"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca),
        }

    # Settings, each on top of those before.

    def with_secured_listeners(self, node: ClusterNode) -> Settings:
        node.listeners |= self._secured[node.node_id]
        node.advertised = node.listeners
        scram = f"listener.name.secure.{MECHANISM.lower()}.sasl.jaas.config"
        return {
            **self._listeners(node),
            "controller.listener.names": "CONTROLLER,CONTROLLER_SSL",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SECURE:SASL_SSL,CONTROLLER_SSL:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": MECHANISM,
            scram: jaas(MECHANISM, "broker", "broker-secret"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(node.folder / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca),
            "listener.name.controller_ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=node-[0-9]+,OU=brokers$/broker/",
        }

    def with_secured_nodes(self, node: ClusterNode) -> Settings:
        voters = ",".join(
            f"{node_id}@127.0.0.1:{ports['CONTROLLER_SSL']}"
            for node_id, ports in self._secured.items()
        )
        return {
            "inter.broker.listener.name": "SECURE",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "controller.listener.names": "CONTROLLER_SSL,CONTROLLER",
            "controller.quorum.voters": voters,
        }

    def with_authorizer(self, node: ClusterNode) -> Settings:
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:broker",
            "allow.everyone.if.no.acl.found": "true",
        }

    def with_strict_authorizer(self, node: ClusterNode) -> Settings:
        return {"allow.everyone.if.no.acl.found": "false"}

    def without_plaintext(self, node: ClusterNode) -> Settings:
        node.listeners = self._secured[node.node_id]
        node.advertised = node.listeners
        return {
            **self._listeners(node),
            "controller.listener.names": "CONTROLLER_SSL",
            "listener.security.protocol.map": "SECURE:SASL_SSL,CONTROLLER_SSL:SSL",
        }

    def _listeners(self, node: ClusterNode) -> Settings:
        shown = {name: f"{name}://127.0.0.1:{port}" for name, port in node.listeners.items()}
        # Kafka takes what is advertised of controllers from the listeners themselves.
        advertised = [at for name, at in shown.items() if not name.startswith("CONTROLLER")]
        return {
            "listeners": ",".join(shown.values()),
            "advertised.listeners": ",".join(advertised),
        }

    # The operator's hands.

    def restart_each(self, *changes: Callable[[ClusterNode], Settings]) -> None:
        """One node after the other, the next one only when all replicas are in sync again."""
        for node in self.nodes.values():
            self.cluster.hand_over(node.node_id)
            for change in changes:
                node.properties |= change(node)
            write_properties(node.config, node.properties)
            node.start()
            self.wait_until_whole()

    def wait_until_whole(self) -> None:
        with Admin(self.admin_settings) as admin:

            def whole() -> bool:
                try:
                    if len(admin.describe_cluster().nodes) < len(self.nodes):
                        return False
                    names = [TOPIC, "__consumer_offsets"]
                    found = admin.describe_topics(names)
                except KafkaError:
                    return False
                return all(
                    len(partition.isr) == len(self.nodes)
                    for topic in found.values()
                    for partition in topic.partitions
                )

            try:
                eventually(whole, what="every replica is in sync", seconds_max=60)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.cluster.reports()}") from None

    def add_users(self) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        with Admin(self.admin_settings) as admin:
            admin.alter_user_scram_credentials(
                [
                    UserScramCredentialUpsertion(user, info, f"{user}-secret".encode())
                    for user in USERS
                ]
            )
        self.admin_settings = self.client_settings("admin")

    def add_acls(self) -> None:
        allowed = AccessControlEntry("User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW)
        resources = ((ResourceType.TOPIC, TOPIC), (ResourceType.GROUP, GROUP))
        with Admin(self.admin_settings) as admin:
            admin.create_acls(
                [
                    AclBinding(ResourcePattern(kind, name, PatternType.LITERAL), allowed)
                    for kind, name in resources
                ]
            )


class Writing:
    """Numbers records of each partition from 0, and sends on until it is stopped."""

    def __init__(self) -> None:
        self.counts = [0] * PARTITIONS
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, settings: Settings) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(settings,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join(90)
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure

    def _run(self, settings: Settings) -> None:
        try:
            with Producer(settings, enable_idempotence=True, acks="all") as producer:
                while not self._stop.is_set():
                    futures = []
                    for partition in range(PARTITIONS):
                        value = b"%d" % self.counts[partition]
                        futures.append(producer.send(TOPIC, value, partition=partition))
                        self.counts[partition] += 1
                    for future in futures:
                        future.result(120)
                    self._stop.wait(0.005)
        except BaseException as failure:
            self.failure = failure


class Reading:
    """A member of the group: commits what it has read, and reads on from there."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, bytes]] = set()
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, settings: Settings) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(settings,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join(90)
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure

    def _run(self, settings: Settings) -> None:
        try:
            with Consumer(settings, group_id=GROUP, auto_offset_reset="earliest") as consumer:
                consumer.subscribe([TOPIC])
                while not self._stop.is_set():
                    self.seen |= {
                        (record.partition, bytes(record.value)) for record in consumer.poll(0.2)
                    }
        except BaseException as failure:
            self.failure = failure


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Changing]:
    changing = Changing(tmp_path)
    with changing.cluster:
        yield changing


PHASES = [
    pytest.param(3, id="in three rounds", marks=pytest.mark.slow("nine restarts under load")),
    pytest.param(5, id="in five rounds", marks=pytest.mark.long("each change in its own round")),
]


@pytest.mark.parametrize("rounds", PHASES)
def test_a_live_cluster_is_secured(changing: Changing, rounds: int) -> None:
    with Admin(changing.admin_settings) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
    writing, members = Writing(), [Reading(), Reading()]
    everybody = [writing, *members]
    for each in everybody:
        each.start(changing.admin_settings)
    eventually(lambda: any(member.seen for member in members), what="the group reads")

    changing.restart_each(changing.with_secured_listeners)
    changing.add_users()
    for each in everybody:
        each.stop()
        each.start(changing.client_settings("alice"))
    if rounds == 3:
        changing.restart_each(changing.with_secured_nodes, changing.with_authorizer)
        changing.add_acls()
        changing.restart_each(changing.with_strict_authorizer, changing.without_plaintext)
    else:
        changing.restart_each(changing.with_secured_nodes)
        changing.restart_each(changing.with_authorizer)
        changing.add_acls()
        changing.restart_each(changing.with_strict_authorizer)
        changing.restart_each(changing.without_plaintext)

    writing.stop()
    sent = {
        (partition, b"%d" % number)
        for partition, count in enumerate(writing.counts)
        for number in range(count)
    }
    eventually(
        lambda: sent <= set().union(*(member.seen for member in members)),
        what="the group has read all",
    )
    for member in members:
        member.stop()
    assert set().union(*(member.seen for member in members)) == sent
    _check_log(changing, writing.counts)
    _check_secured(changing)


def _check_log(changing: Changing, counts: list[int]) -> None:
    """Every record once and in order: nothing lost, nothing sent twice."""
    found: list[list[bytes]] = [[] for _ in counts]
    settings = changing.client_settings("alice")
    with Consumer(settings, group_id=GROUP, enable_auto_commit=False) as consumer:
        consumer.assign([(TOPIC, partition) for partition in range(len(counts))])
        consumer.seek_to_beginning()
        while sum(map(len, found)) < sum(counts):
            for record in consumer.poll(30):
                found[record.partition].append(bytes(record.value))
    assert found == [[b"%d" % number for number in range(count)] for count in counts]


def _check_secured(changing: Changing) -> None:
    for node in changing.nodes.values():
        with suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", node.port), timeout=1).close()
            pytest.fail(f"node {node.node_id} still has its PLAINTEXT listener")
    with (
        Producer(changing.client_settings("eve")) as producer,
        pytest.raises(TopicAuthorizationFailedError),
    ):
        producer.send(TOPIC, b"not allowed").result(30)
