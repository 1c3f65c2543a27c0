"""What a setting means, in plain text: Apache Kafka documents its keys in HTML."""

from __future__ import annotations

import html
import re
from typing import Final

__all__ = ["explanation"]

_TAGS: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_BLANKS: Final = re.compile(r"\s+")
#: For keys that a broker lists without an explanation.
_OWN: Final = {
    "topic": "A setting of the topic; without a value of its own the broker's is used.",
    "broker": "A setting of the broker; see Kafka's reference of broker settings.",
    "group": "A setting of the group; without a value of its own the broker's is used.",
}


def explanation(kind: str, name: str, documentation: str | None) -> str:
    """`kind` is topic, broker or group."""
    text = html.unescape(_TAGS.sub(" ", documentation or ""))
    text = _BLANKS.sub(" ", text).strip()
    return text or _OWN.get(kind, f"The setting {name}.")
