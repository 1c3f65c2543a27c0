"""The API versions of a peer, and which version of an API to use with it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from moldau.peers.machine.outcomes import UnsupportedVersion
from moldau.peers.machine.responses import InvalidResponse
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.codec import decode
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse

API_VERSIONS: Final = API_BY_KEY[ApiKey.API_VERSIONS]
_ERROR_CODE: Final = struct.Struct(">h")
# What a user would call it, of APIs that brokers may leave out.
_FEATURES: Final = {
    ApiKey.DESCRIBE_ACLS: "ACLs",
    ApiKey.CREATE_ACLS: "ACLs",
    ApiKey.DELETE_ACLS: "ACLs",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "client quotas",
    ApiKey.ALTER_CLIENT_QUOTAS: "client quotas",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "SCRAM credentials",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "SCRAM credentials",
    ApiKey.CREATE_DELEGATION_TOKEN: "delegation tokens",
    ApiKey.RENEW_DELEGATION_TOKEN: "delegation tokens",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "delegation tokens",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "delegation tokens",
}


class PeerVersions:
    """The peer's lowest and highest version of each API, and what its cluster has finalized."""

    def __init__(
        self,
        ranges: dict[int, tuple[int, int]],
        peer: str,
        finalized_features: Mapping[str, int] | None = None,
        finalized_features_epoch: int = -1,
    ) -> None:
        self._ranges = ranges
        self._peer = peer
        #: By name the version level; what is not there is at level 0.
        self.finalized_features = finalized_features or {}
        self.finalized_features_epoch = finalized_features_epoch

    def max_version_of(self, key: int) -> int:
        """The peer's highest version of an API; -1 if it does not serve it."""
        return self._ranges.get(key, (-1, -1))[1]

    def choose(self, api: Api, max_version: int | None = None) -> int:
        """The highest version of `api` that both know; raises UnsupportedVersion."""
        own_high = api.max_version if max_version is None else min(api.max_version, max_version)
        if api.key not in self._ranges:
            raise UnsupportedVersion(f"{self._peer} does not support {_described(api)}")
        low, high = self._ranges[api.key]
        version = min(high, own_high)
        if version < max(low, api.min_version):
            raise UnsupportedVersion(
                f"{self._peer} supports versions {low} to {high} of {api.name} only, and versions "
                f"{api.min_version} to {own_high} are needed"
            )
        return version


def _described(api: Api) -> str:
    feature = _FEATURES.get(api.key)
    return api.name if feature is None else f"{feature} ({api.name})"


def api_versions_request(software_version: str) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name="moldau", client_software_version=software_version
    )


def read_api_versions(version: int, body: memoryview, peer: str) -> PeerVersions | int:
    """What the peer serves, or the version of ApiVersions in which to ask it again.

    Raises InvalidResponse if it refuses or its answer makes no sense.
    """
    try:
        (code,) = _ERROR_CODE.unpack_from(body)
        unsupported = code == ErrorCode.UNSUPPORTED_VERSION
        # A peer that does not know the requested version answers in version 0.
        response = decode(ApiVersionsResponse, 0 if unsupported else version, body)
    except (struct.error, WireError) as error:
        raise InvalidResponse(f"the answer to ApiVersions v{version}: {error}") from None
    ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    if unsupported:
        low, high = ranges.get(ApiKey.API_VERSIONS, (0, 0))
        # Always a lower one, so that the negotiation ends.
        again = min(high, version - 1)
        if again < max(low, API_VERSIONS.min_version):
            raise InvalidResponse(
                f"ApiVersions v{version} is not served: versions are {low} to {high}"
            )
        return again
    if code != ErrorCode.NONE:
        raise InvalidResponse(f"ApiVersions v{version} was refused with error code {code}")
    features = {each.name: each.max_version_level for each in response.finalized_features}
    return PeerVersions(ranges, peer, features, response.finalized_features_epoch)
