"""What Produce and Fetch may do, and that a remembered permission is never an outdated one."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.machine.topics import AUDIT_TOPIC
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.security.audit.log import AuditLog
from moldau.broker.security.audit.machine.settings import audit_settings
from moldau.broker.security.authorization import topic_guard
from moldau.broker.security.authorization.authorization import Authorization, load_authorization
from moldau.broker.security.authorization.topic_guard import TopicGuard
from moldau.times import ElapsedMs, WallMs
from moldau.wire.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from moldau.wire.apis import ApiKey
from moldau.wire.messages import AccessControlEntryRecord

TOPIC_ID = UUID(int=7)


class Topics:
    auto_created = False

    def __init__(self) -> None:
        self.by_id: dict[UUID, str] = {}

    def name_of(self, topic_id: UUID) -> str | None:
        return self.by_id.get(topic_id)

    def id_of(self, name: str) -> UUID:
        raise NotImplementedError

    def names(self) -> Iterable[str]:
        return self.by_id.values()

    def __contains__(self, name: object) -> bool:
        return name in self.by_id.values()


class NoClock:
    def now_ms(self) -> WallMs:
        return WallMs(1)

    def elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(1)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        return self

    def cancel(self) -> None: ...


class Stage:
    """A guard over Kafka's authorizer, with an audit log if `audit` is given."""

    def __init__(self, audit: dict[str, str] | None = None) -> None:
        self.written: list[bytes] = []
        log = None
        if audit is not None:
            settings = audit_settings({"moldau.audit.file": "/a", **audit})
            assert settings is not None
            log = AuditLog(settings, NoClock(), node_id=1, write=self.written.append)
        self.audit = log
        name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        loaded = load_authorization(name, {}, caught_up=lambda: True, audit=log)
        assert loaded is not None
        self.authorization = loaded
        self.image = MetadataImage()
        self.topics = Topics()
        self.guard = TopicGuard(loaded, self.topics)

    def allow(self, topic: str, operation: AclOperation) -> UUID:
        acl_id = UUID(int=1000 + len(self.image.acls))
        self.image.acls[acl_id] = AccessControlEntryRecord(
            id=acl_id,
            resource_type=ResourceType.TOPIC,
            resource_name=topic,
            pattern_type=PatternType.LITERAL,
            principal="User:alice",
            host="*",
            operation=operation,
            permission_type=AclPermissionType.ALLOW,
        )
        self._changed(acl_id)
        return acl_id

    def remove(self, acl_id: UUID) -> None:
        del self.image.acls[acl_id]
        self._changed(acl_id)

    def _changed(self, acl_id: UUID) -> None:
        self.authorization.apply(MetadataDelta(acls_changed=True, acls={acl_id}), self.image)

    def denies_write(self, key: str | bytes, **sender: Any) -> bool:
        return self.guard.denies_write(request(ApiKey.PRODUCE, **sender), key)

    def denies_read(self, key: str | bytes, **sender: Any) -> bool:
        sent = request(ApiKey.FETCH, **sender)
        return self.guard.denies_read(sent)(sent, key)

    def events(self) -> int:
        assert self.audit is not None
        self.audit.flush()
        return b"".join(self.written).count(b'"event":"allowed"')


def request(
    key: ApiKey, principal: str = "User:alice", host: str = "10.0.0.1", client_id: str = "app"
) -> RequestContext:
    return RequestContext(key, 12, client_id=client_id, principal=principal, client_host=host)


AUDITS = pytest.mark.parametrize("audit", [None, {}], ids=["no audit", "audit"])


@AUDITS
def test_a_permission_ends_with_its_acl(audit: dict[str, str] | None) -> None:
    stage = Stage(audit)
    write = stage.allow("orders", AclOperation.WRITE)
    read = stage.allow("orders", AclOperation.READ)
    for _ in range(3):
        assert not stage.denies_write("orders")
        assert not stage.denies_read("orders")
    stage.remove(write)
    assert stage.denies_write("orders")
    assert not stage.denies_read("orders")
    stage.remove(read)
    assert stage.denies_read("orders")
    stage.allow("orders", AclOperation.WRITE)
    assert not stage.denies_write("orders")


@AUDITS
def test_a_waiting_fetch_loses_its_permission_too(audit: dict[str, str] | None) -> None:
    stage = Stage(audit)
    read = stage.allow("orders", AclOperation.READ)
    sender = request(ApiKey.FETCH)
    denies = stage.guard.denies_read(sender)
    assert not denies(sender, "orders")
    stage.remove(read)
    assert denies(sender, "orders")


@AUDITS
def test_a_permission_is_that_of_one_principal_at_one_host_for_one_operation(
    audit: dict[str, str] | None,
) -> None:
    stage = Stage(audit)
    stage.allow("orders", AclOperation.WRITE)
    assert not stage.denies_write("orders")
    assert stage.denies_write("orders", principal="User:bob")
    assert stage.denies_write("payments")
    assert stage.denies_read("orders")
    acl = stage.allow("payments", AclOperation.WRITE)
    stage.image.acls[acl].host = "10.0.0.9"
    stage._changed(acl)
    assert not stage.denies_write("payments", host="10.0.0.9")
    assert stage.denies_write("payments", host="10.0.0.1")


