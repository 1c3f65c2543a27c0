"""Feature levels: what this version supports and what a new cluster starts with.

Levels only ever gain meaning; a name or number that was released never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.broker.metadata.machine.model import VersionRange
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.record_versions import ELR_METADATA_VERSION

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

MINIMUM_METADATA_VERSION = 7
LATEST_METADATA_VERSION = 30
TRANSACTIONS_METADATA_VERSION = 13
SCRAM_METADATA_VERSION = 11
SHRINK_WITHOUT_EPOCH_METADATA_VERSION = 12
DELEGATION_TOKEN_METADATA_VERSION = 14
CONTROLLER_REGISTRATION_METADATA_VERSION = 15

METADATA_VERSION_NAMES: Mapping[int, str] = MappingProxyType(
    {
        7: "3.3-IV3",
        8: "3.4-IV0",
        9: "3.5-IV0",
        10: "3.5-IV1",
        11: "3.5-IV2",
        12: "3.6-IV0",
        13: "3.6-IV1",
        14: "3.6-IV2",
        15: "3.7-IV0",
        16: "3.7-IV1",
        17: "3.7-IV2",
        18: "3.7-IV3",
        19: "3.7-IV4",
        20: "3.8-IV0",
        21: "3.9-IV0",
        22: "4.0-IV0",
        23: "4.0-IV1",
        24: "4.0-IV2",
        25: "4.0-IV3",
        26: "4.1-IV0",
        27: "4.1-IV1",
        28: "4.2-IV0",
        29: "4.2-IV1",
        30: "4.3-IV0",
    }
)

SUPPORTED_FEATURES: Mapping[str, VersionRange] = MappingProxyType(
    {
        METADATA_VERSION: VersionRange(MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION),
        KRAFT_VERSION: VersionRange(0, 1),
        TRANSACTION_VERSION: VersionRange(0, 2),
        GROUP_VERSION: VersionRange(0, 1),
        ELR_VERSION: VersionRange(0, 1),
        SHARE_VERSION: VersionRange(0, 1),
        STREAMS_VERSION: VersionRange(0, 1),
    }
)

# From which metadata.version on a new cluster starts with this level of the feature.
_DEFAULT_FROM: Mapping[str, tuple[tuple[int, int], ...]] = MappingProxyType(
    {
        TRANSACTION_VERSION: ((24, 2),),
        GROUP_VERSION: ((22, 1),),
        ELR_VERSION: ((26, 1),),
        SHARE_VERSION: ((28, 1),),
        STREAMS_VERSION: ((29, 1),),
    }
)


# Levels that brought new records or new versions of records.
_NEW_FORMAT_LEVELS = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})


class UnknownRelease(ValueError):
    """A release name that no supported metadata.version has."""


def metadata_version_of(release: str) -> int:
    """The level of a release: a full name such as 4.0-IV3, or 4.0 or 4.0.1 for its last level."""
    wanted = release.strip()
    for level, name in METADATA_VERSION_NAMES.items():
        if name == wanted:
            return level
    short = ".".join(wanted.split(".")[:2])
    levels = [
        level for level, name in METADATA_VERSION_NAMES.items() if name.split("-")[0] == short
    ]
    if not levels:
        raise UnknownRelease(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: "
            + ", ".join(METADATA_VERSION_NAMES.values())
        )
    return max(levels)


def default_features(metadata_version: int) -> dict[str, int]:
    """The levels, without metadata.version, that a new cluster of this version starts with."""
    levels: dict[str, int] = {}
    for name in sorted(_DEFAULT_FROM):
        level = max(
            (level for since, level in _DEFAULT_FROM[name] if metadata_version >= since), default=0
        )
        if level > 0:
            levels[name] = level
    return levels


def feature_dependencies(name: str, level: int) -> dict[str, int]:
    """What else must be finalized, at which level or above, for `name` to be at `level`."""
    if name == ELR_VERSION and level >= 1:
        return {METADATA_VERSION: ELR_METADATA_VERSION}
    return {}


def metadata_format_changed(one: int, other: int) -> bool:
    """Whether a log written at the higher metadata.version may hold what the lower cannot read."""
    low, high = sorted((one, other))
    return any(low < level <= high for level in _NEW_FORMAT_LEVELS)


def check_metadata_version(directory: str, level: int | None) -> None:
    """Raise MetadataError if this version of Moldau cannot read a log of that level."""
    if level is not None and level not in SUPPORTED_FEATURES[METADATA_VERSION]:
        raise MetadataError(
            f"{directory} has metadata.version {level}, but this version of"
            f" Moldau knows levels up to {LATEST_METADATA_VERSION}"
            f" ({METADATA_VERSION_NAMES[LATEST_METADATA_VERSION]}); start it with a newer one"
        )
