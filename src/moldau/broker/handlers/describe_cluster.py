"""DescribeCluster (key 60), v0-2: cluster id, controller and brokers.

v1 added the endpoint type (brokers only on a broker listener), v2 fenced brokers.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.handlers.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR
from moldau.broker.metadata.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2


class DescribeClusterHandler:
    def __init__(
        self, image: Callable[[], MetadataImage], *, cluster_id: str, node_id: int
    ) -> None:
        self._image = image
        self._cluster_id = cluster_id
        self._node_id = node_id

    def handle(
        self, context: RequestContext, request: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        if request.endpoint_type == CONTROLLERS:
            raise ApiError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                "this is a broker endpoint: ask a controller listener for controllers",
            )
        if request.endpoint_type != BROKERS:
            raise ApiError(
                ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                f"endpoint type {request.endpoint_type} is unknown: 1 is brokers, 2 controllers",
            )
        brokers = [
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced if context.api_version >= 2 else False,
            )
            for broker in self._image().brokers.values()
            if (request.include_fenced_brokers or not broker.fenced)
            and (endpoint := broker.endpoint(context.listener_name)) is not None
        ]
        asked = request.include_cluster_authorized_operations
        return DescribeClusterResponse(
            cluster_id=self._cluster_id,
            controller_id=self._node_id,
            brokers=brokers,
            cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED_FOR,
        )
