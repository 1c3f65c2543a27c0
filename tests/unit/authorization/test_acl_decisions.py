"""The standard authorizer against Kafka's answers, and its memory of decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.security.authorization.machine.decisions import AclDecisions
from moldau.wire.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from moldau.wire.messages import AccessControlEntryRecord

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "security" / "acl.json"
ALICE, HOST = "User:alice", "192.168.0.1"


def cases() -> list[Any]:
    return json.loads(VECTORS.read_text()) if VECTORS.exists() else []


def acl(number: int, text: str) -> tuple[UUID, AccessControlEntryRecord]:
    """`ALLOW READ LITERAL orders [principal [host]]` on topics."""
    permission, operation, pattern, name, *rest = text.split()
    acl_id = UUID(int=number)
    return acl_id, AccessControlEntryRecord(
        id=acl_id,
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType[pattern],
        principal=rest[0] if rest else ALICE,
        host=rest[1] if len(rest) > 1 else "*",
        operation=AclOperation[operation],
        permission_type=AclPermissionType[permission],
    )


def authorizer(*acls: str, **settings: Any) -> AclDecisions:
    made = AclDecisions(**settings)
    made.replace_acls(dict(acl(number, text) for number, text in enumerate(acls, 1)))
    return made


def may(subject: AclDecisions, operation: str, topic: str, principal: str = ALICE) -> bool:
    return subject.authorize(principal, HOST, AclOperation[operation], ResourceType.TOPIC, topic)


@pytest.mark.skipif(not VECTORS.exists(), reason=f"Kafka's answers are not here: {VECTORS}")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_decides_as_kafka_does(case: dict[str, Any]) -> None:
    config = case["config"]
    subject = AclDecisions(
        super_users=[each.strip() for each in config.get("super.users", "").split(";")],
        allow_everyone_if_no_acl_found=(
            config.get("allow.everyone.if.no.acl.found", "").lower() == "true"
        ),
    )
    subject.replace_acls(
        {
            UUID(int=number): AccessControlEntryRecord(
                id=UUID(int=number),
                resource_type=ResourceType[each["resource_type"]],
                resource_name=each["resource"],
                pattern_type=PatternType[each["pattern"]],
                principal=each["principal"],
                host=each["host"],
                operation=AclOperation[each["operation"]],
                permission_type=AclPermissionType[each["permission"]],
            )
            for number, each in enumerate(case["acls"], 1)
        }
    )
    for query in case["queries"]:
        question = (
            query["principal"],
            query["host"],
            AclOperation[query["operation"]],
            ResourceType[query["resource_type"]],
            query["resource"],
        )
        allowed = query["result"] == "ALLOWED"
        assert subject.authorize(*question) is allowed, query
        assert subject.authorize(*question) is allowed, f"remembered: {query}"


def test_a_change_is_effective_at_once() -> None:
    subject = authorizer()
    assert not may(subject, "READ", "orders")
    records = dict([acl(1, "ALLOW READ PREFIXED ord")])
    subject.change_acls(records, records)
    assert may(subject, "READ", "orders")
    records |= [acl(2, "DENY READ LITERAL *")]
    subject.change_acls([UUID(int=2)], records)
    assert not may(subject, "READ", "orders")
    del records[UUID(int=2)]
    subject.change_acls([UUID(int=2)], records)
    assert may(subject, "READ", "orders")
    subject.change_acls(list(records), {})
    assert not may(subject, "READ", "orders")


def test_prefixes_of_all_lengths_come_and_go() -> None:
    subject = authorizer("ALLOW READ PREFIXED a", "ALLOW READ PREFIXED b", "ALLOW WRITE PREFIXED a")
    assert may(subject, "READ", "a")
    assert may(subject, "READ", "apple")
    assert may(subject, "READ", "b")
    subject.change_acls([UUID(int=1)], {})
    assert not may(subject, "READ", "apple")
    assert may(subject, "WRITE", "apple")
    assert may(subject, "READ", "b")
    subject.change_acls([UUID(int=2), UUID(int=3)], {})
    assert not may(subject, "WRITE", "apple")
    assert not may(subject, "READ", "b")


def test_memory_is_bounded() -> None:
    subject = authorizer("ALLOW READ PREFIXED t", decisions_max=10)
    for number in range(100):
        assert may(subject, "READ", f"t{number}")
        assert not may(subject, "WRITE", f"t{number}")
    assert len(subject._decisions) <= 10


def test_until_acls_are_known_only_super_users_may() -> None:
    subject = authorizer(
        super_users=["User:root"], allow_everyone_if_no_acl_found=True, ready=False
    )
    assert may(subject, "READ", "t", "User:root")
    assert not may(subject, "READ", "t")
    subject.set_ready()
    assert may(subject, "READ", "t")


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        pytest.param([], False, id="none"),
        pytest.param(["ALLOW WRITE LITERAL t"], True, id="a literal"),
        pytest.param(["ALLOW READ LITERAL t"], False, id="another operation"),
        pytest.param(["ALLOW ALL PREFIXED t"], True, id="all, prefixed"),
        pytest.param(["ALLOW WRITE LITERAL t User:bob"], False, id="another principal"),
        pytest.param(["ALLOW WRITE LITERAL t User:*"], True, id="everybody"),
        pytest.param(["ALLOW WRITE LITERAL t User:alice 10.0.0.9"], False, id="another host"),
        pytest.param(["ALLOW WRITE LITERAL t", "DENY WRITE LITERAL t"], False, id="denied itself"),
        pytest.param(["ALLOW WRITE LITERAL t", "DENY WRITE LITERAL *"], False, id="all denied"),
        pytest.param(["ALLOW WRITE LITERAL ta", "DENY WRITE PREFIXED t"], False, id="dominated"),
        pytest.param(["ALLOW WRITE PREFIXED t", "DENY WRITE PREFIXED ta"], True, id="rest is left"),
        pytest.param(["ALLOW WRITE LITERAL *", "DENY WRITE PREFIXED t"], True, id="wildcard"),
        pytest.param(["ALLOW WRITE PREFIXED t", "DENY WRITE LITERAL t"], True, id="one is denied"),
    ],
)
def test_by_resource_type(acls: list[str], allowed: bool) -> None:
    subject = authorizer(*acls)
    question = (ALICE, HOST, AclOperation.WRITE, ResourceType.TOPIC)
    assert subject.authorize_by_resource_type(*question) is allowed
    assert subject.authorize_by_resource_type(*question) is allowed


def test_rules_for_the_audit_log() -> None:
    subject = authorizer("DENY READ LITERAL t", super_users=["User:root"])
    question = (HOST, AclOperation.READ, ResourceType.TOPIC)
    assert subject.rule("User:root", *question, "t") == "SuperUser"
    assert subject.rule(ALICE, *question, "other") == "DefaultDeny"
    assert subject.rule(ALICE, *question, "t") == (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=t, patternType=LITERAL,"
        " principal=User:alice, host=*, operation=READ, permissionType=DENY))"
    )


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("2001:db8:0:0:0:0:0:a1", "2001:db8::a1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1%eth0"),
    ],
)
def test_hosts_are_spelled_as_java_does(written: str, host: str) -> None:
    subject = authorizer(f"ALLOW READ LITERAL t {ALICE} {written}")
    assert subject.authorize(ALICE, host, AclOperation.READ, ResourceType.TOPIC, "t")
