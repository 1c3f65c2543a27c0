"""The ACLs with which `python -m bench acls` measures what an authorizer costs."""

from __future__ import annotations

from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    Admin,
    PatternType,
    ResourcePattern,
    ResourceType,
)

SETTINGS = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found=true",
)
PER_REQUEST = 1_000


def bindings(count: int, *topics: str) -> list[AclBinding]:
    """ACLs of other users on other topics, half of them prefixed, and those that allow."""

    def acl(name: str, pattern: PatternType, principal: str, operation: AclOperation) -> AclBinding:
        return AclBinding(
            ResourcePattern(ResourceType.TOPIC, name, pattern),
            AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW),
        )

    others = [
        acl(
            f"team-{number}.",
            PatternType.PREFIXED if number % 2 else PatternType.LITERAL,
            f"User:user-{number}",
            AclOperation.WRITE,
        )
        for number in range(count - len(topics))
    ]
    allowing = [
        acl(topic, PatternType.LITERAL, "User:ANONYMOUS", AclOperation.ALL) for topic in topics
    ]
    return [*others, *allowing]


def create(bootstrap: str, count: int, *topics: str) -> None:
    wanted = bindings(count, *topics)
    with Admin(bootstrap_servers=bootstrap) as admin:
        for start in range(0, count, PER_REQUEST):
            admin.create_acls(wanted[start : start + PER_REQUEST])
