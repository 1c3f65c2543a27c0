"""DescribeUserScramCredentials (key 50), v0: which SCRAM credentials users have."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.scram_credentials import describe_user_scram_credentials
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


class DescribeUserScramCredentialsHandler:
    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def handle(
        self, context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        return describe_user_scram_credentials(self._image(), request)
