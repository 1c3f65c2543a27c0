"""DescribeAcls (key 29), v1-3: the ACLs that a filter selects.

Brokers and controllers answer from their own image of the metadata.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.machine.acl_model import names_unknown
from moldau.broker.metadata.machine.acls import describe_acls
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import DescribeAclsRequest, DescribeAclsResponse


class DescribeAclsHandler:
    def __init__(self, image: Callable[[], MetadataImage], *, enabled: bool) -> None:
        """`enabled`: the node has an authorizer that uses these ACLs."""
        self._image = image
        self._enabled = enabled

    def handle(self, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
        if names_unknown(request):
            raise InvalidRequest("DescribeAclsRequest contains UNKNOWN elements")
        if not self._enabled:
            return DescribeAclsResponse(
                error_code=ErrorCode.SECURITY_DISABLED,
                error_message="No Authorizer is configured on the broker",
            )
        return describe_acls(self._image(), request)
