"""Which process listens on a port of this machine, by /proc (on Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["PortOwner", "port_owner"]

_PROC: Final = Path("/proc")
_LISTEN: Final = "0A"
_PROGRAM_WORDS: Final = 4


class PortOwner(NamedTuple):
    """`name` is the program, `command` the first words of its command line."""

    pid: int
    name: str
    command: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}: {self.command})"


def port_owner(port: int) -> PortOwner | None:
    """None if nothing listens there, or if it belongs to another user."""
    wanted = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not wanted:
        return None
    for entry in _PROC.glob("[0-9]*"):
        if wanted.intersection(_open_files(entry)):
            return _owner(entry)
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            local, state, inode = fields[1], fields[3], fields[9]
            if state == _LISTEN and int(local.rpartition(":")[2], 16) == port:
                yield inode


def _open_files(process: Path) -> Iterator[str]:
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            # It may be closed meanwhile.
            with suppress(OSError):
                yield os.readlink(descriptor)


def _owner(process: Path) -> PortOwner | None:
    try:
        name = (process / "comm").read_text().strip()
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    program = os.path.basename(words[0])
    shown = " ".join([program, *words[1 : 1 + _PROGRAM_WORDS]]).strip()
    return PortOwner(int(process.name), name, shown or name)
