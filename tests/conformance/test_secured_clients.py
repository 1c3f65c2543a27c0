"""Every client by every mechanism that it has, over SASL_SSL with the authorizer on: to one node
and to three, which log in to one another as well.

librdkafka's wheel has no GSSAPI, and of the clients only Java's and moldau.client log in with
delegation tokens.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from moldau.client import Admin
from support.cli import moldau_cli
from support.cluster import ClusterUnderTest, Shape, cluster_kind
from support.kerberos import kerberos_missing
from support.ports import free_port
from support.processes import (
    SERVER_CLASSES,
    BrokerProcess,
    java,
    kafka_missing,
    kafka_properties,
    kafka_tool,
    write_properties,
)
from support.secured import CLUSTER_ID
from support.secured_clients import EXPECTED_CODES, SESSIONS, Seen, java_sessions, values_of
from support.secured_site import DELEGATION_TOKEN, MECHANISMS, OPEN, SCRAM, Site, secured_site

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl makes the certificates"
)
needs_kafka = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
needs_kerberos = pytest.mark.skipif(kerberos_missing() is not None, reason=str(kerberos_missing()))
NODES = {"User:node", "User:kafka"}
LOGINS = (*MECHANISMS, DELEGATION_TOKEN)
LACKING = {
    ("confluent-kafka", "GSSAPI"),
    *((client, DELEGATION_TOKEN) for client in ("confluent-kafka", "kafka-python", "aiokafka")),
}


def mechanism_param(
    mechanism: str, *before: str, marks: Sequence[pytest.MarkDecorator] = ()
) -> object:
    needed = [needs_kerberos] if mechanism == "GSSAPI" else []
    name = "-".join([*before, mechanism])
    return pytest.param(*before, mechanism, marks=[*needed, *marks], id=name)


TABLE = [
    mechanism_param(mechanism, client)
    for client in SESSIONS
    for mechanism in LOGINS
    if (client, mechanism) not in LACKING
]
OTHER_PAIR = pytest.mark.long("every client by one mechanism, and one by all, show the same")
ONE_NODE_TABLE = [
    mechanism_param(
        mechanism,
        client,
        marks=[] if client == "moldau.client" or mechanism == "SCRAM-SHA-512" else [OTHER_PAIR],
    )
    for client in SESSIONS
    for mechanism in LOGINS
    if (client, mechanism) not in LACKING
]
JAVA_TABLE = [mechanism_param(mechanism) for mechanism in LOGINS]


def check(seen: Seen, name: str) -> None:
    assert seen == Seen(values_of(name), EXPECTED_CODES)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with secured_site(tmp_path_factory.mktemp("site")) as made:
        yield made


# One node.


@pytest.fixture(scope="module")
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, site: Site
) -> Iterator[str]:
    """Of Moldau, or of Apache Kafka with --against-kafka."""
    folder, port = tmp_path_factory.mktemp("one"), free_port()
    properties = kafka_properties(folder, port)
    controller = properties["controller.quorum.bootstrap.servers"].replace("127.0.0.1", "localhost")
    properties |= site.server_settings("SASL_SSL") | {
        "listeners": f"SASL_SSL://localhost:{port},CONTROLLER://{controller}",
        "controller.quorum.bootstrap.servers": controller,
    }
    config = write_properties(folder / "server.properties", properties)
    users = [word for each in SCRAM for word in ("--add-scram", each)]
    formatting = ["format", "-t", CLUSTER_ID, "--standalone", "-c", str(config), *users]
    if cluster_kind(request) == "moldau":
        formatted = moldau_cli("storage", *formatting)
        assert formatted.status == 0, formatted.err
        command = [sys.executable, "-m", "moldau.cli", "server-start", str(config)]
    else:
        assert kafka_tool("kafka.tools.StorageTool", *formatting).returncode == 0
        options = [f"-D{each}" for each in (*site.java_properties, f"java.io.tmpdir={folder}")]
        command = [*java(SERVER_CLASSES, *options), "kafka.Kafka", str(config)]
    address = f"localhost:{port}"
    with BrokerProcess(command, port, folder / "broker.log"):
        site.prepare(address)
        yield address


@pytest.mark.parametrize(("client", "mechanism"), ONE_NODE_TABLE)
def test_one_node(site: Site, bootstrap: str, client: str, mechanism: str) -> None:
    name = f"{client}-{mechanism}"
    check(SESSIONS[client](site, bootstrap, mechanism, name), name)


@pytest.fixture(scope="module")
def by_java(
    tmp_path_factory: pytest.TempPathFactory, site: Site, bootstrap: str
) -> dict[str, Seen]:
    return java_sessions(site, bootstrap, tmp_path_factory.mktemp("java"))


@needs_kafka
@pytest.mark.parametrize("mechanism", JAVA_TABLE)
def test_one_node_by_java(by_java: dict[str, Seen], mechanism: str) -> None:
    check(by_java[mechanism], f"java-{mechanism}")


# Three nodes.


def controller_mechanism(mechanism: str) -> str:
    """SCRAM's users are in the log that controllers must talk to one another to read."""
    return "PLAIN" if mechanism.startswith("SCRAM") else mechanism


