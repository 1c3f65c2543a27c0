"""Syncing a whole file system by one system call, where that is as good as syncing each file.

Linux reports failed writes through syncfs since 5.8 only, and not every file system commits to
its disk for it (FUSE passes it on for some servers only), so it is used where both are known.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
from typing import Final

#: statfs(2): the types of file systems that write their journal and flush the disk's cache.
EXT4: Final = 0xEF53
XFS: Final = 0x58465342
BTRFS: Final = 0x9123683E
TMPFS: Final = 0x01021994
_TRUSTED: Final = frozenset({EXT4, XFS, BTRFS, TMPFS})
_ERRORS_REPORTED_SINCE: Final = (5, 8)
#: More than any system's struct statfs; the type comes first.
_STATFS_SIZE: Final = 512


def _reports_errors() -> bool:
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    found = version is not None and (int(version[1]), int(version[2])) >= _ERRORS_REPORTED_SINCE
    return sys.platform == "linux" and found


def can_sync(fd: int) -> bool:
    """Whether `sync` can be relied on for the file system of this open file."""
    if not _reports_errors():
        return False
    found = ctypes.create_string_buffer(_STATFS_SIZE)
    if ctypes.CDLL(None, use_errno=True).fstatfs(fd, found) != 0:
        return False
    return struct.unpack_from("l", found)[0] & 0xFFFFFFFF in _TRUSTED


def sync(fd: int) -> None:
    """Make all that was written to the file system of this open file durable."""
    if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
