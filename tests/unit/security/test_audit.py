"""The audit log: what is recorded, how it looks, and when it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.security.audit import log as audit_log
from moldau.broker.security.audit.log import AuditLog, append_to
from moldau.broker.security.audit.machine.settings import audit_settings
from moldau.config.errors import ConfigError
from moldau.times import ElapsedMs, WallMs
from moldau.wire.apis import ApiKey

CONTEXT = RequestContext(
    ApiKey.PRODUCE, 12, client_id='app "1"', principal="User:alice", client_host="10.0.0.1"
)


class ManualClock:
    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def now_ms(self) -> WallMs:
        return WallMs(1234)

    def elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(0)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        self.due.append(callback)
        return self

    def cancel(self) -> None: ...


class Stage:
    def __init__(self, **settings: str) -> None:
        keys = {name.replace("_", "."): value for name, value in settings.items()}
        given = {f"moldau.audit.{name}": value for name, value in {"file": "/a", **keys}.items()}
        read = audit_settings(given)
        assert read is not None
        self.clock = ManualClock()
        self.written: list[bytes] = []
        self.log = AuditLog(read, self.clock, node_id=3, write=self.written.append)

    @property
    def lines(self) -> list[dict[str, Any]]:
        self.log.flush()
        return [json.loads(each) for each in b"".join(self.written).splitlines()]


def test_an_operation() -> None:
    stage = Stage()
    stage.log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=False)
    assert stage.lines == [
        {
            "time": 1234,
            "node": 3,
            "event": "denied",
            "principal": "User:alice",
            "host": "10.0.0.1",
            "listener": "PLAINTEXT",
            "clientId": 'app "1"',
            "api": "Produce",
            "operation": "WRITE",
            "resourceType": "TOPIC",
            "resource": "orders",
        }
    ]


def test_authentications() -> None:
    stage = Stage()
    connection = ConnectionInfo(listener_name="SASL", client_host="10.0.0.2")
    stage.log.authentication(connection, "PLAIN", principal="User:bob")
    stage.log.authentication(connection, "PLAIN", reason="Invalid username or password")
    assert [(each["event"], each.get("principal")) for each in stage.lines] == [
        ("authenticated", "User:bob"),
        ("rejected", None),
    ]
    assert stage.lines[1]["reason"] == "Invalid username or password"


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({}, 20),
        ({"events": "denied,rejected"}, 10),
        ({"operations": "read"}, 0),
        ({"operations": "write,read"}, 20),
        ({"resources": "pay*,orders"}, 20),
        ({"resources": "pay*"}, 0),
        ({"principals": "User:a*"}, 20),
        ({"exclude_principals": "User:a*"}, 0),
        ({"sample_every": "5"}, 12),
    ],
)
def test_filters_and_samples(settings: dict[str, str], count: int) -> None:
    stage = Stage(**settings)
    for _ in range(10):
        stage.log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
        stage.log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=False)
    assert len(stage.lines) == count


def test_lines_are_written_together_a_moment_later_or_when_there_are_many() -> None:
    stage = Stage()
    stage.log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
    stage.log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
    assert (len(stage.written), len(stage.clock.due)) == (0, 1)
    stage.clock.due.pop()()
    assert len(stage.written) == 1
    for _ in range(audit_log.LINES_MAX):
        stage.log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
    assert len(stage.written) == 2


def test_a_file_that_cannot_be_written_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "none" / "audit.jsonl"
    read = audit_settings({"moldau.audit.file": str(path)})
    assert read is not None
    log = AuditLog(read, ManualClock(), node_id=1)
    for _ in range(3):
        log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
        log.flush()
    assert len(caplog.records) == 1
    path.parent.mkdir()
    log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
    log.flush()
    assert len(path.read_text().splitlines()) == 1
    assert path.stat().st_mode & 0o077 == 0


def test_a_renamed_file_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write = append_to(str(path))
    write(b"1\n")
    path.rename(tmp_path / "old")
    write(b"2\n")
    assert path.read_bytes() == b"2\n"


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"moldau.audit.file": "/a", "moldau.audit.events": "all"}, "moldau.audit.events"),
        ({"moldau.audit.file": "/a", "moldau.audit.sample.every": "0"}, "sample.every"),
        ({"moldau.audit.files": "/a"}, "moldau.audit.files"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        audit_settings(settings)


def test_without_a_file_nothing_is_audited() -> None:
    assert audit_settings({"node.id": "1"}) is None
