"""Passwords and TLS in front of the server, the broker's ACLs behind it."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    Admin,
    NewTopic,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from support.certificates import Authority
from support.processes import BrokerProcess
from support.secured import client_settings, secured_kafka, secured_moldau
from support.sql_server import SqlServer, sql_server

USERS = "ada: secret,sql\n"


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    against = request.config.getoption("--against-kafka")
    make = secured_kafka if against else secured_moldau
    extra = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }
    with make(tmp_path_factory.mktemp("broker"), extra) as process:
        yield process


def allowed(
    kind: ResourceType, name: str, operation: AclOperation, pattern: PatternType
) -> AclBinding:
    return AclBinding(
        ResourcePattern(kind, name, pattern),
        AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW),
    )


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(client_settings(broker.bootstrap, "PLAIN", "admin", "admin-secret")) as found:
        found.create_topics([NewTopic("open", 1), NewTopic("secret", 1)])
        everything, prefixed = AclOperation.ALL, PatternType.PREFIXED
        found.create_acls(
            [
                allowed(ResourceType.TOPIC, "open", everything, PatternType.LITERAL),
                allowed(ResourceType.TOPIC, "secret", AclOperation.DESCRIBE, PatternType.LITERAL),
                allowed(ResourceType.TOPIC, "_confluent-ksql-", everything, prefixed),
                allowed(ResourceType.TOPIC, "COPY", everything, prefixed),
                allowed(ResourceType.GROUP, "_confluent-ksql-", everything, prefixed),
                allowed(ResourceType.TRANSACTIONAL_ID, "default_", everything, prefixed),
                allowed(
                    ResourceType.CLUSTER, "kafka-cluster", AclOperation.CREATE, PatternType.LITERAL
                ),
            ]
        )
        yield found


def test_the_brokers_acls_decide_what_a_query_may_read(
    broker: BrokerProcess, admin: Admin, tmp_path: Path
) -> None:
    settings = client_settings(broker.bootstrap, "PLAIN", "alice", "alice-secret")
    bootstrap = settings.pop("bootstrap.servers")
    texts = {key.replace(".", "_"): value for key, value in settings.items()}
    with sql_server(
        bootstrap,
        ksql_streams_state_dir=str(tmp_path),
        ksql_streams_commit_interval_ms="100",
        **texts,
    ) as server:
        for name in ("open", "secret"):
            server.execute(
                f"CREATE STREAM {name} (id STRING KEY, n INT) "
                f"WITH (kafka_topic='{name}', value_format='JSON');"
            )
        server.execute("INSERT INTO open VALUES ('a', 1);")
        earliest = {"auto.offset.reset": "earliest"}
        rows = server.query("SELECT * FROM open EMIT CHANGES LIMIT 1;", earliest)
        assert rows[1]["row"]["columns"] == ["a", 1]
        server.execute("CREATE STREAM copy AS SELECT * FROM open;", earliest)
        refused = [
            server.post("/query", {"ksql": "SELECT * FROM secret EMIT CHANGES;"}),
            server.post("/query", {"ksql": "PRINT 'secret' FROM BEGINNING;"}),
            server.post("/ksql", {"ksql": "CREATE STREAM copy2 AS SELECT * FROM secret;"}),
            server.post(
                "/ksql",
                {
                    "ksql": "CREATE STREAM copy3 AS SELECT o.id, o.n FROM open o JOIN secret s "
                    "WITHIN 1 HOUR ON o.id = s.id;"
                },
            ),
            server.post("/ksql", {"ksql": "INSERT INTO secret VALUES ('a', 1);"}),
        ]
        for each, verb in zip(refused, ("Read",) * 4 + ("Write",), strict=True):
            assert (each.status_code, each.json()["error_code"]) == (403, 40301), each.text
            message = f"Authorization denied to {verb} on topic(s): [secret]"
            assert each.json()["message"] == message
        assert "COPY2" not in str(server.execute("SHOW STREAMS;"))


def test_passwords_and_tls(broker: BrokerProcess, admin: Admin, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    certificate = authority.issue("server", "/CN=localhost")
    users = tmp_path / "users"
    users.write_text(USERS)
    settings = client_settings(broker.bootstrap, "PLAIN", "admin", "admin-secret")
    bootstrap = settings.pop("bootstrap.servers")
    texts = {key.replace(".", "_"): value for key, value in settings.items()}
    with sql_server(
        bootstrap,
        listeners="https://127.0.0.1:0",
        ksql_service_id="secured_",
        ksql_streams_state_dir=str(tmp_path / "state"),
        ssl_keystore_location=str(certificate.pem),
        ssl_keystore_type="PEM",
        authentication_method="BASIC",
        authentication_roles="sql",
        authentication_users_file=str(users),
        **texts,
    ) as server:
        check(server, authority)


def check(server: SqlServer, authority: Authority) -> None:
    with httpx.Client(
        base_url=server.url, verify=ssl.create_default_context(cafile=authority.certificate)
    ) as client:
        body = {"ksql": "SHOW STREAMS;"}
        assert client.post("/ksql", json=body).status_code == 401
        assert client.post("/ksql", json=body, auth=("ada", "wrong")).status_code == 401
        assert client.post("/ksql", json=body, auth=("ada", "secret")).status_code == 200
        assert client.get("/info").status_code == 200
    if shutil.which("curl") is None:
        return
    done = subprocess.run(
        ["curl", "-sS", "--cacert", str(authority.certificate), "-u", "ada:secret", "--http2",
         "-w", "%{http_version} %{http_code}", "-d", '{"ksql":"SHOW TABLES;"}',
         f"{server.url}/ksql"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("2 200"), done.stdout + done.stderr
