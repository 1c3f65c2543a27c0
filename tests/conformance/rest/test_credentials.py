"""Credentials that are passed on: the broker decides what a user of the proxy may do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from moldau.client import Admin, NewTopic
from moldau.config.errors import ConfigError
from moldau.services.rest.config import RestConfig
from moldau.services.rest.service import RestService
from support.http_service import Running, running
from support.processes import BrokerProcess, kafka_missing
from support.secured import PLAIN_MODULE, secured_kafka, secured_moldau

ADMIN = f'{PLAIN_MODULE} required username="admin" password="admin-secret";'
JSON_V2 = "application/vnd.kafka.json.v2+json"
RECORD = {"records": [{"value": 1}]}


def properties(broker: BrokerProcess, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "listeners": "http://127.0.0.1:0",
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "PLAIN",
        "client.sasl.jaas.config": ADMIN,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    extra = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    folder = tmp_path_factory.mktemp("secured")
    if not request.config.getoption("--against-kafka"):
        made = secured_moldau(folder, extra)
    elif reason := kafka_missing():
        pytest.skip(reason)
    else:
        made = secured_kafka(folder, extra)
    with made as process:
        with Admin(client_settings(process)) as admin:
            admin.create_topics([NewTopic("orders", 1, 1)])
        yield process


def client_settings(broker: BrokerProcess) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": ADMIN,
    }


@pytest.fixture(scope="module")
def proxy(broker: BrokerProcess) -> Iterator[Running]:
    texts = properties(
        broker,
        authentication_method="BASIC",
        confluent_rest_auth_propagate_method="JETTY_AUTH",
        clients_max="2",
    )
    with running(lambda: RestService(RestConfig.of(texts))) as service:
        yield service


def produce(proxy: Running, user: str, password: str) -> httpx.Response:
    return httpx.post(
        f"{proxy.url}/topics/orders",
        json=RECORD,
        headers={"Content-Type": JSON_V2},
        auth=(user, password),
        timeout=60,
    )


def test_the_user_of_a_request_is_the_brokers_principal(proxy: Running) -> None:
    assert httpx.get(proxy.url + "/topics").status_code == 401
    assert produce(proxy, "admin", "admin-secret").json()["offsets"][0]["offset"] == 0
    (refused,) = produce(proxy, "alice", "alice-secret").json()["offsets"]
    assert refused["error_code"] == 40301
    acl = {
        "resource_type": "TOPIC", "resource_name": "orders", "pattern_type": "LITERAL",
        "principal": "User:alice", "host": "*", "operation": "WRITE", "permission": "ALLOW",
    }  # fmt: skip
    auth = ("admin", "admin-secret")
    clusters = httpx.get(f"{proxy.url}/v3/clusters", auth=auth).json()
    acls = clusters["data"][0]["acls"]["related"]
    assert httpx.post(acls, json=acl, auth=auth).status_code == 201
    assert httpx.post(acls, json=acl, auth=("alice", "alice-secret")).json()["error_code"] == 40301
    (stored,) = produce(proxy, "alice", "alice-secret").json()["offsets"]
    assert stored["error_code"] is None


def test_a_wrong_password_is_the_brokers_refusal_and_is_not_kept(proxy: Running) -> None:
    for password in ("wrong", 'quo"te\\', "x" * 300):
        answer = httpx.get(proxy.url + "/topics", auth=("alice", password), timeout=60)
        assert (answer.status_code, answer.json()["error_code"]) == (401, 40101)
    metrics = httpx.get(proxy.url + "/metrics", auth=("admin", "admin-secret")).text
    assert "moldau_rest_client_sets " in metrics
    count = float(metrics.partition("\nmoldau_rest_client_sets ")[2].split()[0])
    assert count <= 3


def test_clients_of_users_are_bounded(proxy: Running) -> None:
    for user in ("admin", "alice", "bob", "admin"):
        answer = httpx.get(proxy.url + "/brokers", auth=(user, f"{user}-secret"), timeout=60)
        assert answer.status_code == 200
        assert proxy.service._clients.count <= 3


def test_an_instance_belongs_to_its_user(proxy: Running) -> None:
    made = httpx.post(
        f"{proxy.url}/consumers/g",
        json={},
        headers={"Content-Type": "application/vnd.kafka.v2+json"},
        auth=("admin", "admin-secret"),
    ).json()
    other = httpx.get(made["base_uri"] + "/records", auth=("bob", "bob-secret"))
    assert (other.status_code, other.json()["error_code"]) == (404, 40403)
    assert httpx.delete(made["base_uri"], auth=("admin", "admin-secret")).status_code == 204


def test_without_pass_through_the_proxy_is_the_principal(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    users.write_text("carol: pass\n")
    texts = properties(broker, authentication_method="BASIC", authentication_users_file=str(users))
    with running(lambda: RestService(RestConfig.of(texts))) as service:
        assert httpx.get(service.url + "/topics", auth=("carol", "pass")).json() == ["orders"]
        assert httpx.get(service.url + "/topics", auth=("carol", "no")).status_code == 401


def test_pass_through_without_passwords_at_the_broker_is_refused(broker: BrokerProcess) -> None:
    texts = {
        "bootstrap.servers": broker.bootstrap,
        "confluent.rest.auth.propagate.method": "JETTY_AUTH",
    }
    with pytest.raises(ConfigError, match=r"client\.security\.protocol"):
        RestService(RestConfig.of(texts))
