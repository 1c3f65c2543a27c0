"""Uuids as Kafka uses them: sixteen bytes on the wire, 22 url-safe base64 characters in text.

The lowest values are reserved: zero means "no id" and one is the metadata topic; for log
directories zero is "migrating", one "unassigned" and two "lost" (KIP-858). `random_uuid` never
gives a reserved one.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

ZERO_UUID = UUID(int=0)
ONE_UUID = UUID(int=1)
METADATA_TOPIC_ID = ONE_UUID

DIRECTORY_MIGRATING = ZERO_UUID
DIRECTORY_UNASSIGNED = ONE_UUID
DIRECTORY_LOST = UUID(int=2)

# Kafka reads the padding, though it never writes it.
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(==)?", re.ASCII)


def uuid_to_text(value: UUID) -> str:
    """The 22 characters Kafka prints for `value`."""
    return urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """Read what `uuid_to_text` wrote; a ValueError names what is wrong with anything else."""
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"not a uuid: {text[:40]!r} is not 22 characters of A-Z a-z 0-9 _ -")
    return UUID(bytes=urlsafe_b64decode(text[:22] + "=="))


def random_uuid(random_bytes: bytes) -> UUID:
    """The version-4 uuid made of 16 random bytes.

    Its text never starts with a dash, which command lines would take for an option: the first
    bit of such a value is cleared. A version-4 uuid is never one of the reserved values.
    """
    value = UUID(bytes=random_bytes, version=4)
    if uuid_to_text(value).startswith("-"):
        value = UUID(int=value.int ^ (1 << 127))
    return value
