"""The blocks of docs/security-tls.md, -sasl.md, -acls.md and -quotas.md work as they are written.

One node has the lines of all of them, and one more the classes that replace what the first one has.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from moldau.client import Admin, Producer
from moldau.client.admin import NewTopic
from moldau.client.errors import AuthorizationError, SaslAuthenticationFailedError
from moldau.config.properties import load_properties
from support.directory import PEOPLE, Directory, slapd_missing
from support.issuer import ISSUER, Issuer
from support.kerberos import REALM, Realm, kerberos_missing
from support.nested_pytest import plain_environment
from support.pasted import started
from support.ports import free_port
from support.processes import ROOT
from support.secured import PLAIN_MODULE, secured_moldau
from support.waiting import eventually

TLS, SASL, ACLS, QUOTAS = (f"security-{part}.md" for part in ("tls", "sasl", "acls", "quotas"))
BLOCK = re.compile(r"^#{2,3} ([^\n]+)$|^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TITLE = "the beginning"
LISTENERS = ("SSL", "SASL_SSL", "CLIENTS", "PARTNERS", "OWN", "CONTROLLER")
MECHANISMS = "sasl.enabled.mechanisms"


def _blocks() -> dict[tuple[str, str, str], list[str]]:
    """By document, section and language."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for document in (TLS, SASL, ACLS, QUOTAS):
        section = TITLE
        for heading, language, text in BLOCK.findall((ROOT / "docs" / document).read_text()):
            section = heading or section
            if language:
                found.setdefault((document, section, language), []).append(text)
    return found


BLOCKS = _blocks()


def block(document: str, section: str, language: str, number: int = 0) -> str:
    return BLOCKS[document, section, language][number]


