"""Which topic names are legal and which are the platform's own."""

from __future__ import annotations

import re

GROUP_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC})

NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """What is wrong with a topic name, in words for the client; None if nothing is."""
    if not name:
        return "the topic name is empty"
    if name in (".", ".."):
        return "a topic cannot be named '.' or '..'"
    if len(name) > NAME_LENGTH_MAX:
        return f"a topic name has at most {NAME_LENGTH_MAX} characters, this one has {len(name)}"
    if _LEGAL.fullmatch(name) is None:
        return f"topic name {name!r} has a character other than ASCII letters, digits, . _ and -"
    return None
