"""The audit log of a secured broker: logins and decisions, as lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Producer
from moldau.client.admin import NewTopic
from moldau.client.errors import KafkaError, SaslAuthenticationFailedError
from support.secured import client_settings, secured_moldau


def test_logins_and_decisions_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    more = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "moldau.audit.file": str(path),
    }
    with secured_moldau(tmp_path / "data", more) as broker:
        with Admin(client_settings(broker.bootstrap, "PLAIN", "admin", "admin-secret")) as admin:
            admin.create_topics([NewTopic("payments", 1)])
        with (
            Producer(client_settings(broker.bootstrap, "PLAIN", "alice", "alice-secret")) as alice,
            pytest.raises(KafkaError),
        ):
            alice.send("payments", b"x").result(30)
        wrong = client_settings(broker.bootstrap, "PLAIN", "alice", "a-wrong-password")
        with Admin(wrong) as admin, pytest.raises(SaslAuthenticationFailedError):
            admin.list_topics()
    # Everything is written when the broker has stopped.
    text = path.read_text()
    lines = [json.loads(each) for each in text.splitlines()]
    assert {"event": "authenticated", "principal": "User:admin", "mechanism": "PLAIN"}.items() <= (
        first(lines, "authenticated").items()
    )
    rejected = first(lines, "rejected")
    assert (rejected["host"], rejected["mechanism"]) == ("127.0.0.1", "PLAIN")
    created = next(each for each in lines if each.get("api") == "CreateTopics")
    assert (created["event"], created["principal"]) == ("allowed", "User:admin")
    denied = first(lines, "denied")
    assert (denied["principal"], denied["resourceType"], denied["resource"]) == (
        "User:alice",
        "TOPIC",
        "payments",
    )
    for secret in ("admin-secret", "alice-secret", "a-wrong-password"):
        assert secret not in text


def first(lines: list[dict[str, Any]], event: str) -> dict[str, Any]:
    return next(each for each in lines if each["event"] == event)
