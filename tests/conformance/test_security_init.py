"""`moldau security init`: what it prints works as printed, and what it makes is secured."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.client.admin import NewTopic
from moldau.client.errors import (
    KafkaError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
)
from moldau.config.properties import load_properties
from support.cli import moldau_cli
from support.pasted import consecutive_ports, started
from support.processes import ROOT, kafka_missing, kafka_tool

SECRET = re.compile(r'password="([^"]+)"')


def commands_of(report: str) -> list[str]:
    joined = re.sub(r"\\\n\s+", "", report)
    return [
        line.strip()
        for line in joined.partition("Start it")[2].splitlines()
        if line.startswith("  ")
    ]


def pasted(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder / "config")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # The wrapper of a checkout runs what `make` has installed; here it is the code under test.
    monkeypatch.setenv("PATH", f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def test_what_it_prints_works_as_printed(here: Path) -> None:
    made = moldau_cli("security", "init", "--port", str(consecutive_ports(2)))
    assert made.status == 0, made.err
    start, produce, consume, program, acls, profile = commands_of(made.out)
    assert start.endswith("server-start moldau-security/node-1.properties")
    with started(start, folder=here):
        pasted(produce, here)
        assert pasted(consume, here) == "hello\n"
        assert pasted(program, here) == "hello\nhello from Python\n"
        assert "principal=User:client, host=*, operation=ALL" in pasted(acls, here)
        assert "Created the profile secured" in pasted(profile, here)
        assert pasted(f"{produce.split()[3]} topics --list", here) == "client-greetings\n"

        client = load_properties((here / "moldau-security" / "client.properties").read_text())
        with Producer(client, max_block_ms=10_000) as producer:
            producer.send("client-more", b"allowed").result(30)
            with pytest.raises(TopicAuthorizationFailedError, match="topics: \\[other\\]"):
                producer.send("other", b"not allowed").result(30)
        wrong = client | {
            "sasl.jaas.config": SECRET.sub('password="x"', client["sasl.jaas.config"])
        }
        with Admin(wrong) as admin, pytest.raises(SaslAuthenticationFailedError):
            admin.list_topics()
        at = client["bootstrap.servers"]
        with (
            Admin(
                bootstrap_servers=at, request_timeout_ms=1000, default_api_timeout_ms=1000
            ) as admin,
            pytest.raises(KafkaError),
        ):
            admin.list_topics()
        _check_with_kafkas_tool(here / "moldau-security" / "client.properties", at)
    _check_secrets(here / "moldau-security", made.out)


def _check_with_kafkas_tool(config: Path, bootstrap: str) -> None:
    if kafka_missing() is not None:
        return
    words = ("--bootstrap-server", bootstrap, "--command-config", str(config), "--list")
    listed = kafka_tool("org.apache.kafka.tools.TopicCommand", *words)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert set(listed.stdout.split()) == {"client-greetings", "client-more"}


def _check_secrets(folder: Path, report: str) -> None:
    """In files of their owner alone: not in what was printed, not in the data, not in the logs."""
    passwords = {
        found for path in folder.glob("*.properties") for found in SECRET.findall(path.read_text())
    }
    assert len(passwords) == 3  # of admin, broker and client
    for path in (each for each in folder.parent.rglob("*") if each.is_file()):
        content = path.read_bytes()
        if b"PRIVATE KEY" in content or any(each.encode() in content for each in passwords):
            assert path.suffix in (".properties", ".pem", ".key")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert not any(each in report for each in passwords)


@pytest.mark.long("three nodes; what is printed for one works above")
@pytest.mark.slow("three nodes with TLS between them")
def test_three_nodes_under_another_name(here: Path) -> None:
    made = moldau_cli(
        "security", "init", "--nodes", "3", "--port", str(consecutive_ports(6)),
        "--directory", "three", "--host", "localhost", "--user", "orders", "--user", "billing",
    )  # fmt: skip
    assert made.status == 0, made.err
    settings = {
        name: load_properties((here / "three" / f"{name}.properties").read_text())
        for name in ("admin", "orders", "billing")
    }
    with started(*commands_of(made.out)[:3], folder=here):
        with Admin(settings["admin"], default_api_timeout_ms=60_000) as admin:
            admin.create_topics([NewTopic("orders-new", 3, 3)])
        with Producer(settings["orders"]) as producer:
            producer.send("orders-new", b"first").result(60)
        with Consumer(settings["billing"], group_id="billing-1") as consumer:
            consumer.subscribe(["orders-new"])
            with pytest.raises(TopicAuthorizationFailedError):
                consumer.poll(30)