class Node:
    """The node of the documents: every listener of theirs, on ports of its own."""

    def __init__(self, folder: Path, issuer: Issuer, realm: Realm | None, ldap: str) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in LISTENERS}
        self._realm = realm
        self.issuer = issuer
        self._replaced = {
            # What stands in the documents, and what it is here; the first that matches.
            "broker1.example.com:9093": f"localhost:{self.ports['SSL']}",
            "broker1.example.com:9094": f"localhost:{self.ports['CONTROLLER']}",
            "localhost:9092": f"localhost:{self.ports['SASL_SSL']}",
            "https://issuer/keys": issuer.jwks_url,
            "https://issuer/token": issuer.token_url,
            "https://issuer": ISSUER,
            "ldaps://ldap.example.com": ldap,
            "broker1.example.com": "localhost",
            "EXAMPLE.COM": REALM,
            "/etc/kafka.keytab": str(realm.keytab("kafka/localhost")) if realm else "",
            "/etc/moldau": str(folder),
            "/run/secrets": str(folder / "secrets"),
            "/var/log/moldau": str(folder),
            "topic.replication.factor=3": "topic.replication.factor=1",
        }

    def here(self, text: str) -> str:
        for old, new in self._replaced.items():
            text = text.replace(old, new)
        return text

    def lines(self, document: str, section: str, number: int = 0) -> dict[str, str]:
        return load_properties(self.here(block(document, section, "properties", number)))

    def run(self, script: str, *command: str) -> str:
        done = subprocess.run(
            [*(command or ("bash", "-ec")), self.here(script)],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def with_login(self, commands: str) -> str:
        """The documents' commands leave the login out, or name another file for it."""
        at = self.here("localhost:9092")
        return commands.replace("localhost:9092", f"{at} --command-config admin.properties")

    def make_certificates(self) -> None:
        script = block(TLS, "A broker", "bash")
        self.run(script)
        of_ca, _, of_broker = script.partition("openssl req -new")
        assert of_ca.startswith("openssl req -x509")
        for name in ("client", "new"):
            # The new one of the broker has the same subject.
            subject = "CN=client" if name == "client" else "CN=broker1"
            self.run(
                f"openssl req -new{of_broker}".replace("broker1", name)
                .replace(f"CN={name}", subject)
                .replace(f"{name}.example.com", "broker1.example.com")
            )

    def write_properties(self, *, ldap_ca: Path | None) -> None:
        node = self.lines(TLS, "A broker")
        parts = [
            self.lines(SASL, "PLAIN"), self.lines(SASL, "SCRAM"), self.lines(SASL, "OAUTHBEARER"),
            self.lines(ACLS, TITLE), self.lines(ACLS, "A principal builder of your own"),
            self.lines(QUOTAS, "Audit"), self.lines(QUOTAS, "To a topic"),
        ]  # fmt: skip
        if self._realm is not None:
            parts.append(self.lines(SASL, "GSSAPI (Kerberos)"))
        if ldap_ca is not None:
            parts.append(self.lines(SASL, "Users of an LDAP directory"))
            parts.append({"listener.name.clients.ldap.ca.location": str(ldap_ca)})
        listeners = {name: f"{name}://localhost:{port}" for name, port in self.ports.items()}
        assert node["listeners"] == f"{listeners['SSL']},{listeners['CONTROLLER']}"
        mechanisms = ["SCRAM-SHA-256"]
        for part in parts:
            mechanisms += part.pop(MECHANISMS, "").split(",")
            part.pop("listeners", None)
            node |= part
        own = "listener.name.own.plain.sasl.server.callback.handler.class"
        node |= {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"localhost:{self.ports['CONTROLLER']}",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "listeners": ",".join(listeners.values()),
            "listener.security.protocol.map": node["listener.security.protocol.map"]
            + ",SASL_SSL:SASL_SSL,CLIENTS:SASL_SSL,PARTNERS:SSL,OWN:SASL_SSL",
            "super.users": f"{node['super.users']};User:broker1",
            MECHANISMS: ",".join(filter(None, mechanisms)),
            "delegation.token.secret.key": "the key of all tokens",
            own: "my_company.users.Users",
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.own.sasl.enabled.mechanisms": "PLAIN",
        }
        text = "".join(f"{key}={value}\n" for key, value in node.items())
        (self.folder / "server.properties").write_text(text)

    def client(self, lines: Mapping[str, str], listener: str = "SASL_SSL") -> dict[str, str]:
        """Lines of a document with what they leave out: where to connect and whom to trust."""
        trust = self.lines(TLS, "A client")
        return {
            **{key: trust[key] for key in ("ssl.truststore.type", "ssl.truststore.location")},
            "bootstrap.servers": f"localhost:{self.ports[listener]}",
            "security.protocol": "SASL_SSL",
            **lines,
        }

    @property
    def of_certificate(self) -> dict[str, str]:
        at = self.here("broker1.example.com:9093")
        return {**self.lines(TLS, "A client"), "bootstrap.servers": at}

    def plain(self, user: str, password: str, listener: str = "SASL_SSL") -> dict[str, str]:
        line = f'{PLAIN_MODULE} required username="{user}" password="{password}";'
        return self.client({"sasl.mechanism": "PLAIN", "sasl.jaas.config": line}, listener)


def write_module(folder: Path, name: str, *texts: str) -> None:
    package = folder / "my_company"
    package.mkdir(exist_ok=True)
    (package / f"{name}.py").write_text("\n\n".join(texts))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        patch.setenv("PYTHONPATH", str(folder))
        realm = None
        if kerberos_missing() is None:
            realm = stack.enter_context(Realm(folder / "realm"))
            patch.setenv("KRB5_CONFIG", str(realm.config))
        ldap, ldap_ca = "ldaps://127.0.0.1:1", None
        if slapd_missing() is None:
            directory = stack.enter_context(Directory(folder / "ldap", {"ann": "ann-secret"}))
            ldap, ldap_ca = (
                f"ldaps://127.0.0.1:{directory.tls_port}",
                directory.authority.certificate,
            )
        documented = Node(folder, stack.enter_context(Issuer()), realm, ldap)
        write_module(folder, "kafka", block(ACLS, "A principal builder of your own", "python"))
        users = block(SASL, "PLAIN", "python").replace(": ...", ": return password == 'own-secret'")
        write_module(folder, "users", users)
        documented.make_certificates()
        documented.write_properties(ldap_ca=ldap_ca)
        with (folder / "admin.properties").open("w") as file:
            lines = documented.plain("admin", "admin-secret")
            file.writelines(f"{key}={value}\n" for key, value in lines.items())
        format_it, _, _ = block(SASL, "SCRAM", "bash").partition("moldau configs")
        documented.run(format_it.replace("-t ID", "-t MkU3OEVBNTcwNTJENDM2Qg"))
        stack.enter_context(started("moldau server-start server.properties", folder=folder))
        yield documented


def log_in(settings: Mapping[str, str]) -> None:
    with Admin(settings) as admin:
        admin.list_topics()


def test_a_client_with_a_certificate(node: Node) -> None:
    node.run(
        node.with_login(
            "moldau acls --bootstrap-server localhost:9092 --add --allow-principal User:client "
            "--producer --topic client-orders"
        )
    )
    log_in(node.of_certificate)
    program = block(TLS, "A client", "python")
    sending = "producer.send('client-orders', 'first').result(60)\nproducer.close()"
    node.run(f"{program}\n{sending}", sys.executable, "-c")


def test_plain(node: Node) -> None:
    log_in(node.client(node.lines(SASL, "PLAIN", 1)))


def test_users_checked_by_a_class(node: Node) -> None:
    log_in(node.plain("anybody", "own-secret", "OWN"))
    with pytest.raises(SaslAuthenticationFailedError):
        log_in(node.plain("anybody", "another-secret", "OWN"))


@pytest.mark.skipif(slapd_missing() is not None, reason=str(slapd_missing()))
def test_users_of_a_directory(node: Node) -> None:
    assert (
        PEOPLE
        in node.lines(SASL, "Users of an LDAP directory")["listener.name.clients.ldap.user.dn"]
    )
    log_in(node.plain("ann", "ann-secret", "CLIENTS"))


def test_scram(node: Node) -> None:
    _, command, of_alice = block(SASL, "SCRAM", "bash").partition("moldau configs")
    node.run(command + of_alice)
    lines = node.lines(SASL, "SCRAM")
    line = lines["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"]
    for user in ("admin", "alice"):
        login = {
            "sasl.mechanism": lines[MECHANISMS],
            "sasl.jaas.config": line.replace("admin", user),
        }
        log_in(node.client(login))


def test_oauthbearer(node: Node) -> None:
    log_in(node.client(node.lines(SASL, "OAUTHBEARER", 1)))
    node.run("openssl genrsa -out app.key 2048 && openssl rsa -in app.key -pubout -out app.pub")
    node.issuer.signers["app"] = (node.folder / "app.pub").read_bytes()
    node.issuer.audience = ISSUER
    log_in(node.client(node.lines(SASL, "OAUTHBEARER", 2)))


@pytest.mark.skipif(kerberos_missing() is not None, reason=str(kerberos_missing()))
def test_kerberos(node: Node) -> None:
    lines = node.lines(SASL, "GSSAPI (Kerberos)")
    login = {
        "sasl.mechanism": lines[MECHANISMS],
        "sasl.kerberos.service.name": lines["sasl.kerberos.service.name"],
        "sasl.jaas.config": lines["listener.name.sasl_ssl.gssapi.sasl.jaas.config"],
    }
    log_in(node.client(login))


def test_a_delegation_token(node: Node) -> None:
    command = "moldau delegation-tokens --create --max-life-time-period -1"
    printed = node.run(node.with_login(f"{command} --bootstrap-server localhost:9092"))
    token_id, hmac = printed.splitlines()[-1].split()[:2]
    text = block(SASL, "Delegation tokens", "properties")
    log_in(
        node.client(load_properties(text.replace("<token id>", token_id).replace("<HMAC>", hmac)))
    )


def test_acls_and_what_is_audited(node: Node) -> None:
    printed = node.run(node.with_login(block(ACLS, TITLE, "sh")))
    assert "User:bob" in printed
    alice = node.client(node.lines(SASL, "PLAIN", 1))
    with Producer(alice) as producer:
        producer.send("orders", "first").result(60)
    with Admin(node.plain("admin", "admin-secret")) as admin:
        admin.create_topics(["payments.eu"])
    with Admin(alice) as admin, pytest.raises(AuthorizationError):
        admin.delete_topics(["payments.eu"])
    shown = json.loads(block(QUOTAS, "Audit", "json"))

    def denied() -> list[dict[str, object]]:
        path = node.folder / "audit.jsonl"
        events = map(json.loads, path.read_text().splitlines() if path.exists() else ())
        return [event for event in events if event["event"] == "denied"]

    eventually(lambda: denied() != [], what="what was denied is in the audit log")
    assert {event["resource"] for event in denied()} == {"payments.eu"}
    assert denied()[0].keys() == shown.keys()


def test_the_audit_topic(node: Node) -> None:
    command = block(QUOTAS, "To a topic", "bash").rstrip()
    printed = node.run(f"{command} --max-messages 1 --timeout-ms 60000")
    assert json.loads(printed.splitlines()[0])["node"] == 1


def test_a_principal_builder(node: Node) -> None:
    lines = node.client(node.lines(TLS, "A client"), "PARTNERS")
    with Admin(lines) as admin, pytest.raises(AuthorizationError):
        admin.create_topics(["of-a-partner"])
    node.run(
        node.with_login(
            "moldau acls --bootstrap-server localhost:9092 --add --allow-principal Partner:Org "
            "--operation Create --topic of-a-partner"
        )
    )
    with Admin(lines) as admin:
        admin.create_topics(["of-a-partner"])


def test_quotas(node: Node) -> None:
    printed = node.run(node.with_login(block(QUOTAS, "Client quotas", "bash")))
    assert "producer_byte_rate=1048576" in printed
    assert "consumer_byte_rate=2097152" not in printed  # of users and clients


def test_secrets_from_elsewhere(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLDAU_KEY_PASSWORD", "store-secret")
    secrets = node.folder / "secrets"
    secrets.mkdir()
    node.run("openssl pkcs12 -export -in client.pem -out client.p12 -passout pass:store-secret")
    (secrets / "broker.properties").write_text("keystore=store-secret\n")
    (secrets / "jaas").write_text(node.plain("alice", "alice-secret")["sasl.jaas.config"])
    lines = node.client({"sasl.mechanism": "PLAIN"}) | node.lines(QUOTAS, "Secrets")
    log_in(
        lines
        | {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(node.folder / "client.p12"),
        }
    )


def test_a_new_certificate(node: Node) -> None:
    (node.folder / "client.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in node.of_certificate.items())
    )
    node.run(
        node.with_login(
            "moldau acls --bootstrap-server localhost:9092 --add --allow-principal User:client "
            "--operation All --cluster"
        )
    )
    node.run(block(TLS, "New certificates while running", "bash"))
    at = node.here("broker1.example.com:9093")
    show = f"openssl s_client -connect {at} </dev/null 2>/dev/null | openssl x509 -noout -serial"
    serial = node.run("openssl x509 -in new.crt -noout -serial")
    assert serial != node.run("openssl x509 -in broker1.crt -noout -serial")
    eventually(lambda: node.run(show) == serial, what="the new certificate is shown")


def test_the_fixture_for_tests(tmp_path: Path) -> None:
    path = tmp_path / "test_orders.py"
    path.write_text(block(TLS, "In tests", "python"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "moldau.testing.plugin", str(path)],
        cwd=tmp_path, env=plain_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_an_authorizer_and_quotas_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    section = "An authorizer of your own"
    write_module(tmp_path, "kafka", block(ACLS, section, "python"))
    write_module(tmp_path, "quotas", block(QUOTAS, "Own rules", "python"))
    lines = load_properties(block(ACLS, section, "properties"))
    Path(tmp_path / "teams.json").write_text('{"User:alice": ["orders"]}')
    users = (
        f'{PLAIN_MODULE} required username="broker" password="broker-secret" '
        'user_broker="broker-secret" user_alice="alice-secret";'
    )
    settings = {
        **lines,
        "team.file": str(tmp_path / "teams.json"),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
        "client.quota.callback.class": "my_company.quotas.ByTeam",
    }
    with secured_moldau(tmp_path, settings, scram=()) as broker:
        common = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
        }
        line = f'{PLAIN_MODULE} required username="%s" password="%s-secret";'
        with Admin({**common, "sasl.jaas.config": line % ("broker", "broker")}) as admin:
            admin.create_topics([NewTopic("orders.eu", 1), NewTopic("payments.eu", 1)])
        alice = {**common, "sasl.jaas.config": line % ("alice", "alice")}
        with Producer({**alice, "client.id": "batch-1"}) as producer:
            with pytest.raises(AuthorizationError):
                producer.send("payments.eu", b"").result(60)
            # What ten seconds allow may come at once.
            for _ in range(14):
                producer.send("orders.eu", bytes(1_000_000)).result(60)
            throttled = throttle_ms(producer)
        assert throttled > 0
        with Producer({**alice, "client.id": "web-1"}) as producer:
            producer.send("orders.eu", bytes(900_000)).result(60)
            assert throttle_ms(producer) == 0


def throttle_ms(producer: Producer) -> float:
    return max(
        float(metric.value)
        for name, metric in producer.metrics().items()
        if "produce-throttle-time-max" in str(name)
    )


def test_every_block_is_run() -> None:
    """A block that is added has to be run above, and counted here."""
    counts = Counter({key: len(texts) for key, texts in BLOCKS.items()})
    assert counts == {
        (TLS, "A broker", "properties"): 1,
        (TLS, "A broker", "bash"): 1,
        (TLS, "A client", "properties"): 1,
        (TLS, "A client", "python"): 1,
        (TLS, "New certificates while running", "bash"): 1,
        (TLS, "In tests", "python"): 1,
        (SASL, "PLAIN", "properties"): 2,
        (SASL, "PLAIN", "python"): 1,
        (SASL, "Users of an LDAP directory", "properties"): 1,
        (SASL, "SCRAM", "properties"): 1,
        (SASL, "SCRAM", "bash"): 1,
        (SASL, "OAUTHBEARER", "properties"): 3,
        (SASL, "GSSAPI (Kerberos)", "properties"): 1,
        (SASL, "Delegation tokens", "properties"): 1,
        (ACLS, TITLE, "properties"): 1,
        (ACLS, TITLE, "sh"): 1,
        (ACLS, "A principal builder of your own", "properties"): 1,
        (ACLS, "A principal builder of your own", "python"): 1,
        (ACLS, "An authorizer of your own", "properties"): 1,
        (ACLS, "An authorizer of your own", "python"): 1,
        (QUOTAS, "Client quotas", "bash"): 1,
        (QUOTAS, "Own rules", "python"): 1,
        (QUOTAS, "Secrets", "properties"): 1,
        (QUOTAS, "Audit", "properties"): 1,
        (QUOTAS, "Audit", "json"): 1,
        (QUOTAS, "To a topic", "properties"): 1,
        (QUOTAS, "To a topic", "bash"): 1,
    }
