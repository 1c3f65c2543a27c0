"""DeleteAcls (key 31), v1-3: delete the ACLs that filters select."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moldau.broker.handlers.support.forwarded import SETTLED_MS_MAX, Forward, Settled
from moldau.broker.metadata.machine.acl_model import Acl, names_unknown
from moldau.broker.metadata.machine.acls import delete_acls
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import DeleteAclsRequest, DeleteAclsResponse


class DeleteAclsHandler:
    """On a controller: responds when the records are committed."""

    def __init__(self, metadata: MetadataShell, *, enabled: bool) -> None:
        """`enabled`: the node has an authorizer that uses these ACLs."""
        self._metadata = metadata
        self._enabled = enabled

    async def handle(
        self, context: RequestContext, request: DeleteAclsRequest
    ) -> DeleteAclsResponse:
        _check_known(request)
        if not self._enabled:
            raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        return await self._metadata.run(delete_acls, request)


class ForwardedDeleteAclsHandler:
    """On a broker: responds when this broker no longer applies the ACLs."""

    def __init__(self, forward: Forward, settled: Settled) -> None:
        self._forward = forward
        self._settled = settled

    async def handle(self, context: RequestContext, request: DeleteAclsRequest) -> Message:
        _check_known(request)
        response = await self._forward(context, request)
        if isinstance(response, DeleteAclsResponse):
            deleted = [
                _binding_of(acl) for result in response.filter_results
                for acl in result.matching_acls if not acl.error_code
            ]  # fmt: skip
            await self._settled(_lacks_acls(deleted), SETTLED_MS_MAX)
        return response


def _check_known(request: DeleteAclsRequest) -> None:
    """Kafka closes the connection, too: its own clients never send such a request."""
    if any(names_unknown(each) for each in request.filters):
        raise InvalidRequest("Filters contain UNKNOWN elements")


def _binding_of(acl: DeleteAclsResponse.DeleteAclsMatchingAcl) -> Acl:
    return Acl(
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _lacks_acls(acls: Collection[Acl]) -> Callable[[MetadataImage], bool]:
    return lambda image: not any(acl in image.acl_ids for acl in acls)
