"""Uuids as Kafka uses them: sixteen bytes on the wire, 22 url-safe base64 characters in text.

The lowest values are reserved: zero means "no id" and one is the metadata topic; for log
directories zero is "migrating", one "unassigned" and two "lost" (KIP-858). `random_uuid` never
gives a reserved one.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from uuid import UUID

ZERO_UUID = UUID(int=0)
ONE_UUID = UUID(int=1)
METADATA_TOPIC_ID = ONE_UUID

DIRECTORY_MIGRATING = ZERO_UUID
DIRECTORY_UNASSIGNED = ONE_UUID
DIRECTORY_LOST = UUID(int=2)


def uuid_to_text(value: UUID) -> str:
    """The 22 characters Kafka prints for `value`."""
    return urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """Read what `uuid_to_text` wrote; a ValueError tells what is wrong with anything else."""
    if len(text) > 24:
        raise ValueError(f"not a uuid: {text[:40]!r} is longer than 24 characters")
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Base64Error, ValueError) as error:
        raise ValueError(f"not a uuid: {text!r} is not url-safe base64") from error
    if len(raw) != 16:
        raise ValueError(f"not a uuid: {text!r} holds {len(raw)} bytes, a uuid has 16")
    return UUID(bytes=raw)


def random_uuid(random_bytes: bytes) -> UUID:
    """The version-4 uuid made of 16 random bytes.

    Its text never starts with a dash, which command lines would take for an option: the first
    bit of such a value is cleared. A version-4 uuid is never one of the reserved values.
    """
    value = UUID(bytes=random_bytes, version=4)
    if uuid_to_text(value).startswith("-"):
        value = UUID(int=value.int ^ (1 << 127))
    return value
