"""Brokers with SASL for tests: Moldau and Apache Kafka from the same properties."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from support.ports import free_port
from support.processes import (
    SERVER_CLASSES,
    BrokerProcess,
    java,
    kafka_properties,
    kafka_tool,
    write_properties,
)

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PACKAGE = "org.apache.kafka.common.security"
PLAIN_MODULE = f"{PACKAGE}.plain.PlainLoginModule"
SCRAM_MODULE = f"{PACKAGE}.scram.ScramLoginModule"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
USERS = (
    f'{PLAIN_MODULE} required username="admin" password="admin-secret" '
    'user_admin="admin-secret" user_alice="alice-secret" user_bob="bob-secret";'
)
SCRAM = (
    "SCRAM-SHA-256=[name=sam,password=sam-secret]",
    "SCRAM-SHA-512=[name=sam,password=sam-secret]",
)


def sasl_properties(
    folder: Path, port: int, mechanisms: Iterable[str] = MECHANISMS
) -> dict[str, str]:
    """A single node whose only broker listener is SASL_PLAINTEXT."""
    properties = kafka_properties(folder, port)
    controller = properties["listeners"].split(",")[1]
    return properties | {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port},{controller}",
        "advertised.listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "delegation.token.secret.key": "the key of all tokens",
    }


def _options(config: Path, scram: Iterable[str]) -> list[str]:
    options = ["format", "-t", CLUSTER_ID, "--standalone", "-c", str(config)]
    for each in scram:
        options += ["--add-scram", each]
    return options


def secured_moldau(
    folder: Path, extra: Mapping[str, str] | None = None, scram: Iterable[str] = SCRAM
) -> BrokerProcess:
    port = free_port()
    properties = sasl_properties(folder, port) | dict(extra or {})
    config = write_properties(folder / "server.properties", properties)
    command = [sys.executable, "-m", "moldau.cli"]
    subprocess.run(
        [*command, "storage", *_options(config, scram)], check=True, stdout=subprocess.DEVNULL
    )
    return BrokerProcess([*command, "server-start", str(config)], port, folder / "moldau.log")


def secured_kafka(
    folder: Path, extra: Mapping[str, str] | None = None, scram: Iterable[str] = SCRAM
) -> BrokerProcess:
    port = free_port()
    properties = sasl_properties(folder, port) | dict(extra or {})
    config = write_properties(folder / "server.properties", properties)
    formatted = kafka_tool("kafka.tools.StorageTool", *_options(config, scram))
    assert formatted.returncode == 0, formatted.stdout + formatted.stderr
    command = [*java(SERVER_CLASSES, f"-Djava.io.tmpdir={folder}"), "kafka.Kafka", str(config)]
    return BrokerProcess(command, port, folder / "kafka.log")


def jaas(mechanism: str, username: str, password: str, **more: str) -> str:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    options = {"username": username, "password": password, **more}
    shown = " ".join(f'{name}="{value}"' for name, value in options.items())
    return f"{module} required {shown};"


def client_settings(
    bootstrap: str, mechanism: str, username: str, password: str, **more: str
) -> dict[str, str]:
    """Of moldau.client and of Java's clients."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(mechanism, username, password, **more),
    }
