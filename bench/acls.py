"""What an authorizer costs: one produced batch with no authorizer, and with 1,000 and 10,000 ACLs.

`python -m bench acls` compares round trips; here is how the ACLs come to be.
"""

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


def bindings(count: int, topic: str) -> list[AclBinding]:
    """ACLs of other users on other topics, half of them prefixed, and the one that allows."""

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
        for number in range(count - 1)
    ]
    return [*others, acl(topic, PatternType.LITERAL, "User:ANONYMOUS", AclOperation.ALL)]


def create(bootstrap: str, count: int, topic: str) -> None:
    wanted = bindings(count, topic)
    with Admin(bootstrap_servers=bootstrap) as admin:
        for start in range(0, count, PER_REQUEST):
            admin.create_acls(wanted[start : start + PER_REQUEST])
