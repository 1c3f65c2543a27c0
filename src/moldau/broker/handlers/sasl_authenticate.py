"""SaslAuthenticate (key 36), v0-2: too late here, since the login comes before the dispatcher."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


class SaslAuthenticateHandler:
    def handle(
        self, context: RequestContext, request: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
