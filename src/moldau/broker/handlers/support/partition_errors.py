"""The result of one partition of a request that failed; the others are not affected."""

from __future__ import annotations

import logging

from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)


def error_of(error: Exception, what: str) -> tuple[ErrorCode, str | None]:
    """The code and message for a partition's result; a bug is logged with its traceback."""
    if isinstance(error, ApiError):
        return error.code, error.message or None
    logger.error("%s failed: %s", what, error, exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR, None
