"""The version in which each record of the metadata log is written.

Invariant: every node that supports the finalized metadata.version can read what is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

DIRECTORY_METADATA_VERSION = 17
CORDONED_DIRECTORIES_METADATA_VERSION = 30
ELR_METADATA_VERSION = 23


def record_version(record: Any, metadata_version: int) -> int:
    """The version a record is written in, so that every node at this metadata.version reads it."""
    return _version_of(type(record).__name__, metadata_version)


@cache
def _version_of(record_name: str, metadata_version: int) -> int:
    by_level = _RECORD_VERSIONS.get(record_name, ((0, 0),))
    return max(version for since, version in by_level if metadata_version >= since)


_RECORD_VERSIONS: Mapping[str, tuple[tuple[int, int], ...]] = MappingProxyType(
    {
        "RegisterBrokerRecord": (
            (0, 0),
            (7, 1),
            (8, 2),
            (DIRECTORY_METADATA_VERSION, 3),
            (CORDONED_DIRECTORIES_METADATA_VERSION, 4),
        ),
        "BrokerRegistrationChangeRecord": (
            (0, 0),
            (7, 1),
            (DIRECTORY_METADATA_VERSION, 2),
            (CORDONED_DIRECTORIES_METADATA_VERSION, 3),
        ),
        "PartitionRecord": ((0, 0), (DIRECTORY_METADATA_VERSION, 1), (ELR_METADATA_VERSION, 2)),
        "PartitionChangeRecord": (
            (0, 0),
            (DIRECTORY_METADATA_VERSION, 1),
            (ELR_METADATA_VERSION, 2),
        ),
    }
)
