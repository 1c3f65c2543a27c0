"""Which topic names are valid, and which topics are internal."""

from __future__ import annotations

import re

from moldau.wire.errors import ApiError, ErrorCode

METADATA_TOPIC = "__cluster_metadata"
GROUP_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
#: Written by all nodes; read like any other topic.
AUDIT_TOPIC = "__moldau_audit"
#: Readings of metrics, written by nodes or by `moldau monitor`; `moldau.metrics.history`.
METRICS_TOPIC = "__moldau_metrics"
# Written by the broker's own coordinators only.
INTERNAL_TOPICS = frozenset({GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC})

NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """What is wrong with a topic name, for the client; None if it is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_'"
            " and '-'"
        )
    return None


def check_topic_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION unless the name is valid."""
    if problem := topic_name_problem(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
