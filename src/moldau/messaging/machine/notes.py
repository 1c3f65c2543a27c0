"""Notes of what transactions have consumed: which message of which group.

A transacted session writes a note of each message that it has received into the transaction of what
it sends. A program that dies before it has acknowledged leaves the note: a consumer that gets the
message again finds that its effects are there, and drops it. Notes that have no use are deleted.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TOPIC", "Notes", "note_key"]

TOPIC: Final = "__moldau_messaging_consumed"


def note_key(group: str, topic: str, partition: int, offset: int) -> bytes:
    """Names of groups may hold anything, so they come last."""
    return f"{topic}:{partition}:{offset}:{group}".encode()


class Notes:
    """Those that are in the topic, as far as it was read."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            return
        if value is None:
            self._keys.discard(key)
        else:
            self._keys.add(key)

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)
