"""ApiVersions (key 18), v0-4: what this listener serves, and the cluster's features.

The response is the routing table itself, so only what is served is advertised; APIs without a use
at the moment may be served without being advertised. v3 added the client's software and the
features; v4 lists features whose lowest level is 0, which older clients cannot read. The dispatcher
answers unknown versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from moldau.broker.network.context import RequestContext
from moldau.broker.network.routes import Route
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class FeatureLevels(NamedTuple):
    """Features by name: what this broker supports, and what the cluster has finalized."""

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int]
    #: The offset of the metadata log up to which `finalized` is known; -1 if nothing is.
    finalized_epoch: int


class ApiVersionsHandler:
    """One per routing table, which must be complete before the first request."""

    def __init__(
        self,
        routes: Mapping[ApiKey, Route],
        features: Callable[[], FeatureLevels],
        *,
        broker_listener: bool = True,
        unadvertised: Callable[[], Set[ApiKey]] = frozenset,
    ) -> None:
        """`unadvertised` APIs are left out of the response."""
        self._routes = routes
        self._features = features
        self._broker_listener = broker_listener
        self._unadvertised = unadvertised
        self._api_keys: list[ApiVersionsResponse.ApiVersion] | None = None

    def handle(self, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
        if context.api_version >= 3:
            self._note_software(context, request)
        if self._api_keys is None:
            self._api_keys = self._served()
        features = self._features()
        unadvertised = self._unadvertised()
        return ApiVersionsResponse(
            api_keys=[each for each in self._api_keys if each.api_key not in unadvertised],
            supported_features=[
                ApiVersionsResponse.SupportedFeatureKey(
                    name=name, min_version=low, max_version=high
                )
                for name, (low, high) in sorted(features.supported.items())
                if low > 0 or context.api_version >= 4
            ],
            finalized_features=[
                ApiVersionsResponse.FinalizedFeatureKey(
                    name=name, min_version_level=level, max_version_level=level
                )
                for name, level in sorted(features.finalized.items())
            ],
            finalized_features_epoch=features.finalized_epoch,
        )

    def _note_software(self, context: RequestContext, request: ApiVersionsRequest) -> None:
        for field, value in (
            ("name", request.client_software_name),
            ("version", request.client_software_version),
        ):
            if not _SOFTWARE.fullmatch(value):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"client software {field} {value!r} is not made of letters, digits, "
                    "dots and dashes with a letter or digit at each end",
                )
        context.connection.client_software_name = request.client_software_name
        context.connection.client_software_version = request.client_software_version

    def _served(self) -> list[ApiVersionsResponse.ApiVersion]:
        served = []
        for key in sorted(self._routes):
            versions = self._routes[key].versions(API_BY_KEY[key])
            # librdkafka takes a Produce that starts above 0 for a broker without old codecs, so
            # Kafka advertises versions that it no longer answers (KAFKA-18659).
            low = 0 if key == ApiKey.PRODUCE and self._broker_listener else versions[0]
            served.append(
                ApiVersionsResponse.ApiVersion(
                    api_key=key, min_version=low, max_version=versions[-1]
                )
            )
        return served