def three_nodes(folder: Path, site: Site, mechanism: str) -> ClusterUnderTest:
    """Not started."""
    settings = site.server_settings(
        "PLAINTEXT",
        between_brokers=mechanism,
        to_controllers=controller_mechanism(mechanism),
    )
    return ClusterUnderTest("moldau", folder, settings, Shape(host="localhost"))


def start(cluster: ClusterUnderTest, site: Site) -> None:
    cluster.format(*(word for each in SCRAM for word in ("--add-scram", each)))
    for node in cluster.nodes.values():
        node.spawn()
    for node in cluster.nodes.values():
        node.wait_until_listening()
    site.prepare(cluster.bootstrap, partitions=3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[ClusterUnderTest]:
    between = "GSSAPI" if site.realm is not None else "OAUTHBEARER"
    made = three_nodes(tmp_path_factory.mktemp("three"), site, between)
    try:
        start(made, site)
        yield made
    finally:
        made.close()


REPEATED = "the sessions with one node, with three: two of them are in `make test`"
SHORT = {("moldau.client", "GSSAPI"), ("confluent-kafka", "SCRAM-SHA-512")}


@pytest.mark.long("three nodes again; test_sasl_nodes has logins between nodes")
@pytest.mark.slow("three nodes")
@pytest.mark.parametrize(
    ("client", "mechanism"),
    [each for each in TABLE if tuple(each.values) in SHORT],  # type: ignore[attr-defined]
)
def test_three_nodes(site: Site, cluster: ClusterUnderTest, client: str, mechanism: str) -> None:
    name = f"{client}-{mechanism}"
    check(SESSIONS[client](site, cluster.bootstrap, mechanism, name), name)


@pytest.mark.long(REPEATED)
@pytest.mark.slow("three nodes")
@pytest.mark.parametrize(
    ("client", "mechanism"),
    [each for each in TABLE if tuple(each.values) not in SHORT],  # type: ignore[attr-defined]
)
def test_three_nodes_by_all(
    site: Site, cluster: ClusterUnderTest, client: str, mechanism: str
) -> None:
    name = f"{client}-{mechanism}"
    check(SESSIONS[client](site, cluster.bootstrap, mechanism, name), name)


@needs_kafka
@pytest.mark.long(REPEATED)
@pytest.mark.slow("three nodes")
def test_three_nodes_by_java(site: Site, cluster: ClusterUnderTest, tmp_path: Path) -> None:
    seen = java_sessions(site, cluster.bootstrap, tmp_path)
    assert list(seen) == [*site.mechanisms, DELEGATION_TOKEN]
    for mechanism, each in seen.items():
        check(each, f"java-{mechanism}")


@pytest.mark.long("a cluster for each mechanism; that of the other tests has one of them")
@pytest.mark.slow("three nodes, of which one is killed")
@pytest.mark.parametrize(
    "mechanism",
    [mechanism_param(each) for each in ("SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")],
)
def test_nodes_log_in_to_one_another(tmp_path: Path, site: Site, mechanism: str) -> None:
    cluster = three_nodes(tmp_path, site, mechanism)
    for node in cluster.nodes.values():
        # Sessions end while the test goes on.
        node.properties["connections.max.reauth.ms"] = "2000"
        node.properties["moldau.audit.file"] = str(node.folder / "audit.jsonl")
        node.properties["moldau.audit.events"] = "authenticated,rejected"
    try:
        start(cluster, site)
        admin = site.client_settings(cluster.bootstrap, "PLAIN", "admin")
        check(SESSIONS["moldau.client"](site, cluster.bootstrap, mechanism, "before"), "before")
        with Admin(admin) as asked:
            part = asked.describe_topics([OPEN])[OPEN].partitions[0]
            assert len(part.isr) == 3
        cluster.eventually(lambda: logged_in(cluster, mechanism), what="nodes are logged in")
        assert part.leader is not None
        cluster.kill(part.leader.id)
        check(SESSIONS["moldau.client"](site, cluster.bootstrap, mechanism, "after"), "after")
        for node in cluster.nodes.values():
            assert "has expired" not in node.log.read_text()
            assert "-secret" not in node.log.read_text()
    except BaseException as error:
        error.add_note(cluster.reports())
        raise
    finally:
        cluster.close()


def logged_in(cluster: ClusterUnderTest, mechanism: str) -> bool:
    """Every broker listener has a login of another node, and so has the active controller; all of
    them by these mechanisms."""
    to_brokers: set[int] = set()
    to_controllers: set[int] = set()
    for node_id, node in cluster.nodes.items():
        path = Path(node.properties["moldau.audit.file"])
        lines = path.read_text().splitlines() if path.exists() else []
        for each in map(json.loads, lines):
            assert each["event"] == "authenticated", each
            if each["principal"] not in NODES:
                continue
            if each["listener"] == "CONTROLLER":
                assert each["mechanism"] == controller_mechanism(mechanism)
                to_controllers.add(node_id)
            else:
                assert each["mechanism"] == mechanism
                to_brokers.add(node_id)
    return len(to_brokers) == len(cluster.nodes) and len(to_controllers) >= 1
