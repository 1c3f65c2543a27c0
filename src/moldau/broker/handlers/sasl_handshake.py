"""SaslHandshake (key 17), v0-1: too late here, since the login comes before the dispatcher."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import SaslHandshakeRequest, SaslHandshakeResponse


class SaslHandshakeHandler:
    def handle(
        self, context: RequestContext, request: SaslHandshakeRequest
    ) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
