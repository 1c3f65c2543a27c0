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
from moldau.broker.security.audit.machine.backlog import Backlog, Batch
from moldau.broker.security.audit.machine.events import dropped_line
from moldau.broker.security.audit.machine.settings import AuditTopicSettings, audit_settings
from moldau.config.errors import ConfigError
from moldau.times import ElapsedMs, WallMs
from moldau.wire.apis import ApiKey

CONTEXT = RequestContext(
    ApiKey.PRODUCE, 12, client_id='app "1"', principal="User:alice", client_host="10.0.0.1"
)


class ManualClock:
    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.wall_ms = 1234

    def now_ms(self) -> WallMs:
        return WallMs(self.wall_ms)

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
    for number in range(audit_log.LINES_MAX):
        stage.log.operation(CONTEXT, "WRITE", "TOPIC", f"orders-{number}", allowed=True)
    assert len(stage.written) == 2


def test_what_is_repeated_within_a_millisecond_has_a_line_each_in_order() -> None:
    stage = Stage()

    def allowed(topic: str, count: int) -> None:
        for _ in range(count):
            stage.log.operation(CONTEXT, "WRITE", "TOPIC", topic, allowed=True)

    allowed("orders", 3)
    allowed("payments", 2)
    stage.log.operation(CONTEXT, "WRITE", "TOPIC", "payments", allowed=False)
    allowed("orders", 1)
    stage.clock.wall_ms += 1
    allowed("orders", 2)
    assert len(stage.clock.due) == 1
    stage.clock.due.pop()()
    allowed("orders", 2)
    assert len(stage.clock.due) == 1
    assert [(each["resource"], each["event"], each["time"]) for each in stage.lines] == [
        *[("orders", "allowed", 1234)] * 3,
        *[("payments", "allowed", 1234)] * 2,
        ("payments", "denied", 1234),
        ("orders", "allowed", 1234),
        *[("orders", "allowed", 1235)] * 4,
    ]


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


def test_the_topic_gets_the_same_lines_as_the_file() -> None:
    read = audit_settings({"moldau.audit.file": "/a", "moldau.audit.topic.enable": "true"})
    assert read is not None
    in_file: list[bytes] = []
    in_topic: list[str] = []
    log = AuditLog(read, ManualClock(), node_id=1, write=in_file.append, to_topic=in_topic.extend)
    log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
    log.flush()
    assert "".join(in_topic).encode() == b"".join(in_file) != b""


def test_a_topic_alone_writes_no_file() -> None:
    read = audit_settings({"moldau.audit.topic.enable": "true"})
    assert read is not None
    in_topic: list[str] = []
    log = AuditLog(read, ManualClock(), node_id=1, to_topic=in_topic.extend)
    log.operation(CONTEXT, "WRITE", "TOPIC", "orders", allowed=True)
    log.flush()
    assert len(in_topic) == 1


@pytest.mark.parametrize(
    ("api_key", "operation", "resource_type", "resource"),
    [
        (ApiKey.PRODUCE, "CLUSTER_ACTION", "CLUSTER", "kafka-cluster"),
        (ApiKey.FETCH, "CLUSTER_ACTION", "CLUSTER", "kafka-cluster"),
        (ApiKey.FETCH, "READ", "TOPIC", "__moldau_audit"),
        (ApiKey.SHARE_FETCH, "READ", "TOPIC", "__moldau_audit"),
    ],
)
def test_what_would_cause_the_next_event_is_recorded_only_if_it_is_denied(
    api_key: ApiKey, operation: str, resource_type: str, resource: str
) -> None:
    stage = Stage()
    context = RequestContext(api_key, 12, principal="User:node")
    for allowed in (True, False):
        stage.log.operation(context, operation, resource_type, resource, allowed=allowed)
    assert [each["event"] for each in stage.lines] == ["denied"]


def test_how_the_topic_is_created() -> None:
    given = {"topic.enable": "true", "topic.partitions": "12", "topic.retention.ms": "1000"}
    read = audit_settings({f"moldau.audit.{name}": value for name, value in given.items()})
    assert read is not None
    assert read.topic == AuditTopicSettings(
        partitions=12, replication_factor=None, retention_ms=1000
    )
    assert audit_settings({"moldau.audit.topic.enable": "false"}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("topic.enable", "yes"), ("topic.partitions", "0"), ("topic.replication.factor", "x")],
)
def test_wrong_settings_of_the_topic(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        audit_settings({f"moldau.audit.{name}": value})


def test_a_full_backlog_drops_the_newest_and_says_how_many() -> None:
    backlog = Backlog(bytes_max=10)
    assert backlog.add(["12345\n", "67890\n", "x\n", "y\n"]) == 2
    batch = backlog.next_batch(5)
    assert batch == Batch((b"12345",), dropped=2)
    backlog.written(batch)
    assert backlog.next_batch(5) == Batch((b"67890",), dropped=0)
    assert backlog.add(["12345\n", "6\n"]) == 1
    assert backlog.next_batch(100) == Batch((b"67890", b"12345"), dropped=1)


def test_a_batch_that_can_never_be_written_counts_as_dropped() -> None:
    backlog = Backlog(bytes_max=100)
    backlog.add(["a", "b", "c"])
    backlog.give_up(backlog.next_batch(2))
    rest = backlog.next_batch(100)
    assert rest == Batch((b"c",), dropped=2)
    backlog.written(rest)
    assert backlog.empty


def test_one_event_larger_than_a_batch_is_written_alone() -> None:
    backlog = Backlog(bytes_max=100)
    backlog.add(["long line", "b"])
    assert backlog.next_batch(3).lines == (b"long line",)


def test_the_line_about_dropped_events() -> None:
    assert json.loads(dropped_line(5, 3, 7)) == {
        "time": 5, "node": 3, "event": "dropped", "count": 7,
    }  # fmt: skip
