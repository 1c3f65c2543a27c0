"""The broker under attack: four kinds of listeners, users, and ACLs that leave the fuzzer its own
topics, groups and transactions, so that what it is allowed to do disturbs nobody else."""

from __future__ import annotations

import os
import shutil
import ssl
from pathlib import Path
from typing import Final

import psutil
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from support.certificates import Authority
from support.ports import free_port
from support.processes import BrokerProcess
from support.secured import PLAIN_MODULE, secured_moldau

TOPIC: Final = "orders"
USERS: Final = (
    f'{PLAIN_MODULE} required username="admin" password="admin-secret" '
    'user_admin="admin-secret" user_mallory="mallory-secret";'
)
_WAIT_SECONDS_MAX: Final = 60.0
_ALLOWED: Final = (
    (ResourceType.TOPIC, "fuzz", ResourcePatternType.PREFIXED, AclOperation.ALL),
    (ResourceType.GROUP, "fuzz", ResourcePatternType.PREFIXED, AclOperation.ALL),
    (ResourceType.TRANSACTIONAL_ID, "fuzz", ResourcePatternType.PREFIXED, AclOperation.ALL),
    (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, AclOperation.DESCRIBE),
    (
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    (
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        AclOperation.DESCRIBE_CONFIGS,
    ),
)


class Target:
    def __init__(self, folder: Path) -> None:
        self.plaintext, self.ssl, self.controller = free_port(), free_port(), free_port()
        self.broker: BrokerProcess = secured_moldau(folder, self._properties(folder))
        self.sasl = self.broker.port
        self._restrict_to(self.sasl, folder)
        self.tls = ssl.create_default_context(cafile=str(folder / "ca" / "ca.pem"))
        self.tls.check_hostname = False

    def _properties(self, folder: Path) -> dict[str, str]:
        identity = Authority(folder / "ca").issue("broker", "/CN=broker")
        return {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller}",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
            "listener.name.controller.plain.sasl.jaas.config": USERS,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(identity.pem),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
            # Half a second of them would otherwise wait at any time.
            "connection.failed.authentication.delay.ms": "10",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.num.partitions": "2",
        }

    def _restrict_to(self, port: int, folder: Path) -> None:
        """The port of the SASL listener is only known now."""
        path = folder / "server.properties"
        lines = [
            line
            for line in path.read_text().splitlines()
            if not line.startswith(("listeners=", "advertised.listeners="))
        ]
        clients = (
            f"PLAINTEXT://127.0.0.1:{self.plaintext},SSL://127.0.0.1:{self.ssl},"
            f"SASL_PLAINTEXT://127.0.0.1:{port}"
        )
        lines.append(f"listeners={clients},CONTROLLER://127.0.0.1:{self.controller}")
        lines.append(f"advertised.listeners={clients}")
        path.write_text("\n".join(lines) + "\n")

    @property
    def client(self) -> dict[str, str]:
        """The settings of a client that behaves."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.sasl}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "admin-secret",
        }

    def start(self) -> None:
        self.broker.start()
        admin = AdminClient(self.client)
        names = [TOPIC, "fuzz-1", "fuzz-2"]
        for future in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
            future.result(_WAIT_SECONDS_MAX)
        bindings = [
            AclBinding(kind, name, pattern, "User:*", "*", operation, AclPermissionType.ALLOW)
            for kind, name, pattern, operation in _ALLOWED
        ]
        for future in admin.create_acls(bindings).values():
            future.result(_WAIT_SECONDS_MAX)

    @property
    def running(self) -> bool:
        process = self.broker.process
        return process is not None and process.poll() is None

    def memory_bytes(self) -> int:
        return int(psutil.Process(self.broker.pid).memory_info().rss)

    def descriptors(self) -> int:
        """Sockets and pipes; files of logs come and go with their pools."""
        folder = Path(f"/proc/{self.broker.pid}/fd")
        count = 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(folder / name).startswith("socket:")
            except FileNotFoundError:
                continue
        return count

    def connections(self) -> list[str]:
        """Those that are not listening, for a report."""
        return [
            f"{each.status} {each.laddr.port} from {each.raddr.port if each.raddr else None}"
            for each in psutil.Process(self.broker.pid).net_connections("tcp")
            if each.status != psutil.CONN_LISTEN
        ]


def missing() -> str | None:
    """Why this cannot run here, or None."""
    if shutil.which("openssl") is None:
        return "openssl makes the certificate"
    return None
