"""CreateAcls (key 30), v1-3: allow or deny operations on resources."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moldau.broker.handlers.support.forwarded import SETTLED_MS_MAX, Forward, Settled
from moldau.broker.metadata.machine.acl_model import Acl
from moldau.broker.metadata.machine.acls import binding_of, create_acls
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import CreateAclsRequest, CreateAclsResponse


class CreateAclsHandler:
    """On a controller: responds when the records are committed."""

    def __init__(self, metadata: MetadataShell, *, enabled: bool) -> None:
        """`enabled`: the node has an authorizer that uses these ACLs."""
        self._metadata = metadata
        self._enabled = enabled

    async def handle(
        self, context: RequestContext, request: CreateAclsRequest
    ) -> CreateAclsResponse:
        _check_known(request)
        if not self._enabled:
            raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        return await self._metadata.run(create_acls, request)


class ForwardedCreateAclsHandler:
    """On a broker: responds when this broker applies the ACLs."""

    def __init__(self, forward: Forward, settled: Settled) -> None:
        self._forward = forward
        self._settled = settled

    async def handle(self, context: RequestContext, request: CreateAclsRequest) -> Message:
        _check_known(request)
        response = await self._forward(context, request)
        if isinstance(response, CreateAclsResponse):
            created = [
                binding_of(creation)
                for creation, result in zip(request.creations, response.results, strict=False)
                if not result.error_code
            ]
            await self._settled(_has_acls(created), SETTLED_MS_MAX)
        return response


def _check_known(request: CreateAclsRequest) -> None:
    """Kafka closes the connection, too: its own clients never send such a request."""
    for each in request.creations:
        # Numbers that this version does not know are refused with an error instead.
        if 0 in (
            each.resource_type,
            each.resource_pattern_type,
            each.operation,
            each.permission_type,
        ):
            raise InvalidRequest("CreatableAcls contain unknown elements")


def _has_acls(acls: Collection[Acl]) -> Callable[[MetadataImage], bool]:
    return lambda image: all(acl in image.acl_ids for acl in acls)
