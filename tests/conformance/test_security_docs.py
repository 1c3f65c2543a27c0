"""The set-ups of docs/security.md work as they are written, one on top of the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.broker.config.broker_config import BrokerConfig
from moldau.client import Admin, Consumer, Producer, TopicPartition
from moldau.client.config import known_keys
from moldau.client.encryption import DecryptingDeserializer, KeyRing
from moldau.client.errors import AuthorizationError
from moldau.config.properties import load_properties
from support.issuer import ISSUER, Issuer
from support.kerberos import REALM, Realm, kerberos_missing
from support.pasted import consecutive_ports, started
from support.processes import ROOT

TEXT = (ROOT / "docs" / "security.md").read_text()
MECHANISMS = "sasl.enabled.mechanisms"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
KERBEROS = "Kerberos"
SETUPS = ["TLS and mutual TLS", "PLAIN", "SCRAM", "OAUTHBEARER", "Delegation tokens"]
AUDIT, SECRETS, ENCRYPTED = "Audit", "Secrets", "Values that only clients can read"


def blocks(section: str, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(SECTIONS[section]) if kind == language]


def node_lines(section: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in blocks(section, "properties"):
        if text.startswith("# node-1.properties"):
            found |= load_properties(text)
    return found


def client_block(section: str) -> str:
    (text,) = (
        text for text in blocks(section, "properties") if not text.startswith("# node-1.properties")
    )
    return text


class Documented:
    """The node of the document, on ports of its own."""

    def __init__(self, folder: Path, issuer: Issuer) -> None:
        self.folder = folder
        self._port = consecutive_ports(3)
        self._issuer = issuer

    def here(self, text: str) -> str:
        replaced = {
            "pip install '.[security]'\n": "",
            "moldau security init": f"moldau security init --port {self._port}",
            "127.0.0.1:9092": f"127.0.0.1:{self._port}",
            "127.0.0.1:9093": f"127.0.0.1:{self._port + 1}",
            "127.0.0.1:9094": f"127.0.0.1:{self._port + 2}",
            "https://issuer.example.com/keys": self._issuer.jwks_url,
            "https://issuer.example.com/token": self._issuer.token_url,
            "https://issuer.example.com": ISSUER,
            "/run/secrets": str(self.folder / "secrets"),
            "/var/log/moldau": str(self.folder),
        }
        for old, new in replaced.items():
            text = text.replace(old, new)
        return text

    def run(self, program: str, *command: str) -> str:
        done = subprocess.run(
            [*(command or ("bash", "-ec")), self.here(program)],
            cwd=self.folder,
            env={**os.environ, "XDG_CONFIG_HOME": str(self.folder / "config")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{program}\n{done.stdout}{done.stderr}"
        return done.stdout

    @property
    def client(self) -> dict[str, str]:
        """What `moldau security init` wrote for its user `client`."""
        return load_properties((self.folder / "moldau-security/client.properties").read_text())

    def append_setups(self) -> None:
        mechanisms: list[str] = []
        with (self.folder / "moldau-security" / "node-1.properties").open("a") as file:
            for section in (*SETUPS, AUDIT):
                lines = node_lines(section)
                mechanisms += lines.pop(MECHANISMS, "").split(",")
                file.writelines(f"{key}={self.here(value)}\n" for key, value in lines.items())
            file.write(f"{MECHANISMS}={','.join(dict.fromkeys(filter(None, mechanisms)))}\n")


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documented]:
    folder = tmp_path_factory.mktemp("documented")
    with pytest.MonkeyPatch.context() as patch, Issuer() as issuer:
        # `moldau` is the one under test, and files are named relative to the user's directory.
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        patch.chdir(folder)
        documented = Documented(folder, issuer)
        init, _ = blocks("Begin here", "bash")
        documented.run(init)
        documented.append_setups()
        server = "moldau server-start moldau-security/node-1.properties"
        with started(server, folder=folder):
            yield documented


def test_the_beginning(documented: Documented) -> None:
    (program,) = blocks("Begin here", "python")
    documented.run(program, sys.executable, "-c")
    _, commands = blocks("Begin here", "bash")
    assert "client-orders" in documented.run(commands)


@pytest.mark.parametrize("section", SETUPS)
def test_a_set_up(documented: Documented, section: str) -> None:
    printed = "".join(documented.run(program) for program in blocks(section, "bash"))
    client = documented.here(client_block(section))
    if "TOKENID" in client:
        token_id, hmac = printed.splitlines()[-1].split()[:2]
        client = client.replace("TOKENID", token_id).replace("HMAC", hmac)
    with Admin(load_properties(client)) as admin:
        # What one may not describe is not listed.
        assert set(admin.list_topics()) <= {"client-orders", "client-payments"}


@pytest.mark.parametrize("section", ["ACLs", "Quotas and limits"])
def test_commands_for_the_cluster(documented: Documented, section: str) -> None:
    for program in blocks(section, "bash"):
        documented.run(program)


def test_encrypted_values(documented: Documented) -> None:
    (make_keys,) = blocks(ENCRYPTED, "bash")
    (program,) = blocks(ENCRYPTED, "python")
    documented.run(make_keys)
    assert documented.run(program, sys.executable, "-c") == "4111 1111\n"
    stored = list((documented.folder / "moldau-security" / "data").rglob("client-payments-0/*.log"))
    assert stored
    content = b"".join(path.read_bytes() for path in stored)
    assert b"MEV\x01" in content
    assert b"4111" not in content
    by_settings = documented.client | load_properties(client_block(ENCRYPTED))
    with Producer(by_settings) as producer:
        producer.send("client-payments", {"card": "4222 2222"}).result(60)
    keys = KeyRing.from_file(documented.folder / "keys.properties")
    decrypting = DecryptingDeserializer(keys, "json")
    with Consumer(
        documented.client, value_deserializer=decrypting, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition("client-payments", 0)])
        found: list[str] = []
        deadline = time.monotonic() + 60
        while "4222 2222" not in found:
            assert time.monotonic() < deadline
            found += [record.value["card"] for record in consumer.poll(5)]


def test_a_secret_from_a_file(documented: Documented) -> None:
    paul = load_properties(client_block("PLAIN"))
    folder = documented.folder / "secrets"
    folder.mkdir()
    (folder / "paul.properties").write_text(f"jaas={paul.pop('sasl.jaas.config')}\n")
    lines = {**paul, **load_properties(client_block(SECRETS))}
    text = documented.here("".join(f"{key}={value}\n" for key, value in lines.items()))
    (documented.folder / "paul.properties").write_text(text)
    documented.run("moldau topics --list --command-config paul.properties")


def test_the_audit_log(documented: Documented) -> None:
    (lines,) = blocks(AUDIT, "properties")
    events = load_properties(lines)["moldau.audit.events"].split(",")
    path = documented.folder / "audit.jsonl"
    with Admin(documented.client) as admin, pytest.raises(AuthorizationError):
        admin.create_topics(["not-of-the-client"])
    deadline = time.monotonic() + 60
    found: set[str] = set()
    while not {"authenticated", "denied"} <= found:
        assert time.monotonic() < deadline, found
        found = {json.loads(line)["event"] for line in path.read_text().splitlines()}
    assert found <= set(events)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_keys_exist(section: str, caplog: pytest.LogCaptureFixture) -> None:
    node = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "listeners": "CLIENTS://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
    }
    lines = node_lines(section)
    lines.pop("listener.security.protocol.map", None)
    assert not BrokerConfig.from_properties(node | lines).unknown
    for text in blocks(section, "properties"):
        if not text.startswith("# node-1.properties") and "${" not in text:
            assert known_keys(load_properties(text)).keys() == load_properties(text).keys()


def test_every_section_is_run() -> None:
    described = {"Begin here", "ACLs", "Quotas and limits", SECRETS, AUDIT, ENCRYPTED}
    with_lines = {section for section, text in SECTIONS.items() if "```" in text}
    assert with_lines == described | {*SETUPS, KERBEROS}


@pytest.mark.skipif(kerberos_missing() is not None, reason=str(kerberos_missing()))
def test_kerberos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    with Issuer() as issuer, Realm(tmp_path / "realm") as realm:
        monkeypatch.setenv("KRB5_CONFIG", str(realm.config))
        documented = Documented(tmp_path, issuer)
        replaced = {
            "broker1.example.com:9092": "127.0.0.1:9092",
            "broker1.example.com": "localhost",
            "EXAMPLE.COM": REALM,
            "/etc/kafka.keytab": str(realm.keytab("kafka/localhost")),
            "/etc/karl.keytab": str(realm.keytab("karl")),
        }

        def here(text: str) -> str:
            for old, new in replaced.items():
                text = text.replace(old, new)
            return documented.here(text).replace("127.0.0.1", "localhost")

        documented.run("moldau security init --host localhost")
        with (tmp_path / "moldau-security" / "node-1.properties").open("a") as file:
            file.writelines(f"{key}={here(value)}\n" for key, value in node_lines(KERBEROS).items())
        server = "moldau server-start moldau-security/node-1.properties"
        with (
            started(server, folder=tmp_path),
            Admin(load_properties(here(client_block(KERBEROS)))) as admin,
        ):
            assert set(admin.list_topics()) == set()


def test_linked_parts_exist() -> None:
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", TEXT)}
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
