"""DescribeClientQuotas (key 48), v0-1: the quotas whose entities match a filter."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.quotas import describe_client_quotas
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError
from moldau.wire.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse


class DescribeClientQuotasHandler:
    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def handle(
        self, context: RequestContext, request: DescribeClientQuotasRequest
    ) -> DescribeClientQuotasResponse:
        try:
            return describe_client_quotas(self._image(), request)
        except ApiError as error:
            return DescribeClientQuotasResponse(
                error_code=error.code, error_message=error.message, entries=None
            )
