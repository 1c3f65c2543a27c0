"""An ACL as a value, and the filters that select ACLs."""

from __future__ import annotations

from typing import NamedTuple

from moldau.wire.acls import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from moldau.wire.messages import AccessControlEntryRecord, DeleteAclsRequest, DescribeAclsRequest


class Acl(NamedTuple):
    """One ACL. The fields and their order are those of Kafka's StandardAcl."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Acl:
        return cls(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def __str__(self) -> str:
        """As Kafka's audit log spells it."""
        return (
            f"StandardAcl(resourceType={ResourceType(self.resource_type).name},"
            f" resourceName={self.resource_name},"
            f" patternType={PatternType(self.pattern_type).name}, principal={self.principal},"
            f" host={self.host}, operation={AclOperation(self.operation).name},"
            f" permissionType={AclPermissionType(self.permission_type).name})"
        )


def names_unknown(request: DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter) -> bool:
    """Whether a field is UNKNOWN itself. As in Kafka, a number that this version does not know is
    something else: no ACL is described for it, and none deleted."""
    return 0 in (
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    )


class AclFilter(NamedTuple):
    """Selects ACLs: None and ANY leave a field open, MATCH takes patterns that cover the name."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: AclPermissionType

    @classmethod
    def of(cls, request: DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter) -> AclFilter:
        return cls(
            ResourceType(request.resource_type_filter),
            request.resource_name_filter,
            PatternType(request.pattern_type_filter),
            request.principal_filter,
            request.host_filter,
            AclOperation(request.operation),
            AclPermissionType(request.permission_type),
        )

    @property
    def unknown_part(self) -> str | None:
        """Kafka's name of the part with a number that this version does not know, or None."""
        if 0 in (self.resource_type, self.pattern_type):
            return "patternFilter"
        return "entryFilter" if 0 in (self.operation, self.permission_type) else None

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (AclPermissionType.ANY, acl.permission_type)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        name = self.resource_name
        if name is None or name == acl.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.LITERAL:
            return acl.resource_name == WILDCARD
        return name.startswith(acl.resource_name)
