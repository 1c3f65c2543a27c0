"""Creating and deleting ACLs (CreateAcls, DeleteAcls), and listing them (DescribeAcls).

An ACL that exists already is created without effect. Each ACL of a request has its own result, and
what is valid takes effect together, as one batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from moldau.broker.metadata.machine.acl_model import Acl, AclFilter
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.acls import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AccessControlEntryRecord,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    RemoveAccessControlEntryRecord,
)
from moldau.wire.uuids import random_uuid

_NO_OPERATIONS: Final = (AclOperation.UNKNOWN, AclOperation.ANY)
_NO_TYPES: Final = (ResourceType.UNKNOWN, ResourceType.ANY)


def binding_of(creation: CreateAclsRequest.AclCreation) -> Acl:
    return Acl(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def create_acls(
    controller: ControllerView, request: CreateAclsRequest
) -> Decision[CreateAclsResponse]:
    records: dict[Acl, AccessControlEntryRecord] = {}
    results = []
    for creation in request.creations:
        result = CreateAclsResponse.AclCreationResult(error_message="")
        results.append(result)
        acl = binding_of(creation)
        try:
            check_acl(acl)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.message
            continue
        if acl not in controller.image.acl_ids and acl not in records:
            records[acl] = AccessControlEntryRecord(id=_new_id(controller), **acl._asdict())
    return Decision(tuple(records.values()), CreateAclsResponse(results=results))


def check_acl(acl: Acl) -> None:
    """ApiError if it cannot be created."""
    resource_type, pattern_type = ResourceType(acl.resource_type), PatternType(acl.pattern_type)
    operation = AclOperation(acl.operation)
    permission_type = AclPermissionType(acl.permission_type)
    if resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise _invalid("Invalid empty resource name")
    if resource_type in _NO_TYPES:
        raise _invalid(f"Invalid resourceType {resource_type.name}")
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern_type.name}")
    if operation in _NO_OPERATIONS:
        raise _invalid(f"Invalid operation {operation.name}")
    if permission_type not in (AclPermissionType.DENY, AclPermissionType.ALLOW):
        raise _invalid(f"Invalid permissionType {permission_type.name}")
    if ":" not in acl.principal:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the"
            " principal type from the principal name)"
        )


def delete_acls(
    controller: ControllerView, request: DeleteAclsRequest
) -> Decision[DeleteAclsResponse]:
    removed: dict[UUID, Any] = {}
    results = []
    for wanted in request.filters:
        result = DeleteAclsResponse.DeleteAclsFilterResult(error_message=None)
        results.append(result)
        selection = AclFilter.of(wanted)
        if (part := selection.unknown_part) is not None:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = f"Unknown {part}."
            continue
        for acl_id, acl in matching(controller.image, selection):
            removed[acl_id] = RemoveAccessControlEntryRecord(id=acl_id)
            result.matching_acls.append(
                DeleteAclsResponse.DeleteAclsMatchingAcl(
                    error_message=None,
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    pattern_type=acl.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
            )
    return Decision(tuple(removed.values()), DeleteAclsResponse(filter_results=results))


def describe_acls(image: MetadataImage, request: DescribeAclsRequest) -> DescribeAclsResponse:
    resources: dict[tuple[int, str, int], DescribeAclsResponse.DescribeAclsResource] = {}
    for _, acl in matching(image, AclFilter.of(request)):
        resource = resources.get(acl[:3])
        if resource is None:
            resource = resources[acl[:3]] = DescribeAclsResponse.DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
            )
        resource.acls.append(
            DescribeAclsResponse.AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return DescribeAclsResponse(error_message="", resources=list(resources.values()))


def matching(image: MetadataImage, wanted: AclFilter) -> Iterable[tuple[UUID, Acl]]:
    for acl_id, record in image.acls.items():
        acl = Acl.of(record)
        if wanted.matches(acl):
            yield acl_id, acl


def _new_id(controller: ControllerView) -> UUID:
    while True:
        acl_id = random_uuid(controller.random.randbytes(16))
        if acl_id not in controller.image.acls:
            return acl_id


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
