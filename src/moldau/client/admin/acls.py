"""Access control lists: create, describe, delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moldau.client.admin.acl_values import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    DeletedAcl,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from moldau.client.admin.base import AdminBase
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.routes import AnyRoute
from moldau.client.errors import InvalidRequestError, error_for
from moldau.client.results import Results
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

__all__ = ["AclOperations"]


class AclOperations(AdminBase):
    """Access control lists."""

    async def describe_acls(
        self, filter: AclBindingFilter | None = None, *, timeout: float | None = None
    ) -> list[AclBinding]:
        """The access control lists that a filter matches, all of them without one.

        >>> print(await admin.describe_acls())
        """
        pattern, entry = wanted = filter or AclBindingFilter()
        if _unknown(wanted):
            raise InvalidRequestError("an ACL filter contains UNKNOWN")

        async def ask(call: Call) -> list[AclBinding]:
            response: DescribeAclsResponse = await call(
                DescribeAclsRequest(
                    resource_type_filter=pattern.resource_type,
                    resource_name_filter=pattern.name,
                    pattern_type_filter=pattern.pattern_type,
                    principal_filter=entry.principal,
                    host_filter=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission_type,
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)
            return [
                AclBinding(
                    ResourcePattern(
                        ResourceType(resource.resource_type),
                        resource.resource_name,
                        PatternType(resource.pattern_type),
                    ),
                    AccessControlEntry(
                        each.principal,
                        each.host,
                        AclOperation(each.operation),
                        AclPermissionType(each.permission_type),
                    ),
                )
                for resource in response.resources
                for each in resource.acls
            ]

        route: AnyRoute[None] = AnyRoute(of_controllers=True)
        return await self._run_one("DescribeAcls", route, ask, timeout=timeout)

    async def create_acls(
        self,
        acls: Iterable[AclBinding],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[AclBinding, None]:
        """Add access control lists; those that exist stay as they are.

        >>> topic = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> entry = AccessControlEntry(
        ...     "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
        ... )
        >>> await admin.create_acls([AclBinding(topic, entry)])
        """
        wanted = list(acls)

        async def ask(call: Call, keys: Sequence[AclBinding]) -> Answer[AclBinding, None]:
            request = CreateAclsRequest
            creations = [
                request.AclCreation(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    resource_pattern_type=pattern.pattern_type,
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission_type,
                )
                for pattern, entry in keys
            ]
            response: CreateAclsResponse = await call(request(creations=creations))
            answer: Answer[AclBinding, None] = Answer()
            # Results come in the order of the request.
            for key, found in zip(keys, response.results, strict=False):
                answer.settle(key, found.error_code, found.error_message, None)
            return answer

        return await self._run(
            "CreateAcls",
            wanted,
            AnyRoute(of_controllers=True),
            ask,
            timeout=timeout,
            check=check,
            refused={
                each: InvalidRequestError(f"an ACL to create contains {field}")
                for each in wanted
                if (field := _indefinite(each)) is not None
            },
        )

    async def delete_acls(
        self,
        filters: Iterable[AclBindingFilter],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[AclBindingFilter, tuple[DeletedAcl, ...]]:
        """Delete the access control lists that each filter matches.

        >>> await admin.delete_acls([AclBindingFilter.any()])
        """

        async def ask(
            call: Call, keys: Sequence[AclBindingFilter]
        ) -> Answer[AclBindingFilter, tuple[DeletedAcl, ...]]:
            request = DeleteAclsRequest
            wanted = [
                request.DeleteAclsFilter(
                    resource_type_filter=pattern.resource_type,
                    resource_name_filter=pattern.name,
                    pattern_type_filter=pattern.pattern_type,
                    principal_filter=entry.principal,
                    host_filter=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission_type,
                )
                for pattern, entry in keys
            ]
            response: DeleteAclsResponse = await call(request(filters=wanted))
            answer: Answer[AclBindingFilter, tuple[DeletedAcl, ...]] = Answer()
            for key, found in zip(keys, response.filter_results, strict=False):
                if found.error_code == ErrorCode.NONE:
                    answer.put(key, tuple(map(_deleted, found.matching_acls)))
                else:
                    answer.fail(key, found.error_code, found.error_message)
            return answer

        return await self._run(
            "DeleteAcls",
            filters,
            AnyRoute(of_controllers=True),
            ask,
            timeout=timeout,
            check=check,
        )


def _deleted(found: DeleteAclsResponse.DeleteAclsMatchingAcl) -> DeletedAcl:
    binding = AclBinding(
        ResourcePattern(
            ResourceType(found.resource_type), found.resource_name, PatternType(found.pattern_type)
        ),
        AccessControlEntry(
            found.principal,
            found.host,
            AclOperation(found.operation),
            AclPermissionType(found.permission_type),
        ),
    )
    failed = found.error_code != ErrorCode.NONE
    return DeletedAcl(binding, error_for(found.error_code, found.error_message) if failed else None)


def _unknown(filter: AclBindingFilter) -> bool:
    pattern, entry = filter
    return (
        pattern.resource_type is ResourceType.UNKNOWN
        or pattern.pattern_type is PatternType.UNKNOWN
        or entry.operation is AclOperation.UNKNOWN
        or entry.permission_type is AclPermissionType.UNKNOWN
    )


def _indefinite(acl: AclBinding) -> str | None:
    """The field that fits a filter but not what is created."""
    pattern, entry = acl
    for name, value in (
        ("resource type", pattern.resource_type),
        ("pattern type", pattern.pattern_type),
        ("operation", entry.operation),
        ("permission type", entry.permission_type),
    ):
        if value.name in ("ANY", "UNKNOWN", "MATCH"):
            return f"the {name} {value.name}"
    return None
