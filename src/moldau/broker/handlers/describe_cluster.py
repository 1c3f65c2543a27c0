"""DescribeCluster (key 60), v0-2: cluster id, controller and brokers; on a controller the
controllers (KIP-919).

v1 added the endpoint type, v2 fenced brokers.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.handlers.support.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2

Node = DescribeClusterResponse.DescribeClusterBroker


class _Describing:
    """The response on both kinds of listeners."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        *,
        cluster_id: str,
        controller_id: Callable[[], int],
    ) -> None:
        """`controller_id` is the node for requests to the controller, -1 if it is unknown."""
        self._image = image
        self._cluster_id = cluster_id
        self._controller_id = controller_id

    def _described(
        self, request: DescribeClusterRequest, endpoint_type: int, nodes: list[Node]
    ) -> DescribeClusterResponse:
        asked = request.include_cluster_authorized_operations
        return DescribeClusterResponse(
            endpoint_type=endpoint_type,
            cluster_id=self._cluster_id,
            controller_id=self._controller_id(),
            brokers=nodes,
            cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED_FOR,
        )


class DescribeClusterHandler(_Describing):
    def handle(
        self, context: RequestContext, request: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        _check_type(request, BROKERS, CONTROLLERS, "this is a broker endpoint: ask a controller")
        brokers = [
            Node(
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
        return self._described(request, BROKERS, brokers)


class DescribeControllersHandler(_Describing):
    """The same request on a controller's listener."""

    def handle(
        self, context: RequestContext, request: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        _check_type(request, CONTROLLERS, BROKERS, "this is a controller endpoint: ask a broker")
        controllers = [
            Node(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
            for controller in self._image().controllers.values()
            for endpoint in controller.endpoints
            if endpoint.name == context.listener_name
        ]
        return self._described(request, CONTROLLERS, controllers)


def _check_type(request: DescribeClusterRequest, own: int, other: int, advice: str) -> None:
    asked = request.endpoint_type
    if asked == other:
        kind = "brokers" if other == BROKERS else "controllers"
        raise ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, f"{advice} listener for {kind}")
    if asked != own:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"endpoint type {asked} is unknown: 1 is brokers, 2 controllers",
        )
