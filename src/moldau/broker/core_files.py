"""Keeps secrets out of core files: what a process that crashes leaves behind on disk.

Passwords and keys are in the process's own memory. Linux leaves that out of core files if it is
told to, also where another program receives them; other systems write no core file at all.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

__all__ = ["keep_memory_out_of_core_files"]

FILTER: Final = Path("/proc/self/coredump_filter")
#: Anonymous memory, private and shared, and huge pages of both kinds: core(5).
_OWN_MEMORY: Final = 0b1100011


def keep_memory_out_of_core_files() -> None:
    """Also of processes that this one starts."""
    try:
        kept = int(FILTER.read_text(), 16) & ~_OWN_MEMORY
        FILTER.write_text(f"{kept:#x}\n")
    except (OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))
