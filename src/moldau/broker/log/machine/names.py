"""File and directory names inside a log directory, as Kafka spells them."""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import NamedTuple

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
TEMPORARY_SUFFIX = ".tmp"

SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETE_DIR_SUFFIX = "-delete"
FUTURE_DIR_SUFFIX = "-future"
STRAY_DIR_SUFFIX = "-stray"

META_PROPERTIES = "meta.properties"
LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
# Moldau's own; Kafka looks at nothing but directories and the names above.
INVENTORY_FILE = ".moldau_inventory"

# Longest directory name Kafka allows itself when it adds a suffix (most file systems
# stop at 255 bytes).
DIR_NAME_LENGTH_MAX = 255


# Most partitions of a broker begin at the same offsets.
@lru_cache(maxsize=4096)
def offset_prefix(offset: int) -> str:
    return f"{offset:020d}"


# The names in one partition's directory are those in thousands of others.
@lru_cache(maxsize=4096)
def offset_of_file(name: str) -> int | None:
    """The offset a file name begins with, or None for files named otherwise."""
    prefix = name.partition(".")[0]
    return int(prefix) if len(prefix) == 20 and prefix.isascii() and prefix.isdigit() else None


def partition_dir(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def suffixed_dir(topic: str, partition: int, unique: uuid.UUID, suffix: str) -> str:
    """`topic-0.0123abcd...-delete`: the topic is shortened when the name grows too long."""
    tail = f"-{partition}.{unique.hex}{suffix}"
    return topic[: DIR_NAME_LENGTH_MAX - len(tail)] + tail


_DIR_SUFFIXES = (DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)


class DirName(NamedTuple):
    topic: str
    partition: int
    suffix: str  # "", "-delete", "-future" or "-stray"


def parse_dir_name(name: str) -> DirName | None:
    """What a directory in a log dir is, or None when it is not a partition's."""
    suffix = ""
    if name.endswith(_DIR_SUFFIXES) and "." in name:
        suffix = name[name.rindex("-") :]
        name, _, unique = name.removesuffix(suffix).rpartition(".")
        if len(unique) != 32:
            return None
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        return None
    return DirName(topic, int(number), suffix)
