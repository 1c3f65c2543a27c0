"""Subscriptions by pattern: which patterns are valid, and which topics match one.

Patterns are RE2's, as in Kafka: without look-around and backward references, so that
matching takes linear time and no client's pattern can stall the coordinator. A topic
matches if its whole name does. Internal topics match like any other, as in Kafka; which
topics a member may know of is for the caller to decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from moldau.wire.errors import ApiError, ErrorCode

# RE2 for C++ and for Java word the same faults differently; clients know the latter.
_REASONS = {
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}

_MEMORY_MAX = 1 << 20
"""Of a compiled pattern in bytes: more than any sane pattern needs."""


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that does not compile."""
    try:
        _compile(pattern)
    except re2.error as error:
        reason = _reason(error)
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}.",
        ) from error


def matching_topics(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """The names that the pattern matches as a whole; an invalid pattern matches none."""
    try:
        compiled = _compile(pattern)
    except re2.error:
        # Patterns are checked when they come, so one from the log that is invalid was
        # written under other rules: it must not keep the group from loading.
        return frozenset()
    return frozenset(name for name in names if compiled.fullmatch(name) is not None)


@lru_cache(maxsize=64)
def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_MAX
    # Without captures the match needs no slower second pass.
    options.never_capture = True
    return re2.compile(pattern, options)


def _reason(error: Exception) -> str:
    """RE2 gives its reason as bytes, followed by the faulty part of the pattern."""
    raw = error.args[0] if error.args else b""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    reason = text.split(": ", 1)[0]
    return _REASONS.get(reason, reason)
