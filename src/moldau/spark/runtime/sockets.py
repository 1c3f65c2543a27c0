"""Where Spark's Java and Python talk to each other on one machine.

Over TCP each of them waits for the other's acknowledgement, 40 ms, when a message is sent in
several pieces: neither side sets TCP_NODELAY. Of a micro-batch that was a third. Unix sockets do
not wait, and only the owner of their folder can reach them.
"""

from __future__ import annotations

import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["usable"]

# What a system takes as a socket's path, without the name that Spark gives it (`.UUID.sock`).
_PATH_MAX: Final = 107 if sys.platform == "linux" else 103
_NAME_LENGTH: Final = len("/.00000000-0000-0000-0000-000000000000.sock")


def usable(folder: Path) -> bool:
    """Whether sockets can be made there. What an earlier server has left is deleted."""
    if len(str(folder).encode()) + _NAME_LENGTH > _PATH_MAX:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    probe = folder / "probe"
    try:
        folder.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
            made.bind(str(probe))
    except (OSError, AttributeError):
        # Not every file system has sockets, and not every Python.
        return False
    finally:
        with suppress(OSError):
            probe.unlink()
    return True