@AUDITS
def test_an_unknown_topic_id_is_no_permission(audit: dict[str, str] | None) -> None:
    stage = Stage(audit)
    assert not stage.denies_write(TOPIC_ID.bytes)
    assert not stage.denies_read(TOPIC_ID.bytes)
    stage.topics.by_id[TOPIC_ID] = "orders"
    assert stage.denies_write(TOPIC_ID.bytes)
    assert stage.denies_read(TOPIC_ID.bytes)


@AUDITS
def test_nobody_but_nodes_writes_to_the_audit_topic(audit: dict[str, str] | None) -> None:
    stage = Stage(audit)
    stage.allow(AUDIT_TOPIC, AclOperation.ALL)
    assert [stage.denies_write(AUDIT_TOPIC) for _ in range(2)] == [True, True]


def test_every_request_is_audited_and_every_topic_of_a_fetch_once() -> None:
    stage = Stage({})
    stage.allow("orders", AclOperation.ALL)
    for _ in range(3):
        stage.denies_write("orders")
    assert stage.events() == 3
    for _ in range(2):
        sender = request(ApiKey.FETCH)
        denies = stage.guard.denies_read(sender)
        for _partition in range(5):
            if "orders" not in sender.connection.grants.reads:
                assert not denies(sender, "orders")
    assert stage.events() == 5
    stage.denies_write("orders", client_id="other")
    stage.events()
    assert b'"clientId":"other"' in stage.written[-1]


def test_every_client_id_of_a_connection_is_audited_with_its_own() -> None:
    stage, connection = Stage({}), ConnectionInfo()
    stage.allow("orders", AclOperation.ALL)
    for client_id in ("a", "b", "b", "a", "c", "c"):
        sender = on(connection, ApiKey.PRODUCE, client_id)
        assert not stage.guard.denies_write(sender, "orders")
    assert stage.events() == 6
    lines = b"".join(stage.written).splitlines()
    assert [json.loads(line)["clientId"] for line in lines] == ["a", "b", "b", "a", "c", "c"]


def test_what_the_audit_log_leaves_out_is_still_remembered_as_allowed() -> None:
    stage = Stage({"moldau.audit.resources": "payments", "moldau.audit.sample.every": "2"})
    stage.allow("orders", AclOperation.ALL)
    stage.allow("payments", AclOperation.ALL)
    for topic in ("orders", "payments"):
        assert [stage.denies_write(topic) for _ in range(4)] == [False] * 4
    assert stage.events() == 2


def test_permissions_are_logged_each_time_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.allow("orders", AclOperation.ALL)
    stage.denies_write("orders")
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        stage.denies_write("orders")
        stage.denies_read("orders")
        stage.denies_read("orders")
    assert len(caplog.messages) == 3
    assert "is Allowed operation = WRITE" in caplog.messages[0]


def test_an_authorizer_of_the_users_own_is_asked_each_time() -> None:
    class OwnAuthorizer:
        allowed = True

        def configure(self, settings: object) -> None: ...

        def authorize(self, *_: Any) -> bool:
            return self.allowed

    own = OwnAuthorizer()
    guard = TopicGuard(Authorization(own), Topics())
    sender = request(ApiKey.PRODUCE)
    assert not guard.denies_write(sender, "orders")
    own.allowed = False
    assert guard.denies_write(sender, "orders")
    assert guard.denies_read(sender)(sender, "orders")


def on(connection: ConnectionInfo, key: ApiKey, client_id: str = "app") -> RequestContext:
    return RequestContext(
        key, 12, client_id=client_id, principal="User:alice", connection=connection
    )


def use(stage: Stage, connection: ConnectionInfo, topic: str | bytes) -> None:
    """Write to and read from a topic, which is allowed."""
    assert not stage.guard.denies_write(on(connection, ApiKey.PRODUCE), topic)
    fetch = on(connection, ApiKey.FETCH)
    assert not stage.guard.denies_read(fetch)(fetch, topic)


def remembered(connection: ConnectionInfo) -> set[object]:
    grants = connection.grants
    return grants.reads | grants.writes | {*grants.read_texts, *grants.write_texts}


@AUDITS
def test_a_connection_remembers_what_it_may_do_until_acls_change(
    audit: dict[str, str] | None,
) -> None:
    stage, connection = Stage(audit), ConnectionInfo()
    write = stage.allow("orders", AclOperation.WRITE)
    stage.allow("orders", AclOperation.READ)
    use(stage, connection, "orders")
    assert remembered(connection) == {"orders"}
    stage.remove(write)
    assert remembered(connection) == set()
    assert stage.guard.denies_write(on(connection, ApiKey.PRODUCE), "orders")
    assert remembered(connection) == set()


@AUDITS
def test_a_connection_remembers_nothing_that_is_logged_each_time(
    audit: dict[str, str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    stage, connection = Stage(audit), ConnectionInfo()
    stage.allow("orders", AclOperation.ALL)
    use(stage, connection, "orders")
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        stage.authorization.forget()  # What a change of log levels brings about.
        for _ in range(3):
            use(stage, connection, "orders")
    assert remembered(connection) == set()
    assert len(caplog.messages) == 6


@AUDITS
def test_a_connection_remembers_no_unknown_topic_and_is_forgotten_when_it_closes(
    audit: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_guard, "GRANTED_MAX", 10)
    stage, connection = Stage(audit), ConnectionInfo()
    stage.allow("*", AclOperation.ALL)
    use(stage, connection, TOPIC_ID.bytes)
    assert remembered(connection) == set()
    for number in range(50):
        use(stage, connection, f"topic-{number}")
    assert 0 < len(remembered(connection)) <= 20
    connection.closed()
    assert not stage.authorization._granted
