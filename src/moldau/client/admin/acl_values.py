"""Access control lists: what is allowed to whom, and the filters that select them."""

from __future__ import annotations

from typing import NamedTuple

from moldau.client.admin.enums import NumberedEnum
from moldau.client.errors import KafkaError

__all__ = [
    "AccessControlEntry",
    "AccessControlEntryFilter",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "DeletedAcl",
    "PatternType",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "operations_of",
]

_NOT_ASKED = -(2**31)


class AclOperation(NumberedEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(NumberedEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourceType(NumberedEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(NumberedEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class ResourcePattern(NamedTuple):
    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


class ResourcePatternFilter(NamedTuple):
    """None and ANY leave a field open; MATCH takes every pattern that covers the name."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY


class AccessControlEntry(NamedTuple):
    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType


class AccessControlEntryFilter(NamedTuple):
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY


class AclBinding(NamedTuple):
    pattern: ResourcePattern
    entry: AccessControlEntry

    def to_filter(self) -> AclBindingFilter:
        """What selects just this one."""
        return AclBindingFilter(
            ResourcePatternFilter(*self.pattern), AccessControlEntryFilter(*self.entry)
        )


class AclBindingFilter(NamedTuple):
    pattern_filter: ResourcePatternFilter = ResourcePatternFilter()
    entry_filter: AccessControlEntryFilter = AccessControlEntryFilter()

    @classmethod
    def any(cls) -> AclBindingFilter:
        return cls()


class DeletedAcl(NamedTuple):
    """One that a filter matched, and why it could not be deleted, if it was not."""

    binding: AclBinding
    error: KafkaError | None = None


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """The operations of a response's bit field; None if they were not asked for."""
    if bits == _NOT_ASKED:
        return None
    ruled_out = (AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL)
    return frozenset(each for each in AclOperation if each not in ruled_out and bits & (1 << each))
