"""Errors of the transaction coordinator as clients of a version understand them."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode


def for_client(error: ErrorCode, context: RequestContext, producer_fenced_from: int) -> ErrorCode:
    """Clients below that version know only INVALID_PRODUCER_EPOCH."""
    if error is ErrorCode.PRODUCER_FENCED and context.api_version < producer_fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
